//! Settings: the tables of system and status variables, and the values that the pool works with.

pub mod render;
pub mod rules;
pub mod status;
pub mod vars;

use crate::sync::{AtomicU64, Ordering};
use crate::time::Micros;
pub use rules::{Refusal, Values};

/// The present values of all system variables. Read without a lock on hot paths.
pub struct Settings {
    /// Written by the thread that executes `SET GLOBAL`; each value stands alone, so Relaxed.
    values: [AtomicU64; vars::RTP_VARIABLE_COUNT as usize],
    vcpus: u32,
}

impl Settings {
    /// The defaults on a machine with `vcpus` processors.
    pub fn defaults(vcpus: u32) -> Self {
        let vcpus = vcpus.max(1);
        let values = rules::default_values(u64::from(vcpus)).map(AtomicU64::new);
        Self { values, vcpus }
    }

    /// Processors at the server's disposal: CPU affinity and container limits are respected.
    pub fn machine_vcpus() -> u32 {
        std::thread::available_parallelism().map_or(1, |n| n.get() as u32)
    }

    /// Changes one variable, whatever the others are. A default that depends on the number of
    /// groups follows it.
    pub fn set(&self, index: u32, value: u64) -> Result<(), Refusal> {
        rules::check_range(index, value)?;
        let has_default_limit = self.transactions_limit().is_none();
        self.values[index as usize].store(value, Ordering::Relaxed);
        if index == vars::RTP_VARIABLE_SIZE && has_default_limit {
            self.values[vars::RTP_VARIABLE_MAX_TRANSACTIONS_LIMIT as usize]
                .store(rules::default_transactions_limit(value), Ordering::Relaxed);
        }
        Ok(())
    }

    /// Whether a variable may be changed to `value` while the others are what they are.
    pub fn check_change(&self, index: u32, value: u64) -> Result<(), Refusal> {
        let present = std::array::from_fn(|index| self.get(index as u32));
        rules::check_change(&present, index, value)
    }

    fn get(&self, index: u32) -> u64 {
        self.values[index as usize].load(Ordering::Relaxed)
    }

    /// Number of ordinary thread groups.
    pub fn groups(&self) -> u32 {
        self.get(vars::RTP_VARIABLE_SIZE) as u32
    }

    /// Idle workers that each group keeps.
    pub fn idle_workers_per_group(&self) -> u32 {
        self.get(vars::RTP_VARIABLE_QUERY_THREADS_PER_GROUP) as u32
    }

    /// Age from which an executing statement counts as stalled.
    pub fn stall_limit(&self) -> Micros {
        Micros::from_millis(self.get(vars::RTP_VARIABLE_STALL_LIMIT) * 10)
    }

    /// How long an entry of a low queue waits before it goes before the high queue.
    pub fn prio_kickup_timer(&self) -> Micros {
        Micros::from_millis(self.get(vars::RTP_VARIABLE_PRIO_KICKUP_TIMER))
    }

    /// Parked workers that a group keeps.
    pub fn max_unused_workers_per_group(&self) -> u32 {
        match self.get(vars::RTP_VARIABLE_MAX_UNUSED_THREADS) as u32 {
            0 => u32::MAX,
            most => most,
        }
    }

    /// Transactions that may be open at the same time; `None` stands for any number, which is
    /// what the default means.
    pub fn transactions_limit(&self) -> Option<usize> {
        let limit = self.get(vars::RTP_VARIABLE_MAX_TRANSACTIONS_LIMIT);
        let default = rules::default_transactions_limit(self.get(vars::RTP_VARIABLE_SIZE));
        (limit != 0 && limit != default).then_some(limit as usize)
    }

    /// Age from which a transaction doesn't count any more.
    pub fn longrun_trx_limit(&self) -> Micros {
        Micros::from_millis(self.get(vars::RTP_VARIABLE_LONGRUN_TRX_LIMIT))
    }

    /// Time between two reports about connections; zero if there are none.
    pub fn connection_report_interval(&self) -> Micros {
        Micros::from_secs(self.get(vars::RTP_VARIABLE_CONNECTION_REPORT_INTERVAL))
    }

    /// How long the beginning of a transaction is delayed.
    pub fn transaction_delay(&self) -> Micros {
        Micros::from_millis(self.get(vars::RTP_VARIABLE_TRANSACTION_DELAY))
    }

