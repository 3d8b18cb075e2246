//! The pool on real threads, epoll and sockets, with a fake server behind it.

mod support;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use support::*;
use thread_pool_rs::config::{Settings, vars};
use thread_pool_rs::pool::{Pool, SystemPlatform};

fn pool(host: &Arc<FakeHost>, groups: u64, limit: u64) -> Arc<Pool> {
    let settings = Settings::defaults(2);
    settings.set(vars::RTP_VARIABLE_SIZE, groups).unwrap();
    settings.set(vars::RTP_VARIABLE_CONCURRENCY_LIMIT, limit).unwrap();
    // Stalls are the warden's business, not these tests'.
    settings.set(vars::RTP_VARIABLE_STALL_LIMIT, 600).unwrap();
    let host: Arc<FakeHost> = Arc::clone(host);
    let pool = Pool::new(host, Arc::new(SystemPlatform::default()), settings).unwrap();
    Arc::new(pool)
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

/// Nothing is lost: every thread joined, every session closed, every credit back.
fn check_end(host: &FakeHost, pool: &Pool) {
    pool.shutdown();
    let counts = &host.counts;
    assert_eq!(counts.threads.load(Ordering::SeqCst), 0, "threads not joined");
    assert_eq!(counts.opened.load(Ordering::SeqCst), counts.closed.load(Ordering::SeqCst));
    assert_eq!(pool.credits.free(), pool.credits.limit(), "credits lost");
}

fn random_clients(seed: u64, groups: u64, limit: u64, clients: usize, statements: usize) {
    let host = FakeHost::new();
    let pool = pool(&host, groups, limit);
    pool.start().unwrap();
    std::thread::scope(|scope| {
        for n in 0..clients {
            let pool = &pool;
            scope.spawn(move || {
                let mut random = StdRng::seed_from_u64(seed ^ n as u64);
                let mut client = connect(pool);
                for _ in 0..statements {
                    let commands = [PING, PING, PING, WAIT, BEGIN, COMMIT, WORK];
                    call(&mut client, commands[random.random_range(0..commands.len())]);
                }
                if random.random_bool(0.5) {
                    client.write_all(&[QUIT]).unwrap();
                }
            });
        }
    });
    wait_until("all sessions are closed", || host.counts.closed.load(Ordering::SeqCst) == clients);
    assert_eq!(
        host.counts.statements.load(Ordering::SeqCst) / statements,
        clients,
        "seed {seed}: each statement ran once"
    );
    check_end(&host, &pool);
}

#[test]
fn every_statement_of_many_clients_is_answered() {
    let seed = std::env::var("SEED").map_or_else(|_| rand::random(), |s| s.parse().unwrap());
    println!("SEED={seed}");
    for (groups, limit) in [(1, 1), (1, 4), (2, 2), (3, 4), (8, 3)] {
        random_clients(seed, groups, limit, 48, 60);
    }
}

#[test]
fn the_limit_bounds_running_statements() {
    let host = FakeHost::new();
    let pool = pool(&host, 2, 3);
    pool.start().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..32 {
            scope.spawn(|| {
                let mut client = connect(&pool);
                (0..20).for_each(|_| call(&mut client, WORK));
            });
        }
    });
    assert_eq!(host.counts.most_running.load(Ordering::SeqCst), 3);
    check_end(&host, &pool);
}

