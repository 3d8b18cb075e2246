//! Numbers of one connection; they live in its slot.

use crate::group::GroupId;
use crate::host::ConnectionKind;
use crate::time::Moment;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// It waits in a group's queue.
const QUEUED: u32 = 1;
/// It waits outside of the queues until its transaction may begin.
const HELD_BACK: u32 = 2;

/// Written by the connection's owner only; read by anyone (see [`ConnectionView`]).
#[derive(Default)]
pub struct ConnectionStats {
    /// The server's name of the connection.
    id: AtomicU32,
    kind: AtomicU32,
    /// Number of the login thread.
    login_thread: AtomicU32,
    /// Group and number of the worker that serves it; 0 if none does.
    worker: AtomicU64,
    /// [`QUEUED`] or [`HELD_BACK`] while it waits or has just waited, else 0.
    waits: AtomicU32,
    added_at_us: AtomicU64,
    arrived_at_us: AtomicU64,
    popped_at_us: AtomicU64,
    rested_at_us: AtomicU64,
    direct_turns: AtomicU64,
    queued_turns: AtomicU64,
    waited_us: AtomicU64,
}

/// A copy of [`ConnectionStats`]. Moments are zero for what hasn't happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionView {
    /// The server's name of the connection; 0 while it isn't known yet.
    pub id: u32,
    /// How it came in.
    pub kind: ConnectionKind,
    /// Number of the thread that logged it in.
    pub login_thread: u32,
    /// Group and number of the worker that serves it.
    pub worker: Option<(GroupId, u32)>,
    /// It waits until its transaction may begin.
    pub is_held_back: bool,
    /// When it got its place in the pool.
    pub added_at: Moment,
    /// When its last event was noticed.
    pub arrived_at: Moment,
    /// When it was last taken from a queue.
    pub popped_at: Moment,
    /// When it last became idle.
    pub rested_at: Moment,
    /// Turns that it got at once.
    pub direct_turns: u64,
    /// Turns for which it waited in a queue.
    pub queued_turns: u64,
    /// Time that it has waited in queues, in µs.
    pub waited_us: u64,
}

impl ConnectionStats {
    /// A new connection takes the slot: nothing is known of it.
    pub(crate) fn clear(&self) {
        self.worker.store(0, Relaxed);
        for number in [&self.id, &self.kind, &self.login_thread, &self.waits] {
            number.store(0, Relaxed);
        }
        for time in [&self.added_at_us, &self.arrived_at_us, &self.popped_at_us, &self.rested_at_us]
        {
            time.store(0, Relaxed);
        }
        for counter in [&self.direct_turns, &self.queued_turns, &self.waited_us] {
            counter.store(0, Relaxed);
        }
    }

    /// It is placed in its group. `id` isn't zero.
    pub(crate) fn opens(&self, id: u32, kind: ConnectionKind, login_thread: u32, now: Moment) {
        self.kind.store(kind as u32, Relaxed);
        self.login_thread.store(login_thread, Relaxed);
        self.added_at_us.store(now.0, Relaxed);
        self.id.store(id, Relaxed);
    }

    /// It is about to wait in a queue.
    pub(crate) fn queues(&self, now: Moment) {
        self.waits(QUEUED, now);
    }

    /// It is about to wait until its transaction may begin.
    pub(crate) fn is_held_back(&self, now: Moment) {
        self.waits(HELD_BACK, now);
    }

    fn waits(&self, kind: u32, now: Moment) {
        self.worker.store(0, Relaxed);
        if self.waits.load(Relaxed) == 0 {
            self.arrived_at_us.store(now.0, Relaxed);
        }
        self.waits.store(kind, Relaxed);
    }

    /// A worker begins its turn; true if it had to wait in a queue.
    pub(crate) fn turn_begins(&self, (group, number): (GroupId, u32), now: Moment) -> bool {
        self.worker.store(u64::from(group) << 32 | u64::from(number), Relaxed);
        let was_queued = self.waits.load(Relaxed) != 0;
        if was_queued {
            self.waits.store(0, Relaxed);
            self.popped_at_us.store(now.0, Relaxed);
            let arrived_at = Moment(self.arrived_at_us.load(Relaxed));
            let waited_us = self.waited_us.load(Relaxed) + now.since(arrived_at).0;
            self.waited_us.store(waited_us, Relaxed);
            self.queued_turns.store(self.queued_turns.load(Relaxed) + 1, Relaxed);
        } else {
            self.arrived_at_us.store(now.0, Relaxed);
            self.direct_turns.store(self.direct_turns.load(Relaxed) + 1, Relaxed);
        }
        was_queued
    }

    /// It is about to become idle.
    pub(crate) fn rests(&self, now: Moment) {
        self.worker.store(0, Relaxed);
        self.rested_at_us.store(now.0, Relaxed);
    }

    /// A copy; consistent only if nobody owned the connection meanwhile.
    pub(crate) fn view(&self) -> ConnectionView {
        let moment = |us: &AtomicU64| Moment(us.load(Relaxed));
        let worker = self.worker.load(Relaxed);
        ConnectionView {
            id: self.id.load(Relaxed),
            kind: ConnectionKind::from_raw(self.kind.load(Relaxed)),
            login_thread: self.login_thread.load(Relaxed),
            is_held_back: self.waits.load(Relaxed) == HELD_BACK,
            worker: (worker != 0).then_some(((worker >> 32) as GroupId, worker as u32)),
            added_at: moment(&self.added_at_us),
            arrived_at: moment(&self.arrived_at_us),
            popped_at: moment(&self.popped_at_us),
            rested_at: moment(&self.rested_at_us),
            direct_turns: self.direct_turns.load(Relaxed),
            queued_turns: self.queued_turns.load(Relaxed),
            waited_us: self.waited_us.load(Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_and_waits_are_counted_and_a_new_life_starts_from_zero() {
        let stats = ConnectionStats::default();
        stats.opens(7, ConnectionKind::User, 1, Moment(10));
        assert!(!stats.turn_begins((0, 3), Moment(20)), "taken from the poller");
        assert_eq!(stats.view().worker, Some((0, 3)));
        stats.is_held_back(Moment(25));
        assert_eq!((stats.view().worker, stats.view().is_held_back), (None, true));
        stats.queues(Moment(30));
        assert!(!stats.view().is_held_back);
        assert!(stats.turn_begins((2, 4), Moment(40)));
        stats.rests(Moment(50));
        let view = stats.view();
        let expected = ConnectionView {
            id: 7,
            kind: ConnectionKind::User,
            login_thread: 1,
            worker: None,
            is_held_back: false,
            added_at: Moment(10),
            arrived_at: Moment(25),
            popped_at: Moment(40),
            rested_at: Moment(50),
            direct_turns: 1,
            queued_turns: 1,
            waited_us: 15,
        };
        assert_eq!(view, expected);
        assert!(!stats.turn_begins((0, 3), Moment(60)), "the queue is forgotten");
        stats.clear();
        stats.opens(8, ConnectionKind::AdminPort, 2, Moment(70));
        let fresh = ConnectionView {
            id: 8,
            kind: ConnectionKind::AdminPort,
            login_thread: 2,
            added_at: Moment(70),
            ..ConnectionView::default()
        };
        assert_eq!(stats.view(), fresh);
    }
}