    /// True if transactions are limited or delayed.
    pub fn holds_back_transactions(&self) -> bool {
        self.transactions_limit().is_some() || self.transaction_delay().0 > 0
    }

    /// How long a worker waits for events in vain before it may retire.
    pub fn idle_timeout(&self) -> Micros {
        Micros::from_secs(self.get(vars::RTP_VARIABLE_IDLE_TIMEOUT))
    }

    /// Workers that the pool has at most, apart from those for sessions that hold locks.
    pub fn max_workers(&self) -> u32 {
        self.get(vars::RTP_VARIABLE_MAX_THREADS) as u32
    }

    /// What Oracle's pool calls the algorithm that is set; it makes no difference here.
    pub fn algorithm_name(&self) -> &'static str {
        let has_listeners = self.get(vars::RTP_VARIABLE_DEDICATED_LISTENERS) != 0;
        match self.get(vars::RTP_VARIABLE_ALGORITHM) {
            _ if has_listeners => "Dedicated Listeners",
            0 => "Low Concurrency",
            _ => "High Concurrency",
        }
    }

    /// Statements that may execute at the same time: as the user says in one of two ways, or twice
    /// the number of processors.
    pub fn concurrency_limit(&self) -> u32 {
        let limit = self.get(vars::RTP_VARIABLE_CONCURRENCY_LIMIT) as u32;
        let oversubscribe = self.get(vars::RTP_VARIABLE_OVERSUBSCRIBE) as u32;
        match (limit, oversubscribe) {
            (0, 0) => self.vcpus.saturating_mul(2),
            (0, more) => self.groups().saturating_mul(more.saturating_add(1)),
            (limit, _) => limit,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_value_out_of_range_changes_nothing() {
        let settings = Settings::defaults(2);
        let before = settings.stall_limit();
        assert!(settings.set(vars::RTP_VARIABLE_STALL_LIMIT, 601).is_err());
        assert_eq!(settings.stall_limit(), before);
        assert!(settings.set(99, 1).is_err());
    }

    #[test]
    fn a_change_is_compared_with_the_present_values_of_the_others() {
        let settings = Settings::defaults(2);
        assert_eq!(settings.check_change(vars::RTP_VARIABLE_QUERY_THREADS_PER_GROUP, 32), Ok(()));
        settings.set(vars::RTP_VARIABLE_MAX_TRANSACTIONS_LIMIT, 31).unwrap();
        assert!(settings.check_change(vars::RTP_VARIABLE_QUERY_THREADS_PER_GROUP, 32).is_err());
    }

    #[test]
    fn transactions_are_limited_only_if_somebody_says_so() {
        let settings = Settings::defaults(2);
        assert_eq!(settings.transactions_limit(), None);
        settings.set(vars::RTP_VARIABLE_SIZE, 4).unwrap();
        assert_eq!(settings.transactions_limit(), None, "the default follows the groups");
        assert!(!settings.holds_back_transactions());
        settings.set(vars::RTP_VARIABLE_MAX_TRANSACTIONS_LIMIT, 3).unwrap();
        assert_eq!(settings.transactions_limit(), Some(3));
        settings.set(vars::RTP_VARIABLE_SIZE, 8).unwrap();
        assert_eq!(settings.transactions_limit(), Some(3));
        assert!(settings.holds_back_transactions());
        settings.set(vars::RTP_VARIABLE_MAX_TRANSACTIONS_LIMIT, 0).unwrap();
        assert_eq!(settings.transactions_limit(), None);
        settings.set(vars::RTP_VARIABLE_TRANSACTION_DELAY, 1).unwrap();
        assert!(settings.holds_back_transactions());
    }

    #[test]
    fn the_concurrency_limit_is_twice_the_processors_unless_set() {
        let settings = Settings::defaults(3);
        assert_eq!(settings.concurrency_limit(), 6);
        settings.set(vars::RTP_VARIABLE_SIZE, 4).unwrap();
        settings.set(vars::RTP_VARIABLE_OVERSUBSCRIBE, 3).unwrap();
        assert_eq!(settings.concurrency_limit(), 16, "four groups with 1 + 3 workers each");
        settings.set(vars::RTP_VARIABLE_CONCURRENCY_LIMIT, 5).unwrap();
        assert_eq!(settings.concurrency_limit(), 5);
    }
}
