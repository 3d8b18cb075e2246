//! What the pool counts and notes for its tables and status variables.
//!
//! The rule for hot paths: each number is written by one thread, to memory that this thread uses
//! anyway, with plain stores; whoever wants to know adds up at reading time. Nothing here takes
//! part in a protocol, so every access is Relaxed, and the atomics are the standard library's also
//! under the model checker. A reader can see two numbers of which one is an event ahead.

mod connection;
mod group;
mod registry;
mod report;
mod thread;
mod wait;
mod worker;

pub use connection::{ConnectionStats, ConnectionView};
pub use group::GroupStats;
pub use registry::{Member, Registry, ThreadEntry};
pub use report::Reporter;
pub use thread::{Activity, Counters, ThreadKind, ThreadStats};
pub use wait::{WAIT_KINDS, WaitKind};
pub(crate) use worker::Recorder;
