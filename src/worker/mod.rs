//! A worker: a step machine that says what it wants to do next, one blocking thing at a time.
//!
//! [`Worker::step`] looks at the group and the credits, changes them, drops every lock and returns
//! a [`Want`]. A driver does what is wanted (`driver.rs` on a real thread, `sim/` in simulated
//! time) and comes back with a [`Done`]. So no code that holds a lock can call the server.

mod shared;

pub use shared::WorkerShared;

use crate::admission::Credit;
use crate::conn::{Connection, Marks, Owned};
use crate::group::Group;
use crate::host::{Armed, CloseReason, Outcome};
use crate::poll::{BATCH, Events};
use crate::pool::Pool;
use crate::stats::Recorder;
use crate::sync::{Ordering, told_before_looking};
use crate::time::{Micros, Moment};
use std::sync::Arc;

/// How long a session that holds locks is waited for between two of its statements before its
/// worker turns to others. Long enough for a client on the same network.
const STAY_IN_TRANSACTION: Micros = Micros(1_000);
/// How long one session may keep its worker while others wait: some dozens of short statements. A
/// longer turn means fewer changes of session and so more throughput, but a longer wait for the
/// others (point selects of 64 clients on 2 processors: 0.3 ms gives 1.0 and 0.7 ms 1.2 times the
/// throughput without a pool, with 0.7 and 1.3 times its 99th percentile).
const TURN: Micros = Micros(700);
/// The same for a session that holds locks: nearly every transaction ends within it, and one that
/// never ends can't keep a worker from others.
const TURN_WITH_LOCKS: Micros = Micros::from_millis(50);
/// How old the last look at a poller may be while its queue isn't empty.
const POLL_INTERVAL: Micros = Micros(500);
/// How long a worker stays parked before it retires. Short, since a burst of lock waits can need
/// hundreds of workers once, and a new thread costs less than a tenth of a millisecond.
const PARKED_TIMEOUT: Micros = Micros::from_secs(1);
/// A worker serves its own group first, but every so many jobs it starts with another one.
const OTHER_GROUPS_EVERY: u32 = 4;

/// What a worker wants its driver to do.
#[derive(Debug)]
pub enum Want {
    /// Wait for events of the own group's poller and put them into [`Worker::events`].
    Poll {
        /// Most events to take.
        max: usize,
        /// How long to wait.
        timeout: Option<Micros>,
    },
    /// Sleep until unparked.
    Park {
        /// How long at most.
        timeout: Option<Micros>,
    },
    /// Attach the session unless it is attached, and run one command.
    Execute(Owned),
    /// See whether the session's next command arrives within this time.
    Await(Owned, Micros),
    /// Detach the session; it will be queued.
    Detach(Owned),
    /// Detach the session and register it with its group's poller.
    Rest(Owned),
    /// Detach the session if it is attached, and close it.
    Close(Owned, CloseReason),
    /// End the thread.
    Exit,
}

/// What a driver has done.
#[derive(Debug)]
pub enum Done {
    /// The thread has started.
    Started,
    /// [`Want::Poll`].
    Polled,
    /// [`Want::Park`], for whatever reason it ended.
    Unparked,
    /// [`Want::Execute`].
    Executed(Owned, Outcome),
    /// [`Want::Await`]: whether there is something to read.
    Awaited(Owned, bool),
    /// [`Want::Detach`].
    Detached(Owned),
    /// [`Want::Rest`] succeeded: the connection belongs to its poller.
    Rested,
    /// [`Want::Rest`] failed, so the connection is still ours.
    NotRested(Owned, Armed),
    /// [`Want::Close`].
    Closed,
}

