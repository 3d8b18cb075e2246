//! The pool's invariants (`lib.rs`), checked while a simulation runs.

use super::Simulation;
use super::server::Command;
use super::threads::SimThread;
use crate::admission::Credit;
use crate::conn::Owned;
use crate::group::Group;
use crate::sync::Ordering;
use crate::time::{Micros, Moment};
use crate::worker::WorkerShared;

/// The warden tries again when a thread was refused.
const SPAWN_PAUSE: Micros = Micros::from_millis(100);
/// The warden's own interval while something is amiss.
const WARDEN_TICK: Micros = Micros(2_000);

impl Simulation {
    /// Invariant 3: credits in use are those that workers hold.
    pub(super) fn check_always(&self) {
        let workers = self.threads.iter().filter_map(|thread| thread.worker());
        let held = workers.filter(|w| w.credit.get() == Credit::Held).count() as i64;
        assert_eq!(self.pool.credits.used(), held, "credits in use and credits held differ");
        self.check_transactions();
    }

    /// No more transactions are open than may be: sessions that hold locks or execute a statement
    /// that may lead to that.
    fn check_transactions(&self) {
        let Some(limit) = self.pool.settings.transactions_limit() else { return };
        let executing = self.threads.iter().filter_map(SimThread::statement_in_execution);
        let mut open: Vec<i32> = self.server.lock_holders();
        open.extend(executing.filter_map(|(owned, command)| {
            let connection = self.pool.connections.get(owned.token())?;
            (command != Command::Quit).then_some(connection.fd())
        }));
        open.retain(|fd| !self.is_admin(*fd));
        open.sort_unstable();
        open.dedup();
        assert!(!self.is_steady || open.len() <= limit, "{} of {limit} transactions", open.len());
    }

    /// A statement that isn't inside a transaction has waited for its delay.
    pub(super) fn check_was_delayed(&self, fd: i32, command: Command, queueing: Micros) {
        let delay = self.pool.settings.transaction_delay();
        let is_exempt = self.is_admin(fd)
            || command == Command::Quit
            || self.server.with(fd, |session| !session.locks.is_empty());
        assert!(!self.is_steady || is_exempt || queueing >= delay, "begun after {queueing:?}");
    }

    /// Nobody but a lock holder or a cheap command begins while more statements run than the limit
    /// allows, unless it has waited for the kick-up time.
    pub(super) fn check_may_begin(&self, worker: &WorkerShared, owned: &Owned) {
        let connection = self.pool.connections.get(owned.token()).expect("it has a slot");
        let (client, now) = (self.client_of(connection.fd()), self.now());
        let kick_up = self.pool.settings.prio_kickup_timer();
        let is_overdue =
            self.clients[client].waits_since().is_none_or(|at| now.since(at) >= kick_up);
        let may_begin = self.pool.group(worker.group).is_admin
            || self.pool.credits.free() >= 0
            || connection.holds_locks()
            || self.kernel.next_is_cheap(connection.fd())
            || is_overdue;
        assert!(may_begin, "client {client} begins in spite of {}", self.pool.credits.free());
    }

    /// How long work has been waiting for a worker although a credit was free.
    pub(super) fn note_waste(&mut self, next_event: Moment) {
        let pool = &self.pool;
        let waits = |group: &Group| group.queued() > 0 || self.kernel.has_events(group.id);
        let wasted = pool.credits.free() > 0 && pool.ordinary_groups().iter().any(waits);
        if !wasted {
            self.wasted_since = None;
            return;
        }
        let since = *self.wasted_since.get_or_insert(self.kernel.now());
        self.report.longest_waste = self.report.longest_waste.max(next_event.since(since));
    }

    /// Invariants 4 and 5: when every thread sleeps or executes a statement, nothing waits that
    /// could run.
    pub(super) fn check_before_time_passes(&self) {
        if self.threads.iter().any(SimThread::is_awake) {
            return;
        }
        // The admin group gets a further worker only if the warden finds it without one twice.
        let warden_looks = self.threads[0].wakes_at() <= self.now() + WARDEN_TICK;
        let warden_tries_again =
            self.thread_shortage && self.threads[0].wakes_at() <= self.now() + SPAWN_PAUSE;
        let all_workers_used = self.workers() >= self.pool.settings.max_workers();
        for group in self.pool.groups() {
            let may_run = match group.is_admin {
                true => !warden_looks,
                false => self.pool.credits.free() > 0 && !all_workers_used && !warden_tries_again,
            };
            let waits = group.queued() > 0 || self.kernel.has_events(group.id);
            assert!(
                !(may_run && waits),
                "group {} waits though {} credits are free: {} queued, {} pollers, {} parked, {} \
                 starting",
                group.id,
                self.pool.credits.free(),
                group.queued(),
                group.counters.pollers.load(Ordering::SeqCst),
                group.counters.parked.load(Ordering::SeqCst),
                group.counters.starting.load(Ordering::SeqCst),
            );
        }
    }

    fn workers(&self) -> u32 {
        let groups = self.pool.ordinary_groups().iter();
        groups.map(|g| g.counters.workers.load(Ordering::SeqCst)).sum()
    }

    /// Nothing is lost, and an idle pool has no threads beyond those it keeps and no timers.
    pub(super) fn check_at_rest(&self) {
        assert!(self.unfinished_clients().is_empty(), "clients {:?} wait for ever", {
            self.unfinished_clients()
        });
        assert_eq!(self.server.open_sessions(), 0, "sessions left open");
        assert!(self.pool.connections.is_empty(), "slots left in use");
        assert_eq!(self.pool.credits.used(), 0, "credits left in use");
        assert_eq!(self.pool.transactions.lock().open(), 0, "transactions that never end");
        assert!(self.pool.timers.lock().len() < 1_024 + 2 * self.clients.len());
        let keep = self.pool.settings.idle_workers_per_group();
        for group in self.pool.groups() {
            let workers = group.counters.workers.load(Ordering::SeqCst);
            assert!(workers <= keep.max(1), "group {} keeps {workers} idle workers", group.id);
            assert_eq!(group.counters.connections.load(Ordering::SeqCst), 0);
        }
    }
}
