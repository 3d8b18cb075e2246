//! Random workloads in simulated time. `SEED=n` replays one seed; `SEEDS=n` runs more of them.
#![cfg(feature = "sim")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use thread_pool_rs::sim::{Report, Simulation, Workload};
use thread_pool_rs::time::Micros;

const KICK_UP: Micros = Micros::from_millis(1_000);

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// Runs `workload(seed)` for many seeds; a failure names its seed.
fn for_each_seed(seeds: u64, workload: impl Fn(u64) -> Workload) -> Vec<Report> {
    let range = match number("SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("SEEDS").unwrap_or(seeds),
    };
    range
        .map(|seed| {
            let run = AssertUnwindSafe(|| Simulation::new(seed, &workload(seed)).run());
            catch_unwind(run).unwrap_or_else(|panic| {
                eprintln!("failed; replay with SEED={seed}");
                std::panic::resume_unwind(panic)
            })
        })
        .collect()
}

fn random_workload(seed: u64, chaos: bool) -> Workload {
    Workload {
        groups: [1, 1, 2, 3, 8][seed as usize % 5],
        limit: [1, 2, 4, 3][seed as usize / 5 % 4],
        max_workers: 1_000,
        transactions: 0,
        transaction_delay_ms: 0,
        longest_preemption: Micros(400),
        clients: [2, 10, 40, 100][seed as usize / 20 % 4],
        commands: 20,
        holders: 0,
        long_work: true,
        rows: [1, 3, 50][seed as usize / 80 % 3],
        thread_shortage: false,
        chaos,
        kick_up: KICK_UP,
        stops_at: None,
    }
}

#[test]
fn quiet_workloads_answer_every_command() {
    let seeds = 2_400;
    let reports = for_each_seed(seeds, |seed| random_workload(seed, false));
    for (seed, report) in reports.iter().enumerate() {
        let workload = random_workload(seed as u64, false);
        if number("SEED").is_none() {
            let commands = workload.clients as u64 * (workload.commands as u64 + 1);
            assert_eq!(report.answered, commands, "seed {seed}");
        }
    }
}

#[test]
fn a_free_credit_is_used_at_once() {
    let seeds = 2_400;
    let reports = for_each_seed(seeds, |seed| random_workload(seed, seed.is_multiple_of(2)));
    let longest = reports.iter().map(|r| r.longest_waste).max().unwrap();
    // A handful of steps of two threads, each of which may be preempted for 0.4 ms.
    // The warden alone would take its tick of 2 ms and more.
    println!("longest: {longest:?}");
    assert!(longest < Micros(2_000), "{longest:?}");
}

#[test]
fn threads_that_lose_their_processor_for_long_lose_no_wake_up() {
    for_each_seed(2_400, |seed| Workload {
        longest_preemption: Micros::from_millis(200),
        ..random_workload(seed, true)
    });
}

#[test]
fn chaotic_workloads_lose_nothing() {
    let reports = for_each_seed(2_400, |seed| random_workload(seed, true));
    // The interesting things did happen.
    if number("SEED").is_none() {
        assert!(reports.iter().map(|r| r.kills).sum::<u64>() > 100);
        assert!(reports.iter().map(|r| r.timeouts).sum::<u64>() > 20);
    }
    let latest = reports.iter().map(|r| r.latest_timeout).max().unwrap();
    assert!(latest < Micros::from_millis(100), "a session timed out {latest:?} too late");
}

#[test]
fn a_shortage_of_threads_delays_and_loses_nothing() {
    let reports = for_each_seed(1_000, |seed| Workload {
        thread_shortage: true,
        groups: 1 + seed as u32 % 8,
        ..random_workload(seed, seed.is_multiple_of(2))
    });
    if number("SEED").is_none() {
        assert!(reports.iter().map(|r| r.refused_threads).sum::<u64>() > 100);
    }
}

/// One row that everybody wants, and few workers.
fn hot_row(seed: u64) -> Workload {
    Workload {
        groups: 1 + seed as u32 % 3,
        limit: 1,
        max_workers: 8,
        clients: 60,
        commands: 12,
        rows: 1,
        ..random_workload(seed, false)
    }
}

