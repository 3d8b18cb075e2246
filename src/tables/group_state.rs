//! `tp_thread_group_state`

use super::thread_state::is_stalled;
use super::{Reading, Text, table};
use crate::config::rules;
use crate::group::Group;
use crate::stats::{Activity, Member, ThreadKind};
use crate::sync::Ordering;
use crate::time::Moment;

table! {
    /// The thread groups as they are now.
    table "tp_thread_group_state", key 1, information_schema 16, rows rows;

    /// Index of the group; the admin group comes last.
    TP_GROUP_ID: u32,
    /// Workers that wait for clients.
    CONSUMER_THREADS: u32,
    /// Workers that sleep because too many statements are executing.
    RESERVE_THREADS: u32,
    /// Login threads. They serve all groups, so each row has the same number.
    CONNECT_THREAD_COUNT: u32,
    /// Connections.
    CONNECTION_COUNT: u32,
    /// Connections that wait in the high queue: sessions that hold locks, and cheap commands.
    QUEUED_QUERIES: u32,
    /// Connections that wait in the low queue: all others.
    QUEUED_TRANSACTIONS: u32,
    /// `thread_pool_stall_limit`, in units of 10 ms.
    STALL_LIMIT: u32,
    /// `thread_pool_prio_kickup_timer`, in ms.
    PRIO_KICKUP_TIMER: u32,
    /// `thread_pool_algorithm` by its name; it makes no difference here.
    ALGORITHM: Text<20>,
    /// Workers of the group, and login threads.
    THREAD_COUNT: u32,
    /// Workers that execute a statement which neither waits, as far as the server reports it, nor is stalled.
    ACTIVE_THREAD_COUNT: u32,
    /// Workers whose statement is stalled (see `tp_thread_state.MARKED_STALLED`).
    STALLED_THREAD_COUNT: u32,
    /// Number of the first of the workers that wait for clients.
    WAITING_THREAD_NUMBER: Option<u32>,
    /// How long the oldest entry of the low queue has waited, in ms.
    OLDEST_QUEUED: Option<u64>,
    /// Most workers that the group has had at the same time.
    MAX_THREAD_IDS_IN_GROUP: u32,
    /// The group's share of `thread_pool_max_transactions_limit`, which here holds for all groups together; NULL if transactions aren't limited.
    EFFECTIVE_MAX_TRANSACTIONS_LIMIT: Option<u32>,
    /// Workers of the group.
    NUM_QUERY_THREADS: u64,
    /// When the group's last worker was started.
    TIME_OF_LAST_THREAD_CREATION: Option<u64>,
    /// Login threads that have nothing to do. Each row has the same number.
    NUM_CONNECT_HANDLER_THREAD_IN_SLEEP: u32,
    /// Workers that serve a session which held locks after its last statement.
    THREADS_BOUND_TO_TRANSACTION: u32,
    /// Workers that serve a session.
    QUERY_THREADS_COUNT: u32,
    /// When the first of the idle connections reaches its `wait_timeout`.
    TIME_OF_EARLIEST_CON_EXPIRE: Option<u64>,
    /// When a transaction was last found too old to count (`thread_pool_longrun_trx_limit`); NULL if that was more than 10 s ago.
    TIME_OF_LAST_LONGRUNNING_TRXS_CHECK: Option<u64>,
}

/// What the threads of one group do.
#[derive(Clone, Default)]
struct Threads {
    serving: u32,
    active: u32,
    stalled: u32,
    bound: u32,
    first_poller: Option<u32>,
}