/// See the module.
pub struct Worker {
    /// Filled by the driver for [`Done::Polled`].
    pub events: Events,
    pool: Arc<Pool>,
    shared: Arc<WorkerShared>,
    /// It is counted in its group's `pollers`.
    announced: bool,
    /// It has been idle for `thread_pool_idle_timeout` and was found indispensable: it sleeps without limit.
    settled: bool,
    /// When the session it serves got its turn.
    turn_started: Moment,
    /// When it last had something to do.
    idle_since: Moment,
    /// When it last went to sleep for lack of a credit.
    parked_at: Moment,
    /// When it last looked for entries whose kick-up is due.
    overdue_looked_at: Moment,
    /// What the session it serves looked like after its last command.
    outcome: Outcome,
    /// It looks whether the session really has something to read, because of these marks.
    verifying: Option<Marks>,
    jobs: u32,
    recorder: Recorder,
}

impl Worker {
    /// A worker that hasn't started. Its group already counts it.
    pub fn new(pool: Arc<Pool>, shared: Arc<WorkerShared>) -> Self {
        Self {
            events: Events::default(),
            pool,
            shared,
            announced: false,
            settled: false,
            turn_started: Moment::default(),
            idle_since: Moment::default(),
            parked_at: Moment::default(),
            overdue_looked_at: Moment::default(),
            outcome: Outcome::default(),
            verifying: None,
            jobs: 0,
            recorder: Recorder::default(),
        }
    }

    /// What to do after `done`.
    pub fn step(&mut self, now: Moment, done: Done) -> Want {
        self.recorder.done(&self.shared.stats, now, &done);
        let want = self.decide(now, done);
        self.recorder.wants(&self.shared.stats, &self.pool, now, &want);
        want
    }

    fn decide(&mut self, now: Moment, done: Done) -> Want {
        match done {
            Done::Started => {
                self.idle_since = now;
                self.group().counters.starting.fetch_sub(1, Ordering::SeqCst);
                self.next(now)
            }
            Done::Polled => self.polled(now),
            Done::Unparked => self.unparked(now),
            Done::Executed(owned, outcome) => self.executed(owned, outcome, now),
            Done::Awaited(owned, ready) => self.awaited(owned, ready, now),
            Done::Detached(owned) => {
                let pool = Arc::clone(&self.pool);
                let group = pool.group(self.connection(&owned).group());
                pool.enqueue(group, owned, now);
                self.next(now)
            }
            Done::NotRested(owned, Armed::Refused) => {
                self.close(owned, CloseReason::NoResource, now)
            }
            Done::NotRested(owned, _) => self.close(owned, CloseReason::Ended, now),
            Done::Rested | Done::Closed => {
                self.shared.set_statement_started(None);
                self.idle_since = now;
                self.next(now)
            }
        }
    }

    fn group(&self) -> &Group {
        self.pool.group(self.shared.group)
    }

    fn connection(&self, owned: &Owned) -> &Connection {
        self.pool.connections.get(owned.token()).expect("owned connections have slots")
    }

    /// Between two jobs: serve a queue, else wait for events, else sleep.
    fn next(&mut self, now: Moment) -> Want {
        loop {
            if self.pool.is_stopping() {
                return self.exit();
            }
            if self.is_surplus() {
                let Some((owned, marks)) = self.take_holder() else { return self.exit() };
                match self.begin(owned, marks, now) {
                    Some(want) => return want,
                    None => continue,
                }
            }
            if !self.admit() {
                if let Some((owned, marks)) = self.take_granted() {
                    match self.begin(owned, marks, now) {
                        Some(want) => return want,
                        None => continue,
                    }
                }
                match self.park(now) {
                    Some(want) => return want,
                    None => continue,
                }
            }
            if self.look_is_due(now) {
                return Want::Poll { max: BATCH, timeout: Some(Micros(0)) };
            }
            if self.is_overdrawn() {
                if let Some((owned, marks)) = self.take_urgent(now) {
                    match self.begin(owned, marks, now) {
                        Some(want) => return want,
                        None => continue,
                    }
                }
                self.give_credit_back();
                continue;
            }
            if let Some((owned, marks)) = self.take_queued(now) {
                self.pass_on();
                match self.begin(owned, marks, now) {
                    Some(want) => return want,
                    None => continue,
                }
            }
            if let Some(want) = self.poll(now) {
                return want;
            }
        }
    }

