//! Models for loom: the places where two threads look at each other's announcements without a
//! common lock, in every order that the memory model allows. `tests/loom.sh` runs them.

use crate::admission::Credit;
use crate::config::{Settings, vars};
use crate::conn::{Owned, Token};
use crate::group::GroupId;
use crate::host::*;
use crate::poll::{Events, Poller};
use crate::pool::{Platform, Pool};
use crate::stats::WaitKind;
use crate::sync::Park;
use crate::time::{Clock, Micros, Moment};
use crate::worker::{Done, Want, Worker, WorkerShared};
use std::io;
use std::sync::Arc;
// Plain observation of what was called; not part of the modelled protocol.
use std::sync::atomic::{AtomicBool, Ordering};

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
}

impl Platform for Model {
    fn poller(&self, _: GroupId) -> io::Result<Box<dyn Poller>> {
        Ok(Box::new(ModelPoller(Arc::clone(&self.notified))))
    }

    fn parker(&self) -> Arc<dyn Park> {
        Arc::new(Flag::default())
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

struct NoHost;

impl Host for NoHost {
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
    fn channel_reject(&self, _: Channel, _: RejectReason) {}
    fn log(&self, _: LogLevel, _: &str) {}
}

/// A pool with one ordinary group and one credit, a worker of that group, and what they called.
struct World {
    pool: Arc<Pool>,
    worker: Worker,
    shared: Arc<WorkerShared>,
    unparked: Arc<Flag>,
    notified: Arc<Flag>,
}

impl World {
    fn new() -> Self {
        let notified = Arc::new(Flag::default());
        let settings = Settings::defaults(1);
        settings.set(vars::RTP_VARIABLE_CONCURRENCY_LIMIT, 1).unwrap();
        let platform = Arc::new(Model { notified: Arc::clone(&notified) });
        let pool = Arc::new(Pool::new(Arc::new(NoHost), platform, settings).unwrap());
        let unparked = Arc::new(Flag::default());
        let shared = Arc::new(WorkerShared::new(0, Arc::clone(&unparked) as Arc<dyn Park>));
        pool.count_new_thread(Role::Worker, 0);
        let worker = Worker::new(Arc::clone(&pool), Arc::clone(&shared));
        Self { pool, worker, shared, unparked, notified }
    }

    fn connection(&self) -> Owned {
        self.pool.connections.open(Session::from_raw(1), 3, 0).unwrap()
    }
}

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

#[test]
fn a_worker_that_parks_sees_a_credit_that_is_given_back() {
    check(|| {
        let World { pool, mut worker, unparked, .. } = {
            let world = World::new();
            let owned = world.connection();
            assert!(world.pool.credits.try_acquire(), "somebody else runs");
            world.pool.enqueue(world.pool.group(0), owned, Moment(1));
            world
        };
        let other = Arc::clone(&pool);
        let thread = loom::thread::spawn(move || {
            other.credits.release();
            other.credits_freed(0);
        });
        let want = worker.step(Moment(1), Done::Started);
        thread.join().unwrap();
        let served = matches!(want, Want::Execute(_));
        assert!(served || unparked.is_set(), "{want:?} and nobody wakes it");
    });
}

#[test]
fn a_worker_that_starts_to_poll_sees_work_that_is_queued() {
    check(|| {
        let World { pool, mut worker, notified, .. } = World::new();
        let owned = pool.connections.open(Session::from_raw(1), 3, 0).unwrap();
        let other = Arc::clone(&pool);
        let thread = loom::thread::spawn(move || {
            other.enqueue(other.group(0), owned, Moment(1));
        });
        let want = worker.step(Moment(1), Done::Started);
        thread.join().unwrap();
        let served = matches!(want, Want::Execute(_));
        assert!(served || notified.is_set(), "{want:?} and nobody wakes it");
    });
}

#[test]
fn an_event_and_a_kill_of_an_idle_session_have_one_winner() {
    check(|| {
        let world = World::new();
        let owned = world.connection();
        let token = owned.token();
        world.pool.connections.get(token).unwrap().hand_to_poller(&owned);
        let other = Arc::clone(&world.pool);
        let event = loom::thread::spawn(move || {
            other.connections.get(token).unwrap().claim_armed(token).is_some()
        });
        let queued = world.pool.connections.get(token).unwrap().kill(token);
        let claimed = event.join().unwrap();
        assert!(queued != claimed, "queued: {queued}, claimed: {claimed}");
    });
}

#[test]
fn a_credit_that_stalls_during_a_wait_is_counted_once() {
    check(|| {
        let world = World::new();
        assert!(world.pool.credits.try_acquire());
        world.shared.credit.replace(Credit::Held);
        let (pool, shared) = (Arc::clone(&world.pool), Arc::clone(&world.shared));
        let warden = loom::thread::spawn(move || {
            if shared.credit.transition(Credit::Held, Credit::Stalled) {
                pool.credits.release();
            }
        });
        world.pool.wait_begin(&world.shared, WaitKind::RowLock);
        world.pool.wait_end(&world.shared);
        if world.shared.credit.replace(Credit::None) == Credit::Held {
            world.pool.credits.release();
        }
        warden.join().unwrap();
        assert_eq!(world.pool.credits.free(), 1);
    });
}
