//! The pool: what all its threads share, and the few operations that cross groups.

mod holding;
mod lifecycle;
mod threads;

pub use lifecycle::{StartError, SystemPlatform};
pub use threads::{ThreadId, Threads};

use crate::admission::{Credit, Credits, Transactions};
use crate::config::{Refusal, Settings, vars};
use crate::conn::{Connection, Marks, Owned, Priority, Slab, Token, command};
use crate::group::{Group, GroupId, GroupState};
use crate::host::{Host, Thread};
use crate::login::Logins;
use crate::poll::{Events, Poller};
use crate::stats::{Registry, WaitKind};
use crate::sync::{
    AtomicBool, AtomicI64, AtomicU32, Mutex, Ordering, Park, Probe, told_before_looking,
};
use crate::time::{Clock, Moment};
use crate::timer::Deadlines;
use crate::warden::{TIMERS_BETWEEN_LOOKS, WardenLink};
use crate::worker::WorkerShared;
use std::io;
use std::sync::Arc;

/// What the pool needs of the operating system; the simulator has its own.
pub trait Platform: Send + Sync {
    /// A new poller.
    fn poller(&self, group: GroupId) -> io::Result<Box<dyn Poller>>;

    /// A new sleeping place.
    fn parker(&self) -> Arc<dyn Park>;

    /// A probe of the calling thread, if there are such things.
    fn probe(&self) -> Option<Box<dyn Probe>>;

    /// The processor that the calling thread runs on; may change at any moment.
    fn processor(&self) -> u32;

    /// The clock of the whole pool.
    fn clock(&self) -> Arc<dyn Clock>;
}

/// How many credits may be lent for input and output, for each credit of the limit.
const IO_LENT_PER_CREDIT: i64 = 4;

/// See the module.
pub struct Pool {
    /// The server.
    pub host: Arc<dyn Host>,
    /// The operating system.
    pub platform: Arc<dyn Platform>,
    /// The pool's clock.
    pub clock: Arc<dyn Clock>,
    /// System variables.
    pub settings: Settings,
    /// Rights to run.
    pub credits: Credits,
    /// Credits that are lent for waits for input or output. Written by the wait callbacks. A
    /// stale value admits one statement more or less, so Relaxed.
    io_lent: AtomicI64,
    /// All connections.
    pub connections: Slab,
    /// Connections that haven't logged in.
    pub logins: Logins,
    /// Idle timeouts.
    pub timers: Mutex<Deadlines>,
    /// Open transactions, while their number is limited.
    pub transactions: Mutex<Transactions>,
    /// Connections whose transaction is delayed, and until when.
    delayed: Mutex<Deadlines>,
    /// How to reach the warden.
    pub warden: WardenLink,
    /// The threads, except the warden.
    pub threads: Threads,
    /// The same threads as the tables see them.
    pub registry: Arc<Registry>,
    warden_thread: Mutex<Option<Thread>>,
    /// See `workers()`. Written by the warden (+1) and by ending workers (−1), read by all
    /// between two jobs.
    workers: AtomicU32,
    /// Ordinary groups, then the admin group.
    groups: Box<[Group]>,
    /// Round robin over groups, for new connections.
    next_group: AtomicU32,
    /// Round robin over groups, for workers that serve other groups' queues.
    rotor: AtomicU32,
    /// Set once by shutdown, read by all threads between two jobs.
    stopping: AtomicBool,
}

