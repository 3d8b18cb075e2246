//! The pool's free credits: one counter.

use crate::sync::{AtomicI64, Ordering};
use crossbeam_utils::CachePadded;

/// Counts the credits that nobody holds. May go below zero: a statement that comes back from a
/// reported wait takes its credit again without waiting, and newcomers pay for the overdraft.
///
/// Every access is sequentially consistent because the counter is one half of two Dekker-style
/// protocols (see `group/README.md`): who gives a credit back afterwards looks for work; who
/// queues work afterwards looks for a credit. One of the two sees the other.
pub struct Credits {
    /// Written by workers (acquire, release), by wait callbacks and by the warden (stall).
    free: CachePadded<AtomicI64>,
    /// Written by `set_limit` only.
    limit: AtomicI64,
}

impl Credits {
    /// `limit` free credits.
    pub fn new(limit: u32) -> Self {
        let limit = i64::from(limit);
        Self { free: CachePadded::new(AtomicI64::new(limit)), limit: AtomicI64::new(limit) }
    }

    /// Takes a credit if one is free.
    pub fn try_acquire(&self) -> bool {
        let mut free = self.free.load(Ordering::SeqCst);
        while free > 0 {
            match self.free.compare_exchange_weak(
                free,
                free - 1,
                Ordering::SeqCst,
                Ordering::SeqCst,
            ) {
                Ok(_) => return true,
                Err(now) => free = now,
            }
        }
        false
    }

    /// Takes a credit even if none is free.
    pub fn acquire_overdraft(&self) {
        self.free.fetch_sub(1, Ordering::SeqCst);
    }

    /// Gives a credit back. The caller must then look for work that waits for it.
    pub fn release(&self) {
        self.free.fetch_add(1, Ordering::SeqCst);
    }

    /// Credits that nobody holds; negative while there is an overdraft.
    pub fn free(&self) -> i64 {
        self.free.load(Ordering::SeqCst)
    }

    /// Credits in use.
    pub fn used(&self) -> i64 {
        self.limit() - self.free()
    }

    /// The limit that is in force.
    pub fn limit(&self) -> i64 {
        self.limit.load(Ordering::SeqCst)
    }

    /// Changes the limit; credits in use stay in use. A raise must be followed by a look for work.
    pub fn set_limit(&self, limit: u32) {
        let before = self.limit.swap(i64::from(limit), Ordering::SeqCst);
        self.free.fetch_add(i64::from(limit) - before, Ordering::SeqCst);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_overdraft_is_paid_before_newcomers_enter() {
        let credits = Credits::new(1);
        assert!(credits.try_acquire());
        assert!(!credits.try_acquire());
        credits.acquire_overdraft();
        assert_eq!(credits.free(), -1);
        credits.release();
        assert!(!credits.try_acquire(), "the released credit pays the overdraft");
        credits.release();
        assert!(credits.try_acquire());
    }

    #[test]
    fn a_new_limit_keeps_what_is_in_use() {
        let credits = Credits::new(4);
        assert!(credits.try_acquire() && credits.try_acquire() && credits.try_acquire());
        credits.set_limit(2);
        assert_eq!((credits.free(), credits.used()), (-1, 3));
        credits.set_limit(8);
        assert_eq!((credits.free(), credits.used()), (5, 3));
    }
}
