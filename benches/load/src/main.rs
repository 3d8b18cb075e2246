//! rtp_load: puts load on a MySQL server from many connections on few threads. README.md beside the package explains how
//! to use it.
//!
//! | module | subject |
//! |---|---|
//! | [`args`] | the command line |
//! | [`run`], [`driver`], [`connection`] | a run; its threads; one connection |
//! | [`workload`] | what connections do, one file each |
//! | [`pacing`], [`alarm`] | when they do it: closed and open loop |
//! | [`measure`] | latencies, errors, fairness |
//! | [`server`] | what processes use |
//! | [`report`] | the JSON |
//! | [`wire`], [`connect`] | the MySQL client; logging in |
//! | [`prepare`], [`random`], [`scheduling`], [`progress`], [`failure`] | small parts |

mod alarm;
mod args;
mod connect;
mod connection;
mod driver;
mod failure;
mod measure;
mod pacing;
mod prepare;
mod progress;
mod random;
mod report;
mod run;
mod scheduling;
mod server;
mod wire;
mod workload;

use std::{fs::File, io::Write, process::ExitCode};

use args::{Arguments, Command, PrepareOptions, RunOptions};
use clap::Parser;
use failure::Failure;

fn main() -> ExitCode {
    // A thread that panics would leave the others waiting for it.
    let show = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        show(info);
        std::process::abort();
    }));
    let result = match Arguments::parse().command {
        Command::Prepare(options) => prepare(&options),
        Command::Run(options) => run(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn prepare(options: &PrepareOptions) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("an event loop needs three descriptors").block_on(prepare::prepare(options))
}

fn run(options: &RunOptions) -> Result<(), Failure> {
    // Created first: a run of hours mustn't end in a folder that isn't there.
    let mut output: Box<dyn Write> = match &options.output {
        Some(path) => Box::new(File::create(path).map_err(|error| {
            Failure(format!(
                "--output {}: {error}: give a file that can be written",
                path.display()
            ))
        })?),
        None => Box::new(std::io::stdout()),
    };
    let report = run::run(options)?;
    let text = serde_json::to_string_pretty(&report).expect("the report can be written as JSON");
    writeln!(output, "{text}")
        .map_err(|error| Failure(format!("can't write the result: {error}")))?;
    if options.output.is_some() {
        eprintln!("{}", report.summary());
    }
    Ok(())
}
