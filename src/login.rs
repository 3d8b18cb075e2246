//! Logins run on threads of their own, so neither a slow login nor a flood of them takes a worker,
//! and no statement delays a login.

use crate::conn::Owned;
use crate::host::{Armed, Channel, CloseReason, LogLevel, Opened, Outcome, Session};
use crate::pool::Pool;
use crate::stats::{ThreadKind, ThreadStats};
use crate::sync::{AtomicU32, Mutex, Ordering, Park, Watched};
use crate::time::{Micros, Moment};
use std::collections::VecDeque;
use std::sync::Arc;

/// Most login threads. A login that waits for its client occupies one, for `connect_timeout`
/// at most, as it occupies a thread without a pool.
const MAX_THREADS: u32 = 8_192;
/// Further login threads are started when channels wait, no thread has been free for this time,
/// and all of them sleep: then they wait for their clients. While logins succeed one after the
/// other, more threads would only take the processors from running statements.
const GRACE: Micros = Micros::from_millis(10);
/// How many threads are looked at to see whether all of them sleep.
const SAMPLE: usize = 16;
/// The number of threads is doubled then, but no more than this are started at once.
const LARGEST_STEP: u32 = 256;
/// How long a login thread stays idle before it retires.
const IDLE_TIMEOUT: Micros = Micros::from_secs(1);

struct Waiting {
    channel: Channel,
    is_admin: bool,
    since: Moment,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Waiting>,
    idle: Vec<Arc<dyn Park>>,
    /// Threads that log a channel in.
    busy: Vec<Arc<Watched>>,
    /// When a thread last took a channel off the queue.
    last_taken: Moment,
    closed: bool,
    /// Channels that have been accepted so far.
    accepted: u64,
}

/// Channels that wait for a login thread, and the threads that wait for a channel.
#[derive(Default)]
pub struct Logins {
    state: Mutex<State>,
    /// Login threads that exist or are being started. Written by the warden (+1) and ending
    /// threads (−1).
    pub threads: AtomicU32,
}

impl Logins {
    /// How many login threads there should be.
    pub(crate) fn threads_wanted(&self, now: Moment) -> u32 {
        let threads = self.threads.load(Ordering::SeqCst);
        let Some((channels, sample)) = self.stuck(now) else { return threads };
        // Threads that have work but no processor wouldn't be helped by more of them.
        if sample.iter().any(|busy| !busy.has_slept()) {
            return threads;
        }
        // One for each channel is enough; some may be on their way already.
        (threads + threads.clamp(1, LARGEST_STEP)).min(channels).min(MAX_THREADS)
    }

    /// If channels wait and no thread has been free for a while: how many channels there are,
    /// and some of the threads that are busy with one.
    fn stuck(&self, now: Moment) -> Option<(u32, Vec<Arc<Watched>>)> {
        let state = self.state.lock();
        let oldest = state.waiting.front()?;
        if now.since(oldest.since.max(state.last_taken)) < GRACE {
            return None;
        }
        let channels = (state.busy.len() + state.waiting.len()) as u32;
        Some((channels, state.busy.iter().take(SAMPLE).cloned().collect()))
    }

    /// Number of channels that wait.
    pub fn waiting(&self) -> usize {
        self.state.lock().waiting.len()
    }

    /// Channels that have been accepted so far, that wait now, and that are being logged in.
    pub(crate) fn counts(&self) -> (u64, usize, usize) {
        let state = self.state.lock();
        (state.accepted, state.waiting.len(), state.busy.len())
    }

    /// Lets all idle threads look around and returns the channels that nobody will serve.
    pub(crate) fn close(&self) -> Vec<Channel> {
        let mut state = self.state.lock();
        state.closed = true;
        state.idle.drain(..).for_each(|parker| parker.unpark());
        state.waiting.drain(..).map(|w| w.channel).collect()
    }
}

impl Pool {
    /// Takes over a newly accepted connection. Hands the channel back when the pool is stopping.
    pub fn add_connection(&self, channel: Channel, is_admin: bool) -> Result<(), Channel> {
        let idle = {
            let mut state = self.logins.state.lock();
            if state.closed {
                return Err(channel);
            }
            state.accepted += 1;
            let waiting = Waiting { channel, is_admin, since: self.clock.now() };
            // Admin connections don't queue behind a login storm.
            if is_admin {
                state.waiting.push_front(waiting);
            } else {
                state.waiting.push_back(waiting);
            }
            state.idle.pop()
        };
        match idle {
            Some(parker) => parker.unpark(),
            None => self.warden.kick(),
        }
        Ok(())
    }
}

/// What a login thread wants its driver to do.
#[derive(Debug)]
pub enum Want {
    /// Sleep until unparked.
    Park {
        /// How long at most.
        timeout: Option<Micros>,
    },
    /// Log the channel in.
    Open {
        /// The channel.
        channel: Channel,
        /// It came in through the admin port.
        is_admin: bool,
    },
    /// Register the session with its group's poller for the first time.
    Arm(Owned),
    /// Make the session known to kills and put it into its group's queue.
    Queue(Owned),
    /// Close a session that has a slot.
    Close(Owned, CloseReason),
    /// Close a session that got no slot.
    CloseUnplaced(Session),
    /// End the thread.
    Exit,
}

