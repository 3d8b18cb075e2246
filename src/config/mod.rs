//! Settings: the table of system variables and the values that the pool works with.

pub mod vars;
