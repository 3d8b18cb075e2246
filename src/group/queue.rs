//! One queue of a group: first come, first served, except that a worker prefers connections that
//! were last served on its own processor.
//!
//! Their session is still in that processor's caches, and so mostly is the client, if it runs on
//! the same host: the kernel leaves both where they are. Served elsewhere, each statement costs two
//! wake-ups of another processor (read-only transactions of 8 clients on 2 processors: 0.85 times
//! the throughput of today).

use crate::conn::Token;
use crate::time::Moment;
use std::collections::VecDeque;

/// So many entries are looked at, and so often in a row the first one is passed over.
const DEPTH: usize = 16;

#[derive(Clone, Copy, Debug)]
struct Entry {
    token: Token,
    since: Moment,
    processor: u32,
}

/// See the module.
#[derive(Default)]
pub(super) struct Queue {
    entries: VecDeque<Entry>,
    /// How often the first entry has been passed over.
    passed_over: usize,
}

impl Queue {
    /// An empty queue with some room.
    pub(super) fn with_room() -> Self {
        Self { entries: VecDeque::with_capacity(64), passed_over: 0 }
    }

    /// Appends a connection that was last served on `processor`.
    pub(super) fn push(&mut self, token: Token, processor: u32, now: Moment) {
        self.entries.push_back(Entry { token, since: now, processor });
    }

    /// Takes the first of the first few connections that were last served on `processor`, else the
    /// first of all. Nobody is passed over more than a few times.
    pub(super) fn pop_near(&mut self, processor: u32) -> Option<Token> {
        let near = || self.entries.iter().take(DEPTH).position(|e| e.processor == processor);
        match if self.passed_over < DEPTH { near() } else { None } {
            None | Some(0) => self.pop_first(),
            Some(at) => {
                self.passed_over += 1;
                self.entries.remove(at).map(|e| e.token)
            }
        }
    }

    /// Takes the connection that has waited longest.
    pub(super) fn pop_first(&mut self) -> Option<Token> {
        self.passed_over = 0;
        self.entries.pop_front().map(|e| e.token)
    }

    /// Since when the oldest entry has waited.
    pub(super) fn since(&self) -> Option<Moment> {
        self.entries.front().map(|e| e.since)
    }

    /// Number of entries that came at `limit` or before.
    pub(super) fn count_until(&self, limit: Moment) -> u32 {
        self.entries.iter().take_while(|e| e.since <= limit).count() as u32
    }

    /// The tokens of all entries.
    #[cfg(feature = "sim")]
    pub(super) fn tokens(&self) -> impl Iterator<Item = Token> {
        self.entries.iter().map(|e| e.token)
    }

    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(processors: &[u32]) -> Queue {
        let mut queue = Queue::default();
        for (n, processor) in processors.iter().enumerate() {
            queue.push(Token::new(1, n as u32), *processor, Moment(n as u64));
        }
        queue
    }

    fn pop_near(queue: &mut Queue, processor: u32) -> Option<u32> {
        queue.pop_near(processor).map(|token| token.index())
    }

    #[test]
    fn connections_of_the_own_processor_go_first_and_in_their_order() {
        let mut queue = queue(&[7, 5, 7, 5]);
        let order: Vec<_> = std::iter::from_fn(|| pop_near(&mut queue, 5)).collect();
        assert_eq!(order, [1, 3, 0, 2]);
    }

    #[test]
    fn nobody_is_passed_over_for_ever() {
        let mut processors = vec![5; 40];
        processors[0] = 7;
        let mut queue = queue(&processors);
        let order: Vec<_> = std::iter::from_fn(|| pop_near(&mut queue, 5)).collect();
        assert_eq!(order.iter().position(|n| *n == 0), Some(DEPTH));
        assert_eq!(order.len(), 40);
    }

    #[test]
    fn far_down_in_the_queue_nobody_is_looked_for() {
        let mut processors = vec![7; DEPTH];
        processors.push(5);
        assert_eq!(pop_near(&mut queue(&processors), 5), Some(0));
    }

    #[test]
    fn entries_are_counted_by_age() {
        let queue = queue(&[0, 0, 0]);
        assert_eq!(
            (queue.since(), queue.count_until(Moment(1)), queue.len()),
            (Some(Moment(0)), 2, 3)
        );
    }
}
