//! A limit for the case that there are few sessions.
//!
//! A limit keeps sessions from getting in each other's way. As long as there are few of them they
//! don't, and a change of the session that runs costs more than it brings: with 8 busy clients on 2
//! processors a limit of 4 gives 0.97 times the throughput without a pool and 2.5 times its 99th
//! percentile, a limit of 8 gives 1.08 times and the same percentile. With 64 clients it is the
//! other way round.

use crate::time::{Micros, Moment};

/// The limit for few sessions is so many times the usual one.
const WIDER: u32 = 2;
/// How long there must have been few of them. Many are believed at once.
const PROBATION: Micros = Micros::from_millis(20);

/// Chooses between the usual limit and the wider one. Pure: it sees only what it is told.
#[derive(Debug, Default)]
pub struct FewSessions {
    few_since: Option<Moment>,
}

impl FewSessions {
    /// The limit to use from now on, while `demand` sessions run or wait to run and `usual` is the
    /// usual limit.
    pub fn limit(&mut self, demand: i64, usual: u32, now: Moment) -> u32 {
        let wider = usual.saturating_mul(WIDER);
        if demand > i64::from(wider) {
            self.few_since = None;
            return usual;
        }
        let since = *self.few_since.get_or_insert(now);
        if now.since(since) >= PROBATION { wider } else { usual }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn few_sessions_get_the_wider_limit_after_a_while_and_many_end_it_at_once() {
        let mut few = FewSessions::default();
        let start = Moment(1);
        assert_eq!(few.limit(8, 4, start), 4);
        assert_eq!(few.limit(8, 4, start + Micros(PROBATION.0 - 1)), 4);
        assert_eq!(few.limit(8, 4, start + PROBATION), 8);
        assert_eq!(few.limit(9, 4, start + PROBATION), 4);
        assert_eq!(few.limit(8, 4, start + PROBATION), 4, "the probation begins again");
    }
}
