//! `tp_connections`

use super::{Reading, Text, table};
use crate::conn::{Look, Phase};
use crate::group::GroupId;
use crate::host::ConnectionKind;
use crate::stats::Member;
use std::collections::HashMap;

table! {
    /// All connections that have logged in, from the one that has been there longest.
    table "tp_connections", key 0, information_schema 0, rows rows;

    /// `CONNECTION_ID()`.
    CONNECTION_ID: u32,
    /// Group of the connection: which worker waits for its client, not which one serves it.
    TP_GROUP_ID: u32,
    /// `TP_THREAD_NUMBER` of the worker that serves it now, if it is one of its group. Other groups' workers serve it too when its own are busy: only `THREAD_ID` tells them all.
    TP_PROCESSING_THREAD_NUMBER: Option<u32>,
    /// `THREAD_ID` in `performance_schema.threads` of the worker that serves it now.
    THREAD_ID: Option<u64>,
    /// `ESTABLISHED`: just logged in. `ARMED`: idle. `QUEUED`: waits until it may execute. `WAITING_FOR_CREDIT`: waits until its transaction may begin (`thread_pool_max_transactions_limit`, `thread_pool_transaction_delay`). `ATTACHED`: a worker serves it. `KILLED`, `EXPIRED`: killed, or idle for `wait_timeout`, and about to be closed.
    STATE: Text<30>,
    /// 1 if a worker serves it, else 0.
    ACTIVE_FLAG: u32,
    /// `TP_CONNECTION_NOT_KILLED` or `TP_CONNECTION_KILLED_RECEIVED_` (Oracle's text ends with FLAG, for which the column is too short).
    KILLED_STATE: Text<30>,
    /// `TP_CLEANUP_IDLE`: a connection that is being closed isn't in the table any more.
    CLEANUP_STATE: Text<30>,
    /// When it last became idle.
    TIME_OF_LAST_EVENT_COMPLETION: u64,
    /// When its idle time reaches `wait_timeout`.
    TIME_OF_EXPIRY: u64,
    /// When it got its place in the pool.
    TIME_OF_ADD: u64,
    /// When it last ceased to wait.
    TIME_OF_POP: u64,
    /// When it was last handed to the poller: the same as `TIME_OF_LAST_EVENT_COMPLETION`.
    TIME_OF_ARM: u64,
    /// Number of the login thread that logged it in.
    CONNECT_HANDLER_INDEX: u32,
    /// `User`, `Admin_interface` (came by the admin port) or `Admin_privilege` (has TP_CONNECTION_ADMIN).
    TYPE: Text<30>,
    /// Times that a worker served it without its having to wait.
    DIRECT_QUERY_EVENTS: u64,
    /// Times that it had to wait first.
    QUEUED_QUERY_EVENTS: u64,
    /// When its last request was noticed.
    TIME_OF_EVENT_ARRIVAL: u64,
    /// Time that it has waited to be served, in µs.
    MANAGEMENT_TIME: u64,
}

fn rows(reading: &Reading, add: &mut dyn FnMut(u64, Row)) {
    let pool = reading.pool;
    let server_ids: HashMap<(GroupId, u32), u64> = pool
        .registry
        .members()
        .iter()
        .map(Member::stats)
        .filter_map(|stats| Some(((stats.group, stats.number()), stats.server_id()?)))
        .collect();
    let mut looks = Vec::with_capacity(pool.connections.len());
    pool.connections.for_each(|_, look| looks.push(look));
    looks.retain(|look| look.numbers.id != 0);
    looks.sort_by_key(|look| look.numbers.id);
    // The server gives a number twice only when four thousand million connections lie in between.
    looks.dedup_by_key(|look| look.numbers.id);
    for look in looks {
        let thread = look.numbers.worker.and_then(|worker| server_ids.get(&worker).copied());
        add(u64::from(look.numbers.id), row(reading, &look, thread));
    }
}

fn row(reading: &Reading, look: &Look, thread_id: Option<u64>) -> Row {
    let numbers = &look.numbers;
    let is_served = look.phase == Phase::Owned && numbers.worker.is_some();
    let time = |at| reading.time_or_zero(at);
    Row {
        CONNECTION_ID: numbers.id,
        TP_GROUP_ID: look.group,
        TP_PROCESSING_THREAD_NUMBER: numbers
            .worker
            .filter(|_| is_served)
            .and_then(|(group, number)| (group == look.group).then_some(number)),
        THREAD_ID: thread_id.filter(|_| is_served),
        STATE: Text(state(look, is_served)),
        ACTIVE_FLAG: u32::from(is_served),
        KILLED_STATE: Text(if look.marks.killed {
            "TP_CONNECTION_KILLED_RECEIVED_"
        } else {
            "TP_CONNECTION_NOT_KILLED"
        }),
        CLEANUP_STATE: Text("TP_CLEANUP_IDLE"),
        TIME_OF_LAST_EVENT_COMPLETION: time(numbers.rested_at),
        TIME_OF_EXPIRY: time(look.idle_deadline),
        TIME_OF_ADD: time(numbers.added_at),
        TIME_OF_POP: time(numbers.popped_at),
        TIME_OF_ARM: time(numbers.rested_at),
        CONNECT_HANDLER_INDEX: numbers.login_thread,
        TYPE: Text(match numbers.kind {
            ConnectionKind::User => "User",
            ConnectionKind::AdminPort => "Admin_interface",
            ConnectionKind::AdminPrivilege => "Admin_privilege",
        }),
        DIRECT_QUERY_EVENTS: numbers.direct_turns,
        QUEUED_QUERY_EVENTS: numbers.queued_turns,
        TIME_OF_EVENT_ARRIVAL: time(numbers.arrived_at),
        MANAGEMENT_TIME: numbers.waited_us,
    }
}

fn state(look: &Look, is_served: bool) -> &'static str {
    match look.phase {
        _ if look.marks.killed => "KILLED",
        _ if look.marks.expired => "EXPIRED",
        Phase::Armed => "ARMED",
        Phase::Queued if look.numbers.is_held_back => "WAITING_FOR_CREDIT",
        Phase::Queued => "QUEUED",
        _ if is_served => "ATTACHED",
        _ => "ESTABLISHED",
    }
}
