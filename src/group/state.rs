//! What a group's lock protects: plain values and no I/O.

use super::queue::Queue;
use crate::conn::{Priority, Token};
use crate::time::{Micros, Moment};

/// Kick-ups of one group follow each other at this distance when there are many.
const KICK_UP_INTERVAL: Micros = Micros::from_millis(10);
/// So many may follow each other at once after a time without any.
const KICK_UP_BURST: u64 = 16;

/// What the tables show of a group's queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Length of the high queue, preferred connections included.
    pub high: u32,
    /// Length of the low queue.
    pub low: u32,
    /// Since when the oldest entry of the low queue has waited.
    pub low_since: Option<Moment>,
    /// Entries so far, of all queues.
    pub queued_ever: u64,
    /// Entries so far that were kicked up.
    pub kicked_up_ever: u64,
}

/// The queues and the parked workers of a group; `W` stands for a worker.
pub struct GroupState<W> {
    high: Queue,
    preferred: Queue,
    low: Queue,
    parked: Vec<W>,
    last_poll: Moment,
    /// When the kick-ups so far would have ended at a distance of [`KICK_UP_INTERVAL`].
    kick_ups_until: Moment,
    queued_ever: u64,
    kicked_up_ever: u64,
}

impl<W> Default for GroupState<W> {
    fn default() -> Self {
        Self {
            high: Queue::with_room(),
            preferred: Queue::default(),
            low: Queue::with_room(),
            parked: Vec::with_capacity(16),
            last_poll: Moment::default(),
            kick_ups_until: Moment::default(),
            queued_ever: 0,
            kicked_up_ever: 0,
        }
    }
}

impl<W> GroupState<W> {
    /// Appends a connection that has become runnable and was last served on `processor`.
    pub fn push(&mut self, token: Token, priority: Priority, processor: u32, now: Moment) {
        self.queued_ever += 1;
        let queue = match priority {
            Priority::High => &mut self.high,
            Priority::Preferred => &mut self.preferred,
            Priority::Low => &mut self.low,
        };
        queue.push(token, processor, now);
    }

    /// Takes the connection for a worker on `processor` to serve next: the high queue first,
    /// unless a kick-up is due.
    pub fn pop(&mut self, now: Moment, kick_up: Micros, processor: u32) -> Option<Token> {
        self.pop_overdue(now, kick_up)
            .or_else(|| self.pop_high(processor))
            .or_else(|| self.preferred.pop_near(processor))
            .or_else(|| self.low.pop_near(processor))
    }

    /// Takes the oldest connection outside the high queue if its kick-up is due.
    pub fn pop_overdue(&mut self, now: Moment, kick_up: Micros) -> Option<Token> {
        if now < self.kick_up_at(kick_up) {
            return None;
        }
        self.kick_ups_until = self.kick_ups_until.max(now) + KICK_UP_INTERVAL;
        self.kicked_up_ever += 1;
        self.older_queue().pop_first()
    }

    /// Of the queues other than the high one, that whose first entry has waited longer.
    fn older_queue(&mut self) -> &mut Queue {
        let since = |queue: &Queue| queue.since().unwrap_or(Moment::NEVER);
        if since(&self.preferred) <= since(&self.low) { &mut self.preferred } else { &mut self.low }
    }

    /// When the oldest entry outside the high queue may overtake the high one: after it has waited for
    /// `kick_up`, but not too many together. Else a low queue that is longer than the pool's work
    /// of that time would turn priorities upside down: ever more transactions would begin, and
    /// none that could free their locks would go on. [`Moment::NEVER`] if there is none.
    pub fn kick_up_at(&self, kick_up: Micros) -> Moment {
        let fronts = [self.preferred.since(), self.low.since()];
        let Some(oldest) = fronts.into_iter().flatten().min() else { return Moment::NEVER };
        let burst = KICK_UP_INTERVAL.0 * KICK_UP_BURST;
        (oldest + kick_up).max(Moment(self.kick_ups_until.0.saturating_sub(burst)))
    }

    /// Takes the next connection of the high queue only.
    pub fn pop_high(&mut self, processor: u32) -> Option<Token> {
        self.high.pop_near(processor)
    }

    /// Number of connections in the high queue that have waited for `patience` or longer.
    pub fn high_waiting(&self, now: Moment, patience: Micros) -> u32 {
        match now.0.checked_sub(patience.0) {
            Some(latest) => self.high.count_until(Moment(latest)),
            None => 0,
        }
    }

    /// For the tables.
    pub fn queue_stats(&self) -> QueueStats {
        QueueStats {
            high: (self.high.len() + self.preferred.len()) as u32,
            low: self.low.len() as u32,
            low_since: self.low.since(),
            queued_ever: self.queued_ever,
            kicked_up_ever: self.kicked_up_ever,
        }
    }

    /// Number of queued connections.
    pub fn queued(&self) -> u32 {
        (self.high.len() + self.preferred.len() + self.low.len()) as u32
    }

    /// The tokens of all entries.
    #[cfg(feature = "sim")]
    pub(crate) fn tokens(&self) -> impl Iterator<Item = Token> {
        [&self.high, &self.preferred, &self.low].into_iter().flat_map(Queue::tokens)
    }

    /// How long the oldest entry has waited.
    pub fn oldest_wait(&self, now: Moment) -> Micros {
        let fronts = [self.high.since(), self.preferred.since(), self.low.since()];
        fronts.into_iter().flatten().min().map_or(Micros(0), |since| now.since(since))
    }

