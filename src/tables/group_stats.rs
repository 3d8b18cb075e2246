//! `tp_thread_group_stats`

use super::{Reading, table};
use crate::stats::WaitKind;

table! {
    /// What each thread group has done since the server started.
    table "tp_thread_group_stats", key 1, information_schema 22, rows rows;

    /// Index of the group; the admin group comes last.
    TP_GROUP_ID: u32,
    /// Connections that were placed in the group.
    CONNECTIONS_STARTED: u64,
    /// Those of them that are gone.
    CONNECTIONS_CLOSED: u64,
    /// Commands that the group's workers executed, also for sessions of other groups.
    QUERIES_EXECUTED: u64,
    /// Times that a connection had to wait in one of the group's queues.
    QUERIES_QUEUED: u64,
    /// Workers started.
    THREADS_STARTED: u64,
    /// Entries of the low queue that went before the high queue since they had waited for `thread_pool_prio_kickup_timer`.
    PRIO_KICKUPS: u64,
    /// Statements of the group's workers that stopped counting against the concurrency limit: they took longer than `thread_pool_stall_limit` or slept in a wait that the server doesn't report.
    STALLED_QUERIES_EXECUTED: u64,
    /// Times that a worker went to wait for clients.
    BECOME_CONSUMER_THREAD: u64,
    /// Times that a worker went to sleep because too many statements were executing.
    BECOME_RESERVE_THREAD: u64,
    /// The same as `BECOME_CONSUMER_THREAD`: here each idle worker waits for clients itself.
    BECOME_WAITING_THREAD: u64,
    /// Times that the watching thread (tp_stall_check) woke or started a worker for the group.
    WAKE_THREAD_STALL_CHECKER: u64,
    /// Waits of the group's workers in SLEEP().
    SLEEP_WAITS: u64,
    /// Waits for a page that is read.
    DISK_IO_WAITS: u64,
    /// Waits for a row lock.
    ROW_LOCK_WAITS: u64,
    /// Waits for a global lock; the server doesn't report any.
    GLOBAL_LOCK_WAITS: u64,
    /// Waits for a metadata lock, including GET_LOCK() and FLUSH TABLES WITH READ LOCK.
    META_DATA_LOCK_WAITS: u64,
    /// Waits for a table lock.
    TABLE_LOCK_WAITS: u64,
    /// Waits for admission to InnoDB (`innodb_thread_concurrency`).
    USER_LOCK_WAITS: u64,
    /// Waits for a position of the binary log.
    BINLOG_WAITS: u64,
    /// Waits for the redo log to be flushed.
    GROUP_COMMIT_WAITS: u64,
    /// Waits for a file to be synced.
    FSYNC_WAITS: u64,
}

fn rows(reading: &Reading, add: &mut dyn FnMut(u64, Row)) {
    let groups = reading.pool.groups();
    let totals = reading.pool.registry.totals(groups.len());
    for (group, total) in groups.iter().zip(&totals) {
        let (opened, closed) = group.stats.connections();
        let queues = group.state.lock().queue_stats();
        let waits = |kind: WaitKind| total.waits[kind as usize];
        let row = Row {
            TP_GROUP_ID: group.id,
            CONNECTIONS_STARTED: opened,
            CONNECTIONS_CLOSED: closed,
            QUERIES_EXECUTED: total.statements,
            QUERIES_QUEUED: queues.queued_ever,
            THREADS_STARTED: group.stats.threads_started(),
            PRIO_KICKUPS: queues.kicked_up_ever,
            STALLED_QUERIES_EXECUTED: total.stalled,
            BECOME_CONSUMER_THREAD: total.polled,
            BECOME_RESERVE_THREAD: total.parked,
            BECOME_WAITING_THREAD: total.polled,
            WAKE_THREAD_STALL_CHECKER: group.stats.wakes_by_warden(),
            SLEEP_WAITS: waits(WaitKind::Sleep),
            DISK_IO_WAITS: waits(WaitKind::DiskIo),
            ROW_LOCK_WAITS: waits(WaitKind::RowLock),
            GLOBAL_LOCK_WAITS: waits(WaitKind::GlobalLock),
            META_DATA_LOCK_WAITS: waits(WaitKind::MetadataLock),
            TABLE_LOCK_WAITS: waits(WaitKind::TableLock),
            USER_LOCK_WAITS: waits(WaitKind::UserLock),
            BINLOG_WAITS: waits(WaitKind::Binlog),
            GROUP_COMMIT_WAITS: waits(WaitKind::GroupCommit),
            FSYNC_WAITS: waits(WaitKind::Sync),
        };
        add(u64::from(group.id) + 1, row);
    }
}
