//! [`Host`] on top of the shim's function table.

use super::types::*;
use crate::conn::{HighPrioMode, PriorityWishes, SessionPriority, Token};
use crate::host::{
    Armed, Channel, CloseReason, ConnectionKind, Host, LogLevel, Opened, Outcome, RejectReason,
    Role, Session, Thread, ThreadBody,
};
use crate::time::Micros;
use std::ffi::c_void;
use std::ptr;

/// See the module.
pub(super) struct HostTable(rtp_host);

// SAFETY: the contract of `rtp_host` allows every member to be called from any thread; `context`
// is only passed through.
unsafe impl Send for HostTable {}
// SAFETY: as above; the table is never written after its construction.
unsafe impl Sync for HostTable {}

impl HostTable {
    /// Keeps a copy of a complete table.
    pub(super) fn new(table: rtp_host) -> Self {
        Self(table)
    }
}

/// What travels through the server to the new thread: one thin pointer.
pub(super) struct ThreadStart(ThreadBody);

impl ThreadStart {
    fn into_pointer(self) -> *mut c_void {
        Box::into_raw(Box::new(self)).cast()
    }

    /// Takes the value back.
    ///
    /// # Safety
    /// `pointer` came from `into_pointer` and is used once.
    pub(super) unsafe fn from_pointer(pointer: *mut c_void) -> Self {
        // SAFETY: guaranteed by the caller.
        *unsafe { Box::from_raw(pointer.cast()) }
    }

    /// Runs the thread's body.
    pub(super) fn run(self) {
        (self.0)();
    }
}

fn session(session: &Session) -> *mut rtp_session {
    session.as_raw() as *mut rtp_session
}

fn outcome(raw: rtp_outcome) -> Outcome {
    Outcome {
        close: raw.flags & RTP_OUTCOME_CLOSE != 0,
        buffered: raw.flags & RTP_OUTCOME_BUFFERED != 0,
        holds_locks: raw.flags & RTP_OUTCOME_HOLDS_LOCKS != 0,
        is_plain: raw.flags & RTP_OUTCOME_PLAIN != 0,
        wait_timeout: Micros::from_secs(u64::from(raw.wait_timeout_s)),
        wishes: PriorityWishes {
            priority: SessionPriority::from_number(raw.priority),
            is_high_priority: raw.flags & RTP_OUTCOME_HIGH_PRIORITY != 0,
            mode: HighPrioMode::from_number(raw.high_prio_mode),
            tickets: raw.high_prio_tickets,
        },
    }
}

/// Forwards the server's call under the session's lock to the closure behind `argument`.
extern "C" fn call_arm(argument: *mut c_void) -> i32 {
    super::guard::or_abort(|| {
        // SAFETY: `session_arm` below passes a pointer to its own `arm`, which outlives the call.
        let arm = unsafe { &mut *argument.cast::<&mut dyn FnMut() -> i32>() };
        arm()
    })
}

impl Host for HostTable {
    fn thread_spawn(&self, role: Role, body: ThreadBody) -> Option<Thread> {
        let start = ThreadStart(body).into_pointer();
        let mut thread = ptr::null_mut();
        let result = (self.0.thread_spawn)(self.0.context, role as u32, start, &mut thread);
        if result == RTP_OK {
            return Some(Thread::from_raw(thread as usize));
        }
        // SAFETY: the thread wasn't started, so the pointer wasn't handed over.
        drop(unsafe { ThreadStart::from_pointer(start) });
        None
    }

    fn thread_join(&self, thread: Thread) {
        (self.0.thread_join)(self.0.context, thread.as_raw() as *mut rtp_thread);
    }

    fn thread_id(&self) -> Option<u64> {
        Some((self.0.thread_id)(self.0.context)).filter(|id| *id != 0)
    }

    fn session_open(&self, channel: Channel) -> Option<Opened> {
        let mut opened = rtp_opened {
            session: ptr::null_mut(),
            fd: -1,
            id: 0,
            kind: RTP_CONNECTION_USER,
            outcome: rtp_outcome::default(),
        };
        let channel = channel.as_raw() as *mut rtp_channel;
        let result = (self.0.session_open)(self.0.context, channel, &mut opened);
        (result == RTP_OK).then(|| Opened {
            session: Session::from_raw(opened.session as usize),
            fd: opened.fd,
            id: opened.id,
            kind: ConnectionKind::from_raw(opened.kind),
            outcome: outcome(opened.outcome),
        })
    }

    fn session_attach(&self, to: &Session) {
        (self.0.session_attach)(self.0.context, session(to));
    }

    fn session_detach(&self, from: &Session) {
        (self.0.session_detach)(self.0.context, session(from));
    }

    fn session_step(&self, of: &Session) -> Outcome {
        let mut raw = rtp_outcome::default();
        (self.0.session_step)(self.0.context, session(of), &mut raw);
        outcome(raw)
    }

    fn session_arm(&self, of: &Session, token: Token, arm: &mut dyn FnMut() -> i32) -> Armed {
        let mut arm = arm;
        let argument = ptr::from_mut(&mut arm).cast();
        let context = self.0.context;
        match (self.0.session_arm)(context, session(of), token.raw(), call_arm, argument) {
            RTP_OK => Armed::Yes,
            RTP_KILLED => Armed::Killed,
            _ => Armed::Refused,
        }
    }

    fn session_close(&self, of: Session, reason: CloseReason) {
        (self.0.session_close)(self.0.context, session(&of), reason as u32);
    }

    fn channel_reject(&self, channel: Channel, reason: RejectReason) {
        let channel = channel.as_raw() as *mut rtp_channel;
        (self.0.session_reject)(self.0.context, channel, reason as u32);
    }

    fn log(&self, level: LogLevel, text: &str) {
        (self.0.log)(self.0.context, level as u32, text.as_ptr().cast(), text.len());
    }
}
