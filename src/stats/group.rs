//! Numbers of one thread group that no single thread could count.

use crate::time::Moment;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Counters of rare events: logins, closed connections, new threads. Any thread adds to them.
#[derive(Default)]
pub struct GroupStats {
    opened: AtomicU64,
    closed: AtomicU64,
    threads_started: AtomicU64,
    most_threads: AtomicU32,
    /// In µs; 0 if no thread has been started.
    thread_started_at_us: AtomicU64,
    /// Times that the warden woke or started a worker.
    warden_wakes: AtomicU64,
}

impl GroupStats {
    /// A connection was placed here.
    pub(crate) fn connection_opens(&self) {
        self.opened.fetch_add(1, Relaxed);
    }

    /// A connection is gone.
    pub(crate) fn connection_closes(&self) {
        self.closed.fetch_add(1, Relaxed);
    }

    /// A worker is being started; with it there are `workers`.
    pub(crate) fn thread_starts(&self, workers: u32, now: Moment) {
        self.threads_started.fetch_add(1, Relaxed);
        self.most_threads.fetch_max(workers, Relaxed);
        self.thread_started_at_us.store(now.0, Relaxed);
    }

    /// The warden woke or started a worker for the group.
    pub(crate) fn warden_wakes(&self) {
        self.warden_wakes.fetch_add(1, Relaxed);
    }

    /// Connections placed here so far, and how many of them are gone. Never more gone than placed.
    pub fn connections(&self) -> (u64, u64) {
        let closed = self.closed.load(Relaxed);
        (self.opened.load(Relaxed).max(closed), closed)
    }

    /// Workers started so far.
    pub fn threads_started(&self) -> u64 {
        self.threads_started.load(Relaxed)
    }

    /// Most workers that there have been at the same time.
    pub fn most_threads(&self) -> u32 {
        self.most_threads.load(Relaxed)
    }

    /// When the last worker was started.
    pub fn thread_started_at(&self) -> Option<Moment> {
        Some(Moment(self.thread_started_at_us.load(Relaxed))).filter(|at| at.0 != 0)
    }

    /// Times that the warden woke or started a worker.
    pub fn wakes_by_warden(&self) -> u64 {
        self.warden_wakes.load(Relaxed)
    }
}
