//! The scheduler in simulated time: the same pool, workers, logins and warden as in production,
//! on a simulated operating system (`kernel`), with a simulated server (`server`) and random
//! clients (`clients`). One seed decides everything, so a failure is replayed by its seed.
//!
//! Between any two steps of a thread lies a random delay, sometimes a long one as if the thread
//! had been preempted; so the order of steps differs from seed to seed. After every event the
//! invariants of the pool are checked (`check`).

mod check;
mod clients;
mod kernel;
mod server;
mod threads;

pub use clients::Workload;
pub use server::Command;

use crate::config::{Settings, vars};
use crate::pool::Pool;
use crate::time::{Micros, Moment};
use clients::{Client, ClientId};
use kernel::{Kernel, ThreadId};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use server::{Message, Server};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use threads::SimThread;

/// What happens at some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A thread goes on, unless something else has moved it on meanwhile (its epoch changed).
    Thread(ThreadId, u64),
    /// A client acts.
    Client(ClientId),
    /// Somebody kills this client's session.
    Kill(ClientId),
    /// A DBA changes a system variable.
    Set(u32, u32),
    /// A DBA shuts the server down.
    Stop,
}

/// No workload takes this long; an idle pool must have stopped setting timers by then.
const END_OF_TIME: Moment = Moment(1_000_000_000_000);

/// What a run did.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Commands that were answered.
    pub answered: u64,
    /// Sessions that were closed by a timeout.
    pub timeouts: u64,
    /// Sessions that were killed.
    pub kills: u64,
    /// Longest time from a command's arrival to the begin of its execution, for sessions that
    /// hold no lock.
    pub longest_low_queueing: Micros,
    /// The same for sessions that hold one.
    pub longest_holder_queueing: Micros,
    /// Longest time that work waited for a worker although a credit was free.
    pub longest_waste: Micros,
    /// Longest time between the end of a session's `wait_timeout` and its closing.
    pub latest_timeout: Micros,
    /// Channels that the pool has taken over.
    pub channels: u64,
    /// Channels that were turned away since the server was being shut down.
    pub turned_away: u64,
    /// Logins that failed.
    pub failed_logins: u64,
    /// Most sessions that held locks at one time.
    pub most_lock_holders: usize,
    /// Most workers of a group that executed nothing when the group got a further one.
    pub most_idle_colleagues: usize,
    /// Threads that the operating system refused.
    pub refused_threads: u64,
    /// Most threads at one time.
    pub most_threads: usize,
    /// When the server was shut down, if it was.
    pub stopped_at: Option<Moment>,
    /// Simulated time at the end.
    pub ended_at: Moment,
}

/// One run.
pub struct Simulation {
    pool: Arc<Pool>,
    kernel: Kernel<Message>,
    server: Arc<Server>,
    threads: Vec<SimThread>,
    clients: Vec<Client>,
    random: StdRng,
    events: BinaryHeap<Reverse<(Moment, u64, Event)>>,
    /// Orders events of the same moment.
    sequence: u64,
    wasted_since: Option<Moment>,
    longest_preemption: Micros,
    thread_shortage: bool,
    /// Clients break off and so on, and settings change.
    chaos: bool,
    /// The highest concurrency limit so far.
    highest_limit: u32,
    report: Report,
}