    /// With more workers than the bound one serves only sessions that hold locks: if it took
    /// others, each of them might come to wait for a lock, and the number would grow for ever.
    fn take_holder(&mut self) -> Option<(Owned, Marks)> {
        if self.admit() { self.take_high() } else { self.take_granted() }
    }

    /// Makes sure that this worker may run a statement.
    fn admit(&mut self) -> bool {
        if self.group().is_admin || self.holds_credit() {
            return true;
        }
        let admitted = self.pool.credits.try_acquire();
        if admitted {
            self.shared.credit.replace(Credit::Held);
            self.pool.warden.note_admission(&self.pool.credits);
        }
        admitted
    }

    /// Without a free credit: a session that holds locks and that the warden lets run beyond the
    /// limit.
    fn take_granted(&mut self) -> Option<(Owned, Marks)> {
        let group = self.pool.take_grant(self.shared.group)?;
        let job = self.pool.pop_high(group)?;
        self.overdraw();
        Some(job)
    }

    fn overdraw(&self) {
        self.pool.credits.acquire_overdraft();
        self.pool.warden.note_admission(&self.pool.credits);
        self.shared.credit.replace(Credit::Held);
    }

    /// Whether the credit survived the last statement; one that the warden took is forgotten.
    fn holds_credit(&self) -> bool {
        match self.shared.credit.get() {
            Credit::Held => true,
            Credit::None => false,
            Credit::Lent | Credit::Stalled | Credit::Slept => {
                self.forget_credit();
                false
            }
        }
    }

    /// Gives the credit back without looking for a user. True if there was one.
    fn give_credit_back(&self) -> bool {
        let held = self.shared.credit.transition(Credit::Held, Credit::None);
        if held {
            self.pool.credits.release();
        } else {
            self.forget_credit();
        }
        held
    }

    /// The credit was taken meanwhile.
    fn forget_credit(&self) {
        if self.shared.credit.replace(Credit::None) == Credit::Slept {
            self.pool.slept_statement_ended();
        }
    }

    /// While the queue isn't empty the poller is looked at now and then, so that a session that
    /// holds locks overtakes those that wait already.
    fn look_is_due(&self, now: Moment) -> bool {
        let group = self.group();
        if group.queued() == 0 {
            return false;
        }
        let mut state = group.state.lock();
        let due = now.since(state.last_poll()) > POLL_INTERVAL;
        if due {
            state.set_last_poll(now);
        }
        due
    }

    fn take_queued(&mut self, now: Moment) -> Option<(Owned, Marks)> {
        if self.group().is_admin {
            return self.pool.pop(self.group(), now);
        }
        if let Some(job) = self.take_overdue(now) {
            return Some(job);
        }
        self.jobs = self.jobs.wrapping_add(1);
        let start = if self.jobs.is_multiple_of(OTHER_GROUPS_EVERY) {
            self.pool.turn_rotor()
        } else {
            self.shared.group
        };
        while let Some(group) = self.pool.group_with_queue(start) {
            let job = self.pool.pop(group, now);
            if job.is_some() {
                return job;
            }
        }
        None
    }

    /// More statements run than the limit allows, since some have come back from waits or hold
    /// locks. Until that is paid back, nobody else begins.
    fn is_overdrawn(&self) -> bool {
        !self.group().is_admin && self.pool.credits.free() < 0
    }

    /// There are more workers than the bound; any of them is one too many.
    fn is_surplus(&self) -> bool {
        !self.group().is_admin && self.pool.has_surplus_workers()
    }

    /// What may begin in spite of an overdraft: a session that holds locks, for it frees others,
    /// or one that has waited for the kick-up time.
    fn take_urgent(&mut self, now: Moment) -> Option<(Owned, Marks)> {
        if let Some(job) = self.take_overdue(now) {
            return Some(job);
        }
        self.take_high()
    }

