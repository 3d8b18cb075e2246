//! The threads: each has an event loop of its own and a share of the connections.

use std::{
    sync::{Arc, Mutex, mpsc},
    thread::JoinHandle,
    time::Duration,
};

use rand::{SeedableRng, rngs::SmallRng};
use tokio::{
    runtime::Builder,
    sync::{Semaphore, watch},
    task::JoinSet,
    time::{Instant, timeout},
};

use crate::{
    alarm::TimerAlarm,
    args::RunOptions,
    connect::Connector,
    connection::{Connection, Logins, Phase},
    measure::Tally,
    pacing::{Arrivals, Pacing, Schedule, dispatch},
    scheduling::Scheduling,
    workload::Class,
};

/// For transactions that have begun when the load ends.
const END_LIMIT: Duration = Duration::from_secs(10);

/// All threads.
#[derive(Debug)]
pub struct Driver {
    threads: Vec<Thread>,
    phase: watch::Sender<Phase>,
    /// How far the logins are.
    pub logins: Arc<Logins>,
    /// Swapped for a thread's tally when that is taken.
    spare: Tally,
    connections: Vec<usize>,
}

#[derive(Debug)]
struct Thread {
    handle: JoinHandle<usize>,
    kernel_id: i32,
    tally: Arc<Mutex<Tally>>,
    arrivals: Option<Arc<Arrivals>>,
}

/// What a thread takes with it.
struct Share {
    scheduling: Scheduling,
    connections: Vec<Connection>,
    phase: watch::Receiver<Phase>,
    tally: Arc<Mutex<Tally>>,
    open_loop: Option<OpenLoop>,
}

struct OpenLoop {
    arrivals: Arc<Arrivals>,
    sender: tokio::sync::mpsc::UnboundedSender<Instant>,
    /// Makes the schedule once it is known when the load begins.
    schedule: Box<dyn FnOnce(Instant) -> Schedule + Send>,
}

impl Driver {
    /// Starts the threads, which begin to log in.
    pub fn start(options: &RunOptions, classes: &[Class]) -> Self {
        let connections: Vec<usize> = classes.iter().map(|class| class.connections).collect();
        let count = (options.threads as usize).min(options.connections as usize);
        let (phase, receiver) = watch::channel(Phase::Login);
        let logins = Arc::<Logins>::default();
        let account = Arc::new(options.server.account(true));
        let permits = Arc::new(Semaphore::new(options.login_concurrency as usize));
        let mut threads = Vec::new();
        for index in 0..count {
            let tally = Arc::new(Mutex::new(Tally::new(&connections)));
            let open_loop = options.rate.map(|rate| open_loop(options, rate, index, count));
            let pacing = match &open_loop {
                Some(open_loop) => Pacing::Open(open_loop.arrivals.clone()),
                None => Pacing::Closed(options.think_time()),
            };
            let arrivals = open_loop.as_ref().map(|open_loop| open_loop.arrivals.clone());
            let connector = Connector::new(account.clone(), permits.clone(), tally.clone());
            // Dealt out like cards, so that each thread has its share of each class.
            let places = places(classes).enumerate().filter(|(number, _)| number % count == index);
            let share = Share {
                scheduling: options.scheduling,
                connections: places
                    .map(|(number, (role, place))| Connection {
                        role,
                        place,
                        connector: connector.clone(),
                        data: options.data.data(),
                        pacing: pacing.clone(),
                        rng: SmallRng::seed_from_u64(options.data.seed.wrapping_add(number as u64)),
                        phase: receiver.clone(),
                        tally: tally.clone(),
                        logins: logins.clone(),
                    })
                    .collect(),
                phase: receiver.clone(),
                tally: tally.clone(),
                open_loop,
            };
            let (sender, started) = mpsc::channel();
            let handle = std::thread::Builder::new()
                .name(format!("load {index}"))
                .spawn(move || {
                    sender
                        .send(rustix::thread::gettid().as_raw_nonzero().get())
                        .expect("the main thread waits");
                    share.drive()
                })
                .expect("a thread can be started");
            threads.push(Thread {
                handle,
                kernel_id: started.recv().expect("the thread tells"),
                tally,
                arrivals,
            });
        }
        Driver { threads, phase, logins, spare: Tally::new(&connections), connections }
    }