impl Pool {
    /// A pool at rest. Fails when the operating system has no descriptors for its groups.
    pub fn new(
        host: Arc<dyn Host>,
        platform: Arc<dyn Platform>,
        settings: Settings,
    ) -> io::Result<Self> {
        let ordinary = settings.groups();
        let groups: io::Result<Vec<Group>> = (0..=ordinary)
            .map(|id| Ok(Group::new(id, id == ordinary, platform.poller(id)?)))
            .collect();
        Ok(Self {
            clock: platform.clock(),
            credits: Credits::new(settings.concurrency_limit()),
            io_lent: AtomicI64::new(0),
            connections: Slab::default(),
            logins: Logins::default(),
            timers: Mutex::new(Deadlines::default()),
            transactions: Mutex::new(Transactions::default()),
            delayed: Mutex::new(Deadlines::default()),
            warden: WardenLink::new(platform.parker()),
            threads: Threads::default(),
            registry: Arc::default(),
            warden_thread: Mutex::new(None),
            workers: AtomicU32::new(0),
            groups: groups?.into_boxed_slice(),
            next_group: AtomicU32::new(0),
            rotor: AtomicU32::new(0),
            stopping: AtomicBool::new(false),
            host,
            platform,
            settings,
        })
    }

    /// The groups that serve ordinary connections.
    pub fn ordinary_groups(&self) -> &[Group] {
        &self.groups[..self.groups.len() - 1]
    }

    /// The group of admin connections and of the disposal of killed ones.
    pub fn admin_group(&self) -> &Group {
        &self.groups[self.groups.len() - 1]
    }

    /// All groups, the admin group last.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// One group.
    pub fn group(&self, id: GroupId) -> &Group {
        &self.groups[id as usize]
    }

    /// The group for the next ordinary connection.
    pub(crate) fn place(&self) -> GroupId {
        self.next_group.fetch_add(1, Ordering::Relaxed) % self.ordinary_groups().len() as u32
    }

    /// Workers of all ordinary groups that exist or are being started.
    pub(crate) fn workers(&self) -> u32 {
        self.workers.load(Ordering::SeqCst)
    }

    /// True if there are more workers than the bound: those that were started for sessions that
    /// hold locks.
    pub(crate) fn has_surplus_workers(&self) -> bool {
        self.workers() > self.settings.max_workers()
    }

    /// True from the moment shutdown begins.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Number of idle timeouts that are noted, useless ones included.
    pub fn timers_len(&self) -> usize {
        self.timers.lock().len()
    }

    /// Connections whose transaction may not begin yet.
    #[cfg(feature = "sim")]
    pub(crate) fn held_back(&self) -> Vec<Token> {
        let waiting: Vec<Token> = self.transactions.lock().tokens().collect();
        self.delayed.lock().tokens().chain(waiting).collect()
    }

    /// Changes a system variable and puts it into force.
    pub fn set_variable(&self, index: u32, value: u64) -> Result<(), Refusal> {
        self.settings.check_change(index, value)?;
        self.settings.set(index, value)?;
        let now = self.clock.now();
        match index {
            vars::RTP_VARIABLE_CONCURRENCY_LIMIT | vars::RTP_VARIABLE_OVERSUBSCRIBE => {
                self.credits.set_limit(self.settings.concurrency_limit());
                self.credits_freed(0);
                // A lower limit can leave none, as if the last one had been taken.
                self.warden.note_admission(&self.credits);
            }
            vars::RTP_VARIABLE_TRANSACTION_DELAY => self.end_delays(Moment::NEVER, now),
            vars::RTP_VARIABLE_MAX_TRANSACTIONS_LIMIT | vars::RTP_VARIABLE_LONGRUN_TRX_LIMIT => {
                self.begin_waiting_transactions(now);
                self.warden.kick();
            }
            vars::RTP_VARIABLE_QUERY_THREADS_PER_GROUP => self.warden.staff_groups(),
            vars::RTP_VARIABLE_CONNECTION_REPORT_INTERVAL => self.warden.kick(),
            _ => {}
        }
        Ok(())
    }

    /// Puts a connection into a queue of its group (or of the admin group) and sees to it that
    /// somebody serves it.
    pub(crate) fn enqueue(&self, group: &Group, owned: Owned, now: Moment) {
        self.enqueue_quietly(group, owned, now);
        self.dispatch(group);
    }

