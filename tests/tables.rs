//! The SQL tables over a pool on real threads with a fake server behind it.

mod support;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::*;
use thread_pool_rs::config::{Settings, vars};
use thread_pool_rs::pool::{Pool, SystemPlatform};
use thread_pool_rs::tables::{Cell, Snapshot, TABLES, Table};

const GROUPS: u32 = 2;

fn start(host: &Arc<FakeHost>, limit: u64) -> Arc<Pool> {
    let settings = Settings::defaults(2);
    settings.set(vars::RTP_VARIABLE_SIZE, u64::from(GROUPS)).unwrap();
    settings.set(vars::RTP_VARIABLE_CONCURRENCY_LIMIT, limit).unwrap();
    let host: Arc<FakeHost> = Arc::clone(host);
    let pool = Arc::new(Pool::new(host, Arc::new(SystemPlatform::default()), settings).unwrap());
    pool.start().unwrap();
    pool
}

fn table(name: &str) -> &'static Table {
    TABLES.iter().find(|table| table.name == name).expect(name)
}

/// All rows of a table; a row can be asked for a column.
struct Rows {
    table: &'static Table,
    snapshot: Snapshot,
}

impl Rows {
    fn of(pool: &Pool, name: &str) -> Self {
        let table = table(name);
        Self { table, snapshot: Snapshot::of(table, pool) }
    }

    fn len(&self) -> usize {
        self.snapshot.rows()
    }

    fn cell(&self, row: usize, name: &str) -> Cell {
        let column = self.table.columns.iter().position(|column| column.name == name).expect(name);
        self.snapshot.cell(row, column).unwrap()
    }

    fn number(&self, row: usize, name: &str) -> u64 {
        match self.cell(row, name) {
            Cell::Number(number) => number,
            other => panic!("{name} is {other:?}"),
        }
    }

    fn sum(&self, name: &str) -> u64 {
        (0..self.len()).map(|row| self.number(row, name)).sum()
    }

    fn count(&self, name: &str, value: Cell) -> usize {
        (0..self.len()).filter(|row| self.cell(*row, name) == value).count()
    }
}

fn connect(pool: &Pool) -> UnixStream {
    let (client, channel) = FakeHost::connect();
    pool.add_connection(channel, false).unwrap();
    client
}

fn call(client: &mut UnixStream, command: u8) {
    client.write_all(&[command]).unwrap();
    let mut answer = [0];
    client.read_exact(&mut answer).expect("every statement is answered");
    assert_eq!(answer[0], command);
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < deadline, "timed out waiting until {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn every_group_and_thread_has_a_row_from_the_start() {
    let host = FakeHost::new();
    let pool = start(&host, 2);
    wait_until("all workers poll", || {
        Rows::of(&pool, "tp_thread_state").count("STATE", Cell::Text("POLLING")) == 3
    });
    let threads = Rows::of(&pool, "tp_thread_state");
    let key = |row| (threads.number(row, "TP_GROUP_ID"), threads.number(row, "TP_THREAD_NUMBER"));
    let keys: Vec<_> = (0..threads.len()).map(key).collect();
    assert_eq!(keys, [(0, 1), (0, 2), (1, 1), (2, 1)], "the login thread and a worker each");
    assert_eq!(threads.cell(0, "TP_THREAD_TYPE"), Cell::Text("CONNECTION_HANDLER_WORKER_THREAD"));
    let groups = Rows::of(&pool, "tp_thread_group_state");
    assert_eq!(groups.len(), 3);
    assert_eq!(groups.sum("CONSUMER_THREADS"), 3);
    assert_eq!(groups.cell(0, "OLDEST_QUEUED"), Cell::Null);
    assert_eq!(groups.number(0, "THREAD_COUNT"), 2);
    assert_eq!(Rows::of(&pool, "tp_connections").len(), 0);
    pool.shutdown();
}

