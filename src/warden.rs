//! The warden: one thread that does what nobody else may wait for. It starts and joins threads,
//! expires idle sessions, and, only while the pool is saturated, looks every two milliseconds at
//! groups that nobody polls and at statements that have stalled. An idle pool never wakes it, except for reports.

use crate::admission::{Credit, Credits};
use crate::group::{Group, GroupId};
use crate::host::{LogLevel, Role, Thread};
use crate::poll::Events;
use crate::pool::Pool;
use crate::stats::Reporter;
use crate::sync::{AtomicBool, Ordering, Park, told_before_looking};
use crate::time::{Micros, Moment};
use std::sync::Arc;

/// Time between two looks at a saturated pool.
const TICK: Micros = Micros(2_000);
/// For how long the warden goes on looking after the last sign of saturation.
const LINGER: Micros = Micros::from_millis(50);
/// Before a due timer of a session that isn't idle is looked at again. `wait_timeout` is at least
/// one second, so no deadline can fall due in between.
const RECHECK: Micros = Micros::from_secs(1);
/// Whenever the number of timers is a multiple of this, the warden looks for useless ones.
pub(crate) const TIMERS_BETWEEN_LOOKS: usize = 1_024;
/// After a thread couldn't be started, the next try comes this much later.
const SPAWN_PAUSE: Micros = Micros::from_millis(100);
/// How long a session that holds locks waits for a credit before it runs beyond the limit.
const HOLDER_PATIENCE: Micros = Micros(2_000);

const THREAD_REFUSED: &str = "The operating system refused a new thread; connections wait for the \
    existing ones. Raise the limits on processes and memory.";
const ALL_WORKERS_USED: &str = "All workers of the thread pool are in use, most of them by \
    statements that wait for locks; further statements wait in the queue, except those of \
    sessions that hold locks. Admin connections (admin_address) are served.";

/// How other threads reach the warden.
pub struct WardenLink {
    park: Arc<dyn Park>,
    /// Somebody wants the warden to look. Set by anyone, cleared by the warden before it looks;
    /// sequentially consistent as part of "tell first, look afterwards".
    kicked: AtomicBool,
    /// The warden looks by itself every [`TICK`]. Written by the warden.
    watching: AtomicBool,
    /// The number of idle workers that each group keeps was raised, and they aren't all there yet.
    /// Set by `SET GLOBAL`, cleared by the warden before it looks how many there are.
    staffing: AtomicBool,
}

impl WardenLink {
    /// A link to a warden that sleeps on `park`.
    pub fn new(park: Arc<dyn Park>) -> Self {
        Self {
            park,
            kicked: AtomicBool::new(false),
            watching: AtomicBool::new(false),
            staffing: AtomicBool::new(false),
        }
    }

    /// Lets the warden look around soon. Cheap when it has been told already.
    pub fn kick(&self) {
        if !self.kicked.swap(true, Ordering::SeqCst) {
            self.park.unpark();
        }
    }

    /// Lets the warden start workers until each group in use has as many as it keeps.
    pub(crate) fn staff_groups(&self) {
        self.staffing.store(true, Ordering::SeqCst);
        self.kick();
    }

    /// A credit was taken; if it was the last one, the warden must watch the pool.
    pub(crate) fn note_admission(&self, credits: &Credits) {
        told_before_looking();
        if credits.free() <= 0 && !self.watching.load(Ordering::SeqCst) {
            self.kick();
        }
    }

    /// Where the warden sleeps.
    pub fn parker(&self) -> &Arc<dyn Park> {
        &self.park
    }
}

/// What the warden wants its driver to do.
#[derive(Debug)]
pub enum Want {
    /// Sleep until unparked.
    Park {
        /// How long at most.
        timeout: Option<Micros>,
    },
    /// Put the events that a group's poller has now into [`Warden::events`].
    Poll(GroupId),
    /// Start a thread.
    Spawn(Role, GroupId),
    /// Join a thread that has ended.
    Join(Thread),
    /// Write a line to the error log.
    Log(LogLevel, String),
    /// End the thread.
    Exit,
}

