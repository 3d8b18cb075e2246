//! THE table of status variables. `include/rtp_status.inc` (which the C++ shim expands) is
//! generated from it; adding a status variable is one entry here.

use crate::group::Counters;
use crate::pool::Pool;
use crate::sync::Ordering;

/// One global status variable: an unsigned number of 64 bits (the server's SHOW_LONGLONG).
#[derive(Clone, Copy)]
pub struct StatusVariable {
    /// Full SQL name: the server puts no prefix before it.
    pub name: &'static str,
    /// One line for the documentation.
    pub comment: &'static str,
    /// Its present value. Takes no lock for longer than a few instructions.
    pub value: fn(&Pool) -> u64,
}

/// All status variables, in the order of their index at the boundary.
pub const STATUS_VARIABLES: &[StatusVariable] = &[
    StatusVariable {
        name: "Thread_pool_query_threads",
        comment: "Number of workers, those of the admin group included",
        value: |pool| sum(pool, |counters| counters.workers.load(Ordering::SeqCst)),
    },
    StatusVariable {
        name: "Deprecated_thread_pool_i_s_usage_count",
        comment: "Uses of the deprecated tables TP_THREAD_... of the information schema",
        value: |pool| pool.registry.deprecated_table_uses(),
    },
    StatusVariable {
        name: "Threadpool_threads",
        comment: "Number of workers, those of the admin group included",
        value: |pool| sum(pool, |counters| counters.workers.load(Ordering::SeqCst)),
    },
    StatusVariable {
        name: "Threadpool_idle_threads",
        comment: "Number of workers that wait for clients or sleep",
        value: |pool| {
            sum(pool, |counters| {
                counters.pollers.load(Ordering::SeqCst) + counters.parked.load(Ordering::SeqCst)
            })
        },
    },
];

/// Sum over all groups.
fn sum(pool: &Pool, count: impl Fn(&Counters) -> u32) -> u64 {
    pool.groups().iter().map(|group| u64::from(count(&group.counters))).sum()
}