    /// Adds a worker that goes to sleep.
    pub fn park(&mut self, worker: W) {
        self.parked.push(worker);
    }

    /// Takes the worker that went to sleep last: its stack and caches are the warmest.
    pub fn unpark(&mut self) -> Option<W> {
        self.parked.pop()
    }

    /// Removes a certain worker from the parked ones; false if it has been unparked already.
    pub fn remove_parked(&mut self, is_it: impl Fn(&W) -> bool) -> bool {
        let position = self.parked.iter().position(is_it);
        position.map(|at| drop(self.parked.remove(at))).is_some()
    }

    /// Number of parked workers.
    pub fn parked(&self) -> u32 {
        self.parked.len() as u32
    }

    /// When somebody last asked the poller for events.
    pub fn last_poll(&self) -> Moment {
        self.last_poll
    }

    /// See [`GroupState::last_poll`].
    pub fn set_last_poll(&mut self, now: Moment) {
        self.last_poll = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: u32 = 0;
    const KICK_UP: Micros = Micros::from_millis(1_000);

    fn token(n: u32) -> Token {
        Token::new(1, n)
    }

    #[test]
    fn high_goes_first_and_each_queue_is_first_come_first_served() {
        let mut state = GroupState::<u32>::default();
        state.push(token(1), Priority::Low, HERE, Moment(10));
        state.push(token(2), Priority::High, HERE, Moment(11));
        state.push(token(3), Priority::High, HERE, Moment(12));
        let order: Vec<_> = std::iter::from_fn(|| state.pop(Moment(20), KICK_UP, HERE)).collect();
        assert_eq!(order, [token(2), token(3), token(1)]);
        assert_eq!(state.queued(), 0);
    }

    #[test]
    fn a_low_entry_is_kicked_up_when_it_has_waited_long_enough() {
        let mut state = GroupState::<u32>::default();
        state.push(token(1), Priority::Low, HERE, Moment(0));
        state.push(token(2), Priority::High, HERE, Moment(5));
        assert_eq!(state.oldest_wait(Moment(7)), Micros(7));
        assert_eq!(state.pop(Moment(0) + KICK_UP, KICK_UP, HERE), Some(token(1)));
        assert_eq!(state.pop(Moment(0) + KICK_UP, KICK_UP, HERE), Some(token(2)));
    }

    #[test]
    fn a_long_low_queue_does_not_turn_priorities_upside_down() {
        let mut state = GroupState::<u32>::default();
        (1..=200).for_each(|n| state.push(token(n), Priority::Low, HERE, Moment(0)));
        (201..=400).for_each(|n| state.push(token(n), Priority::High, HERE, Moment(0)));
        let start = Moment(0) + KICK_UP;
        let kicked_up = |state: &mut GroupState<u32>, now| {
            let taken: Vec<_> = (0..30).filter_map(|_| state.pop(now, KICK_UP, HERE)).collect();
            taken.iter().filter(|t| **t <= token(200)).count()
        };
        assert_eq!(kicked_up(&mut state, start), KICK_UP_BURST as usize + 1);
        assert_eq!(kicked_up(&mut state, start + KICK_UP_INTERVAL), 1);
        assert_eq!(kicked_up(&mut state, start + Micros(3 * KICK_UP_INTERVAL.0)), 2);
    }

    #[test]
    fn preferred_connections_overtake_others_and_wait_no_longer_than_they() {
        let mut state = GroupState::<u32>::default();
        state.push(token(1), Priority::Low, HERE, Moment(1));
        state.push(token(2), Priority::Preferred, HERE, Moment(2));
        state.push(token(3), Priority::High, HERE, Moment(3));
        assert_eq!(state.high_waiting(Moment(9), Micros(1)), 1, "only high ones may exceed limits");
        let order: Vec<_> = std::iter::from_fn(|| state.pop(Moment(9), KICK_UP, HERE)).collect();
        assert_eq!(order, [token(3), token(2), token(1)]);

        state.push(token(4), Priority::Preferred, HERE, Moment(10));
        state.push(token(5), Priority::Low, HERE, Moment(11));
        state.push(token(6), Priority::High, HERE, Moment(12));
        let due = Moment(11) + KICK_UP;
        assert_eq!(state.pop_overdue(Moment(9) + KICK_UP, KICK_UP), None);
        let order: Vec<_> = std::iter::from_fn(|| state.pop(due, KICK_UP, HERE)).collect();
        assert_eq!(order, [token(4), token(5), token(6)]);
    }

    #[test]
    fn only_entries_of_the_high_queue_that_waited_long_enough_are_counted() {
        let mut state = GroupState::<u32>::default();
        state.push(token(1), Priority::Low, HERE, Moment(0));
        state.push(token(2), Priority::High, HERE, Moment(5));
        state.push(token(3), Priority::High, HERE, Moment(9));
        assert_eq!(state.high_waiting(Moment(10), Micros(5)), 1);
        assert_eq!(state.pop_high(HERE), Some(token(2)));
        assert_eq!(state.pop_high(HERE), Some(token(3)));
        assert_eq!((state.pop_high(HERE), state.queued()), (None, 1));
    }

    #[test]
    fn parked_workers_are_woken_last_in_first_out() {
        let mut state = GroupState::<u32>::default();
        [1, 2, 3].into_iter().for_each(|w| state.park(w));
        assert!(state.remove_parked(|w| *w == 2));
        assert!(!state.remove_parked(|w| *w == 2));
        assert_eq!((state.unpark(), state.unpark(), state.unpark()), (Some(3), Some(1), None));
    }
}