/// What a driver has done.
#[derive(Debug)]
pub enum Done {
    /// The thread has started.
    Started,
    /// [`Want::Park`], for whatever reason it ended.
    Unparked,
    /// [`Want::Poll`].
    Polled(GroupId),
    /// [`Want::Spawn`]: whether there is a new thread.
    Spawned(Role, GroupId, bool),
    /// Everything else.
    Finished,
}

/// The thread as a step machine (see `worker`).
pub struct Warden {
    /// Filled by the driver for [`Done::Polled`].
    pub events: Events,
    pool: Arc<Pool>,
    /// Groups that this look must still poll.
    to_poll: Vec<GroupId>,
    saturated_at: Option<Moment>,
    login_threads_wanted: u32,
    /// Since when the admin group has been without a free worker.
    admin_hungry_since: Option<Moment>,
    no_spawn_before: Moment,
    complained_at: Option<Moment>,
    /// A line that isn't written yet.
    complaint: Option<&'static str>,
    reporter: Reporter,
}

impl Warden {
    /// A warden that hasn't started.
    pub fn new(pool: Arc<Pool>) -> Self {
        Self {
            events: Events::default(),
            pool,
            to_poll: Vec::new(),
            saturated_at: None,
            login_threads_wanted: 0,
            admin_hungry_since: None,
            no_spawn_before: Moment::default(),
            complained_at: None,
            complaint: None,
            reporter: Reporter::default(),
        }
    }

    /// What to do after `done`.
    pub fn step(&mut self, now: Moment, done: Done) -> Want {
        match done {
            Done::Started | Done::Unparked => self.look(now),
            Done::Polled(group) => self.polled(group, now),
            Done::Spawned(role, group, ok) => self.spawned(role, group, ok, now),
            Done::Finished => {}
        }
        self.next(now)
    }

    /// One look at everything that needs no driver.
    fn look(&mut self, now: Moment) {
        self.pool.warden.kicked.store(false, Ordering::SeqCst);
        self.expire_idle(now);
        if self.pool.holds_back() {
            self.pool.end_delays(now, now);
            self.pool.begin_waiting_transactions(now);
        }
        self.login_threads_wanted = self.pool.logins.threads_wanted(now);
        let pool = Arc::clone(&self.pool);
        if self.pool.workers() >= self.pool.settings.max_workers() && self.some_group_lacks_worker()
        {
            self.complaint = self.complain(now, ALL_WORKERS_USED);
        }
        if self.is_saturated(now) {
            self.saturated_at = Some(now);
            self.take_stalled_credits(now);
            let unpolled = pool.ordinary_groups().iter().filter(|g| g.is_unpolled());
            self.to_poll.extend(unpolled.map(|g| g.id));
            pool.ordinary_groups().iter().for_each(|group| self.grant(group, now));
        }
        for group in pool.groups() {
            pool.wake_for(group);
        }
        self.admin_hungry_since = if pool.admin_group().is_hungry() {
            Some(self.admin_hungry_since.unwrap_or(now))
        } else {
            None
        };
    }

    /// Whether work that waits can't be helped by waking or starting a worker.
    fn is_saturated(&self, now: Moment) -> bool {
        self.pool.credits.free() <= 0 || self.cannot_start(now) && self.some_group_lacks_worker()
    }

    /// No further worker may or can be started now.
    fn cannot_start(&self, now: Moment) -> bool {
        now < self.no_spawn_before || self.pool.workers() >= self.pool.settings.max_workers()
    }

    fn some_group_lacks_worker(&self) -> bool {
        self.pool.ordinary_groups().iter().any(Self::lacks_worker)
    }

    /// Lets sessions that hold locks run beyond the limit when they have waited: whoever has the
    /// credits may be waiting for them in a way that the server doesn't report.
    fn grant(&self, group: &Group, now: Moment) {
        let waiting = group.state.lock().high_waiting(now, HOLDER_PATIENCE);
        group.counters.grants.store(waiting, Ordering::SeqCst);
        for _ in 0..waiting {
            if !self.pool.wake_worker(group) {
                break;
            }
            group.stats.warden_wakes();
        }
    }

