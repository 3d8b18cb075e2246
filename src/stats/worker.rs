//! What a worker's steps mean for the numbers. The worker's own decisions know nothing of it.

use super::thread::{Activity, ThreadStats};
use crate::conn::{Owned, Token};
use crate::pool::Pool;
use crate::time::{Micros, Moment};
use crate::worker::{Done, Want};

/// Watches the steps of one worker.
#[derive(Default)]
pub(crate) struct Recorder {
    /// When the present turn began, and whose it is.
    turn: Option<(Moment, Token)>,
    /// When the present statement began.
    statement_since: Moment,
}

impl Recorder {
    /// The driver comes back with something done.
    pub(crate) fn done(&mut self, stats: &ThreadStats, now: Moment, done: &Done) {
        match done {
            Done::Executed(_, outcome) => {
                stats.statement_ends(now.since(self.statement_since), outcome.holds_locks);
            }
            Done::Rested | Done::Closed | Done::Detached(_) => {
                self.turn_ends(stats, now);
            }
            _ => {}
        }
    }

    /// The worker has decided what it wants.
    pub(crate) fn wants(&mut self, stats: &ThreadStats, pool: &Pool, now: Moment, want: &Want) {
        match want {
            Want::Execute(owned) => {
                self.turn_begins(stats, pool, now, owned);
                self.statement_since = now;
            }
            Want::Await(owned, _) | Want::Close(owned, _) => {
                self.turn_begins(stats, pool, now, owned);
            }
            Want::Rest(owned) => connection_stats(pool, owned, |connection| connection.rests(now)),
            Want::Poll { timeout, .. } => {
                self.turn_ends(stats, now);
                stats.set_activity(Activity::Polling);
                if *timeout != Some(Micros(0)) {
                    stats.polls();
                }
            }
            Want::Park { .. } => {
                self.turn_ends(stats, now);
                stats.set_activity(Activity::Parked);
                stats.parks();
            }
            Want::Detach(_) | Want::Exit => {}
        }
    }

    fn turn_begins(&mut self, stats: &ThreadStats, pool: &Pool, now: Moment, owned: &Owned) {
        if self.turn.is_some_and(|(_, token)| token == owned.token()) {
            return;
        }
        self.turn_ends(stats, now);
        self.turn = Some((now, owned.token()));
        connection_stats(pool, owned, |connection| {
            let was_queued = connection.turn_begins((stats.group, stats.number()), now);
            stats.turn_begins(if was_queued { Activity::Queued } else { Activity::Direct }, now);
        });
    }

    /// Also for a turn that ended without a command, since the connection had to be held back.
    fn turn_ends(&mut self, stats: &ThreadStats, now: Moment) {
        if let Some((since, _)) = self.turn.take() {
            stats.turn_ends(now.since(since));
        }
    }
}

fn connection_stats(pool: &Pool, owned: &Owned, f: impl FnOnce(&super::ConnectionStats)) {
    if let Some(connection) = pool.connections.get(owned.token()) {
        f(connection.stats());
    }
}
