//! What the core knows of the server: one trait and the values that cross it.
//!
//! Production fills the trait from the shim's function table (`ffi/host_table.rs`); tests and the
//! simulator implement it in Rust. No implementation is ever called under a pool lock.

use crate::conn::{PriorityWishes, Token};
use crate::time::Micros;

/// An accepted connection that hasn't logged in. Move-only: whoever has it must open or reject it.
#[derive(Debug)]
pub struct Channel(usize);

/// A logged-in session. Move-only: whoever has it must close it.
#[derive(Debug)]
pub struct Session(usize);

/// A thread that was started and must be joined. Move-only.
#[derive(Debug)]
pub struct Thread(usize);

macro_rules! handle {
    ($name:ident) => {
        impl $name {
            /// Wraps the host's own identification (a pointer in production).
            pub fn from_raw(raw: usize) -> Self {
                Self(raw)
            }

            /// The host's own identification.
            pub fn as_raw(&self) -> usize {
                self.0
            }
        }
    };
}
handle!(Channel);
handle!(Session);
handle!(Thread);

/// What a thread of the pool does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Role {
    /// Runs statements.
    Worker = crate::ffi::types::RTP_ROLE_WORKER,
    /// Performs logins.
    Login = crate::ffi::types::RTP_ROLE_LOGIN,
    /// Watches over the rest.
    Warden = crate::ffi::types::RTP_ROLE_WARDEN,
}

/// What a session looks like after a command or after login.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// It has ended and must be closed.
    pub close: bool,
    /// The server already holds bytes of its next command; no poll would report them.
    pub buffered: bool,
    /// It is inside a transaction or holds another lock that others may wait for.
    pub holds_locks: bool,
    /// Its commands can be read off the socket: neither encrypted nor compressed.
    pub is_plain: bool,
    /// How long it may stay idle from now on.
    pub wait_timeout: Micros,
    /// Which queue its user wants for its statements.
    pub wishes: PriorityWishes,
}

/// How a connection came in, which decides about its group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum ConnectionKind {
    /// By the ordinary port, with an ordinary account.
    #[default]
    User = crate::ffi::types::RTP_CONNECTION_USER,
    /// By the admin port.
    AdminPort = crate::ffi::types::RTP_CONNECTION_ADMIN_PORT,
    /// With an account that has the privilege TP_CONNECTION_ADMIN.
    AdminPrivilege = crate::ffi::types::RTP_CONNECTION_ADMIN_PRIVILEGE,
}

impl ConnectionKind {
    /// From the number that crosses the boundary; unknown ones are users.
    pub fn from_raw(raw: u32) -> Self {
        match raw {
            crate::ffi::types::RTP_CONNECTION_ADMIN_PORT => Self::AdminPort,
            crate::ffi::types::RTP_CONNECTION_ADMIN_PRIVILEGE => Self::AdminPrivilege,
            _ => Self::User,
        }
    }

    /// True if it belongs to the admin group.
    pub fn is_admin(self) -> bool {
        self != Self::User
    }
}

/// A session that has just logged in.
#[derive(Debug)]
pub struct Opened {
    /// The session, detached.
    pub session: Session,
    /// Its socket.
    pub fd: i32,
    /// The server's name of the connection (`CONNECTION_ID()`).
    pub id: u32,
    /// How it came in.
    pub kind: ConnectionKind,
    /// What it looks like.
    pub outcome: Outcome,
}

/// Result of registering an idle session with its poller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Armed {
    /// Registered; another thread may own it already.
    Yes,
    /// It was killed; the caller still owns it.
    Killed,
    /// The poller refused it; the caller still owns it.
    Refused,
}

/// Why a session is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CloseReason {
    /// It ended by itself or was killed.
    Ended = crate::ffi::types::RTP_CLOSE_ENDED,
    /// `wait_timeout` ran out.
    IdleTimeout = crate::ffi::types::RTP_CLOSE_IDLE_TIMEOUT,
    /// The pool couldn't register it.
    NoResource = crate::ffi::types::RTP_CLOSE_NO_RESOURCE,
}

/// Why a channel is turned away before login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum RejectReason {
    /// The pool is stopping.
    Shutdown = crate::ffi::types::RTP_REJECT_SHUTDOWN,
    /// There's no memory, descriptor or thread for it.
    NoResource = crate::ffi::types::RTP_REJECT_NO_RESOURCE,
}

/// Severity of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum LogLevel {
    /// Something failed.
    Error = crate::ffi::types::RTP_LOG_ERROR,
    /// Something is degraded.
    Warning = crate::ffi::types::RTP_LOG_WARNING,
    /// Good to know.
    Information = crate::ffi::types::RTP_LOG_INFORMATION,
    /// The report about connections: also good to know, but with a number of its own.
    ConnectionReport = crate::ffi::types::RTP_LOG_CONNECTION_REPORT,
}

/// The body of a pool thread; runs until the thread should end.
pub type ThreadBody = Box<dyn FnOnce() + Send>;

/// The server. See `ffi/types.rs` (`rtp_host`) for the duties of each member.
pub trait Host: Send + Sync {
    /// Starts a thread that runs `body`. `None` when the operating system refuses one; the body
    /// is dropped.
    fn thread_spawn(&self, role: Role, body: ThreadBody) -> Option<Thread>;

    /// Waits for the end of a thread.
    fn thread_join(&self, thread: Thread);

    /// What the server's tables call the calling thread (performance_schema.threads.THREAD_ID), if
    /// it has a name there. Called by each new thread once.
    fn thread_id(&self) -> Option<u64>;

    /// Logs a client in. `None` when that failed; then nothing is left of the channel.
    fn session_open(&self, channel: Channel) -> Option<Opened>;

    /// Makes the session current on this thread.
    fn session_attach(&self, session: &Session);

    /// Undoes `session_attach`.
    fn session_detach(&self, session: &Session);

    /// Reads and executes one command of the attached session.
    fn session_step(&self, session: &Session) -> Outcome;

    /// Under the session's lock: makes `token` known to later kills and, unless the session was
    /// killed, calls `arm`, which returns 0 or an errno. After [`Armed::Yes`] nothing of the
    /// session may be touched.
    fn session_arm(&self, session: &Session, token: Token, arm: &mut dyn FnMut() -> i32) -> Armed;

    /// Ends a detached session.
    fn session_close(&self, session: Session, reason: CloseReason);

    /// Turns a channel away.
    fn channel_reject(&self, channel: Channel, reason: RejectReason);

    /// Writes a line to the error log.
    fn log(&self, level: LogLevel, text: &str);
}