    /// The next thing that needs the driver.
    fn next(&mut self, now: Moment) -> Want {
        if self.pool.is_stopping() {
            return Want::Exit;
        }
        if let Some(thread) = self.pool.threads.take_finished() {
            return Want::Join(thread);
        }
        if let Some(text) = self.complaint.take() {
            return Want::Log(LogLevel::Warning, text.to_owned());
        }
        if self.next_report_at().is_some_and(|at| at <= now) {
            let text = self.reporter.write(&self.pool, now);
            return Want::Log(LogLevel::ConnectionReport, text);
        }
        if let Some(group) = self.to_poll.pop() {
            return Want::Poll(group);
        }
        if now >= self.no_spawn_before
            && let Some((role, group)) = self.missing_thread(now)
        {
            self.pool.count_new_thread(role, group);
            return Want::Spawn(role, group);
        }
        Want::Park { timeout: self.time_to_sleep(now) }
    }

    fn next_report_at(&self) -> Option<Moment> {
        self.reporter.next_at(self.pool.settings.connection_report_interval())
    }

    fn missing_thread(&self, now: Moment) -> Option<(Role, GroupId)> {
        let pool = &self.pool;
        if self.login_threads_wanted > pool.logins.threads.load(Ordering::SeqCst) {
            return Some((Role::Login, 0));
        }
        if self.admin_hungry_since.is_some_and(|since| now.since(since) >= TICK)
            && Self::lacks_worker(pool.admin_group())
        {
            return Some((Role::Worker, pool.admin_group().id));
        }
        if let Some(group) = self.understaffed_group() {
            return Some((Role::Worker, group));
        }
        let holder_waits = |group: &&Group| group.counters.grants.load(Ordering::SeqCst) > 0;
        let mut groups = pool.ordinary_groups().iter().filter(|g| Self::lacks_worker(g));
        let group = if self.is_saturated(now) { groups.find(holder_waits) } else { groups.next() };
        Some((Role::Worker, group?.id))
    }

    /// After a raise of the number of idle workers: a group in use that has fewer workers in all.
    fn understaffed_group(&self) -> Option<GroupId> {
        let staffing = &self.pool.warden.staffing;
        if !staffing.load(Ordering::SeqCst)
            || self.pool.workers() >= self.pool.settings.max_workers()
        {
            return None;
        }
        staffing.store(false, Ordering::SeqCst);
        let keep = self.pool.settings.idle_workers_per_group();
        let group = self.pool.ordinary_groups().iter().find(|group| {
            let counters = &group.counters;
            counters.connections.load(Ordering::SeqCst) > 0
                && counters.workers.load(Ordering::SeqCst) < keep
        })?;
        // There may be more to do.
        staffing.store(true, Ordering::SeqCst);
        Some(group.id)
    }

    /// Something waits in the group, and no worker of it is idle or on its way.
    fn lacks_worker(group: &Group) -> bool {
        let counters = &group.counters;
        group.is_hungry()
            && counters.pollers.load(Ordering::SeqCst) == 0
            && counters.parked.load(Ordering::SeqCst) == 0
            && counters.starting.load(Ordering::SeqCst) == 0
    }

    fn spawned(&mut self, role: Role, group: GroupId, ok: bool, now: Moment) {
        if ok {
            if role == Role::Worker {
                self.pool.group(group).stats.warden_wakes();
            }
            if role == Role::Worker && group == self.pool.admin_group().id {
                // The next one comes only if this one turns out not to be enough.
                self.admin_hungry_since = Some(now);
            }
            return;
        }
        if role == Role::Login {
            self.pool.logins.threads.fetch_sub(1, Ordering::SeqCst);
            self.login_threads_wanted = 0;
        } else {
            let group = self.pool.group(group);
            self.pool.uncount_worker(group);
            group.counters.starting.fetch_sub(1, Ordering::SeqCst);
        }
        self.no_spawn_before = now + SPAWN_PAUSE;
        self.complaint = self.complain(now, THREAD_REFUSED);
    }

