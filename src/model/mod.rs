//! Models for loom: the places where two threads look at each other's announcements without a
//! common lock, in every order that the memory model allows. `tests/loom.sh` runs them;
//! `group/README.md` has the list of races.

mod counts;
mod shutdown;
mod sleep;

use crate::config::{Settings, vars};
use crate::conn::{Owned, Token};
use crate::group::GroupId;
use crate::host::*;
use crate::poll::{Events, Poller};
use crate::pool::{Platform, Pool};
use crate::sync::Park;
use crate::time::{Clock, Micros, Moment};
use crate::worker::{Worker, WorkerShared};
use std::io;
use std::sync::Arc;
// Plain observation of what was called; not part of the modelled protocol.
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

#[derive(Default)]
struct Flag(AtomicBool);

impl Flag {
    fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

impl Park for Flag {
    fn unpark(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    fn park(&self, _: Option<Micros>) {
        unreachable!("models stop where a thread would sleep")
    }
}

struct ModelPoller(Arc<Flag>);

impl Poller for ModelPoller {
    fn add(&self, _: i32, _: Token) -> io::Result<()> {
        Ok(())
    }

    fn rearm(&self, _: i32, _: Token) -> io::Result<()> {
        Ok(())
    }

    fn wait(&self, _: &mut Events, _: usize, _: Option<Micros>) -> io::Result<()> {
        unreachable!("models stop where a thread would sleep")
    }

    fn next_command(&self, _: i32) -> Option<u8> {
        None
    }

    fn notify(&self) {
        self.0.unpark();
    }
}

struct Model {
    notified: Arc<Flag>,
    kicked: Arc<Flag>,
}

impl Platform for Model {
    fn poller(&self, _: GroupId) -> io::Result<Box<dyn Poller>> {
        Ok(Box::new(ModelPoller(Arc::clone(&self.notified))))
    }

    /// The only sleeping place that the pool makes itself is the warden's.
    fn parker(&self) -> Arc<dyn Park> {
        Arc::clone(&self.kicked) as Arc<dyn Park>
    }

    fn probe(&self) -> Option<Box<dyn crate::sync::Probe>> {
        None
    }

    fn processor(&self) -> u32 {
        0
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(FirstMoment)
    }
}

struct FirstMoment;

impl Clock for FirstMoment {
    fn now(&self) -> Moment {
        Moment(1)
    }
}

/// A server that only counts the channels it has turned away.
#[derive(Default)]
struct ModelHost {
    rejected: AtomicUsize,
}

impl Host for ModelHost {
    fn thread_spawn(&self, _: Role, _: ThreadBody) -> Option<Thread> {
        None
    }
    fn thread_join(&self, _: Thread) {}
    fn thread_id(&self) -> Option<u64> {
        None
    }
    fn session_open(&self, _: Channel) -> Option<Opened> {
        None
    }
    fn session_attach(&self, _: &Session) {}
    fn session_detach(&self, _: &Session) {}
    fn session_step(&self, _: &Session) -> Outcome {
        Outcome::default()
    }
    fn session_arm(&self, _: &Session, _: Token, _: &mut dyn FnMut() -> i32) -> Armed {
        Armed::Killed
    }
    fn session_close(&self, _: Session, _: CloseReason) {}
    fn channel_reject(&self, _: Channel, _: RejectReason) {
        self.rejected.fetch_add(1, Ordering::SeqCst);
    }
    fn log(&self, _: LogLevel, _: &str) {}
}

/// A pool with one ordinary group and one credit, a worker of that group, and what they called.
struct World {
    pool: Arc<Pool>,
    host: Arc<ModelHost>,
    worker: Worker,
    shared: Arc<WorkerShared>,
    unparked: Arc<Flag>,
    /// The group's poller was notified.
    notified: Arc<Flag>,
    /// The warden was unparked.
    kicked: Arc<Flag>,
}

impl World {
    fn new() -> Self {
        let (notified, kicked) = (Arc::new(Flag::default()), Arc::new(Flag::default()));
        let settings = Settings::defaults(1);
        settings.set(vars::RTP_VARIABLE_CONCURRENCY_LIMIT, 1).unwrap();
        settings.set(vars::RTP_VARIABLE_QUERY_THREADS_PER_GROUP, 1).unwrap();
        let model = Model { notified: Arc::clone(&notified), kicked: Arc::clone(&kicked) };
        let host = Arc::new(ModelHost::default());
        let server = Arc::clone(&host) as Arc<dyn Host>;
        let pool = Arc::new(Pool::new(server, Arc::new(model), settings).unwrap());
        let (worker, shared, unparked) = Self::another_worker(&pool);
        Self { pool, host, worker, shared, unparked, notified, kicked }
    }

    /// A worker that hasn't started, what others know of it, and whether it was unparked.
    fn another_worker(pool: &Arc<Pool>) -> (Worker, Arc<WorkerShared>, Arc<Flag>) {
        let unparked = Arc::new(Flag::default());
        let shared = Arc::new(WorkerShared::new(0, Arc::clone(&unparked) as Arc<dyn Park>));
        pool.count_new_thread(Role::Worker, 0);
        pool.threads.add_worker(Arc::clone(&shared));
        let worker = Worker::new(Arc::clone(pool), Arc::clone(&shared));
        (worker, shared, unparked)
    }

    fn connection(&self) -> Owned {
        let owned = self.pool.connections.open(Session::from_raw(1), 3, 0).unwrap();
        self.pool.group(0).counters.connections.fetch_add(1, crate::sync::Ordering::SeqCst);
        owned
    }
}

/// Runs a model in every order with at most three preemptions.
fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}