#[test]
fn idle_running_and_queued_connections_show_as_such() {
    let host = FakeHost::new();
    let pool = start(&host, 1);
    let mut idle = connect(&pool);
    call(&mut idle, PING);
    wait_until("the first one is idle again", || {
        let connections = Rows::of(&pool, "tp_connections");
        connections.count("STATE", Cell::Text("ARMED")) == 1
            && connections.number(0, "DIRECT_QUERY_EVENTS") == 1
    });
    let connections = Rows::of(&pool, "tp_connections");
    assert_eq!(connections.number(0, "DIRECT_QUERY_EVENTS"), 1);
    assert_eq!(connections.number(0, "QUEUED_QUERY_EVENTS"), 0);
    assert_eq!(connections.cell(0, "TP_PROCESSING_THREAD_NUMBER"), Cell::Null);
    let (armed, expiry) =
        (connections.number(0, "TIME_OF_ARM"), connections.number(0, "TIME_OF_EXPIRY"));
    assert_eq!(expiry - armed, 3_600_000_000, "wait_timeout later");

    // One statement executes; as it sleeps without a report the warden soon takes its credit.
    let mut running = connect(&pool);
    running.write_all(&[READ]).unwrap();
    wait_until("a statement is marked stalled", || {
        Rows::of(&pool, "tp_thread_state").count("MARKED_STALLED", Cell::Number(1)) == 1
    });
    let connections = Rows::of(&pool, "tp_connections");
    assert_eq!(connections.count("STATE", Cell::Text("ATTACHED")), 1);
    let attached = (0..2).find(|row| connections.number(*row, "ACTIVE_FLAG") == 1).unwrap();
    let group = connections.number(attached, "TP_GROUP_ID");
    assert_eq!(group, 1, "groups take turns");
    assert_eq!(connections.cell(attached, "TP_PROCESSING_THREAD_NUMBER"), Cell::Number(1));
    let groups = Rows::of(&pool, "tp_thread_group_state");
    assert_eq!(groups.number(1, "STALLED_THREAD_COUNT"), 1);
    assert_eq!(groups.number(1, "QUERY_THREADS_COUNT"), 1);
    running.write_all(&[0]).unwrap();
    running.read_exact(&mut [0]).unwrap();
    wait_until("the stalled statement is counted", || {
        Rows::of(&pool, "tp_thread_group_stats").sum("STALLED_QUERIES_EXECUTED") >= 1
    });

    // With no credit left a command waits in the queue.
    wait_until("the credit is free", || pool.credits.free() == 1);
    assert!(pool.credits.try_acquire());
    idle.write_all(&[PING]).unwrap();
    // The connection's state changes first, then it enters the queue.
    wait_until("it is queued", || {
        Rows::of(&pool, "tp_thread_group_state").sum("QUEUED_TRANSACTIONS") == 1
    });
    wait_until("its state says so", || {
        Rows::of(&pool, "tp_connections").count("STATE", Cell::Text("QUEUED")) == 1
    });
    pool.credits.release();
    pool.warden.kick();
    idle.read_exact(&mut [0]).unwrap();
    wait_until("the queued statement is counted", || {
        let connections = Rows::of(&pool, "tp_connections");
        connections.number(0, "QUEUED_QUERY_EVENTS") >= 1
            && connections.number(0, "MANAGEMENT_TIME") > 0
    });
    assert!(Rows::of(&pool, "tp_thread_group_stats").sum("QUERIES_QUEUED") >= 1);
    pool.shutdown();
}

#[test]
fn statements_and_waits_are_counted() {
    let host = FakeHost::new();
    let pool = start(&host, 2);
    let mut client = connect(&pool);
    for command in [PING, WAIT, WAIT, WORK] {
        call(&mut client, command);
    }
    call(&mut client, BEGIN);
    wait_until("the last statement is counted", || {
        Rows::of(&pool, "tp_thread_state").sum("EXEC_COUNT") == 5
    });
    let stats = Rows::of(&pool, "tp_thread_group_stats");
    assert_eq!(stats.sum("QUERIES_EXECUTED"), 5);
    assert_eq!(stats.sum("ROW_LOCK_WAITS"), 2);
    assert_eq!(stats.sum("FSYNC_WAITS"), 0);
    let threads = Rows::of(&pool, "tp_thread_state");
    assert_eq!(threads.count("WAIT_TYPE", Cell::Null), threads.len(), "all waits are over");
    // Two waits of a millisecond, half a millisecond of work.
    assert!(threads.sum("ACCUMULATED_EXEC_TIME") >= 2_500);
    pool.shutdown();
}

/// One thread reads all tables in a loop while others connect, work, are killed and leave.
#[test]
fn readers_disturb_nobody_and_the_counters_add_up() {
    const CLIENTS: usize = 6;
    const ROUNDS: usize = 60;
    let host = FakeHost::new();
    let pool = start(&host, 2);
    let end = AtomicBool::new(false);
    let answers = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut most = 0;
            while !end.load(Ordering::SeqCst) {
                for table in TABLES {
                    let rows = Rows::of(&pool, table.name);
                    most = rows.len().max(most);
                }
                let stats = Rows::of(&pool, "tp_thread_group_stats");
                for row in 0..stats.len() {
                    let started = stats.number(row, "CONNECTIONS_STARTED");
                    assert!(started >= stats.number(row, "CONNECTIONS_CLOSED"));
                }
            }
            most
        });
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (pool, host, answers) = (&pool, &host, &answers);
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let mut connection = connect(pool);
                        let command = [PING, WORK, WAIT, BEGIN][(client + round) % 4];
                        let asked = connection.write_all(&[command]);
                        let answered = asked.and_then(|()| connection.read_exact(&mut [0]));
                        answers.fetch_add(u64::from(answered.is_ok()), Ordering::SeqCst);
                        if client == 0 && round % 10 == 0 {
                            host.kill_all(|token| pool.kill(token));
                        }
                        // Killed ones are at their end already.
                        let _ = connection.write_all(&[QUIT]);
                    }
                })
            })
            .collect();
        clients.into_iter().for_each(|client| client.join().unwrap());
        end.store(true, Ordering::SeqCst);
        assert!(reader.join().unwrap() > 0);
    });
    wait_until("all connections are closed", || pool.connections.is_empty());
    let stats = Rows::of(&pool, "tp_thread_group_stats");
    let opened = host.counts.opened.load(Ordering::SeqCst) as u64;
    assert_eq!(stats.sum("CONNECTIONS_STARTED"), opened);
    assert_eq!(stats.sum("CONNECTIONS_CLOSED"), opened);
    assert!(stats.sum("QUERIES_EXECUTED") >= answers.load(Ordering::SeqCst));
    assert!(answers.load(Ordering::SeqCst) > 0);
    assert_eq!(Rows::of(&pool, "tp_thread_group_state").sum("CONNECTION_COUNT"), 0);
    assert_eq!(Rows::of(&pool, "tp_connections").len(), 0);
    pool.shutdown();
}
