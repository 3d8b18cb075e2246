//! The result. benches/load/README.md documents its fields.

use std::time::Duration;

use serde::Serialize;

use crate::{
    args::RunOptions,
    measure::{ErrorCount, Fairness, Latencies, Summary, Tally},
    server::{ServerUse, SystemCalls},
    workload::Class,
};

/// Changes when a reader of older results would misunderstand a newer one.
const FORMAT: u32 = 1;

/// What a run found out.
#[derive(Debug)]
pub struct Outcome {
    pub server_version: String,
    pub ramp: Ramp,
    /// How long was measured.
    pub measured: Duration,
    pub total: Tally,
    pub series: Vec<Second>,
    /// Arrivals that waited for a connection in the end.
    pub waiting: u64,
    /// Connections that were cut off in a transaction.
    pub unfinished: usize,
    pub client: ClientUse,
    pub server: Option<ServerUse>,
    pub strace: Option<SystemCalls>,
}

/// The logins before the load.
#[derive(Debug)]
pub struct Ramp {
    pub seconds: f64,
    pub logins: Latencies,
}

/// The JSON.
#[derive(Debug, Serialize)]
pub struct Report<'a> {
    format: u32,
    options: &'a RunOptions,
    server_version: String,
    measured_seconds: f64,
    transactions: u64,
    queries: u64,
    tps: f64,
    qps: f64,
    latency_ms: Option<Summary>,
    deadlocks: u64,
    errors: Errors,
    unfinished: usize,
    classes: Vec<ClassReport>,
    logins: Logins,
    open_loop: Option<OpenLoop>,
    series: Vec<Second>,
    client: ClientUse,
    server: Option<ServerUse>,
    strace: Option<SystemCalls>,
}

#[derive(Debug, Serialize)]
struct Errors {
    total: u64,
    kinds: Vec<ErrorCount>,
}

#[derive(Debug, Serialize)]
struct ClassReport {
    name: &'static str,
    connections: usize,
    transactions: u64,
    queries: u64,
    tps: f64,
    qps: f64,
    latency_ms: Option<Summary>,
    fairness: Option<Fairness>,
}

#[derive(Debug, Serialize)]
struct Logins {
    ramp_up_seconds: f64,
    ramp_up_latency_ms: Option<Summary>,
    latency_ms: Option<Summary>,
}

#[derive(Debug, Serialize)]
struct OpenLoop {
    arrivals: u64,
    waiting_at_end: u64,
    client_late_ms: Option<Summary>,
}

/// One second of the time series.
#[derive(Debug, Clone, Serialize)]
pub struct Second {
    /// Its end, since the measurement began.
    pub at_seconds: f64,
    /// Transactions per second.
    pub tps: f64,
    /// All but deadlocks.
    pub errors: u64,
    /// Rolled back transactions.
    pub deadlocks: u64,
    classes: Vec<SecondOfClass>,
}

#[derive(Debug, Clone, Serialize)]
struct SecondOfClass {
    tps: f64,
    latency_ms: Option<Summary>,
}

impl Second {
    /// `length`: since the second before.
    pub fn new(at: Duration, length: Duration, tally: &Tally) -> Self {
        let per_second = |count: u64| count as f64 / length.as_secs_f64();
        Second {
            at_seconds: at.as_secs_f64(),
            tps: per_second(tally.transactions()),
            errors: tally.errors.total(),
            deadlocks: tally.errors.deadlocks(),
            classes: tally
                .classes
                .iter()
                .map(|class| SecondOfClass {
                    tps: per_second(class.transactions),
                    latency_ms: class.latencies.summary(),
                })
                .collect(),
        }
    }
}

/// What this program itself used.
#[derive(Debug, Clone, Serialize)]
pub struct ClientUse {
    cpu_seconds: f64,
    /// Share of the time that the busiest thread was on a processor: near 1 it is the bottleneck.
    busiest_thread: f64,
}

impl ClientUse {
    /// `threads`: processor time of each.
    pub fn new(threads: &[f64], time: Duration) -> Self {
        ClientUse {
            cpu_seconds: threads.iter().sum(),
            busiest_thread: threads.iter().copied().fold(0.0, f64::max) / time.as_secs_f64(),
        }
    }
}

