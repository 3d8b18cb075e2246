//! The boundary: exported functions, the types that cross it, the panic guard and the host table.
//! No logic.

mod exports;
mod guard;
mod host_table;
mod tables;
pub mod types;

pub use exports::*;
pub use tables::*;