    /// The line, unless one was written in the last minute.
    fn complain(&mut self, now: Moment, text: &'static str) -> Option<&'static str> {
        if self.complained_at.is_some_and(|at| now.since(at) < Micros::from_secs(60)) {
            return self.complaint;
        }
        self.complained_at = Some(now);
        Some(text)
    }

    /// Queues what a group without a poller has received.
    fn polled(&mut self, id: GroupId, now: Moment) {
        let group = self.pool.group(id);
        self.pool.queue_events(group, &mut self.events, now);
        self.pool.wake_for(group);
    }

    /// Takes the credits of statements that don't use them, so that others may run: those whose
    /// thread sleeps in a wait that the server hasn't reported (a slow client, a group commit, a
    /// latch), and those that execute for longer than the stall limit.
    fn take_stalled_credits(&self, now: Moment) {
        let limit = self.pool.settings.stall_limit();
        self.pool.threads.for_each_worker(|worker| {
            let Some(age) = worker.statement_started().map(|at| now.since(at)) else { return };
            if age >= limit {
                self.pool.take_from_stalled(worker);
                return;
            }
            let is_held = worker.credit.get() == Credit::Held;
            if is_held && worker.watched.has_slept() && age >= TICK {
                self.pool.take_from_sleeper(worker);
            }
        });
    }

    /// Hands sessions whose idle time is over to the admin group, which closes them.
    fn expire_idle(&self, now: Moment) {
        let pool = &self.pool;
        self.forget_closed_connections();
        loop {
            let expired = {
                let mut timers = pool.timers.lock();
                let Some((at, token)) = timers.pop_due(now) else { return };
                let Some(connection) = pool.connections.get(token) else { continue };
                if !connection.names(token) || connection.timer_at() != at {
                    continue;
                }
                let deadline = connection.idle_deadline();
                let is_due = deadline <= now;
                let expired = is_due && connection.expire(token);
                if expired {
                    // If it is forgiven it needs a new entry.
                    connection.set_timer_at(Moment::NEVER);
                } else {
                    let again = if is_due { now + RECHECK } else { deadline };
                    connection.set_timer_at(again);
                    timers.add(again, token);
                }
                expired.then_some(token)
            };
            if let Some(token) = expired {
                let group = pool.admin_group();
                pool.push(group, token, crate::conn::Priority::High, now);
                pool.wake_for(group);
            }
        }
    }

    /// Entries of closed connections stay until they are due; when they have become the majority
    /// they are removed together.
    fn forget_closed_connections(&self) {
        let useful = self.pool.connections.len();
        let mut timers = self.pool.timers.lock();
        if timers.len() < 2 * useful + TIMERS_BETWEEN_LOOKS {
            return;
        }
        timers.retain(|at, token| {
            let connection = self.pool.connections.get(token);
            connection.is_some_and(|c| c.names(token) && c.timer_at() == at)
        });
    }

    /// Until the next look; `None` when only a kick can make one necessary.
    fn time_to_sleep(&mut self, now: Moment) -> Option<Micros> {
        let pool = &self.pool;
        let busy = self.saturated_at.is_some_and(|at| now.since(at) < LINGER)
            || pool.logins.waiting() > 0
            || self.admin_hungry_since.is_some();
        pool.warden.watching.store(busy, Ordering::SeqCst);
        // Told first, looked afterwards: a worker that took the last credit before it could see
        // the flag is seen here.
        told_before_looking();
        if busy || self.is_saturated(now) {
            return Some(TICK);
        }
        let blocked = (now < self.no_spawn_before).then(|| self.no_spawn_before.since(now));
        let deadline = pool.timers.lock().next().map(|at| at.since(now));
        let held_back = if pool.holds_back() { pool.next_release_at() } else { None };
        let release = held_back.map(|at| at.since(now));
        let report = self.next_report_at().map(|at| at.since(now));
        [blocked, deadline, release, report].into_iter().flatten().min()
    }
}
