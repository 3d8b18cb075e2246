//! Numbers of one thread of the pool.

use super::wait::{WAIT_KINDS, WaitKind};
use crate::group::GroupId;
use crate::login;
use crate::time::{Micros, Moment};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

/// What a thread is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadKind {
    /// Runs statements.
    Worker,
    /// Performs logins.
    Login,
}

/// What a thread does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Activity {
    /// It looks for something to do.
    Managing = 0,
    /// It waits for events of its group's connections, or asks for them.
    Polling = 1,
    /// It sleeps, since no credit is free.
    Parked = 2,
    /// It serves a connection that it took from the poller.
    Direct = 3,
    /// It serves a connection that had to wait in a queue.
    Queued = 4,
    /// A login thread that sleeps and retires after some time.
    IdleForSomeTime = 5,
    /// A login thread that sleeps until it is needed.
    Idle = 6,
    /// A login thread that logs a client in.
    LoggingIn = 7,
}

impl Activity {
    const ALL: [Self; 8] = [
        Self::Managing,
        Self::Polling,
        Self::Parked,
        Self::Direct,
        Self::Queued,
        Self::IdleForSomeTime,
        Self::Idle,
        Self::LoggingIn,
    ];

    /// True while a connection is served.
    pub fn is_serving(self) -> bool {
        matches!(self, Self::Direct | Self::Queued)
    }
}

/// What is counted for each thread and added up for each group; `T` is an atomic or a number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters<T> {
    /// Turns: a connection was taken, served and put back.
    pub turns: T,
    /// Time spent in turns, in µs.
    pub turns_us: T,
    /// Commands executed.
    pub statements: T,
    /// Time spent in commands, in µs.
    pub statements_us: T,
    /// Statements whose credit was taken because they stalled. Written by the warden.
    pub stalled: T,
    /// Times that it went to wait for events.
    pub polled: T,
    /// Times that it went to sleep for lack of a credit.
    pub parked: T,
    /// Reported waits, by [`WaitKind`].
    pub waits: [T; WAIT_KINDS],
}

/// Adds to a number that only the calling thread writes.
fn bump(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Relaxed) + by, Relaxed);
}

impl Counters<AtomicU64> {
    /// The present numbers.
    pub fn read(&self) -> Counters<u64> {
        Counters {
            turns: self.turns.load(Relaxed),
            turns_us: self.turns_us.load(Relaxed),
            statements: self.statements.load(Relaxed),
            statements_us: self.statements_us.load(Relaxed),
            stalled: self.stalled.load(Relaxed),
            polled: self.polled.load(Relaxed),
            parked: self.parked.load(Relaxed),
            waits: std::array::from_fn(|kind| self.waits[kind].load(Relaxed)),
        }
    }
}

impl Counters<u64> {
    /// Adds another thread's numbers.
    pub fn add(&mut self, other: &Self) {
        self.turns += other.turns;
        self.turns_us += other.turns_us;
        self.statements += other.statements;
        self.statements_us += other.statements_us;
        self.stalled += other.stalled;
        self.polled += other.polled;
        self.parked += other.parked;
        for (sum, other) in self.waits.iter_mut().zip(other.waits) {
            *sum += other;
        }
    }
}

/// Numbers of one thread. All are written by the thread itself, except `stalled`; see the module
/// above for the orderings.
pub struct ThreadStats {
    /// What it is for.
    pub kind: ThreadKind,
    /// Its group.
    pub group: GroupId,
    /// Its number among the threads of its group, from 1; 0 until it is registered.
    number: AtomicU32,
    /// What the server calls the thread (performance_schema.threads.THREAD_ID); 0 if unknown.
    server_id: AtomicU64,
    activity: AtomicU32,
    /// Kind of the present reported wait, plus one; 0 if there is none.
    wait: AtomicU32,
    /// When it took the connection that it serves; 0 if it serves none.
    attached_at_us: AtomicU64,
    /// The session that it serves held locks after its last statement.
    holds_locks: AtomicBool,
    pub(super) counters: Counters<AtomicU64>,
}

impl ThreadStats {
    /// A thread that hasn't started.
    pub fn new(kind: ThreadKind, group: GroupId) -> Self {
        Self {
            kind,
            group,
            number: AtomicU32::new(0),
            server_id: AtomicU64::new(0),
            activity: AtomicU32::new(Activity::Managing as u32),
            wait: AtomicU32::new(0),
            attached_at_us: AtomicU64::new(0),
            holds_locks: AtomicBool::new(false),
            counters: Counters::default(),
        }
    }

