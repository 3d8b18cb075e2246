//! The boundary: exported functions, the types that cross it and the panic guard. No logic.

mod exports;
pub mod types;