#[test]
fn idle_sessions_time_out_and_busy_ones_do_not() {
    let host = FakeHost::new();
    host.wait_timeout_ms.store(1_000, Ordering::Relaxed);
    let pool = pool(&host, 1, 2);
    pool.start().unwrap();
    let started = Instant::now();
    let mut busy = connect(&pool);
    let mut idle: Vec<_> = (0..20).map(|_| connect(&pool)).collect();
    while host.counts.timeouts.load(Ordering::SeqCst) < 20 {
        assert!(started.elapsed() < Duration::from_secs(20));
        call(&mut busy, PING);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(started.elapsed() >= Duration::from_millis(1_000), "closed too early");
    for client in &mut idle {
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
    }
    call(&mut busy, PING);
    drop(busy);
    wait_until("the busy one is closed", || host.counts.closed.load(Ordering::SeqCst) == 21);
    check_end(&host, &pool);
}

#[test]
fn connections_that_are_gone_leave_no_timers_behind() {
    let host = FakeHost::new();
    let pool = pool(&host, 1, 2);
    pool.start().unwrap();
    for _ in 0..5_000 {
        call(&mut connect(&pool), PING);
    }
    wait_until("all are closed", || pool.connections.is_empty());
    wait_until("most timers are forgotten", || pool.timers_len() < 2_500);
    check_end(&host, &pool);
}

#[test]
fn killing_every_session_at_any_moment_loses_none() {
    let host = FakeHost::new();
    let pool = pool(&host, 2, 2);
    pool.start().unwrap();
    std::thread::scope(|scope| {
        for n in 0..64 {
            let pool = &pool;
            scope.spawn(move || {
                let mut client = connect(pool);
                // Runs until it is killed; whatever it was doing then may fail.
                loop {
                    let command = [PING, WORK, WAIT, BEGIN][n % 4];
                    if client.write_all(&[command]).is_err() || client.read_exact(&mut [0]).is_err()
                    {
                        return;
                    }
                }
            });
        }
        let idle: Vec<_> = (0..200).map(|_| connect(&pool)).collect();
        wait_until("all are logged in", || host.counts.opened.load(Ordering::SeqCst) == 264);
        wait_until("all are gone", || {
            host.kill_all(|token| pool.kill(token));
            host.counts.closed.load(Ordering::SeqCst) == 264
        });
        drop(idle);
    });
    check_end(&host, &pool);
}

#[test]
fn a_blocked_pool_still_serves_lock_holders_through_reported_waits() {
    let host = FakeHost::new();
    let pool = pool(&host, 1, 1);
    pool.start().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                let mut client = connect(&pool);
                (0..50).for_each(|_| call(&mut client, WAIT));
            });
        }
    });
    let most = host.counts.most_threads.load(Ordering::SeqCst);
    assert!(most > 4, "waiting statements must not hold the only credit ({most} threads)");
    check_end(&host, &pool);
}

#[test]
fn a_statement_that_waits_for_its_client_does_not_keep_its_credit() {
    let host = FakeHost::new();
    let pool = pool(&host, 1, 1);
    pool.start().unwrap();
    let mut slow: Vec<_> = (0..3).map(|_| connect(&pool)).collect();
    for client in &mut slow {
        client.write_all(&[READ]).unwrap();
    }
    let started = Instant::now();
    let mut other = connect(&pool);
    call(&mut other, PING);
    // The stall limit alone, of six seconds, would take longer, three times over.
    assert!(started.elapsed() < Duration::from_secs(5));
    for client in &mut slow {
        call(client, READ);
    }
    check_end(&host, &pool);
}

#[test]
fn refused_threads_leave_a_pool_that_says_so_and_can_be_stopped() {
    for permitted in 0..4 {
        let host = FakeHost::new();
        *host.threads_left.lock().unwrap() = Some(permitted);
        let pool = pool(&host, 1, 1);
        assert!(pool.start().is_err());
        let (_client, channel) = FakeHost::connect();
        let channel = pool.add_connection(channel, false).unwrap_err();
        thread_pool_rs::host::Host::channel_reject(
            &*host,
            channel,
            thread_pool_rs::host::RejectReason::Shutdown,
        );
        check_end(&host, &pool);
    }
    let host = FakeHost::new();
    *host.threads_left.lock().unwrap() = Some(4);
    let pool = pool(&host, 1, 1);
    pool.start().unwrap();
    let mut stuck = connect(&pool);
    stuck.write_all(&[READ]).unwrap();
    wait_until("the only worker is busy", || host.counts.running.load(Ordering::SeqCst) == 1);
    let mut client = connect(&pool);
    client.write_all(&[PING]).unwrap();
    wait_until("the refusal is in the log", || !host.log_lines.lock().unwrap().is_empty());
    *host.threads_left.lock().unwrap() = None;
    client.read_exact(&mut [0]).expect("answered as soon as a thread can be had");
    stuck.write_all(&[0]).unwrap();
    stuck.read_exact(&mut [0]).unwrap();
    check_end(&host, &pool);
}

#[test]
fn shutdown_at_any_moment_ends() {
    for round in 0..20 {
        let host = FakeHost::new();
        let pool = pool(&host, 2, 2);
        pool.start().unwrap();
        let clients: Vec<_> = (0..20).map(|_| connect(&pool)).collect();
        for mut client in &clients {
            client.write_all(&[[PING, WORK, WAIT, BEGIN][round % 4]]).unwrap();
        }
        std::thread::sleep(Duration::from_micros(100 * round as u64));
        pool.shutdown();
        assert_eq!(
            host.counts.opened.load(Ordering::SeqCst) + host.counts.rejected.load(Ordering::SeqCst),
            20
        );
        check_end(&host, &pool);
        pool.shutdown();
    }
}
