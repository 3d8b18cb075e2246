//! Thread groups. README.md in this folder has the states and the protocol.

mod queue;
mod state;

pub use state::{GroupState, QueueStats};

use crate::poll::Poller;
use crate::stats::GroupStats;
use crate::sync::{AtomicU32, AtomicU64, Mutex, Ordering};
use crate::time::{Micros, Moment};
use crate::worker::WorkerShared;
use crossbeam_utils::CachePadded;
use std::sync::Arc;

/// Index of a group; the admin group comes after the ordinary ones.
pub type GroupId = u32;

/// A thread group: connections that share a poller, and the workers that serve them.
pub struct Group {
    /// Its index.
    pub id: GroupId,
    /// The admin group: its work needs no credit.
    pub is_admin: bool,
    /// Where its idle connections are registered and its idle workers wait.
    pub poller: Box<dyn Poller>,
    /// Queues and parked workers. Held for a few instructions; never while calling the host.
    pub state: Mutex<GroupState<Arc<WorkerShared>>>,
    /// Counters that are read without the lock.
    pub counters: CachePadded<Counters>,
    /// For the tables.
    pub stats: GroupStats,
}

/// Lock-free view of a group. `pollers` and `queued` are the two halves of the announcement
/// protocol (README.md) and therefore sequentially consistent.
pub struct Counters {
    /// Workers that wait in the poller or are about to: announced. Written by workers.
    pub pollers: AtomicU32,
    /// Length of both queues. Written under the group's lock.
    pub queued: AtomicU32,
    /// When the next kick-up is due, in µs; `u64::MAX` if the low queue is empty. Written under
    /// the group's lock. Relaxed: a stale value delays a kick-up by one look.
    pub kick_up_at_us: AtomicU64,
    /// Parked workers. Written under the group's lock.
    pub parked: AtomicU32,
    /// Workers that exist or are being started. Written by the warden and by ending workers.
    pub workers: AtomicU32,
    /// Workers that are being started and haven't run yet. Written by the warden (+1) and the new
    /// worker (−1); keeps the warden from starting two for one need.
    pub starting: AtomicU32,
    /// Permissions to run one session of the high queue beyond the limit. Written by the warden
    /// (set), taken by workers (−1); sequentially consistent like the queues.
    pub grants: AtomicU32,
    /// Registered connections. Written by login threads (+1) and closing workers (−1).
    pub connections: AtomicU32,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            pollers: AtomicU32::new(0),
            queued: AtomicU32::new(0),
            kick_up_at_us: AtomicU64::new(Moment::NEVER.0),
            parked: AtomicU32::new(0),
            workers: AtomicU32::new(0),
            starting: AtomicU32::new(0),
            grants: AtomicU32::new(0),
            connections: AtomicU32::new(0),
        }
    }
}

impl Counters {
    /// Publishes the state of the queues; to be called under the group's lock after a change.
    pub fn note_queues<W>(&self, state: &GroupState<W>, kick_up: Micros) {
        self.kick_up_at_us.store(state.kick_up_at(kick_up).0, Ordering::Relaxed);
        self.queued.store(state.queued(), Ordering::SeqCst);
    }
}

impl Group {
    /// An empty group.
    pub fn new(id: GroupId, is_admin: bool, poller: Box<dyn Poller>) -> Self {
        Self {
            id,
            is_admin,
            poller,
            state: Mutex::new(GroupState::default()),
            counters: CachePadded::new(Counters::default()),
            stats: GroupStats::default(),
        }
    }

    /// True if something waits here for a worker: queued work, or connections that nobody polls.
    pub fn is_hungry(&self) -> bool {
        self.queued() > 0 || self.is_unpolled()
    }

    /// True if it has connections and no worker that would see their events.
    pub fn is_unpolled(&self) -> bool {
        self.counters.pollers.load(Ordering::SeqCst) == 0
            && self.counters.connections.load(Ordering::SeqCst) > 0
    }

    /// True if a kick-up is due.
    pub fn is_overdue(&self, now: Moment) -> bool {
        now >= Moment(self.counters.kick_up_at_us.load(Ordering::Relaxed))
    }

    /// Takes a permission to run beyond the limit, if there is one.
    pub fn take_grant(&self) -> bool {
        let fewer = |grants: u32| grants.checked_sub(1);
        self.counters.grants.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer).is_ok()
    }

    /// Length of both queues.
    pub fn queued(&self) -> u32 {
        self.counters.queued.load(Ordering::SeqCst)
    }
}