impl Simulation {
    /// A run of `workload` that `seed` decides.
    pub fn new(seed: u64, workload: &Workload) -> Self {
        let kernel = Kernel::new();
        let server = Arc::new(Server::new(kernel.clone()));
        let settings = Settings::defaults(2);
        for (variable, value) in [
            (vars::RTP_VARIABLE_SIZE, workload.groups),
            (vars::RTP_VARIABLE_CONCURRENCY_LIMIT, workload.limit),
            (vars::RTP_VARIABLE_MAX_THREADS, workload.max_workers),
            (vars::RTP_VARIABLE_MAX_TRANSACTIONS_LIMIT, workload.transactions),
            (vars::RTP_VARIABLE_TRANSACTION_DELAY, workload.transaction_delay_ms),
            // Reports go on for ever, but a simulation must come to rest.
            (vars::RTP_VARIABLE_CONNECTION_REPORT_INTERVAL, 0),
            // No transaction of a simulation is that old.
            (vars::RTP_VARIABLE_LONGRUN_TRX_LIMIT, 86_400_000),
            (vars::RTP_VARIABLE_PRIO_KICKUP_TIMER, (workload.kick_up.0 / 1_000) as u32),
        ] {
            settings.set(variable, u64::from(value)).expect("workloads are in range");
        }
        if workload.transactions > 0 {
            // With more idle workers some limits would be refused.
            settings.set(vars::RTP_VARIABLE_QUERY_THREADS_PER_GROUP, 1).expect("in range");
        }
        let host = Arc::clone(&server) as Arc<dyn crate::host::Host>;
        let pool = Pool::new(host, Arc::new(kernel.clone()), settings);
        let mut this = Self {
            pool: Arc::new(pool.expect("simulated pollers never fail")),
            kernel,
            server,
            threads: Vec::new(),
            clients: Vec::new(),
            random: StdRng::seed_from_u64(seed),
            events: BinaryHeap::new(),
            sequence: 0,
            wasted_since: None,
            longest_preemption: workload.longest_preemption,
            thread_shortage: workload.thread_shortage,
            chaos: workload.chaos,
            highest_limit: workload.limit,
            report: Report::default(),
        };
        for (role, group) in this.pool.permanent_threads() {
            this.pool.count_new_thread(role, group);
            this.add_thread(role, group);
        }
        this.add_clients(workload);
        this
    }

    /// Runs until nothing is left to happen; panics when an invariant is broken.
    pub fn run(mut self) -> Report {
        while let Some(Reverse((at, _, event))) = self.events.pop() {
            assert!(at < END_OF_TIME, "the pool never comes to rest: {event:?} at {at:?}");
            self.note_waste(at);
            self.check_before_time_passes();
            self.kernel.set_now(at);
            match event {
                Event::Thread(thread, epoch) => self.thread_event(thread, epoch),
                Event::Client(client) => self.client_event(client),
                Event::Kill(client) => self.kill_event(client),
                Event::Set(variable, value) => {
                    if variable == vars::RTP_VARIABLE_CONCURRENCY_LIMIT {
                        self.highest_limit = self.highest_limit.max(value);
                    }
                    self.pool.set_variable(variable, u64::from(value)).expect("in range");
                }
                Event::Stop => self.stop_event(),
            }
            self.follow_up();
            self.check_always();
        }
        if self.pool.is_stopping() {
            self.pool.close_remaining();
            self.follow_up();
            self.check_stopped();
        } else {
            self.check_at_rest();
        }
        self.report.ended_at = self.now();
        self.report
    }

    fn now(&self) -> Moment {
        self.kernel.now()
    }

    fn schedule(&mut self, after: Micros, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((self.now() + after, self.sequence, event)));
    }

    /// Lets everybody go on whom the last event has woken.
    fn follow_up(&mut self) {
        loop {
            let mut threads = self.kernel.take_woken();
            threads.extend(self.server.take_granted());
            let ended = self.server.take_ended();
            let rejected = self.server.take_rejected();
            if threads.is_empty() && ended.is_empty() && rejected.is_empty() {
                return;
            }
            for fd in rejected {
                self.channel_rejected(fd);
            }
            for thread in threads {
                self.wake(thread);
            }
            for session in ended {
                self.session_ended(session);
            }
        }
    }

    /// The time that one step takes: mostly a few microseconds, rarely a preemption.
    fn jitter(&mut self) -> Micros {
        if self.random.random_bool(0.01) {
            Micros(self.random.random_range(50..self.longest_preemption.0))
        } else {
            Micros(self.random.random_range(0..20))
        }
    }
}
