//! Counts the server's system calls with strace, for a bounded time.

use std::{
    collections::BTreeMap,
    io::{ErrorKind, Read},
    process::{Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;

use crate::failure::Failure;

/// With thousands of threads strace needs a while to let go of them.
const END_LIMIT: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What strace counted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SystemCalls {
    /// Transactions meanwhile; the server is much slower than usual.
    pub transactions: u64,
    /// Of all calls. Strace needs a moment to attach to every thread, so the first calls are missing.
    pub calls_per_transaction: Option<f64>,
    /// How often each.
    pub calls: BTreeMap<String, u64>,
}

/// Counts for that time. `transactions` says how many there have been since it was last asked.
pub fn count_system_calls(
    pid: u32,
    time: Duration,
    mut transactions: impl FnMut() -> u64,
) -> Result<SystemCalls, Failure> {
    let mut strace = Command::new("strace")
        .args(["-c", "-f", "-p", &pid.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| match error.kind() {
            ErrorKind::NotFound => Failure("--strace: strace isn't installed: install the package strace, or leave the option out".into()),
            _ => Failure(format!("--strace: can't start strace: {error}")),
        })?;
    // Read all the time: strace names each thread that it attaches to, and would stop at a full pipe.
    let mut stderr = strace.stderr.take().expect("it is piped");
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        stderr.read_to_end(&mut text).map(|_| String::from_utf8_lossy(&text).into_owned())
    });
    transactions();
    sleep(time);
    let counted = transactions();
    let id = Pid::from_child(&strace);
    // It may have ended by itself; then its output says why.
    let _ = kill_process(id, Signal::INT);
    let deadline = Instant::now() + END_LIMIT;
    while strace.try_wait().is_ok_and(|status| status.is_none()) {
        if Instant::now() > deadline {
            let _ = strace.kill();
        }
        sleep(LOOK_EVERY);
    }
    let text = reader.join().expect("the reader doesn't panic").unwrap_or_default();
    let calls = parse(&text);
    if calls.is_empty() {
        let reason = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
        return Err(Failure(format!(
            "--strace: strace counted nothing: {reason} (tracing another process takes root or CAP_SYS_PTRACE)"
        )));
    }
    let sum: u64 = calls.values().sum();
    Ok(SystemCalls {
        transactions: counted,
        calls_per_transaction: (counted > 0).then(|| sum as f64 / counted as f64),
        calls,
    })
}

/// Lines of the table that strace -c prints: % time, seconds, usecs/call, calls, errors or nothing, name.
fn parse(text: &str) -> BTreeMap<String, u64> {
    let line = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (name, calls) = (*fields.last()?, fields.get(3)?);
        let is_row =
            matches!(fields.len(), 5 | 6) && fields[0].parse::<f64>().is_ok() && name != "total";
        is_row.then_some((name.to_string(), calls.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_strace_is_read() {
        let text = "strace: Process 7 attached with 3 threads\n\
            % time     seconds  usecs/call     calls    errors syscall\n\
            ------ ----------- ----------- --------- --------- ----------------\n \
             70.10    0.100000          10     10000           recvfrom\n \
             29.90    0.050000          10      5000        12 futex\n\
            ------ ----------- ----------- --------- --------- ----------------\n\
            100.00    0.150000          10     15000        12 total\n";
        let calls = parse(text);
        assert_eq!(
            calls,
            BTreeMap::from([("recvfrom".to_string(), 10_000), ("futex".to_string(), 5000)])
        );
        assert!(
            parse("strace: attach: ptrace(PTRACE_SEIZE, 1): Operation not permitted\n").is_empty()
        );
    }
}