impl<'a> Report<'a> {
    /// Puts the result together.
    pub fn new(options: &'a RunOptions, classes: &[Class], outcome: Outcome) -> Self {
        let total = &outcome.total;
        let per_second = |count: u64| count as f64 / outcome.measured.as_secs_f64();
        let mut all = Latencies::default();
        total.classes.iter().for_each(|class| all.merge(&class.latencies));
        let class_report = |(class, tally): (&Class, &crate::measure::ClassTally)| ClassReport {
            name: class.role.name(),
            connections: class.connections,
            transactions: tally.transactions,
            queries: tally.queries,
            tps: per_second(tally.transactions),
            qps: per_second(tally.queries),
            latency_ms: tally.latencies.summary(),
            fairness: Fairness::of(&tally.connections),
        };
        Report {
            format: FORMAT,
            options,
            measured_seconds: outcome.measured.as_secs_f64(),
            transactions: total.transactions(),
            queries: total.queries(),
            tps: per_second(total.transactions()),
            qps: per_second(total.queries()),
            latency_ms: all.summary(),
            deadlocks: total.errors.deadlocks(),
            errors: Errors { total: total.errors.total(), kinds: total.errors.kinds() },
            unfinished: outcome.unfinished,
            classes: classes.iter().zip(&total.classes).map(class_report).collect(),
            logins: Logins {
                ramp_up_seconds: outcome.ramp.seconds,
                ramp_up_latency_ms: outcome.ramp.logins.summary(),
                latency_ms: total.logins.summary(),
            },
            open_loop: options.rate.map(|_| OpenLoop {
                arrivals: total.arrival_count,
                waiting_at_end: outcome.waiting,
                client_late_ms: total.arrivals.summary(),
            }),
            server_version: outcome.server_version,
            series: outcome.series,
            client: outcome.client,
            server: outcome.server,
            strace: outcome.strace,
        }
    }

    /// One line for a person.
    pub fn summary(&self) -> String {
        let latency = self.latency_ms.as_ref().map_or(String::new(), |latency| {
            format!(
                ", ms p50 {:.2} p95 {:.2} p99 {:.2} max {:.2}",
                latency.p50, latency.p95, latency.p99, latency.max
            )
        });
        format!(
            "{:.0} tps{latency}, {} errors, {} deadlocks",
            self.tps, self.errors.total, self.deadlocks
        )
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::Value;

    use super::*;
    use crate::args::{Arguments, Command};

    fn report(arguments: &str) -> Value {
        let words = std::iter::once("rtp_load").chain(arguments.split(' '));
        let Command::Run(options) = Arguments::parse_from(words).command else { unreachable!() };
        let classes = options.workload.classes(&options.cast());
        let mut total =
            Tally::new(&classes.iter().map(|class| class.connections).collect::<Vec<_>>());
        total.succeeded(0, 0, Duration::from_millis(2), 18);
        total.succeeded(0, 0, Duration::from_millis(4), 18);
        total.arrived(Duration::from_millis(1));
        let second = Second::new(Duration::from_secs(2), Duration::from_secs(2), &total);
        let outcome = Outcome {
            server_version: "9.7.4".into(),
            ramp: Ramp { seconds: 0.5, logins: Latencies::default() },
            measured: Duration::from_secs(2),
            total,
            series: vec![second],
            waiting: 3,
            unfinished: 0,
            client: ClientUse::new(&[0.5, 1.0], Duration::from_secs(2)),
            server: None,
            strace: None,
        };
        serde_json::to_value(Report::new(&options, &classes, outcome)).unwrap()
    }

    #[test]
    fn the_shape_is_the_documented_one() {
        let json = report("run mixed --connections 5 --reports 2 --socket /s --password secret");
        let keys: Vec<&String> = json.as_object().unwrap().keys().collect();
        let documented = include_str!("../README.md");
        for key in keys {
            assert!(documented.contains(&format!("| `{key}` |")), "{key} isn't documented");
        }
        assert_eq!(json["format"], 1);
        assert_eq!(json["tps"], 1.0);
        assert_eq!(json["qps"], 18.0);
        assert_eq!(json["options"]["workload"], "mixed");
        assert_eq!(json["options"]["tables"], 4);
        assert!(!json.to_string().contains("secret"));
        assert_eq!(json["classes"][0]["name"], "report");
        assert_eq!(json["classes"][0]["fairness"]["jain"], 0.5);
        assert_eq!(json["classes"][1]["fairness"], Value::Null);
        assert_eq!(json["classes"][1]["latency_ms"], Value::Null);
        assert_eq!(json["series"][0]["classes"][0]["tps"], 1.0);
        assert_eq!(json["client"]["busiest_thread"], 0.5);
        assert_eq!(json["open_loop"], Value::Null);
    }

    #[test]
    fn an_open_loop_reports_what_it_left() {
        let json = report("run read-only --rate 10");
        assert_eq!(json["open_loop"]["arrivals"], 1);
        assert_eq!(json["open_loop"]["waiting_at_end"], 3);
    }
}
