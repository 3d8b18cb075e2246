//! Scheduler core of thread_pool_rs, a thread pool for MySQL.
//!
//! # Map
//! | module | subject |
//! |---|---|
//! | [`ffi`] | the boundary to the C++ shim: exports, types, panic guard |
//! | [`host`] | what the core knows of the server |
//! | [`pool`] | shared state, start and stop |
//! | [`group`] | thread groups: queues, poller, parked workers; its README.md has the protocol |
//! | [`admission`] | credits: how many statements may run |
//! | [`worker`], [`login`], [`warden`] | the three kinds of threads, as step machines |
//! | [`driver`] | runs the step machines on real threads |
//! | [`conn`] | connections: states, ownership, tokens |
//! | [`poll`] | waiting for idle clients |
//! | [`stats`], [`tables`] | what is counted and noted, and the SQL tables that show it |
//! | `sim` | the same scheduler in simulated time (feature `sim`) |
//! | [`timer`], [`time`], [`sync`], [`config`] | small parts |
//!
//! # Lock order
//! Locks of the server (a session's lock, any lock under which a wait is reported) → one lock of
//! the pool → nothing. No two locks of the pool are ever held together, and no lock of the pool is
//! held while the server is called.
//!
//! # Invariants
//! 1. A connection has one owner: a thread with an [`conn::Owned`], a queue, or a poller.
//! 2. A connection is handed to its poller under its session's lock, after a look whether it was
//!    killed; afterwards neither session nor connection is touched.
//! 3. A credit is counted exactly once: free, held, or lent and free.
//! 4. If work is queued and a credit is free, some worker is awake, notified or being started.
//! 5. If a group has connections and a credit is free, some worker polls it, is about to, or is
//!    being started.
//! 6. Every channel is opened or rejected, and every session closed, exactly once.

pub mod admission;
pub mod config;
pub mod conn;
pub mod driver;
pub mod ffi;
pub mod group;
pub mod host;
pub mod login;
#[cfg(all(test, loom))]
mod model;
pub mod poll;
pub mod pool;
#[cfg(feature = "sim")]
pub mod sim;
pub mod stats;
pub mod sync;
pub mod tables;
pub mod time;
pub mod timer;
pub mod warden;
pub mod worker;
