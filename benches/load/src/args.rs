//! The command line.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, value_parser};
use serde::Serialize;

use crate::{
    failure::Failure,
    pacing::Gaps,
    random::Distribution,
    scheduling::Scheduling,
    wire::{Account, Address},
    workload::{Cast, Oltp, Workload, sbtest::Data},
};

const MOST_CONNECTIONS: i64 = 20_000;

/// Puts load on a MySQL server from many connections on few threads, and reports what it did as JSON.
#[derive(Debug, Parser)]
#[command(name = "rtp_load", version)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create the database and sysbench's tables
    Prepare(PrepareOptions),
    /// Put load on the server
    Run(Box<RunOptions>),
}

#[derive(Debug, Args)]
pub struct ServerOptions {
    /// The server's unix socket
    #[arg(long, conflicts_with_all = ["host", "port"])]
    pub socket: Option<String>,
    /// Host, if no --socket is given
    #[arg(long, default_value = "127.0.0.1")]
    pub host: String,
    /// TCP port, if no --socket is given
    #[arg(long, default_value_t = 3306, value_parser = value_parser!(u16).range(1..))]
    pub port: u16,
    #[arg(long, default_value = "root")]
    pub user: String,
    /// Better given in the environment, where others don't see it
    #[arg(long, env = "MYSQL_PWD", hide_env_values = true, default_value = "")]
    pub password: String,
    #[arg(long, default_value = "sbtest")]
    pub database: String,
}

impl ServerOptions {
    /// Who logs in; with or without the database, which may not exist yet.
    pub fn account(&self, with_database: bool) -> Account {
        let address = match &self.socket {
            Some(path) => Address::Socket(path.clone()),
            None => Address::Tcp(self.host.clone(), self.port),
        };
        Account {
            address,
            user: self.user.clone(),
            password: self.password.clone(),
            database: with_database.then(|| self.database.clone()),
        }
    }
}

#[derive(Debug, Clone, Args, Serialize)]
pub struct DataOptions {
    /// Tables sbtest1, sbtest2 ...
    #[arg(long, default_value_t = 4, value_parser = value_parser!(u32).range(1..=1000))]
    pub tables: u32,
    /// Rows in each table
    #[arg(long, default_value_t = 10_000, value_parser = value_parser!(u32).range(1..=1_000_000_000))]
    pub rows: u32,
    /// Which rows are chosen how often (sysbench's --rand-type)
    #[arg(long, value_enum, default_value_t = Distribution::Uniform)]
    pub distribution: Distribution,
    /// Of everything random [default: another one each time]
    #[arg(long, default_value_t = rand::random(), hide_default_value = true)]
    pub seed: u64,
}

impl DataOptions {
    pub fn data(&self) -> Data {
        Data { tables: self.tables, rows: self.rows, distribution: self.distribution }
    }
}

#[derive(Debug, Args)]
pub struct PrepareOptions {
    #[command(flatten)]
    pub server: ServerOptions,
    #[command(flatten)]
    pub data: DataOptions,
}

#[derive(Debug, Args, Serialize)]
pub struct RunOptions {
    /// What the connections do
    #[arg(value_enum)]
    pub workload: Workload,
    #[command(flatten)]
    #[serde(skip)]
    pub server: ServerOptions,
    #[command(flatten)]
    #[serde(flatten)]
    pub data: DataOptions,
    #[arg(long, default_value_t = 8, value_parser = value_parser!(u32).range(1..=MOST_CONNECTIONS))]
    pub connections: u32,
    /// Threads that drive them, each with an event loop of its own
    #[arg(long, default_value_t = 2, value_parser = value_parser!(u32).range(1..=64))]
    pub threads: u32,
    /// Whether these threads may push the server's aside when an answer comes
    #[arg(long, value_enum, default_value_t = Scheduling::Batch)]
    pub scheduling: Scheduling,
    /// Time that is measured
    #[arg(long, default_value_t = 10, value_parser = value_parser!(u32).range(1..=86_400))]
    pub seconds: u32,
    /// Time under load before that
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u32).range(0..=86_400))]
    pub warm_up_seconds: u32,
    /// Open loop: so many transactions per second arrive, whether the server keeps up or not
    #[arg(long, value_name = "TPS", conflicts_with = "think_time_ms")]
    pub rate: Option<f64>,
    /// Gaps between these arrivals
    #[arg(long, value_enum, default_value_t = Gaps::Constant)]
    pub gaps: Gaps,
    /// Closed loop: mean time between the end of a transaction and the next one, exponentially distributed
    #[arg(long, value_name = "MS", value_parser = value_parser!(u32).range(1..=3_600_000))]
    pub think_time_ms: Option<u32>,
    /// Logins at the same time while the connections are opened
    #[arg(long, default_value_t = 32, value_parser = value_parser!(u32).range(1..=1000))]
    pub login_concurrency: u32,
    /// What the busy connections of mixed and idle do
    #[arg(long, value_enum, default_value_t = Oltp::PointSelect)]
    pub oltp: Oltp,
    /// mixed: connections that read whole tables [default: 1]
    #[arg(long)]
    pub reports: Option<u32>,
    /// idle: connections that aren't [default: 8]
    #[arg(long)]
    pub active: Option<u32>,
    /// update-hot: rows that all of them update [default: 1]
    #[arg(long)]
    pub hot_rows: Option<u32>,
    /// The server's process id, to report what it used; it must run on this machine
    #[arg(long, value_name = "PID")]
    #[serde(skip)]
    pub server_pid: Option<u32>,
    /// Count the server's system calls too, after the measured time, since that slows it down
    #[arg(long, requires = "server_pid")]
    pub strace: bool,
    /// How long
    #[arg(long, default_value_t = 3, value_name = "SECONDS", value_parser = value_parser!(u32).range(1..=60))]
    pub strace_seconds: u32,
    /// File for the result, else standard output
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub output: Option<PathBuf>,
}

