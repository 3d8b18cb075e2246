//! Drives the step machines on real threads: does what they want, which may block, and tells them.

use crate::conn::{Connection, Owned, Token};
use crate::host::{Armed, CloseReason, LogLevel};
use crate::poll::{self, Events, Poller};
use crate::pool::{Pool, ThreadId};
use crate::stats::{ThreadEntry, WaitKind};
use crate::sync::Park;
use crate::time::Micros;
use crate::worker::{self, Worker, WorkerShared};
use crate::{login, warden};
use std::cell::Cell;
use std::ptr;
use std::sync::Arc;

/// A poller that fails is asked again after this time.
const POLL_ERROR_PAUSE: Micros = Micros::from_millis(100);

/// The worker that runs on this thread; for the wait callbacks.
#[derive(Clone, Copy)]
struct Current {
    pool: *const Pool,
    worker: *const WorkerShared,
}

thread_local! {
    // Plain data with a constant initializer: no destructor that could outlive the library.
    static CURRENT: Cell<Current> =
        const { Cell::new(Current { pool: ptr::null(), worker: ptr::null() }) };
}

fn with_current(f: impl FnOnce(&Pool, &WorkerShared)) {
    let Current { pool, worker } = CURRENT.get();
    if !pool.is_null() {
        // SAFETY: `run_worker` set the pointers on this very thread, from references that live
        // until it resets them.
        f(unsafe { &*pool }, unsafe { &*worker });
    }
}

/// The calling thread begins a reported wait. Nothing happens on threads that aren't workers.
pub fn wait_begin(kind: WaitKind) {
    with_current(|pool, worker| pool.wait_begin(worker, kind));
}

/// The calling thread's reported wait ends.
pub fn wait_end() {
    with_current(Pool::wait_end);
}

/// Body of a worker thread.
pub(crate) fn run_worker(
    pool: &Arc<Pool>,
    id: ThreadId,
    shared: &Arc<WorkerShared>,
    entry: ThreadEntry,
) {
    shared.watched.set_probe(pool.platform.probe());
    shared.stats.set_server_id(pool.host.thread_id());
    pool.threads.add_worker(Arc::clone(shared));
    CURRENT.set(Current { pool: Arc::as_ptr(pool), worker: Arc::as_ptr(shared) });
    let mut worker = Worker::new(Arc::clone(pool), Arc::clone(shared));
    let mut seat = Seat { pool, attached: None };
    let mut done = worker::Done::Started;
    loop {
        done = match worker.step(pool.clock.now(), done) {
            worker::Want::Poll { max, timeout } => {
                let poller = &*pool.group(shared.group).poller;
                poll_for_events(pool, poller, &mut worker.events, max, timeout, &*shared.parker);
                worker::Done::Polled
            }
            worker::Want::Park { timeout } => {
                shared.parker.park(timeout);
                worker::Done::Unparked
            }
            worker::Want::Execute(owned) => seat.execute(owned),
            worker::Want::Await(owned, time) => {
                let ready = poll::wait_readable(seat.connection(&owned).fd(), time);
                worker::Done::Awaited(owned, ready)
            }
            worker::Want::Detach(owned) => {
                seat.detach(&owned);
                worker::Done::Detached(owned)
            }
            worker::Want::Rest(owned) => seat.rest(owned),
            worker::Want::Close(owned, reason) => {
                seat.detach(&owned);
                close(pool, owned, reason);
                worker::Done::Closed
            }
            worker::Want::Exit => break,
        };
    }
    CURRENT.set(Current { pool: ptr::null(), worker: ptr::null() });
    pool.threads.remove_worker(shared);
    drop(entry);
    pool.threads.finish(id);
    pool.warden.kick();
}

/// Which session is attached to this thread.
struct Seat<'a> {
    pool: &'a Pool,
    attached: Option<Token>,
}

impl Seat<'_> {
    fn connection(&self, owned: &Owned) -> &Connection {
        self.pool.connections.get(owned.token()).expect("owned connections have slots")
    }

    fn execute(&mut self, owned: Owned) -> worker::Done {
        let host = &*self.pool.host;
        let attach = self.attached.replace(owned.token()) != Some(owned.token());
        let outcome = self.connection(&owned).with_session(&owned, |session| {
            if attach {
                host.session_attach(session);
            }
            host.session_step(session)
        });
        worker::Done::Executed(owned, outcome)
    }

    fn detach(&mut self, owned: &Owned) {
        if self.attached.take().is_some() {
            let host = &*self.pool.host;
            self.connection(owned).with_session(owned, |session| host.session_detach(session));
        }
    }

    fn rest(&mut self, owned: Owned) -> worker::Done {
        self.detach(&owned);
        match arm(self.pool, &owned, |poller, fd, token| poller.rearm(fd, token)) {
            // The evidence is out of date from here on: another thread may own the connection.
            Armed::Yes => worker::Done::Rested,
            refusal => worker::Done::NotRested(owned, refusal),
        }
    }
}

