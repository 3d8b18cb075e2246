//! Connections: their states, who owns them, and the table that maps tokens to them.

pub mod command;
mod priority;
mod slab;
mod state;
mod token;

pub use priority::{HighPrioMode, Priority, PriorityWishes, SessionPriority};
pub use slab::{MAX_CONNECTIONS, Slab};
pub use state::{Connection, Look, Marks, Owned, Phase};
pub use token::Token;
