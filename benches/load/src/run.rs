//! A run from the first login to the result: log in, warm up, measure, count system calls, end.

use std::{
    sync::atomic::Ordering,
    thread::sleep,
    time::{Duration, Instant},
};

use crate::{
    args::RunOptions,
    connect::{allow_descriptors, check_limits},
    connection::Phase,
    driver::Driver,
    failure::Failure,
    measure::Tally,
    prepare::{check_tables, login},
    progress::Progress,
    report::{ClientUse, Outcome, Ramp, Report, Second},
    server::{ServerUse, ServerWatch, SystemCalls, count_system_calls, own_thread_seconds},
    workload::Class,
};

const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How often threads and memory of the server are looked at within a second.
const SAMPLES_PER_SECOND: u32 = 4;

/// The subcommand.
pub fn run(options: &RunOptions) -> Result<Report<'_>, Failure> {
    options.check()?;
    allow_descriptors(options.connections as usize)?;
    let classes = options.workload.classes(&options.cast());
    let server_version = check_server(options, &classes)?;
    // Fails now rather than after the measurement.
    let watch = options.server_pid.map(ServerWatch::begin).transpose()?;
    drop(watch);

    let mut driver = Driver::start(options, &classes);
    let ramp = match log_in(&mut driver, options.connections) {
        Ok(ramp) => ramp,
        Err(failure) => {
            driver.stop();
            return Err(failure);
        }
    };
    driver.enter(Phase::Run);
    sleep(Duration::from_secs(options.warm_up_seconds.into()));
    let measured = measure(&mut driver, options)?;
    let strace = options.strace.then(|| trace(&mut driver, options)).transpose();
    let (unfinished, rest) = driver.stop();
    let mut total = measured.total;
    total.errors.merge(&rest.errors);
    Ok(Report::new(
        options,
        &classes,
        Outcome {
            server_version,
            ramp,
            measured: measured.time,
            total,
            series: measured.series,
            waiting: measured.waiting,
            unfinished,
            client: measured.client,
            server: measured.server,
            strace: strace?,
        },
    ))
}

/// What can be known before thousands of connections are opened. Returns the server's version.
fn check_server(options: &RunOptions, classes: &[Class]) -> Result<String, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("an event loop needs three descriptors");
    runtime.block_on(async {
        let mut client = login(&options.server.account(true)).await?;
        let tables = options.data.tables;
        let statements = classes
            .iter()
            .map(|class| class.role.prepared_statements(tables) * class.connections)
            .sum();
        check_limits(&mut client, options.connections as usize, statements).await?;
        check_tables(&mut client, options.data.data()).await?;
        let version =
            client.rows("SELECT @@GLOBAL.version").await?[0][0].clone().unwrap_or_default();
        client.quit().await?;
        Ok(version)
    })
}

/// Waits until all are logged in.
fn log_in(driver: &mut Driver, connections: u32) -> Result<Ramp, Failure> {
    let start = Instant::now();
    let progress = Progress::new("logins", connections.into());
    loop {
        let done = driver.logins.done.load(Ordering::Relaxed);
        progress.set(done as u64);
        if done == connections as usize {
            break;
        }
        if let Some(error) = &*driver.logins.failure.lock().expect("no thread panics") {
            return Err(Failure(format!(
                "{done} of {connections} connections are ready, and the next failed: {error}; see the server's \
                 max_connections, back_log and limits of open files and threads, or use a lower --login-concurrency"
            )));
        }
        sleep(LOOK_EVERY);
    }
    progress.finish();
    Ok(Ramp { seconds: start.elapsed().as_secs_f64(), logins: driver.take().logins })
}

struct Measured {
    time: Duration,
    total: Tally,
    series: Vec<Second>,
    waiting: u64,
    client: ClientUse,
    server: Option<ServerUse>,
}

fn measure(driver: &mut Driver, options: &RunOptions) -> Result<Measured, Failure> {
    let threads = driver.kernel_ids();
    let mut server = options.server_pid.map(ServerWatch::begin).transpose()?;
    let progress = Progress::new("seconds", options.seconds.into());
    let mut total = driver.take();
    total.clear();
    let used_before = own_thread_seconds(&threads);
    let start = Instant::now();
    let mut series: Vec<Second> = Vec::with_capacity(options.seconds as usize);
    let mut last = Duration::ZERO;
    for sample in 1..=options.seconds * SAMPLES_PER_SECOND {
        let due = Duration::from_secs(1) * sample / SAMPLES_PER_SECOND;
        sleep(due.saturating_sub(start.elapsed()));
        if let Some(server) = &mut server {
            server.sample();
        }
        if sample % SAMPLES_PER_SECOND == 0 {
            let now = start.elapsed();
            let tally = driver.take();
            series.push(Second::new(now, now - last, &tally));
            progress.advance(1);
            progress.tell(format!(
                "{:.0} tps, {} errors",
                series[series.len() - 1].tps,
                total.errors.total()
            ));
            total.merge(&tally);
            last = now;
        }
    }
    let used = own_thread_seconds(&threads);
    progress.finish();
    let server = server.map(|server| server.end(total.transactions())).transpose()?;
    let used: Vec<f64> =
        used.iter().zip(used_before).map(|(after, before)| after - before).collect();
    Ok(Measured {
        time: last,
        waiting: driver.waiting(),
        client: ClientUse::new(&used, last),
        total,
        series,
        server,
    })
}

/// The load goes on while the system calls are counted.
fn trace(driver: &mut Driver, options: &RunOptions) -> Result<SystemCalls, Failure> {
    let pid = options.server_pid.expect("clap asks for it");
    let time = Duration::from_secs(options.strace_seconds.into());
    count_system_calls(pid, time, || driver.take().transactions())
}