/// What a driver has done.
#[derive(Debug)]
pub enum Done {
    /// The thread has started.
    Started,
    /// [`Want::Park`], for whatever reason it ended.
    Unparked,
    /// [`Want::Open`]: the session, or `None` when the login failed.
    Opened(Option<Opened>),
    /// [`Want::Arm`] or [`Want::Queue`] succeeded.
    Armed,
    /// One of them failed, so the connection is still ours.
    NotArmed(Owned, Armed),
    /// One of the closes.
    Closed,
}

/// A login thread, as a step machine (see `worker`).
pub struct Login {
    pool: Arc<Pool>,
    parker: Arc<dyn Park>,
    watched: Arc<Watched>,
    group: u32,
    stats: Arc<ThreadStats>,
}

impl Login {
    /// A login thread that sleeps on `parker`.
    pub fn new(pool: Arc<Pool>, parker: Arc<dyn Park>) -> Self {
        let watched = Arc::new(Watched::default());
        // Login threads serve all groups; the tables show them in the first one.
        let stats = Arc::new(ThreadStats::new(ThreadKind::Login, 0));
        Self { pool, parker, watched, group: 0, stats }
    }

    /// Makes the thread observable; called by itself.
    pub(crate) fn set_probe(&self) {
        self.watched.set_probe(self.pool.platform.probe());
    }

    /// Where it sleeps.
    pub fn parker(&self) -> &Arc<dyn Park> {
        &self.parker
    }

    /// What the tables show of it.
    pub(crate) fn stats(&self) -> &Arc<ThreadStats> {
        &self.stats
    }

    /// What to do after `done`.
    pub fn step(&mut self, now: Moment, done: Done) -> Want {
        let want = self.decide(now, done);
        self.stats.login_wants(&want, now);
        want
    }

    fn decide(&mut self, now: Moment, done: Done) -> Want {
        if let Done::Opened(_) = done {
            let mut state = self.pool.logins.state.lock();
            state.busy.retain(|busy| !Arc::ptr_eq(busy, &self.watched));
        }
        match done {
            Done::Started | Done::Closed | Done::Opened(None) => self.next(now),
            Done::Unparked => self.unparked(now),
            Done::Opened(Some(opened)) => self.place(opened, now),
            Done::Armed => {
                let pool = Arc::clone(&self.pool);
                pool.dispatch(pool.group(self.group));
                self.next(now)
            }
            Done::NotArmed(owned, Armed::Refused) => Want::Close(owned, CloseReason::NoResource),
            Done::NotArmed(owned, _) => Want::Close(owned, CloseReason::Ended),
        }
    }

    fn next(&mut self, now: Moment) -> Want {
        let mut state = self.pool.logins.state.lock();
        if let Some(waiting) = state.waiting.pop_front() {
            state.last_taken = now;
            state.busy.push(Arc::clone(&self.watched));
            return Want::Open { channel: waiting.channel, is_admin: waiting.is_admin };
        }
        if state.closed {
            self.pool.logins.threads.fetch_sub(1, Ordering::SeqCst);
            return Want::Exit;
        }
        state.idle.push(Arc::clone(&self.parker));
        let alone = self.pool.logins.threads.load(Ordering::SeqCst) == 1;
        Want::Park { timeout: (!alone).then_some(IDLE_TIMEOUT) }
    }

    fn unparked(&mut self, now: Moment) -> Want {
        let timed_out = {
            let mut state = self.pool.logins.state.lock();
            let position = state.idle.iter().position(|p| Arc::ptr_eq(p, &self.parker));
            position.map(|at| state.idle.remove(at)).is_some()
        };
        if timed_out && self.retire() {
            return Want::Exit;
        }
        self.next(now)
    }

    /// False for the last thread: it stays, so a login never waits for a thread to be made.
    fn retire(&self) -> bool {
        let fewer = |threads| if threads > 1 { Some(threads - 1) } else { None };
        let threads = &self.pool.logins.threads;
        threads.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer).is_ok()
    }

    /// Gives a new session its slot and its group.
    fn place(&mut self, opened: Opened, now: Moment) -> Want {
        let Opened { session, fd, id, kind, outcome } = opened;
        let pool = Arc::clone(&self.pool);
        self.group = if kind.is_admin() { pool.admin_group().id } else { pool.place() };
        match pool.connections.open(session, fd, self.group) {
            Ok(owned) => {
                let group = pool.group(self.group);
                group.counters.connections.fetch_add(1, Ordering::SeqCst);
                group.stats.connection_opens();
                let connection = pool.connections.get(owned.token());
                let connection = connection.expect("owned connections have slots");
                connection.stats().opens(id, kind, self.stats.number(), now);
                self.hand_over(owned, outcome, now)
            }
            Err(session) => Want::CloseUnplaced(session),
        }
    }

    fn hand_over(&mut self, owned: Owned, outcome: Outcome, now: Moment) -> Want {
        if outcome.close {
            return Want::Close(owned, CloseReason::Ended);
        }
        let connection = self.pool.connections.get(owned.token());
        connection.expect("owned connections have slots").note_outcome(&outcome);
        self.pool.note_idle(&owned, now + outcome.wait_timeout);
        // A first command that came together with the login would be reported by no poller.
        if outcome.buffered { Want::Queue(owned) } else { Want::Arm(owned) }
    }
}

impl Pool {
    /// Line for the error log when all slots are in use.
    pub(crate) fn log_no_slot(&self) {
        let text = format!(
            "{} connections are the most that the pool can hold; the new one was \
             closed. Lower max_connections to below that number.",
            crate::conn::MAX_CONNECTIONS
        );
        self.host.log(LogLevel::Warning, &text);
    }
}
