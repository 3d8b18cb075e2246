//! The simulated server: sessions, what their commands do, and row locks.

use super::kernel::{Kernel, PeekCommand, ThreadId};
use crate::conn::Token;
use crate::conn::command::COM_QUIT;
use crate::host::{
    Armed, Channel, CloseReason, ConnectionKind, Host, LogLevel, Opened, Outcome, RejectReason,
    Role, Session, Thread, ThreadBody,
};
use crate::time::Micros;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};

/// A statement's command byte.
const COM_QUERY: u8 = 3;

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Executes for this long without a wait.
    Work(Micros),
    /// Waits for this long and reports it.
    Wait(Micros),
    /// Opens a transaction, if none is open, and locks this row.
    Lock(u8),
    /// Ends the transaction.
    Commit,
    /// Ends the session.
    Quit,
}

/// A command with its number, which comes back in the answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub(super) number: u64,
    pub(super) command: Command,
}

impl PeekCommand for Message {
    fn command_byte(&self) -> u8 {
        match self.command {
            Command::Quit => COM_QUIT,
            Command::Work(_) | Command::Wait(_) | Command::Lock(_) | Command::Commit => COM_QUERY,
        }
    }
}

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) fd: i32,
    pub(super) reason: CloseReason,
}

#[derive(Default)]
pub(super) struct SessionState {
    pub(super) killed: bool,
    pub(super) token: Option<Token>,
    pub(super) attached_to: Option<ThreadId>,
    pub(super) locks: Vec<u8>,
    /// Row lock that its statement waits for, and the thread that does.
    pub(super) waits_for: Option<(u8, ThreadId)>,
    pub(super) wait_timeout: Micros,
}

#[derive(Default)]
struct State {
    /// Key: the session's socket, which is also the host's name for the session.
    sessions: HashMap<i32, SessionState>,
    owners: HashMap<u8, i32>,
    lock_queues: HashMap<u8, VecDeque<i32>>,
    ended: Vec<Ended>,
    /// Sockets of the channels that the pool has turned away.
    rejected: Vec<i32>,
    /// The server is being shut down: whoever logs in now is to be closed.
    stopping: bool,
    granted: Vec<ThreadId>,
}

/// [`Host`] of the simulation. Only what a driver calls under the pool's own rules is here;
/// the event loop does the rest.
pub(super) struct Server {
    kernel: Kernel<Message>,
    state: Mutex<State>,
}

fn fd_of(session: &Session) -> i32 {
    session.as_raw() as i32 - 1
}

impl Server {
    pub(super) fn new(kernel: Kernel<Message>) -> Self {
        Self { kernel, state: Mutex::default() }
    }

    /// A successful login.
    pub(super) fn open(&self, channel: &Channel, wait_timeout: Micros, is_admin: bool) -> Opened {
        let fd = channel.as_raw() as i32;
        let session = SessionState { wait_timeout, ..SessionState::default() };
        let mut state = self.state.lock();
        let former = state.sessions.insert(fd, session);
        assert!(former.is_none(), "a channel was opened twice");
        let close = state.stopping;
        let outcome = Outcome { close, wait_timeout, is_plain: true, ..Outcome::default() };
        // Zero would be a null pointer.
        let kind = if is_admin { ConnectionKind::AdminPort } else { ConnectionKind::User };
        let session = Session::from_raw(fd as usize + 1);
        Opened { session, fd, id: fd as u32, kind, outcome }
    }

    pub(super) fn with<R>(&self, fd: i32, f: impl FnOnce(&mut SessionState) -> R) -> R {
        f(self.state.lock().sessions.get_mut(&fd).expect("the session is open"))
    }

    /// KILL: under the session's lock the descriptor is closed and the pool told.
    pub(super) fn kill(&self, fd: i32, tell_pool: impl FnOnce(Token)) {
        let token = {
            let mut state = self.state.lock();
            let Some(session) = state.sessions.get_mut(&fd) else { return };
            session.killed = true;
            let token = session.token;
            if let Some((lock, thread)) = session.waits_for.take() {
                state.lock_queues.entry(lock).or_default().retain(|waiter| *waiter != fd);
                state.granted.push(thread);
            }
            token
        };
        self.kernel.close(fd);
        if let Some(token) = token {
            tell_pool(token);
        }
    }

    /// Locks a row for a session; false if it must wait (its thread will be in `take_granted`).
    pub(super) fn lock_row(&self, fd: i32, row: u8, thread: ThreadId) -> bool {
        let mut state = self.state.lock();
        match state.owners.get(&row) {
            Some(owner) if *owner != fd => {
                state.lock_queues.entry(row).or_default().push_back(fd);
                let session = state.sessions.get_mut(&fd).expect("the session is open");
                session.waits_for = Some((row, thread));
                false
            }
            Some(_) => true,
            None => {
                state.own(row, fd);
                true
            }
        }
    }

