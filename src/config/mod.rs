//! Settings: the tables of system and status variables, and the values that the pool works with.

pub mod status;
pub mod vars;

use crate::sync::{AtomicU64, Ordering};
use crate::time::Micros;

/// A number that the table of variables doesn't allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfRange {
    /// Full sentence with name, value and limits.
    pub message: String,
}

/// The present values of all system variables. Read without a lock on hot paths.
pub struct Settings {
    /// Written by the thread that executes `SET GLOBAL`; each value stands alone, so Relaxed.
    values: [AtomicU64; vars::RTP_VARIABLE_COUNT as usize],
    vcpus: u32,
    max_workers: u32,
}

/// Workers that one pool has at most. Each session that waits for a lock occupies one; when they
/// are all in use, statements wait in the queue, except those of sessions that hold locks.
const MAX_WORKERS: u32 = 1_024;

impl Settings {
    /// The defaults on a machine with `vcpus` processors.
    pub fn defaults(vcpus: u32) -> Self {
        let vcpus = vcpus.max(1);
        let value = |index| vars::default_value(index as u32, u64::from(vcpus)).unwrap_or(0);
        Self {
            values: std::array::from_fn(|index| AtomicU64::new(value(index))),
            vcpus,
            max_workers: MAX_WORKERS,
        }
    }

    /// The same with another bound for the number of workers.
    pub fn with_max_workers(self, max_workers: u32) -> Self {
        Self { max_workers, ..self }
    }

    /// Workers that the pool has at most, apart from those for sessions that hold locks.
    pub fn max_workers(&self) -> u32 {
        self.max_workers
    }

    /// Processors at the server's disposal: CPU affinity and container limits are respected.
    pub fn machine_vcpus() -> u32 {
        std::thread::available_parallelism().map_or(1, |n| n.get() as u32)
    }

    /// Changes one variable.
    pub fn set(&self, index: u32, value: u64) -> Result<(), OutOfRange> {
        let Some(variable) = vars::VARIABLES.get(index as usize) else {
            return Err(OutOfRange { message: format!("there is no system variable {index}") });
        };
        if !(variable.min..=variable.max).contains(&value) {
            let message = format!(
                "thread_pool_{} can't be {value}: use {} to {}",
                variable.name, variable.min, variable.max
            );
            return Err(OutOfRange { message });
        }
        self.values[index as usize].store(value, Ordering::Relaxed);
        Ok(())
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

    /// Statements that may execute at the same time: the variable, or twice the number of
    /// processors when it is 0.
    pub fn concurrency_limit(&self) -> u32 {
        match self.get(vars::RTP_VARIABLE_CONCURRENCY_LIMIT) as u32 {
            0 => self.vcpus.saturating_mul(2),
            limit => limit,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_value_out_of_range_changes_nothing_and_the_message_says_what_to_do() {
        let settings = Settings::defaults(2);
        let before = settings.stall_limit();
        let error = settings.set(vars::RTP_VARIABLE_STALL_LIMIT, 601).unwrap_err();
        assert_eq!(error.message, "thread_pool_stall_limit can't be 601: use 4 to 600");
        assert_eq!(settings.stall_limit(), before);
        assert!(settings.set(99, 1).is_err());
    }

    #[test]
    fn the_concurrency_limit_is_twice_the_processors_unless_set() {
        let settings = Settings::defaults(3);
        assert_eq!(settings.concurrency_limit(), 6);
        settings.set(vars::RTP_VARIABLE_CONCURRENCY_LIMIT, 5).unwrap();
        assert_eq!(settings.concurrency_limit(), 5);
    }
}