    fn take_high(&self) -> Option<(Owned, Marks)> {
        self.pool.groups_from(self.shared.group).find_map(|group| self.pool.pop_high(group))
    }

    /// A session without locks that has waited for the kick-up time in whatever group.
    fn take_overdue(&mut self, now: Moment) -> Option<(Owned, Marks)> {
        if now.since(self.overdue_looked_at) < POLL_INTERVAL {
            return None;
        }
        self.overdue_looked_at = now;
        let group = self.pool.overdue_group(self.shared.group, now)?;
        self.pool.pop_overdue(group, now)
    }

    /// This worker has found work; if more waits and may run, somebody else must come.
    fn pass_on(&self) {
        if self.group().is_admin {
            self.pool.dispatch(self.group());
        } else {
            self.pool.credits_freed(self.shared.group);
        }
    }

    /// Gives the credit back and waits for events. `None` if work has turned up meanwhile.
    fn poll(&mut self, now: Moment) -> Option<Want> {
        self.announce();
        self.give_credit_back();
        // Announced first, looked afterwards: whoever queues work does it the other way round.
        told_before_looking();
        let group = self.group();
        if group.is_admin {
            if group.queued() > 0 {
                self.withdraw();
                return None;
            }
        } else if self.pool.credits.free() > 0 {
            if self.pool.group_with_queue(self.shared.group).is_some() {
                self.withdraw();
                return None;
            }
            self.pool.credits_freed(self.shared.group);
        }
        group.state.lock().set_last_poll(now);
        // One event each while there are credits for other pollers, else as many as there are.
        let max = if self.pool.credits.free() > 1 || group.is_admin { 1 } else { BATCH };
        let timeout = if self.settled { None } else { Some(self.pool.settings.idle_timeout()) };
        Some(Want::Poll { max, timeout })
    }

    fn announce(&mut self) {
        debug_assert!(!self.announced);
        self.announced = true;
        self.group().counters.pollers.fetch_add(1, Ordering::SeqCst);
    }

    /// Takes the announcement back; returns how many pollers are left.
    fn withdraw(&mut self) -> u32 {
        debug_assert!(self.announced);
        self.announced = false;
        self.group().counters.pollers.fetch_sub(1, Ordering::SeqCst) - 1
    }

    fn polled(&mut self, now: Moment) -> Want {
        if !self.announced {
            // A look in passing: everything is queued, and the best is taken afterwards.
            let pool = Arc::clone(&self.pool);
            pool.queue_events(pool.group(self.shared.group), &mut self.events, now);
            return self.next(now);
        }
        let left = self.withdraw();
        let Some((first, marks)) = self.claim_events(now) else { return self.idle(left, now) };
        self.settled = false;
        let only_holders = self.is_overdrawn() || self.is_surplus();
        let must_wait = only_holders && !self.connection(&first).holds_locks();
        if must_wait || !self.admit() {
            let pool = Arc::clone(&self.pool);
            pool.enqueue(self.group(), first, now);
            return self.next(now);
        }
        // This worker no longer polls; if more may run, somebody else must. A notification that
        // came along may have meant another group's queue.
        if self.events.was_notified() {
            self.pass_on();
        }
        self.pool.dispatch(self.group());
        self.begin(first, marks, now).unwrap_or_else(|| self.next(now))
    }

    /// Claims the connections that had events: one to serve now, the others are queued.
    fn claim_events(&mut self, now: Moment) -> Option<(Owned, Marks)> {
        let mut chosen: Option<(Owned, Marks)> = None;
        let group = self.group();
        for token in self.events.as_slice() {
            let Some(connection) = self.pool.connections.get(*token) else { continue };
            let Some(claimed) = connection.claim_armed(*token) else { continue };
            let queued = match chosen.take() {
                None => {
                    chosen = Some(claimed);
                    continue;
                }
                // A session that holds locks goes first.
                Some((former, _)) if connection.holds_locks() => {
                    chosen = Some(claimed);
                    former
                }
                former => {
                    chosen = former;
                    claimed.0
                }
            };
            self.pool.enqueue_quietly(group, queued, now);
        }
        self.events.clear();
        chosen
    }