    /// Its number among the threads of its group, from 1.
    pub fn number(&self) -> u32 {
        self.number.load(Relaxed)
    }

    pub(super) fn set_number(&self, number: u32) {
        self.number.store(number, Relaxed);
    }

    /// What the server calls the thread.
    pub fn server_id(&self) -> Option<u64> {
        Some(self.server_id.load(Relaxed)).filter(|id| *id != 0)
    }

    /// Called by the thread itself.
    pub(crate) fn set_server_id(&self, id: Option<u64>) {
        self.server_id.store(id.unwrap_or(0), Relaxed);
    }

    /// What it does now.
    pub fn activity(&self) -> Activity {
        Activity::ALL[self.activity.load(Relaxed) as usize]
    }

    pub(super) fn set_activity(&self, activity: Activity) {
        self.activity.store(activity as u32, Relaxed);
    }

    /// The reported wait in which its statement is.
    pub fn wait(&self) -> Option<WaitKind> {
        self.wait.load(Relaxed).checked_sub(1).map(WaitKind::from_raw)
    }

    /// When it took the connection that it serves.
    pub fn attached_at(&self) -> Option<Moment> {
        Some(Moment(self.attached_at_us.load(Relaxed))).filter(|at| at.0 != 0)
    }

    /// Whether the session that it serves held locks after its last statement.
    pub fn holds_locks(&self) -> bool {
        self.holds_locks.load(Relaxed)
    }

    /// Its counters.
    pub fn counters(&self) -> Counters<u64> {
        self.counters.read()
    }

    /// An outermost reported wait begins.
    pub(crate) fn wait_begins(&self, kind: WaitKind) {
        self.wait.store(kind as u32 + 1, Relaxed);
        bump(&self.counters.waits[kind as usize], 1);
    }

    /// It ends.
    pub(crate) fn wait_ends(&self) {
        self.wait.store(0, Relaxed);
    }

    /// The warden took the credit of its statement.
    pub(crate) fn stalls(&self) {
        bump(&self.counters.stalled, 1);
    }

    pub(super) fn turn_begins(&self, activity: Activity, now: Moment) {
        self.set_activity(activity);
        self.attached_at_us.store(now.0, Relaxed);
    }

    pub(super) fn turn_ends(&self, length: Micros) {
        self.set_activity(Activity::Managing);
        self.attached_at_us.store(0, Relaxed);
        self.holds_locks.store(false, Relaxed);
        bump(&self.counters.turns, 1);
        bump(&self.counters.turns_us, length.0);
    }

    pub(super) fn statement_ends(&self, length: Micros, holds_locks: bool) {
        bump(&self.counters.statements, 1);
        bump(&self.counters.statements_us, length.0);
        self.holds_locks.store(holds_locks, Relaxed);
    }

    /// A login thread has decided what it wants.
    pub(crate) fn login_wants(&self, want: &login::Want, now: Moment) {
        if let Some(since) = self.attached_at()
            && !matches!(want, login::Want::Arm(_) | login::Want::Queue(_) | login::Want::Close(..))
        {
            self.turn_ends(now.since(since));
        }
        match want {
            login::Want::Park { timeout: None } => self.set_activity(Activity::Idle),
            login::Want::Park { timeout: Some(_) } => self.set_activity(Activity::IdleForSomeTime),
            login::Want::Open { .. } => self.turn_begins(Activity::LoggingIn, now),
            _ => {}
        }
    }

    pub(super) fn polls(&self) {
        bump(&self.counters.polled, 1);
    }

    pub(super) fn parks(&self) {
        bump(&self.counters.parked, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_counted_by_kind_and_shown_while_they_last() {
        let stats = ThreadStats::new(ThreadKind::Worker, 0);
        assert_eq!(stats.wait(), None);
        stats.wait_begins(WaitKind::RowLock);
        assert_eq!(stats.wait(), Some(WaitKind::RowLock));
        stats.wait_ends();
        stats.wait_begins(WaitKind::Sync);
        stats.wait_ends();
        stats.wait_begins(WaitKind::RowLock);
        stats.wait_ends();
        assert_eq!(stats.wait(), None);
        let waits = stats.counters().waits;
        assert_eq!(waits[WaitKind::RowLock as usize], 2);
        assert_eq!(waits[WaitKind::Sync as usize], 1);
        assert_eq!(waits.iter().sum::<u64>(), 3);
    }

    #[test]
    fn every_activity_survives_its_number() {
        let stats = ThreadStats::new(ThreadKind::Login, 0);
        for activity in Activity::ALL {
            stats.set_activity(activity);
            assert_eq!(stats.activity(), activity);
        }
    }
}
