//! Admission: how many statements may run at the same time.
//!
//! One limit for the whole pool. A *credit* is the right to run; it is held while a statement
//! executes, handed back during reported waits and by statements that have stalled.

mod credits;
mod slot;
mod transactions;

pub use credits::Credits;
pub use slot::{Credit, CreditSlot};
pub use transactions::Transactions;
