//! The report about connections in the error log (`thread_pool_connection_report_interval`).
//!
//! `Init:` logins begun, waiting, under way, failed, succeeded. `Usr:` and `Adm:` connections (and
//! by how many they have become more or less), how many of them have been busy, how many were
//! opened and closed, and how many of the present ones are new and how many former ones are gone. All since the
//! last report, except those that wait or are under way. Names and order are Oracle's.

use crate::conn::{Look, Phase};
use crate::pool::Pool;
use crate::time::{Micros, Moment};

/// For how long after the pool's start reports come more often.
const START: Micros = Micros::from_secs(180);
/// How much more often.
const OFTEN: u64 = 10;

/// Writes the reports; belongs to the warden.
#[derive(Default)]
pub struct Reporter {
    last: Moment,
    before: Totals,
}

/// Numbers that only grow, except for connections.
#[derive(Clone, Copy, Default)]
struct Totals {
    accepted: u64,
    failed: u64,
    users: Lane,
    admins: Lane,
}

/// Ordinary or admin connections.
#[derive(Clone, Copy, Default)]
struct Lane {
    opened: u64,
    closed: u64,
}

/// What a walk over the connections finds.
#[derive(Clone, Copy, Default)]
struct Found {
    active: u64,
    added: u64,
}

impl Reporter {
    /// When the next report is due. `None` if none is wanted, which an interval of zero says.
    pub fn next_at(&self, interval: Micros) -> Option<Moment> {
        let divisor = if self.last.0 < START.0 { OFTEN } else { 1 };
        (interval.0 > 0).then(|| self.last + Micros(interval.0 / divisor))
    }

    /// The report of this moment. Takes no lock for longer than a few instructions.
    pub fn write(&mut self, pool: &Pool, now: Moment) -> String {
        let (accepted, waiting, under_way) = pool.logins.counts();
        let users = pool.ordinary_groups().iter().fold(Lane::default(), |sum, group| {
            let (opened, closed) = group.stats.connections();
            Lane { opened: sum.opened + opened, closed: sum.closed + closed }
        });
        let (opened, closed) = pool.admin_group().stats.connections();
        let admins = Lane { opened, closed };
        let succeeded = users.opened + admins.opened;
        let pending = (waiting + under_way) as u64;
        let failed = accepted.saturating_sub(succeeded + pending);
        let after = Totals { accepted, failed, users, admins };

        let mut found = [Found::default(); 2];
        pool.connections.for_each(|_, look| {
            found[usize::from(look.group == pool.admin_group().id)].count(&look, self.last);
        });
        let before = &self.before;
        let text = format!(
            "Init: {}, {waiting}, {under_way}, {}, {}. Usr: {}. Adm: {}.",
            after.accepted - before.accepted,
            after.failed.saturating_sub(before.failed),
            succeeded - before.users.opened - before.admins.opened,
            after.users.describe(&before.users, &found[0]),
            after.admins.describe(&before.admins, &found[1]),
        );
        self.before = after;
        self.last = now;
        text
    }
}

impl Lane {
    fn describe(&self, before: &Self, found: &Found) -> String {
        let connections = (self.opened - self.closed) as i64;
        let change = connections - (before.opened - before.closed) as i64;
        let (opened, closed) = (self.opened - before.opened, self.closed - before.closed);
        // Of those that were opened, some may have been closed again.
        let short_lived = opened.saturating_sub(found.added);
        let dropped = closed.saturating_sub(short_lived);
        let Found { active, added } = found;
        format!("{connections}({change:+}), {active}, {opened}, {closed}, {added}, {dropped}")
    }
}

impl Found {
    fn count(&mut self, look: &Look, last_report: Moment) {
        let was_active = look.phase != Phase::Armed || look.numbers.rested_at > last_report;
        self.active += u64::from(was_active);
        self.added += u64::from(look.numbers.added_at > last_report);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_come_ten_times_as_often_in_the_first_three_minutes() {
        let minute = Micros::from_secs(60);
        let next = |last| Reporter { last, ..Reporter::default() }.next_at(minute);
        assert_eq!(next(Moment(0)), Some(Moment(6_000_000)));
        assert_eq!(next(Moment(179_999_999)), Some(Moment(185_999_999)));
        assert_eq!(next(Moment(180_000_000)), Some(Moment(240_000_000)));
        assert_eq!(Reporter::default().next_at(Micros(0)), None);
    }

    #[test]
    fn short_lived_connections_are_neither_added_nor_dropped() {
        let before = Lane { opened: 10, closed: 4 };
        let after = Lane { opened: 15, closed: 10 };
        let found = Found { active: 1, added: 2 };
        // Five came, of which three are gone again, and so are three of the six old ones.
        assert_eq!(after.describe(&before, &found), "5(-1), 1, 5, 6, 2, 3");
    }
}