    /// Like `enqueue`, for a caller that dispatches itself.
    pub(crate) fn enqueue_quietly(&self, group: &Group, owned: Owned, now: Moment) {
        let connection = self.connections.get(owned.token()).expect("owned connections have slots");
        connection.stats().queues(now);
        let mut priority = connection.choose_queue();
        if priority != Priority::High && self.has_cheap_command(group, connection) {
            priority = Priority::High;
        }
        let (token, marks) = connection.hand_to_queue(owned);
        self.push(group, token, priority, now);
        self.dispose_of_killed(marks.killed.then_some(token), now);
    }

    /// Lets the admin group close a connection that was handed to a queue: a kill that came just
    /// before couldn't do so.
    fn dispose_of_killed(&self, killed: Option<Token>, now: Moment) {
        if let Some(token) = killed {
            self.push(self.admin_group(), token, Priority::High, now);
            self.dispatch(self.admin_group());
        }
    }

    /// True if the connection would have to wait although its command costs next to nothing. The
    /// command isn't looked at when it is the only one and can run at once.
    fn has_cheap_command(&self, group: &Group, connection: &Connection) -> bool {
        (self.credits.free() <= 0 || group.queued() > 0)
            && connection.is_plain()
            && group.poller.next_command(connection.fd()).is_some_and(command::is_cheap)
    }

    /// Queues the connections of a group that had events. The caller sees to it that somebody
    /// serves them.
    pub(crate) fn queue_events(&self, group: &Group, events: &mut Events, now: Moment) {
        for token in events.as_slice() {
            let claimed = self.connections.get(*token).and_then(|c| c.claim_armed(*token));
            if let Some((owned, _)) = claimed {
                self.enqueue_quietly(group, owned, now);
            }
        }
        events.clear();
    }

    /// Adds a token in phase `Queued` to a queue. The caller dispatches.
    pub(crate) fn push(&self, group: &Group, token: Token, priority: Priority, now: Moment) {
        let processor = self.connections.get(token).map_or(0, Connection::processor);
        let mut state = group.state.lock();
        state.push(token, priority, processor, now);
        group.counters.note_queues(&state, self.settings.prio_kickup_timer());
    }

    /// Takes the best queued connection of a group; skips stale entries.
    pub(crate) fn pop(&self, group: &Group, now: Moment) -> Option<(Owned, Marks)> {
        let (kick_up, processor) = (self.settings.prio_kickup_timer(), self.platform.processor());
        self.pop_with(group, |state| state.pop(now, kick_up, processor))
    }

    /// Takes the oldest connection of a group's low queue if its kick-up is due.
    pub(crate) fn pop_overdue(&self, group: &Group, now: Moment) -> Option<(Owned, Marks)> {
        self.pop_with(group, |state| state.pop_overdue(now, self.settings.prio_kickup_timer()))
    }

    /// Takes the first connection of a group's high queue; skips stale entries.
    pub(crate) fn pop_high(&self, group: &Group) -> Option<(Owned, Marks)> {
        let processor = self.platform.processor();
        self.pop_with(group, |state| state.pop_high(processor))
    }

    fn pop_with(
        &self,
        group: &Group,
        take: impl Fn(&mut GroupState<Arc<WorkerShared>>) -> Option<Token>,
    ) -> Option<(Owned, Marks)> {
        while group.queued() > 0 {
            let token = {
                let mut state = group.state.lock();
                let token = take(&mut state);
                group.counters.note_queues(&state, self.settings.prio_kickup_timer());
                token
            };
            let claimed = self.connections.get(token?).and_then(|c| c.claim_queued(token?));
            if claimed.is_some() {
                return claimed;
            }
        }
        None
    }

    /// Lets a worker come to a group in which something waits, if one may run; if there is none
    /// to wake, the warden starts one.
    pub(crate) fn dispatch(&self, group: &Group) {
        if !self.wake_for(group) {
            self.warden.kick();
        }
    }

