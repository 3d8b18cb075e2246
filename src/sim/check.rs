//! The pool's invariants (`lib.rs`) and its promises (README.md of the groups), checked while a
//! simulation runs.

use super::Simulation;
use super::server::Command;
use super::threads::SimThread;
use crate::admission::Credit;
use crate::conn::{Owned, Phase, Token};
use crate::group::{Group, GroupId};
use crate::sync::Ordering;
use crate::time::{Micros, Moment};
use crate::worker::WorkerShared;
use std::collections::HashMap;

/// The warden tries again when a thread was refused.
const SPAWN_PAUSE: Micros = Micros::from_millis(100);
/// The warden's own interval while something is amiss.
const WARDEN_TICK: Micros = Micros(2_000);
/// Places are checked after one of so many events, since that looks at every connection.
const EVENTS_BETWEEN_LOOKS: u64 = 16;
/// Work that may run is served within this time while nobody loses its processor for long.
const LONGEST_WASTE: Micros = Micros(2_000);
/// So is a session that holds locks, whoever runs. If many of them want to run beyond the limit at
/// once, each may need a worker, and the warden starts one of a group in each look.
const LONGEST_HOLDER_QUEUEING: Micros = Micros::from_millis(10);
/// No statement or preemption of a simulation is this long, but some timeouts are.
const LONGEST_SHUTDOWN: Micros = Micros::from_millis(900);
/// Whoever waits is served this much after the kick-up time, when it is the only one.
const KICK_UP_GRACE: Micros = Micros::from_millis(50);
/// Others that are overdue follow at this distance.
const KICK_UP_INTERVAL: Micros = Micros::from_millis(10);
/// A thread that loses its processor for longer than this can't keep the bounds.
const SHORT_PREEMPTION: Micros = Micros(400);
/// Workers of a group that may be on the way from one job to the next, beside one for each credit.
const WORKERS_BETWEEN_JOBS: usize = 4;

impl Simulation {
    /// Invariant 3: credits in use are those that workers hold.
    pub(super) fn check_always(&self) {
        let workers = self.threads.iter().filter_map(|thread| thread.worker());
        let held = workers.filter(|w| w.credit.get() == Credit::Held).count() as i64;
        assert_eq!(self.pool.credits.used(), held, "credits in use and credits held differ");
        self.check_transactions();
        if self.sequence.is_multiple_of(EVENTS_BETWEEN_LOOKS) {
            self.check_places();
            self.check_counters();
        }
    }

    /// Invariant 1: each connection has exactly one owner: one thread, a queue, or a poller.
    fn check_places(&self) {
        let mut owners: HashMap<Token, usize> = HashMap::new();
        let mut entries: HashMap<Token, usize> = HashMap::new();
        for owned in self.threads.iter().filter_map(SimThread::owned) {
            *owners.entry(owned.token()).or_default() += 1;
        }
        for group in self.pool.groups() {
            group.state.lock().tokens().for_each(|token| *entries.entry(token).or_default() += 1);
        }
        for token in self.pool.held_back() {
            *entries.entry(token).or_default() += 1;
        }
        for token in self.pool.connections.tokens() {
            let connection = self.pool.connections.get(token).expect("it is in use");
            let phase = connection.phase();
            let queued = entries.get(&token).copied().unwrap_or(0);
            let is_in_place = match phase {
                Phase::Owned => owners.remove(&token) == Some(1),
                // A kill or a timeout adds a second entry; the first that is taken wins.
                Phase::Queued => queued >= 1,
                // After a forgiven timeout an event can be left over.
                Phase::Armed => self.events_of(token, connection.group(), connection.fd()) >= 1,
                Phase::Free => false,
            };
            assert!(is_in_place, "{token:?} is {phase:?}, but has {queued} entries");
        }
        assert!(owners.is_empty(), "threads own connections that aren't theirs: {owners:?}");
    }

    /// Events of an idle connection that wait in the kernel or that a thread has collected.
    fn events_of(&self, token: Token, group: GroupId, fd: i32) -> usize {
        let collected = self.threads.iter().flat_map(SimThread::events);
        collected.filter(|event| **event == token).count() + self.kernel.events_of(group, fd, token)
    }

    /// What is read without the lock is what the lock protects.
    fn check_counters(&self) {
        let mut connections = vec![0; self.pool.groups().len()];
        for token in self.pool.connections.tokens() {
            let connection = self.pool.connections.get(token).expect("it is in use");
            connections[connection.group() as usize] += 1;
        }
        for (group, connections) in self.pool.groups().iter().zip(connections) {
            let counters = &group.counters;
            let state = group.state.lock();
            assert_eq!(group.queued(), state.queued());
            assert_eq!(counters.parked.load(Ordering::SeqCst), state.parked());
            assert_eq!(counters.connections.load(Ordering::SeqCst), connections);
        }
    }

    /// A group gets a further worker only if those that it has are busy; there are never more
    /// workers than the bound but for sessions that hold locks.
    pub(super) fn check_may_be_started(&mut self, group: GroupId) {
        if self.pool.group(group).is_admin {
            return;
        }
        let holders = self.server.lock_holders().len() + WORKERS_BETWEEN_JOBS;
        let most = self.pool.settings.max_workers() as usize + holders;
        let workers = self.pool.workers() as usize;
        assert!(workers <= most, "{workers} workers, {most} are allowed");
        let is_colleague = |t: &&SimThread| t.worker().is_some_and(|w| w.group == group);
        let colleagues = self.threads.iter().filter(is_colleague);
        // The new one is among them.
        let idle = colleagues.filter(|thread| !thread.is_executing()).count() - 1;
        self.report.most_idle_colleagues = self.report.most_idle_colleagues.max(idle);
        let allowed = self.highest_limit as usize + holders;
        assert!(idle <= allowed, "group {group} has {idle} workers without a statement");
    }