#[test]
fn a_row_that_everybody_wants_locks_nobody_out() {
    let reports = for_each_seed(800, hot_row);
    for (seed, report) in reports.iter().enumerate() {
        let longest = report.longest_holder_queueing;
        assert!(longest < Micros::from_millis(10), "seed {seed}: a lock holder waited {longest:?}");
        let longest = report.longest_low_queueing;
        assert!(longest < Micros::from_secs(10), "seed {seed}: a session waited {longest:?}");
    }
}

#[test]
fn threads_are_bounded_while_everybody_waits_for_one_row() {
    let workload = |seed| Workload { clients: 200, groups: 2, ..hot_row(seed) };
    for (seed, report) in for_each_seed(50, workload).iter().enumerate() {
        // The bound of 8, one for the holder and those on their way; warden and logins; and one for
        // each of a few admin sessions.
        assert!(report.most_threads < 40, "seed {seed}: {} threads", report.most_threads);
    }
}

#[test]
fn nobody_waits_longer_than_the_kick_up_time() {
    for (kick_up, seeds) in [(Micros::from_millis(200), 8), (Micros::from_millis(1_000), 4)] {
        let reports = for_each_seed(seeds, |seed| Workload {
            groups: 1 + seed as u32 % 3,
            limit: [1, 4][seed as usize % 2],
            clients: 110,
            // They go on for several times as long.
            commands: 1_000 + kick_up.0 as usize / 500,
            // They never end their transactions.
            holders: 100,
            // A statement that computes for long would keep the only credit until it stalls.
            long_work: false,
            rows: 50,
            kick_up,
            ..random_workload(seed, false)
        });
        for (seed, report) in reports.iter().enumerate() {
            let longest = report.longest_low_queueing;
            let bound = Micros(kick_up.0 + 50_000);
            assert!(longest < bound, "seed {seed}, {kick_up:?}: {longest:?}");
        }
        // The lock holders did keep the others waiting.
        let longest = reports.iter().map(|r| r.longest_low_queueing).max().unwrap();
        assert!(number("SEED").is_some() || longest >= kick_up, "{kick_up:?}: {longest:?}");
    }
}

#[test]
fn a_shutdown_at_any_moment_consumes_every_channel_and_session() {
    let reports = for_each_seed(2_400, |seed| Workload {
        // Most clients log in within the first 20 ms.
        stops_at: Some(Micros(50 + 37 * (seed % 1_000))),
        thread_shortage: seed % 7 == 0,
        ..random_workload(seed, seed.is_multiple_of(2))
    });
    if number("SEED").is_none() {
        let sum = |count: fn(&Report) -> u64| reports.iter().map(count).sum::<u64>();
        assert!(sum(|r| r.turned_away) > 100, "channels were turned away");
        assert!(sum(|r| r.kills) > 100, "sessions were killed");
        assert!(sum(|r| r.failed_logins) > 10, "logins failed");
    }
}

#[test]
fn no_more_transactions_are_open_than_may_be_and_none_is_lost() {
    let held_back = |seed: u64| Workload {
        transactions: [1, 2, 5][seed as usize % 3],
        transaction_delay_ms: [0, 0, 3][seed as usize / 3 % 3],
        clients: [2, 10, 40][seed as usize / 9 % 3],
        ..random_workload(seed, seed.is_multiple_of(2))
    };
    let reports = for_each_seed(480, held_back);
    for (seed, report) in reports.iter().enumerate() {
        let workload = held_back(seed as u64);
        if number("SEED").is_none() && !workload.chaos {
            let commands = workload.clients as u64 * (workload.commands as u64 + 1);
            assert_eq!(report.answered, commands, "seed {seed}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let workload = Workload { stops_at: Some(Micros(30_000)), ..random_workload(7, true) };
    let runs = [0, 1].map(|_| Simulation::new(7, &workload).run());
    assert_eq!(format!("{:?}", runs[0]), format!("{:?}", runs[1]));
}