impl RunOptions {
    /// Who does what.
    pub fn cast(&self) -> Cast {
        Cast {
            connections: self.connections as usize,
            reports: self.reports.unwrap_or(1) as usize,
            active: self.active.unwrap_or(8.min(self.connections)) as usize,
            oltp: self.oltp,
            hot_rows: self.hot_rows.unwrap_or(1),
        }
    }

    /// Mean time to think, if any.
    pub fn think_time(&self) -> Option<Duration> {
        self.think_time_ms.map(|milliseconds| Duration::from_millis(milliseconds.into()))
    }

    /// What clap can't check option by option.
    pub fn check(&self) -> Result<(), Failure> {
        let belongs = |name: &str,
                       value: Option<u32>,
                       least: u32,
                       most: u32,
                       workload: Workload| match value {
            Some(value) if self.workload != workload => Err(format!(
                "--{name} {value} means nothing to this workload: leave it out, or run {workload:?}"
            )),
            Some(value) if !(least..=most).contains(&value) => {
                Err(format!("--{name} {value} is out of range: give {least} to {most}"))
            }
            _ => Ok(()),
        };
        belongs("reports", self.reports, 0, self.connections, Workload::Mixed)
            .and_then(|()| belongs("active", self.active, 0, self.connections, Workload::Idle))
            .and_then(|()| {
                belongs("hot-rows", self.hot_rows, 1, self.data.rows, Workload::UpdateHot)
            })
            .and_then(|()| match self.rate {
                Some(rate) if !(0.01..=1e6).contains(&rate) => Err(format!(
                    "--rate {rate} is out of range: give 0.01 to 1000000 transactions per second"
                )),
                _ => Ok(()),
            })
            .map_err(Failure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(arguments: &str) -> Result<RunOptions, String> {
        let words = std::iter::once("rtp_load").chain(arguments.split(' '));
        match Arguments::try_parse_from(words).map_err(|error| error.to_string())?.command {
            Command::Run(options) => {
                options.check().map(|()| *options).map_err(|failure| failure.to_string())
            }
            Command::Prepare(_) => unreachable!(),
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_bad_value_is_named_with_its_limit() {
        for (arguments, parts) in [
            ("run mixed --connections 20001", ["20001", "--connections", "1..=20000"]),
            ("run mixed --connections 4 --reports 5", ["--reports 5", "0 to 4", ""]),
            ("run idle --reports 1", ["--reports 1", "leave it out", "Mixed"]),
            ("run update-hot --hot-rows 0", ["--hot-rows 0", "1 to 10000", ""]),
            ("run read-only --rate 0", ["--rate 0", "0.01 to 1000000", ""]),
            (
                "run read-only --rate 5 --think-time-ms 3",
                ["--rate", "cannot be used with", "--think-time-ms"],
            ),
            ("run read-only --strace", ["--server-pid", "", ""]),
            ("run nothing", ["nothing", "point-select", "connect-query"]),
        ] {
            let message = run(arguments).unwrap_err();
            assert!(parts.iter().all(|part| message.contains(part)), "{arguments}: {message}");
        }
    }

    #[test]
    fn the_server_is_a_socket_or_a_port() {
        let address = |arguments| run(arguments).unwrap().server.account(true).address.to_string();
        assert_eq!(address("run read-only --socket /s"), "/s");
        assert_eq!(address("run read-only --port 3307"), "127.0.0.1:3307");
        assert!(run("run read-only --socket /s --port 3307").is_err());
    }
}