    /// To be called after credits were given back: lets workers of as many groups as there are
    /// free credits use them, beginning with the group `near`. Whoever is woken looks after its
    /// own group first, so what is left over is found again.
    pub(crate) fn credits_freed(&self, near: GroupId) {
        told_before_looking();
        let mut free = self.credits.free();
        for group in self.groups_from(near) {
            if free <= 0 {
                return;
            }
            if group.is_hungry() {
                self.dispatch(group);
                free -= 1;
            }
        }
    }

    /// The ordinary groups, `near` first.
    pub(crate) fn groups_from(&self, near: GroupId) -> impl Iterator<Item = &Group> {
        let groups = self.ordinary_groups();
        let start = near as usize % groups.len();
        groups[start..].iter().chain(&groups[..start])
    }

    /// Wakes a worker of the group if something waits there and one may run. False if there's
    /// none to wake: one must be started.
    pub(crate) fn wake_for(&self, group: &Group) -> bool {
        told_before_looking();
        if !group.is_hungry() || !(group.is_admin || self.credits.free() > 0) {
            return true;
        }
        self.wake_worker(group)
    }

    /// Wakes a worker for the group; false if there is none to wake. Queued work can be served by
    /// any group's worker; events can be seen by the own group's only.
    pub(crate) fn wake_worker(&self, group: &Group) -> bool {
        self.wake_worker_of(group)
            || !group.is_admin
                && group.queued() > 0
                && self.groups_from(group.id).skip(1).any(|other| self.wake_worker_of(other))
    }

    fn wake_worker_of(&self, group: &Group) -> bool {
        if group.counters.pollers.load(Ordering::SeqCst) > 0 {
            group.poller.notify();
            return true;
        }
        if group.counters.parked.load(Ordering::SeqCst) == 0 {
            return false;
        }
        let worker = {
            let mut state = group.state.lock();
            let worker = state.unpark();
            group.counters.parked.store(state.parked(), Ordering::SeqCst);
            worker
        };
        worker.map(|w| w.parker.unpark()).is_some()
    }

    /// True if something waits for a worker in any ordinary group.
    pub(crate) fn has_hungry_group(&self) -> bool {
        self.ordinary_groups().iter().any(Group::is_hungry)
    }

    /// Takes the permission to run a session that holds locks beyond the limit, if there is one:
    /// the group in whose high queue it waits.
    pub(crate) fn take_grant(&self, near: GroupId) -> Option<&Group> {
        self.groups_from(near).find(|group| group.take_grant())
    }

    /// True if there is such a permission.
    pub(crate) fn has_grant(&self) -> bool {
        let grants = |group: &Group| group.counters.grants.load(Ordering::SeqCst);
        self.ordinary_groups().iter().any(|group| grants(group) > 0)
    }

    /// The first ordinary group with queued work, from `near` on.
    pub(crate) fn group_with_queue(&self, near: GroupId) -> Option<&Group> {
        self.groups_from(near).find(|group| group.queued() > 0)
    }

    /// The first ordinary group, from `near` on, in which a kick-up is due.
    pub(crate) fn overdue_group(&self, near: GroupId, now: Moment) -> Option<&Group> {
        self.groups_from(near).find(|group| group.is_overdue(now))
    }

    /// The next group in turn.
    pub(crate) fn turn_rotor(&self) -> GroupId {
        self.rotor.fetch_add(1, Ordering::Relaxed) % self.ordinary_groups().len() as u32
    }

    /// A session was killed; called under its lock. Whether it is idle or queued, a worker of the
    /// admin group disposes of it, so no credit and no ordinary worker is needed.
    pub fn kill(&self, token: Token) {
        if self.connections.get(token).is_some_and(|c| c.kill(token)) {
            self.push(self.admin_group(), token, Priority::High, self.clock.now());
            self.dispatch(self.admin_group());
        }
    }

