//! The credit of one worker.

use crate::sync::{AtomicU32, Ordering};

/// Where a worker's credit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Credit {
    /// The worker has none.
    None = 0,
    /// The worker holds one.
    Held = 1,
    /// Lent to the pool for the length of a reported wait.
    Lent = 2,
    /// Taken back by the warden because the statement has stalled.
    Stalled = 3,
    /// Taken back by the warden because the thread sleeps in a wait that wasn't reported; counted
    /// like a credit that is lent for input and output.
    Slept = 4,
}

/// State of one worker's credit. The worker itself moves it between all states; the warden makes
/// only `Held → Stalled`, `Held → Slept` and `Slept → Stalled`. Each move is one atomic exchange, so a credit is never
/// counted twice.
///
/// AcqRel is enough: the word publishes nothing but itself, the count behind it
/// ([`super::Credits`]) is sequentially consistent.
pub struct CreditSlot(AtomicU32);

impl Default for CreditSlot {
    fn default() -> Self {
        Self(AtomicU32::new(Credit::None as u32))
    }
}

impl CreditSlot {
    /// Makes `from → to`; false if the state wasn't `from`.
    pub fn transition(&self, from: Credit, to: Credit) -> bool {
        self.0.compare_exchange(from as u32, to as u32, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Sets the state and returns the former one. Only for the worker itself.
    pub fn replace(&self, to: Credit) -> Credit {
        Self::decode(self.0.swap(to as u32, Ordering::AcqRel))
    }

    /// The present state.
    pub fn get(&self) -> Credit {
        Self::decode(self.0.load(Ordering::Acquire))
    }

    fn decode(word: u32) -> Credit {
        match word {
            0 => Credit::None,
            1 => Credit::Held,
            2 => Credit::Lent,
            3 => Credit::Stalled,
            _ => Credit::Slept,
        }
    }
}