    /// The kernel's numbers of the threads.
    pub fn kernel_ids(&self) -> Vec<i32> {
        self.threads.iter().map(|thread| thread.kernel_id).collect()
    }

    /// All go on to the next phase.
    pub fn enter(&self, phase: Phase) {
        self.phase.send_replace(phase);
    }

    /// What has been counted since this was last asked.
    pub fn take(&mut self) -> Tally {
        let mut sum = Tally::new(&self.connections);
        for thread in &self.threads {
            std::mem::swap(&mut *thread.tally.lock().expect("no thread panics"), &mut self.spare);
            sum.merge(&self.spare);
            self.spare.clear();
        }
        sum
    }

    /// Arrivals of the open loop that wait for a connection.
    pub fn waiting(&self) -> u64 {
        self.threads
            .iter()
            .filter_map(|thread| thread.arrivals.as_ref())
            .map(|arrivals| arrivals.waiting())
            .sum()
    }

    /// Ends the load. Returns how many connections had to be cut off in a transaction, and what was counted meanwhile.
    pub fn stop(mut self) -> (usize, Tally) {
        self.enter(Phase::Stop);
        let mut unfinished = 0;
        let mut rest = Tally::new(&self.connections);
        for thread in self.threads.drain(..) {
            unfinished += thread.handle.join().expect("the thread doesn't panic");
            rest.merge(&thread.tally.lock().expect("no thread panics"));
        }
        (unfinished, rest)
    }
}

/// Role and place of each connection, class by class.
fn places(classes: &[Class]) -> impl Iterator<Item = (crate::workload::Role, (usize, usize))> + '_ {
    let class = |(index, class): (usize, &Class)| {
        let role = class.role;
        (0..class.connections).map(move |number| (role, (index, number)))
    };
    classes.iter().enumerate().flat_map(class)
}

/// A thread's share of the arrivals: every `count`-th.
fn open_loop(options: &RunOptions, rate: f64, index: usize, count: usize) -> OpenLoop {
    let (arrivals, sender) = Arrivals::new();
    let gaps = options.gaps;
    let rng = SmallRng::seed_from_u64(options.data.seed ^ (index as u64 + 1).rotate_left(32));
    let offset = Duration::from_secs_f64(index as f64 / rate);
    let schedule =
        Box::new(move |start| Schedule::new(gaps, rate / count as f64, start + offset, rng));
    OpenLoop { arrivals, sender, schedule }
}

impl Share {
    /// The life of a thread. Returns the number of connections that had to be cut off.
    fn drive(self) -> usize {
        self.scheduling.apply().expect("a thread may give up priority");
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("an event loop needs three descriptors");
        runtime.block_on(self.run())
    }

    async fn run(mut self) -> usize {
        let mut tasks = JoinSet::new();
        for connection in self.connections {
            tasks.spawn(connection.live());
        }
        let _ = self.phase.wait_for(|phase| *phase != Phase::Login).await;
        if let Some(open_loop) = self.open_loop {
            let alarm = TimerAlarm::new().expect("a timer needs one descriptor");
            let tally = self.tally;
            let late = move |late| tally.lock().expect("no thread panics").arrived(late);
            let schedule = (open_loop.schedule)(Instant::now());
            // Ends with the event loop.
            tokio::spawn(dispatch(schedule, alarm, open_loop.arrivals, open_loop.sender, late));
        }
        let _ = self.phase.wait_for(|phase| *phase == Phase::Stop).await;
        let _ = timeout(END_LIMIT, async { while tasks.join_next().await.is_some() {} }).await;
        tasks.len()
    }
}