fn rows(reading: &Reading, add: &mut dyn FnMut(u64, Row)) {
    let pool = reading.pool;
    let mut threads = vec![Threads::default(); pool.groups().len()];
    let mut idle_logins = 0;
    for member in pool.registry.members() {
        let stats = member.stats();
        match stats.kind {
            ThreadKind::Worker => threads[stats.group as usize].count(reading, &member),
            ThreadKind::Login if stats.activity() == Activity::LoggingIn => {}
            ThreadKind::Login => idle_logins += 1,
        }
    }
    let mut expiry = vec![Moment::NEVER; pool.groups().len()];
    pool.connections.for_each(|_, look| {
        if look.phase == crate::conn::Phase::Armed {
            let first = &mut expiry[look.group as usize];
            *first = look.idle_deadline.min(*first);
        }
    });
    for ((group, threads), expiry) in pool.groups().iter().zip(threads).zip(expiry) {
        add(u64::from(group.id) + 1, row(reading, group, &threads, expiry, idle_logins));
    }
}

impl Threads {
    fn count(&mut self, reading: &Reading, worker: &Member) {
        let stats = worker.stats();
        let is_serving = stats.activity().is_serving();
        let is_stalled = is_stalled(reading, worker);
        let is_active = is_serving && !is_stalled && stats.wait().is_none();
        self.serving += u32::from(is_serving);
        self.stalled += u32::from(is_serving && is_stalled);
        self.active += u32::from(is_active);
        self.bound += u32::from(is_serving && stats.holds_locks());
        if stats.activity() == Activity::Polling {
            self.first_poller =
                Some(self.first_poller.map_or(stats.number(), |first| first.min(stats.number())));
        }
    }
}

fn row(
    reading: &Reading,
    group: &Group,
    threads: &Threads,
    expiry: Moment,
    idle_logins: u32,
) -> Row {
    let pool = reading.pool;
    let queues = group.state.lock().queue_stats();
    let forgiven_at = pool.transactions.lock().forgiven_at(reading.now);
    let count = |counter: &crate::sync::AtomicU32| counter.load(Ordering::SeqCst);
    let workers = count(&group.counters.workers);
    let logins = count(&pool.logins.threads);
    Row {
        TP_GROUP_ID: group.id,
        CONSUMER_THREADS: count(&group.counters.pollers),
        RESERVE_THREADS: count(&group.counters.parked),
        CONNECT_THREAD_COUNT: logins,
        CONNECTION_COUNT: count(&group.counters.connections),
        QUEUED_QUERIES: queues.high,
        QUEUED_TRANSACTIONS: queues.low,
        STALL_LIMIT: (pool.settings.stall_limit().0 / 10_000) as u32,
        PRIO_KICKUP_TIMER: (pool.settings.prio_kickup_timer().0 / 1_000) as u32,
        ALGORITHM: Text(pool.settings.algorithm_name()),
        THREAD_COUNT: workers + logins,
        ACTIVE_THREAD_COUNT: threads.active,
        STALLED_THREAD_COUNT: threads.stalled,
        WAITING_THREAD_NUMBER: threads.first_poller,
        OLDEST_QUEUED: queues.low_since.map(|since| reading.now.since(since).0 / 1_000),
        MAX_THREAD_IDS_IN_GROUP: group.stats.most_threads(),
        EFFECTIVE_MAX_TRANSACTIONS_LIMIT: pool.settings.transactions_limit().map(|limit| {
            rules::transactions_per_group(limit as u64, u64::from(pool.settings.groups())) as u32
        }),
        NUM_QUERY_THREADS: u64::from(workers),
        TIME_OF_LAST_THREAD_CREATION: group
            .stats
            .thread_started_at()
            .map(|at| reading.time_of_day(at)),
        NUM_CONNECT_HANDLER_THREAD_IN_SLEEP: idle_logins,
        THREADS_BOUND_TO_TRANSACTION: threads.bound,
        QUERY_THREADS_COUNT: threads.serving,
        TIME_OF_EARLIEST_CON_EXPIRE: (expiry != Moment::NEVER).then(|| reading.time_of_day(expiry)),
        TIME_OF_LAST_LONGRUNNING_TRXS_CHECK: forgiven_at.map(|at| reading.time_of_day(at)),
    }
}
