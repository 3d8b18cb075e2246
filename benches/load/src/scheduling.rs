//! How the client's threads share processors with the server's.
//!
//! A thread that sleeps often gets a processor at once when it is woken. For an event loop beside a server that means: each
//! answer pushes aside the very server thread that sent it, the loop serves one connection and sleeps again. Sysbench's
//! threads are too many and too busy for that. Policy SCHED_BATCH takes this right away and nothing else.

use std::io;

use clap::ValueEnum;
use serde::Serialize;

/// The policy of the threads that drive connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheduling {
    /// They wait for their turn (SCHED_BATCH): more throughput when the machine is full.
    Batch,
    /// They are served at once (SCHED_OTHER): as a client on another machine would be.
    Normal,
}

impl Scheduling {
    /// For the calling thread.
    pub fn apply(self) -> io::Result<()> {
        let policy = match self {
            Scheduling::Batch => libc::SCHED_BATCH,
            Scheduling::Normal => libc::SCHED_OTHER,
        };
        let parameters = libc::sched_param { sched_priority: 0 };
        // SAFETY: the parameters outlive the call, which only reads them; 0 is the calling thread.
        #[expect(unsafe_code, reason = "a system call without a safe wrapper")]
        let result = unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_is_that_of_the_thread() {
        for (scheduling, policy) in [(Scheduling::Batch, 3), (Scheduling::Normal, 0)] {
            scheduling.apply().unwrap();
            // Field 41 of the thread's stat.
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
            assert_eq!(fields[41 - 3], policy.to_string());
        }
    }
}