/// Registers a detached session with its group's poller.
pub(crate) fn arm(
    pool: &Pool,
    owned: &Owned,
    register: fn(&dyn Poller, i32, Token) -> std::io::Result<()>,
) -> Armed {
    let token = owned.token();
    let connection = pool.connections.get(token).expect("owned connections have slots");
    let poller = &*pool.group(connection.group()).poller;
    let mut hand_over = || {
        connection.hand_to_poller(owned);
        match register(poller, connection.fd(), token) {
            Ok(()) => 0,
            Err(error) => {
                connection.take_back_from_poller(owned);
                error.raw_os_error().unwrap_or(libc::EIO)
            }
        }
    };
    connection.with_session(owned, |session| pool.host.session_arm(session, token, &mut hand_over))
}

/// Makes a detached session known to kills and queues it; hands it back if it was killed before.
pub(crate) fn queue(pool: &Pool, owned: Owned) -> Result<(), Owned> {
    let token = owned.token();
    let connection = pool.connections.get(token).expect("owned connections have slots");
    let group = pool.group(connection.group());
    let session = connection.session(&owned);
    let mut owned = Some(owned);
    pool.host.session_arm(&session, token, &mut || {
        if let Some(owned) = owned.take() {
            pool.enqueue_quietly(group, owned, pool.clock.now());
        }
        0
    });
    match owned {
        Some(owned) => Err(owned),
        None => Ok(()),
    }
}

/// Closes a detached session and frees its slot.
pub(crate) fn close(pool: &Pool, owned: Owned, reason: CloseReason) {
    let connection = pool.connections.get(owned.token()).expect("owned connections have slots");
    let group = pool.group(connection.group());
    let session = pool.connections.close(owned);
    group.counters.connections.fetch_sub(1, crate::sync::Ordering::SeqCst);
    group.stats.connection_closes();
    pool.host.session_close(session, reason);
}

fn poll_for_events(
    pool: &Pool,
    poller: &dyn Poller,
    events: &mut Events,
    max: usize,
    timeout: Option<Micros>,
    parker: &dyn Park,
) {
    if let Err(error) = poller.wait(events, max, timeout) {
        let text = format!("Waiting for clients failed: {error}; trying again");
        pool.host.log(LogLevel::Error, &text);
        parker.park(Some(POLL_ERROR_PAUSE));
    }
}

/// Body of a login thread.
pub(crate) fn run_login(
    pool: &Arc<Pool>,
    id: ThreadId,
    mut login: login::Login,
    entry: ThreadEntry,
) {
    login.set_probe();
    login.stats().set_server_id(pool.host.thread_id());
    let mut done = login::Done::Started;
    loop {
        done = match login.step(pool.clock.now(), done) {
            login::Want::Park { timeout } => {
                login.parker().park(timeout);
                login::Done::Unparked
            }
            login::Want::Open { channel, .. } => {
                login::Done::Opened(pool.host.session_open(channel))
            }
            login::Want::Arm(owned) => {
                match arm(pool, &owned, |poller, fd, token| poller.add(fd, token)) {
                    Armed::Yes => login::Done::Armed,
                    refusal => login::Done::NotArmed(owned, refusal),
                }
            }
            login::Want::Queue(owned) => match queue(pool, owned) {
                Ok(()) => login::Done::Armed,
                Err(owned) => login::Done::NotArmed(owned, Armed::Killed),
            },
            login::Want::Close(owned, reason) => {
                close(pool, owned, reason);
                login::Done::Closed
            }
            login::Want::CloseUnplaced(session) => {
                pool.log_no_slot();
                pool.host.session_close(session, CloseReason::NoResource);
                login::Done::Closed
            }
            login::Want::Exit => break,
        };
    }
    drop(entry);
    pool.threads.finish(id);
    pool.warden.kick();
}

/// Body of the warden's thread.
pub(crate) fn run_warden(pool: &Arc<Pool>) {
    let mut warden = warden::Warden::new(Arc::clone(pool));
    let mut done = warden::Done::Started;
    loop {
        done = match warden.step(pool.clock.now(), done) {
            warden::Want::Park { timeout } => {
                pool.warden.parker().park(timeout);
                warden::Done::Unparked
            }
            warden::Want::Poll(group) => {
                let poller = &*pool.group(group).poller;
                let parker = &**pool.warden.parker();
                let (max, now) = (poll::BATCH, Some(Micros(0)));
                poll_for_events(pool, poller, &mut warden.events, max, now, parker);
                warden::Done::Polled(group)
            }
            warden::Want::Spawn(role, group) => {
                warden::Done::Spawned(role, group, pool.spawn(role, group))
            }
            warden::Want::Join(thread) => {
                pool.host.thread_join(thread);
                warden::Done::Finished
            }
            warden::Want::Log(level, text) => {
                pool.host.log(level, &text);
                warden::Done::Finished
            }
            warden::Want::Exit => break,
        };
    }
}
