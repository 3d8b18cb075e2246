//! Idle timeouts: when to look at which connection.
//!
//! A connection has one entry that isn't moved when the connection is used: when the entry is due,
//! the warden looks at the connection's deadline and either expires it or enters it again. So a
//! busy connection costs nothing here.

use crate::conn::Token;
use crate::time::Moment;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Connections ordered by the moment at which they must be looked at.
#[derive(Default)]
pub struct Deadlines {
    heap: BinaryHeap<Reverse<(Moment, Token)>>,
}

impl Deadlines {
    /// Adds an entry; true if it is the earliest now.
    pub fn add(&mut self, at: Moment, token: Token) -> bool {
        let is_first = self.next().is_none_or(|first| at < first);
        self.heap.push(Reverse((at, token)));
        is_first
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Removes the entries for which `keep` is false.
    pub fn retain(&mut self, keep: impl Fn(Moment, Token) -> bool) {
        self.heap.retain(|Reverse((at, token))| keep(*at, *token));
    }

    /// The connections of all entries.
    #[cfg(feature = "sim")]
    pub(crate) fn tokens(&self) -> impl Iterator<Item = Token> {
        self.heap.iter().map(|Reverse((_, token))| *token)
    }

    /// When the next entry is due.
    pub fn next(&self) -> Option<Moment> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// Removes and returns an entry that is due at `now`.
    pub fn pop_due(&mut self, now: Moment) -> Option<(Moment, Token)> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_out_when_due_and_in_order() {
        let mut deadlines = Deadlines::default();
        let token = |n| Token::new(1, n);
        assert!(deadlines.add(Moment(30), token(3)));
        assert!(deadlines.add(Moment(10), token(1)));
        assert!(!deadlines.add(Moment(20), token(2)));
        assert_eq!(deadlines.next(), Some(Moment(10)));
        assert_eq!(deadlines.pop_due(Moment(9)), None);
        assert_eq!(deadlines.pop_due(Moment(20)), Some((Moment(10), token(1))));
        assert_eq!(deadlines.pop_due(Moment(20)), Some((Moment(20), token(2))));
        assert_eq!(deadlines.pop_due(Moment(20)), None);
    }
}
