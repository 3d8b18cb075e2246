//! `tp_thread_state`

use super::{Reading, Text, table};
use crate::admission::Credit;
use crate::stats::{Activity, Member, ThreadKind};

table! {
    /// The pool's threads: what each of them does now, and what it has done.
    table "tp_thread_state", key 2, information_schema 6, rows rows;

    /// Group of the thread. Login threads serve all groups and are shown in group 0.
    TP_GROUP_ID: u32,
    /// Number of the thread within its group, from 1; used again after its end.
    TP_THREAD_NUMBER: u32,
    /// How long the thread has served its connection without a break, in units of 10 ms, plus one; 0 if it serves none.
    PROCESS_COUNT: u64,
    /// What its statement waits for, if the server has reported that it waits.
    WAIT_TYPE: Option<Text<30>>,
    /// `QUERY_WORKER_THREAD` or `CONNECTION_HANDLER_WORKER_THREAD` (login thread).
    TP_THREAD_TYPE: Text<32>,
    /// `THREAD_ID` of the thread in `performance_schema.threads`.
    THREAD_ID: Option<u64>,
    /// When it took the connection that it serves; 0 if it serves none.
    TIME_OF_ATTACH: u64,
    /// 1 if its statement takes longer than `thread_pool_stall_limit`, waits included, or sleeps in a wait that the server doesn't report.
    MARKED_STALLED: u32,
    /// `POLLING`: waits for clients. `SLEEPING_RESERVE`: sleeps because too many statements are executing. `PROCESSING_DIRECT`: serves a connection that didn't have to wait. `PROCESSING_QUEUED`: serves one that had to wait in a queue. `MANAGING`: looks for something to do. Login threads: `CH_PROCESSING`, `CH_SLEEPING_TIMED` (ends after some time), `CH_SLEEPING_INDEFINITE`.
    STATE: Text<32>,
    /// Connections that it has taken, served and put back; a connection is served for one or more commands. Logins, for a login thread.
    EVENT_COUNT: u64,
    /// Time spent in that, in µs.
    ACCUMULATED_EVENT_TIME: u64,
    /// Commands that it has executed.
    EXEC_COUNT: u64,
    /// Time spent in that, in µs.
    ACCUMULATED_EXEC_TIME: u64,
}

fn rows(reading: &Reading, add: &mut dyn FnMut(u64, Row)) {
    let id = |member: &Member| {
        let stats = member.stats();
        u64::from(stats.group) << 32 | u64::from(stats.number())
    };
    let members = reading.pool.registry.members();
    members.iter().for_each(|member| add(id(member), row(reading, member)));
}

fn row(reading: &Reading, member: &Member) -> Row {
    let stats = member.stats();
    let counters = stats.counters();
    let attached_at = stats.attached_at();
    Row {
        TP_GROUP_ID: stats.group,
        TP_THREAD_NUMBER: stats.number(),
        PROCESS_COUNT: attached_at.map_or(0, |at| reading.now.since(at).0 / 10_000 + 1),
        WAIT_TYPE: stats.wait().map(|kind| Text(kind.text())),
        TP_THREAD_TYPE: Text(match stats.kind {
            ThreadKind::Worker => "QUERY_WORKER_THREAD",
            ThreadKind::Login => "CONNECTION_HANDLER_WORKER_THREAD",
        }),
        THREAD_ID: stats.server_id(),
        TIME_OF_ATTACH: attached_at.map_or(0, |at| reading.time_of_day(at)),
        MARKED_STALLED: u32::from(is_stalled(reading, member)),
        STATE: Text(match stats.activity() {
            Activity::Managing => "MANAGING",
            Activity::Polling => "POLLING",
            Activity::Parked => "SLEEPING_RESERVE",
            Activity::Direct => "PROCESSING_DIRECT",
            Activity::Queued => "PROCESSING_QUEUED",
            Activity::IdleForSomeTime => "CH_SLEEPING_TIMED",
            Activity::Idle => "CH_SLEEPING_INDEFINITE",
            Activity::LoggingIn => "CH_PROCESSING",
        }),
        EVENT_COUNT: counters.turns,
        ACCUMULATED_EVENT_TIME: counters.turns_us,
        EXEC_COUNT: counters.statements,
        ACCUMULATED_EXEC_TIME: counters.statements_us,
    }
}

/// True if the thread's statement takes too long, or the warden has taken its credit.
pub(super) fn is_stalled(reading: &Reading, member: &Member) -> bool {
    let Member::Worker(worker) = member else { return false };
    let limit = reading.pool.settings.stall_limit();
    worker.statement_started().is_some_and(|since| {
        reading.now.since(since) >= limit
            || matches!(worker.credit.get(), Credit::Stalled | Credit::Slept)
    })
}
