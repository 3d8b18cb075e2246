//! What processes use, as /proc tells: the server, and this one.

mod strace;

use std::collections::HashMap;

use procfs::{
    ProcError,
    process::{Process, Stat},
};
use serde::Serialize;
pub use strace::{SystemCalls, count_system_calls};

use crate::failure::Failure;

/// Context switches of one thread: voluntary, involuntary.
type Switches = (u64, u64);

/// Watches the server's process.
#[derive(Debug)]
pub struct ServerWatch {
    process: Process,
    begin: Stat,
    switches: HashMap<i32, Switches>,
    threads_max: u64,
    rss_max_bytes: u64,
}

/// What the server used while it was measured.
#[derive(Debug, Clone, Serialize)]
pub struct ServerUse {
    /// Processor time in user mode.
    pub user_seconds: f64,
    /// Processor time in the kernel.
    pub system_seconds: f64,
    /// Processor time for each transaction, in microseconds; none without transactions.
    pub cpu_us_per_transaction: Option<f64>,
    /// Threads that waited for something. Threads that ended meanwhile are missing.
    pub voluntary_switches: u64,
    /// Threads that were made to let others run.
    pub involuntary_switches: u64,
    /// Most threads at a time, looked at four times a second.
    pub threads_max: u64,
    /// Most memory at a time, looked at four times a second.
    pub rss_max_bytes: u64,
}

impl ServerWatch {
    /// Begins now.
    pub fn begin(pid: u32) -> Result<Self, Failure> {
        let unreadable = |error: ProcError| {
            Failure(format!(
                "--server-pid {pid}: can't read /proc/{pid} ({error}): give the process id of a server on this machine"
            ))
        };
        let process = Process::new(pid as i32).map_err(unreadable)?;
        let begin = process.stat().map_err(unreadable)?;
        let switches = switches(&process).map_err(unreadable)?;
        Ok(ServerWatch { process, begin, switches, threads_max: 0, rss_max_bytes: 0 })
    }

    /// Looks at what has no counter.
    pub fn sample(&mut self) {
        // The end of the process shows as failed transactions too.
        if let Ok(stat) = self.process.stat() {
            self.threads_max = self.threads_max.max(stat.num_threads.max(0) as u64);
            self.rss_max_bytes = self.rss_max_bytes.max(stat.rss * procfs::page_size());
        }
    }

    /// Ends now.
    pub fn end(mut self, transactions: u64) -> Result<ServerUse, Failure> {
        let gone = |error: ProcError| {
            Failure(format!("the server's process went away while it was measured: {error}"))
        };
        self.sample();
        let end = self.process.stat().map_err(gone)?;
        let (mut voluntary, mut involuntary) = (0, 0);
        for (thread, (now_voluntary, now_involuntary)) in switches(&self.process).map_err(gone)? {
            let (before_voluntary, before_involuntary) =
                self.switches.get(&thread).copied().unwrap_or_default();
            // A thread's number may have been used again.
            voluntary += now_voluntary.saturating_sub(before_voluntary);
            involuntary += now_involuntary.saturating_sub(before_involuntary);
        }
        let user_seconds = seconds(end.utime - self.begin.utime);
        let system_seconds = seconds(end.stime - self.begin.stime);
        Ok(ServerUse {
            user_seconds,
            system_seconds,
            cpu_us_per_transaction: (transactions > 0)
                .then(|| (user_seconds + system_seconds) * 1e6 / transactions as f64),
            voluntary_switches: voluntary,
            involuntary_switches: involuntary,
            threads_max: self.threads_max,
            rss_max_bytes: self.rss_max_bytes,
        })
    }
}

fn switches(process: &Process) -> Result<HashMap<i32, Switches>, ProcError> {
    let mut found = HashMap::new();
    for task in process.tasks()?.flatten() {
        // A thread may end while it is looked at.
        if let Ok(status) = task.status() {
            let count = (status.voluntary_ctxt_switches, status.nonvoluntary_ctxt_switches);
            found.insert(task.tid, (count.0.unwrap_or(0), count.1.unwrap_or(0)));
        }
    }
    Ok(found)
}

fn seconds(ticks: u64) -> f64 {
    ticks as f64 / procfs::ticks_per_second() as f64
}

/// Processor time that threads of this process have used so far.
pub fn own_thread_seconds(threads: &[i32]) -> Vec<f64> {
    let process = Process::myself().expect("this process exists");
    let used = |thread: &i32| {
        let stat = process.task_from_tid(*thread).and_then(|task| task.stat());
        stat.map_or(0.0, |stat| seconds(stat.utime + stat.stime))
    };
    threads.iter().map(used).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_watched() {
        let mut watch = ServerWatch::begin(std::process::id()).unwrap();
        watch.sample();
        let used = watch.end(10).unwrap();
        assert!(used.threads_max >= 1 && used.rss_max_bytes > 100_000, "{used:?}");
        assert!(used.user_seconds + used.system_seconds < 60.0, "{used:?}");
    }

    #[test]
    fn a_process_that_is_not_there_is_named() {
        // Beyond the highest number that Linux gives to a process.
        let Failure(message) = ServerWatch::begin(4_194_305).unwrap_err();
        assert!(message.contains("--server-pid 4194305"), "{message}");
    }
}
