//! Scheduler core of thread_pool_rs.
pub mod config;
pub mod ffi;