    /// A wait for events ended without one: a notification, or nothing to do for a long time.
    fn idle(&mut self, pollers_left: u32, now: Moment) -> Want {
        let group = self.group();
        let idle_timeout = self.pool.settings.idle_timeout();
        if group.queued() == 0 && now.since(self.idle_since) >= idle_timeout {
            let parked = group.counters.parked.load(Ordering::SeqCst);
            let keep = self.pool.settings.idle_workers_per_group();
            if pollers_left >= 1 && pollers_left + parked >= keep {
                return self.exit();
            }
            self.settled = true;
        }
        self.next(now)
    }

    /// No credit: sleeps until one is free. `None` if that has happened meanwhile.
    fn park(&mut self, now: Moment) -> Option<Want> {
        let unused = self.group().counters.parked.load(Ordering::SeqCst);
        if unused >= self.pool.settings.max_unused_workers_per_group() {
            return Some(self.exit());
        }
        self.parked_at = now;
        {
            let group = self.group();
            let mut state = group.state.lock();
            state.park(Arc::clone(&self.shared));
            group.counters.parked.store(state.parked(), Ordering::SeqCst);
        }
        // Parked first, looked afterwards: whoever frees a credit does it the other way round.
        told_before_looking();
        let admissible = self.pool.credits.free() > 0 && self.pool.has_hungry_group();
        let useful = admissible || self.pool.has_grant();
        if useful || self.pool.is_stopping() {
            self.leave_parked();
            return None;
        }
        Some(Want::Park { timeout: Some(PARKED_TIMEOUT) })
    }

    /// False if somebody has taken this worker off the list already, to wake it.
    fn leave_parked(&self) -> bool {
        let group = self.group();
        let mut state = group.state.lock();
        let was_parked = state.remove_parked(|w| Arc::ptr_eq(w, &self.shared));
        group.counters.parked.store(state.parked(), Ordering::SeqCst);
        was_parked
    }

    fn unparked(&mut self, now: Moment) -> Want {
        let in_time = now.since(self.parked_at) >= PARKED_TIMEOUT;
        if self.leave_parked() && in_time && !self.pool.is_stopping() {
            // Nobody needed this worker for a long time.
            return self.exit();
        }
        self.next(now)
    }

    /// Gives a connection its turn. `None` if its statement may not begin yet.
    fn begin(&mut self, owned: Owned, marks: Marks, now: Moment) -> Option<Want> {
        self.turn_started = now;
        if marks.killed {
            return Some(self.close(owned, CloseReason::Ended, now));
        }
        if marks.expired || marks.doubtful {
            self.verifying = Some(marks);
            return Some(Want::Await(owned, Micros(0)));
        }
        self.begin_statement(owned, now)
    }

    /// Executes the next statement, unless it begins a transaction that may not begin yet.
    fn begin_statement(&mut self, owned: Owned, now: Moment) -> Option<Want> {
        let owned = match self.pool.holds_back() {
            true => self.pool.hold_back(owned, now)?,
            false => owned,
        };
        Some(self.execute(owned, now))
    }

    /// Closing can mean a long rollback, so it can stall like a statement.
    fn close(&mut self, owned: Owned, reason: CloseReason, now: Moment) -> Want {
        self.pool.transaction_ended(&owned, now);
        self.shared.set_statement_started(Some(now));
        Want::Close(owned, reason)
    }

    fn execute(&mut self, owned: Owned, now: Moment) -> Want {
        self.shared.set_statement_started(Some(now));
        Want::Execute(owned)
    }