    /// Nothing but the workload decides how long something waits.
    fn is_undisturbed(&self) -> bool {
        self.longest_preemption <= SHORT_PREEMPTION && !self.thread_shortage
    }

    /// Nobody waits too long for its turn: neither who holds locks nor who doesn't.
    pub(super) fn check_queueing(&mut self) {
        if !self.is_undisturbed() {
            return;
        }
        let holders = self.server.lock_holders().len();
        self.report.most_lock_holders = self.report.most_lock_holders.max(holders);
        let (report, others) = (&self.report, self.clients.len() as u64);
        let holder = report.longest_holder_queueing;
        let looks = report.most_lock_holders.saturating_sub(1) as u64;
        let bound = Micros(LONGEST_HOLDER_QUEUEING.0 + looks * WARDEN_TICK.0);
        assert!(holder < bound, "a lock holder waited {holder:?}, {bound:?} are allowed");
        let kick_up = self.pool.settings.prio_kickup_timer();
        let bound = Micros(kick_up.0 + KICK_UP_GRACE.0 + others * KICK_UP_INTERVAL.0);
        let low = report.longest_low_queueing;
        // Whoever wants to begin a transaction may have to wait for others to end theirs.
        let in_time = low < bound || self.pool.settings.holds_back_transactions();
        assert!(in_time, "a session waited {low:?}, {bound:?} are allowed");
    }

    /// No transaction waits that may begin, and no more are open than may be: sessions that hold
    /// locks or execute a statement that may lead to that.
    fn check_transactions(&self) {
        let limit = self.pool.settings.transactions_limit();
        {
            let transactions = self.pool.transactions.lock();
            let has_room = limit.is_none_or(|limit| transactions.open() < limit);
            assert!(
                !has_room || transactions.waiting() == 0,
                "a transaction waits though it may begin"
            );
        }
        let Some(limit) = limit else { return };
        let executing = self.threads.iter().filter_map(SimThread::statement_in_execution);
        let mut open: Vec<i32> = self.server.lock_holders();
        open.extend(executing.filter_map(|(owned, command)| {
            let connection = self.pool.connections.get(owned.token())?;
            (command != Command::Quit).then_some(connection.fd())
        }));
        open.retain(|fd| !self.is_admin(*fd));
        open.sort_unstable();
        open.dedup();
        assert!(self.chaos || open.len() <= limit, "{} of {limit} transactions", open.len());
    }

    /// A statement that isn't inside a transaction has waited for its delay.
    pub(super) fn check_was_delayed(&self, fd: i32, command: Command, queueing: Micros) {
        let delay = self.pool.settings.transaction_delay();
        let is_exempt = self.is_admin(fd)
            || command == Command::Quit
            || self.server.with(fd, |session| !session.locks.is_empty());
        assert!(self.chaos || is_exempt || queueing >= delay, "begun after {queueing:?}");
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
        let may_run = pool.credits.free() > 0
            && !pool.is_stopping()
            && self.pool.workers() < pool.settings.max_workers();
        let wasted = may_run && pool.ordinary_groups().iter().any(waits);
        if !wasted {
            self.wasted_since = None;
            return;
        }
        let since = *self.wasted_since.get_or_insert(self.kernel.now());
        let waste = next_event.since(since);
        self.report.longest_waste = self.report.longest_waste.max(waste);
        let in_time = waste < LONGEST_WASTE || !self.is_undisturbed();
        assert!(in_time, "work has waited {waste:?} though a credit was free");
    }

    /// Invariants 4 and 5: when every thread sleeps or executes a statement, nothing waits that
    /// could run.
    pub(super) fn check_before_time_passes(&self) {
        if self.threads.iter().any(SimThread::is_awake) || self.pool.is_stopping() {
            return;
        }
        // The admin group gets a further worker only if the warden finds it without one twice.
        let warden_looks = self.threads[0].wakes_at() <= self.now() + WARDEN_TICK;
        let warden_tries_again =
            self.thread_shortage && self.threads[0].wakes_at() <= self.now() + SPAWN_PAUSE;
        let all_workers_used = self.pool.workers() >= self.pool.settings.max_workers();
        for group in self.pool.groups() {
            let may_run = match group.is_admin {
                true => !warden_looks,
                false => self.pool.credits.free() > 0 && !all_workers_used && !warden_tries_again,
            };
            let waits = group.queued() > 0 || self.kernel.has_events(group.id);
            let is_saturated = !group.is_admin && self.pool.credits.free() <= 0;
            assert!(
                !(is_saturated && waits) || warden_looks,
                "group {} waits for a credit and the warden doesn't look",
                group.id
            );
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

    /// At a shutdown a thread ends when its statement does; it doesn't sleep on.
    pub(super) fn note_end_of_thread(&self) {
        let Some(stopped_at) = self.report.stopped_at else { return };
        let time = self.now().since(stopped_at);
        assert!(time < LONGEST_SHUTDOWN, "a thread ended {time:?} after the shutdown");
    }

    /// After a shutdown: nothing is left of anybody.
    pub(super) fn check_stopped(&self) {
        assert!(self.unfinished_clients().is_empty(), "clients {:?} are left", {
            self.unfinished_clients()
        });
        assert!(self.threads.iter().all(SimThread::has_ended), "threads are left");
        assert_eq!(self.server.open_sessions(), 0, "sessions left open");
        assert_eq!(self.pool.credits.used(), 0, "credits left in use");
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