    /// A statement of `worker` begins a wait that the server knows of: its credit is lent to the
    /// pool. May run under any lock of the server, so it takes only a group's lock and wakes at
    /// most a few threads.
    pub(crate) fn wait_begin(&self, worker: &WorkerShared, kind: WaitKind) {
        if !worker.enter_wait() {
            return;
        }
        worker.stats.wait_begins(kind);
        let is_io = kind.is_io();
        if is_io && !self.may_lend_for_io() {
            return;
        }
        if worker.credit.transition(Credit::Held, Credit::Lent) {
            worker.lent_for_io.store(is_io, Ordering::Relaxed);
            self.io_lent.fetch_add(i64::from(is_io), Ordering::Relaxed);
            self.credits.release();
            self.credits_freed(worker.group);
        }
    }

    /// Whoever gets a credit that was lent for a read or a commit soon waits for the same device.
    /// So only some credits are lent for that: enough to keep a device busy and to let commits
    /// be grouped, but no unlimited number of transactions.
    fn may_lend_for_io(&self) -> bool {
        self.io_lent.load(Ordering::Relaxed) < self.credits.limit() * IO_LENT_PER_CREDIT
    }

    /// Takes the credit of a statement whose thread sleeps in a wait that wasn't reported. What
    /// such a wait is for is unknown, so it counts like one for input and output.
    pub(crate) fn take_from_sleeper(&self, worker: &WorkerShared) {
        if self.may_lend_for_io() && worker.credit.transition(Credit::Held, Credit::Slept) {
            worker.stats.stalls();
            self.io_lent.fetch_add(1, Ordering::Relaxed);
            self.credits.release();
        }
    }

    /// Takes the credit of a statement that executes for longer than the stall limit. It doesn't
    /// count as one that waits for input or output any more either: statements that never end,
    /// like the binary log's way to a replica, would use that share up.
    pub(crate) fn take_from_stalled(&self, worker: &WorkerShared) {
        if worker.credit.transition(Credit::Held, Credit::Stalled) {
            worker.stats.stalls();
            self.credits.release();
        } else if worker.credit.transition(Credit::Slept, Credit::Stalled) {
            self.slept_statement_ended();
        }
    }

    /// Credits that are lent for input and output now.
    #[cfg(all(test, loom))]
    pub(crate) fn io_lent(&self) -> i64 {
        self.io_lent.load(Ordering::Relaxed)
    }

    /// The statement of a worker with [`Credit::Slept`] has ended, or counts as stalled.
    pub(crate) fn slept_statement_ended(&self) {
        self.io_lent.fetch_sub(1, Ordering::Relaxed);
    }

    /// The wait is over: the credit is taken again at once.
    pub(crate) fn wait_end(&self, worker: &WorkerShared) {
        if !worker.leave_wait() {
            return;
        }
        worker.stats.wait_ends();
        if worker.credit.transition(Credit::Lent, Credit::Held) {
            let was_io = worker.lent_for_io.load(Ordering::Relaxed);
            self.io_lent.fetch_sub(i64::from(was_io), Ordering::Relaxed);
            self.credits.acquire_overdraft();
            self.warden.note_admission(&self.credits);
        }
    }

    /// The connection is about to become idle: sets its deadline and makes sure that the warden
    /// wakes up for it.
    pub(crate) fn note_idle(&self, owned: &Owned, deadline: Moment) {
        let token = owned.token();
        let connection = self.connections.get(token).expect("owned connections have slots");
        connection.set_idle_deadline(deadline);
        if deadline < connection.timer_at() {
            let (is_first, many) = {
                let mut timers = self.timers.lock();
                connection.set_timer_at(deadline);
                let is_first = timers.add(deadline, token);
                (is_first, timers.len().is_multiple_of(TIMERS_BETWEEN_LOOKS))
            };
            if is_first || many {
                self.warden.kick();
            }
        }
    }
}