    /// The shutdown begins: the sockets of all sessions, which are to be killed.
    pub(super) fn stop(&self) -> Vec<i32> {
        let mut state = self.state.lock();
        state.stopping = true;
        let mut sockets: Vec<i32> = state.sessions.keys().copied().collect();
        // The order of a hash map differs from run to run.
        sockets.sort_unstable();
        sockets
    }

    /// Channels that were turned away since the last call.
    pub(super) fn take_rejected(&self) -> Vec<i32> {
        std::mem::take(&mut self.state.lock().rejected)
    }

    /// Threads whose lock wait is over.
    pub(super) fn take_granted(&self) -> Vec<ThreadId> {
        std::mem::take(&mut self.state.lock().granted)
    }

    pub(super) fn release_locks(&self, fd: i32) {
        self.state.lock().release_locks(fd);
    }

    pub(super) fn outcome(&self, fd: i32, close: bool) -> Outcome {
        self.with(fd, |session| Outcome {
            close: close || session.killed,
            buffered: false,
            holds_locks: !session.locks.is_empty(),
            is_plain: true,
            wait_timeout: session.wait_timeout,
            ..Outcome::default()
        })
    }

    /// Sessions that were closed since the last call.
    pub(super) fn take_ended(&self) -> Vec<Ended> {
        std::mem::take(&mut self.state.lock().ended)
    }

    pub(super) fn is_open(&self, fd: i32) -> bool {
        self.state.lock().sessions.contains_key(&fd)
    }

    /// Sockets of the sessions that hold locks.
    pub(super) fn lock_holders(&self) -> Vec<i32> {
        let state = self.state.lock();
        state.sessions.iter().filter(|(_, s)| !s.locks.is_empty()).map(|(fd, _)| *fd).collect()
    }

    pub(super) fn open_sessions(&self) -> usize {
        self.state.lock().sessions.len()
    }

    pub(super) fn attach(&self, fd: i32, thread: ThreadId) {
        self.with(fd, |session| {
            let former = session.attached_to.replace(thread);
            assert!(former.is_none_or(|t| t == thread), "two threads have the same session");
        });
    }

    pub(super) fn detach(&self, fd: i32) {
        self.with(fd, |session| session.attached_to = None);
    }
}

impl State {
    fn own(&mut self, row: u8, fd: i32) {
        self.owners.insert(row, fd);
        let session = self.sessions.get_mut(&fd).expect("the session is open");
        session.locks.push(row);
    }

    fn release_locks(&mut self, fd: i32) {
        let session = self.sessions.get_mut(&fd).expect("the session is open");
        for row in std::mem::take(&mut session.locks) {
            self.owners.remove(&row);
            let Some(next) = self.lock_queues.entry(row).or_default().pop_front() else { continue };
            let waiter = self.sessions.get_mut(&next).expect("waiters are open");
            let (_, thread) = waiter.waits_for.take().expect("it waits for this lock");
            self.own(row, next);
            self.granted.push(thread);
        }
    }
}

impl Host for Server {
    fn session_arm(&self, session: &Session, token: Token, arm: &mut dyn FnMut() -> i32) -> Armed {
        let killed = self.with(fd_of(session), |session| {
            assert!(session.attached_to.is_none(), "armed while attached");
            session.token = Some(token);
            session.killed
        });
        if killed {
            Armed::Killed
        } else if arm() == 0 {
            Armed::Yes
        } else {
            Armed::Refused
        }
    }

    fn session_close(&self, session: Session, reason: CloseReason) {
        let fd = fd_of(&session);
        let mut state = self.state.lock();
        state.release_locks(fd);
        let session = state.sessions.remove(&fd).expect("a session is closed once");
        assert!(session.attached_to.is_none(), "closed while attached");
        state.ended.push(Ended { fd, reason });
        drop(state);
        self.kernel.close(fd);
    }

    fn channel_reject(&self, channel: Channel, _: RejectReason) {
        self.state.lock().rejected.push(channel.as_raw() as i32);
    }

    fn log(&self, _: LogLevel, text: &str) {
        panic!("nothing in the simulation should be worth a log line: {text}");
    }

    fn thread_spawn(&self, _: Role, _: ThreadBody) -> Option<Thread> {
        unreachable!("the event loop makes the threads")
    }

    fn thread_join(&self, _: Thread) {
        unreachable!("the event loop ends the threads")
    }

    fn thread_id(&self) -> Option<u64> {
        None
    }

    fn session_open(&self, _: Channel) -> Option<Opened> {
        unreachable!("logins take simulated time")
    }

    fn session_attach(&self, _: &Session) {
        unreachable!("the event loop attaches")
    }

    fn session_detach(&self, _: &Session) {
        unreachable!("the event loop detaches")
    }

    fn session_step(&self, _: &Session) -> Outcome {
        unreachable!("commands take simulated time")
    }
}