    fn executed(&mut self, owned: Owned, outcome: Outcome, now: Moment) -> Want {
        self.shared.set_statement_started(None);
        let connection = self.connection(&owned);
        connection.note_outcome(&outcome);
        connection.set_processor(self.pool.platform.processor());
        self.outcome = outcome;
        if !outcome.holds_locks {
            self.pool.transaction_ended(&owned, now);
        }
        if outcome.close {
            return self.close(owned, CloseReason::Ended, now);
        }
        if outcome.buffered {
            return if self.may_stay(now) { self.stay(owned, now) } else { Want::Detach(owned) };
        }
        if self.may_stay(now) { Want::Await(owned, self.patience()) } else { self.rest(owned, now) }
    }

    /// How long to wait for the session's next command before it goes back to the poller. One look
    /// always pays: a client that is woken by the answer mostly sends its next command before this
    /// thread comes to look. While others wait, more would cost more than it brings: a worker that
    /// sleeps for each statement of a transaction must be woken for it, one that serves others
    /// meanwhile needn't (read-only transactions of 64 clients on 2 processors: 1.3 times the
    /// throughput).
    fn patience(&self) -> Micros {
        let stays = self.outcome.holds_locks && !self.others_wait();
        if stays { STAY_IN_TRANSACTION } else { Micros(0) }
    }

    /// Whether somebody waits for this worker's credit: a queue, or a poller that nobody looks at.
    fn others_wait(&self) -> bool {
        !self.group().is_admin && self.pool.credits.free() <= 0 && self.pool.has_hungry_group()
    }

    fn awaited(&mut self, owned: Owned, ready: bool, now: Moment) -> Want {
        match self.verifying.take() {
            Some(marks) if ready => {
                if marks.expired {
                    self.connection(&owned).forgive_expiry(&owned);
                }
                // Disposal of timed-out sessions needs no credit, but statements do.
                let is_guest = self.connection(&owned).group() != self.shared.group;
                if self.group().is_admin && is_guest {
                    Want::Detach(owned)
                } else {
                    self.begin_statement(owned, now).unwrap_or_else(|| self.next(now))
                }
            }
            Some(marks) if marks.expired => self.close(owned, CloseReason::IdleTimeout, now),
            // An event that was served before: the session goes on being idle.
            Some(_) => Want::Rest(owned),
            None if ready && self.may_stay(now) => self.stay(owned, now),
            None => self.rest(owned, now),
        }
    }

    /// Whether the session may go on with its next command on this worker: for as long as it likes
    /// if nobody waits, else for its turn. The turn of one that holds locks is a long one, unless
    /// somebody has waited for the kick-up time.
    fn may_stay(&self, now: Moment) -> bool {
        if self.pool.is_stopping() {
            return false;
        }
        if self.pool.holds_back() && !self.outcome.holds_locks && !self.group().is_admin {
            // Its next command begins a transaction and must be looked at first.
            return false;
        }
        let is_full = !self.group().is_admin && self.pool.credits.free() <= 0;
        let served = now.since(self.turn_started);
        let has_long_turn = || {
            self.outcome.holds_locks
                && served < TURN_WITH_LOCKS
                && self.pool.overdue_group(self.shared.group, now).is_none()
        };
        !is_full || served < TURN || has_long_turn()
    }

    /// Goes on with the next command of the same session.
    fn stay(&mut self, owned: Owned, now: Moment) -> Want {
        if !self.admit() {
            if !self.outcome.holds_locks {
                return Want::Detach(owned);
            }
            self.overdraw();
        }
        self.execute(owned, now)
    }

    fn rest(&mut self, owned: Owned, now: Moment) -> Want {
        self.pool.note_idle(&owned, now + self.outcome.wait_timeout);
        Want::Rest(owned)
    }

    fn exit(&mut self) -> Want {
        if self.announced {
            self.withdraw();
        }
        if self.give_credit_back() {
            self.pool.credits_freed(self.shared.group);
        }
        let group = self.group();
        self.pool.uncount_worker(group);
        if self.pool.is_stopping() {
            // Passes the news on to the next one that waits in the poller.
            group.poller.notify();
        }
        Want::Exit
    }
}
