//! The limit of open transactions (`thread_pool_max_transactions_limit`): who may begin one, and
//! who is next when one ends. A plain value; `pool/holding.rs` is the mechanism around it.

use crate::conn::Token;
use crate::time::{Micros, Moment};
use std::collections::{BTreeSet, VecDeque};

/// For how long the tables show that a transaction became too old to count.
const NOTICE: Micros = Micros::from_secs(10);

/// Transactions that count, the oldest first, and connections that wait to begin one.
#[derive(Debug, Default)]
pub struct Transactions {
    open: BTreeSet<(Moment, Token)>,
    waiting: VecDeque<Token>,
    /// When a transaction was last found too old to count.
    forgiven_at: Option<Moment>,
}

impl Transactions {
    /// A connection wants to begin a transaction. True: it is counted, as begun at `now`. False:
    /// it must wait. Nobody overtakes those who wait already.
    pub fn enter(&mut self, token: Token, now: Moment, limit: usize) -> bool {
        let may_begin = self.waiting.is_empty() && self.open.len() < limit;
        if may_begin {
            self.open.insert((now, token));
        }
        may_begin
    }

    /// Lets a connection wait after [`Transactions::enter`] was false.
    pub fn wait(&mut self, token: Token) {
        self.waiting.push_back(token);
    }

    /// A transaction has ended, or wasn't begun after all. One that didn't count any more is
    /// ignored.
    pub fn leave(&mut self, token: Token, begun: Moment) {
        self.open.remove(&(begun, token));
    }

    /// Takes the connection that may begin next, if one waits and may; it is counted already.
    pub fn next(&mut self, now: Moment, limit: usize) -> Option<Token> {
        if self.open.len() >= limit {
            return None;
        }
        let token = self.waiting.pop_front()?;
        self.open.insert((now, token));
        Some(token)
    }

    /// Stops counting transactions that are older than `longest`: whoever forgets one open would
    /// else lock all others out.
    pub fn forgive_old(&mut self, now: Moment, longest: Micros) {
        while let Some(&(begun, token)) = self.open.first() {
            if now < begun + longest {
                return;
            }
            self.open.remove(&(begun, token));
            self.forgiven_at = Some(now);
        }
    }

    /// When the oldest transaction will be too old to count, if somebody waits for that.
    pub fn next_forgiven_at(&self, longest: Micros) -> Option<Moment> {
        if self.waiting.is_empty() {
            return None;
        }
        self.open.first().map(|(begun, _)| *begun + longest)
    }

    /// When a transaction was last found too old to count, if that was within the last ten
    /// seconds.
    pub fn forgiven_at(&self, now: Moment) -> Option<Moment> {
        self.forgiven_at.filter(|at| now.since(*at) < NOTICE)
    }

    /// Connections that wait.
    #[cfg(feature = "sim")]
    pub(crate) fn tokens(&self) -> impl Iterator<Item = Token> {
        self.waiting.iter().copied()
    }

    /// Number of transactions that count.
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// Number of connections that wait, those that have ended meanwhile included.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: Micros = Micros(1_000);

    fn token(n: u32) -> Token {
        Token::new(1, n)
    }

    #[test]
    fn no_more_begin_than_the_limit_allows_and_those_who_wait_come_in_order() {
        let mut transactions = Transactions::default();
        assert!(transactions.enter(token(1), Moment(1), 2));
        assert!(transactions.enter(token(2), Moment(2), 2));
        for n in 3..=5 {
            assert!(!transactions.enter(token(n), Moment(3), 2));
            transactions.wait(token(n));
        }
        assert_eq!(transactions.next(Moment(4), 2), None);
        transactions.leave(token(1), Moment(1));
        assert!(!transactions.enter(token(6), Moment(5), 2), "nobody overtakes");
        assert_eq!(transactions.next(Moment(6), 2), Some(token(3)));
        assert_eq!(transactions.next(Moment(6), 2), None);
        assert_eq!(transactions.next(Moment(7), 3), Some(token(4)), "a raised limit");
        assert_eq!((transactions.open(), transactions.waiting()), (3, 1));
    }

    #[test]
    fn one_that_has_ended_ends_only_once() {
        let mut transactions = Transactions::default();
        assert!(transactions.enter(token(1), Moment(1), 9));
        assert!(transactions.enter(token(2), Moment(1), 9));
        transactions.leave(token(1), Moment(1));
        transactions.leave(token(1), Moment(1));
        assert_eq!(transactions.open(), 1);
    }

    #[test]
    fn an_old_transaction_no_longer_counts() {
        let mut transactions = Transactions::default();
        assert!(transactions.enter(token(1), Moment(10), 1));
        assert_eq!(transactions.next_forgiven_at(LONGEST), None, "nobody waits");
        assert!(!transactions.enter(token(2), Moment(20), 1));
        transactions.wait(token(2));
        assert_eq!(transactions.next_forgiven_at(LONGEST), Some(Moment(1_010)));
        transactions.forgive_old(Moment(1_009), LONGEST);
        assert_eq!(transactions.next(Moment(1_009), 1), None);
        transactions.forgive_old(Moment(1_010), LONGEST);
        assert_eq!(transactions.next(Moment(1_010), 1), Some(token(2)));
        transactions.leave(token(1), Moment(10));
        assert_eq!(transactions.open(), 1, "its end frees no second place");
        assert_eq!(transactions.forgiven_at(Moment(1_011)), Some(Moment(1_010)));
        assert_eq!(transactions.forgiven_at(Moment(1_010) + NOTICE), None);
    }
}
