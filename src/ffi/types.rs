//! Every type that crosses the boundary between the server's C++ and the Rust core.
//!
//! Ownership rule: a pointer passed to a function that "consumes" it is gone for the caller,
//! whatever the result; every other pointer is borrowed for the call.
//! Enumerations cross as `u32` and are checked on arrival.

#![allow(non_camel_case_types, reason = "the names are those of the C header")]

use std::ffi::{c_char, c_void};

/// Version of this contract. Both sides refuse a partner that speaks another one.
pub const RTP_ABI_VERSION: u32 = 1;

/// Success.
pub const RTP_OK: u32 = 0;
/// A pointer that must not be null was null.
pub const RTP_NULL_ARGUMENT: u32 = 1000;
/// The partner was compiled against another [`RTP_ABI_VERSION`] or table size.
pub const RTP_ABI_MISMATCH: u32 = 1001;
/// The call isn't legal in the pool's present state (for example start after shutdown).
pub const RTP_WRONG_STATE: u32 = 1002;
/// A number was outside its documented range; nothing was changed.
pub const RTP_OUT_OF_RANGE: u32 = 1003;
/// The operating system refused a resource (thread, descriptor, memory).
pub const RTP_NO_RESOURCE: u32 = 1004;
/// The session was killed before the call; the caller must close it.
pub const RTP_KILLED: u32 = 1005;
/// Login failed; everything the login had acquired is released and counted.
pub const RTP_LOGIN_FAILED: u32 = 1006;
/// A group would have fewer transactions than idle workers; nothing was changed.
pub const RTP_TOO_MANY_QUERY_THREADS: u32 = 1008;
/// `thread_pool_dedicated_listeners` needs a limit of transactions; nothing was changed.
pub const RTP_LISTENERS_NEED_LIMIT: u32 = 1009;
/// A defect in the core was caught at the boundary (a panic); it is in the error log.
pub const RTP_INTERNAL: u32 = 1007;

/// Thread role: runs statements.
pub const RTP_ROLE_WORKER: u32 = 0;
/// Thread role: performs logins.
pub const RTP_ROLE_LOGIN: u32 = 1;
/// Thread role: the one thread that watches for stalls, timeouts and missing workers.
pub const RTP_ROLE_WARDEN: u32 = 2;

/// Outcome flag: the session has ended (quit, end of file, error, kill) and must be closed.
pub const RTP_OUTCOME_CLOSE: u32 = 1;
/// Outcome flag: the server already holds bytes of the next command (TLS record or compressed
/// frame), which no poll of the descriptor would report.
pub const RTP_OUTCOME_BUFFERED: u32 = 2;
/// Outcome flag: the session is inside a transaction or holds another lock.
pub const RTP_OUTCOME_HOLDS_LOCKS: u32 = 4;
/// Outcome flag: commands can be read off the socket, since it is neither encrypted nor compressed.
pub const RTP_OUTCOME_PLAIN: u32 = 8;
/// Outcome flag: the session's `thread_pool_high_priority_connection` is 1.
pub const RTP_OUTCOME_HIGH_PRIORITY: u32 = 16;

/// Why a session is closed: it ended by itself, or was killed.
pub const RTP_CLOSE_ENDED: u32 = 0;
/// Why a session is closed: `wait_timeout` ran out; the client is sent error 4031.
pub const RTP_CLOSE_IDLE_TIMEOUT: u32 = 1;
/// Why a session is closed: the pool couldn't register or keep it.
pub const RTP_CLOSE_NO_RESOURCE: u32 = 2;

/// Why a channel is rejected before login: the pool is stopping.
pub const RTP_REJECT_SHUTDOWN: u32 = 0;
/// Why a channel is rejected before login: no memory, descriptor or thread for it.
pub const RTP_REJECT_NO_RESOURCE: u32 = 1;

/// How a connection came in: by the ordinary port, with an ordinary account.
pub const RTP_CONNECTION_USER: u32 = 0;
/// How a connection came in: by the admin port.
pub const RTP_CONNECTION_ADMIN_PORT: u32 = 1;
/// How a connection came in: with an account that has the privilege TP_CONNECTION_ADMIN.
pub const RTP_CONNECTION_ADMIN_PRIVILEGE: u32 = 2;

/// Kind of a cell: NULL.
pub const RTP_CELL_NULL: u32 = 0;
/// Kind of a cell: a number.
pub const RTP_CELL_NUMBER: u32 = 1;
/// Kind of a cell: a text.
pub const RTP_CELL_TEXT: u32 = 2;

/// Severity of a log line, as the server's error log has it.
pub const RTP_LOG_ERROR: u32 = 0;
/// See [`RTP_LOG_ERROR`].
pub const RTP_LOG_WARNING: u32 = 1;
/// See [`RTP_LOG_ERROR`].
pub const RTP_LOG_INFORMATION: u32 = 2;
/// Like [`RTP_LOG_INFORMATION`], for the report about connections, which has an error number of
/// its own (ER_THREAD_POOL_CONNECTION_INIT_REPORT).
pub const RTP_LOG_CONNECTION_REPORT: u32 = 3;

/// Correction of start values: `thread_pool_query_threads_per_group` was given as 1 although
/// `thread_pool_algorithm` is 1. Nothing was changed.
pub const RTP_CORRECTION_ONE_QUERY_THREAD: u32 = 1;
/// Correction of start values: `thread_pool_query_threads_per_group` was lowered.
pub const RTP_CORRECTION_QUERY_THREADS: u32 = 2;
/// Correction of start values: `thread_pool_dedicated_listeners` was switched off.
pub const RTP_CORRECTION_LISTENERS: u32 = 4;
/// Correction of start values: `thread_pool_connection_report_interval` was replaced by its
/// default.
pub const RTP_CORRECTION_REPORT_INTERVAL: u32 = 8;

/// A session after login (the server's THD). Opaque.
#[repr(C)]
pub struct rtp_session {
    _private: [u8; 0],
}

/// An accepted connection before login (the server's Channel_info). Opaque.
#[repr(C)]
pub struct rtp_channel {
    _private: [u8; 0],
}

/// A joinable thread made by the server side. Opaque.
#[repr(C)]
pub struct rtp_thread {
    _private: [u8; 0],
}

/// The pool. Opaque.
#[repr(C)]
pub struct rtp_pool {
    _private: [u8; 0],
}

/// A copy of a table's rows. Opaque.
#[repr(C)]
pub struct rtp_snapshot {
    _private: [u8; 0],
}

/// One value of a table.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rtp_cell {
    /// `RTP_CELL_*`.
    pub kind: u32,
    /// The number; the length in bytes of a text.
    pub number: u64,
    /// The text (UTF-8, not terminated); lives as long as its snapshot. Null for other kinds.
    pub text: *const c_char,
}

/// What a session looks like after a command or after login.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct rtp_outcome {
    /// `RTP_OUTCOME_*` flags.
    pub flags: u32,
    /// The session's present `wait_timeout`, in seconds.
    pub wait_timeout_s: u32,
    /// The number of its `thread_pool_priority`.
    pub priority: u32,
    /// The number of its `thread_pool_high_prio_mode`.
    pub high_prio_mode: u32,
    /// Its `thread_pool_high_prio_tickets`.
    pub high_prio_tickets: u32,
}

/// A session that has just logged in.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rtp_opened {
    /// The session; owned by the receiver until `session_close`.
    pub session: *mut rtp_session,
    /// Its socket. Valid until the session is killed or closed.
    pub fd: i32,
    /// The server's name of the connection (`CONNECTION_ID()`).
    pub id: u32,
    /// How it came in: `RTP_CONNECTION_*`.
    pub kind: u32,
    /// What it looks like now.
    pub outcome: rtp_outcome,
}

/// Registers the session's socket with the poller; called back by `session_arm` at most once,
/// under the session's lock. Must not call the server. Returns 0, or an errno.
pub type rtp_arm_function = extern "C" fn(argument: *mut c_void) -> i32;

/// What the core may ask of the server. All members must be set; none may throw, and none may
/// block longer than its description says.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rtp_host {
    /// [`RTP_ABI_VERSION`] of the table's author.
    pub abi_version: u32,
    /// `sizeof(rtp_host)` as the table's author sees it.
    pub struct_size: u32,
    /// First argument of every member.
    pub context: *mut c_void,
    /// Starts a joinable server thread that calls `rtp_thread_main(start)`. On [`RTP_OK`]
    /// `thread` is set and `start` has been handed over; on [`RTP_NO_RESOURCE`] neither.
    /// Called on a thread that has no session attached.
    pub thread_spawn: extern "C" fn(
        context: *mut c_void,
        role: u32,
        start: *mut c_void,
        thread: *mut *mut rtp_thread,
    ) -> u32,
    /// Waits for the end of a thread and frees it (consumes `thread`).
    pub thread_join: extern "C" fn(context: *mut c_void, thread: *mut rtp_thread),
    /// What performance_schema.threads calls the calling thread, or 0 when it has no name there.
    /// Called by each new thread before it does anything else.
    pub thread_id: extern "C" fn(context: *mut c_void) -> u64,
    /// Logs a client in (consumes `channel`). Blocks up to the server's `connect_timeout` and
    /// longer in authentication plugins. On [`RTP_OK`] `opened` is filled and the session is
    /// detached; else [`RTP_LOGIN_FAILED`] and nothing is left.
    pub session_open: extern "C" fn(
        context: *mut c_void,
        channel: *mut rtp_channel,
        opened: *mut rtp_opened,
    ) -> u32,
    /// Makes the session current on this thread. No session may be attached here.
    pub session_attach: extern "C" fn(context: *mut c_void, session: *mut rtp_session),
    /// Undoes `session_attach` on the same thread.
    pub session_detach: extern "C" fn(context: *mut c_void, session: *mut rtp_session),
    /// Reads and executes exactly one command of the attached session. Blocks for as long as the
    /// statement takes; calls `rtp_wait_begin`/`rtp_wait_end` around waits the server knows of.
    pub session_step:
        extern "C" fn(context: *mut c_void, session: *mut rtp_session, outcome: *mut rtp_outcome),
    /// Under the session's lock: stores `token` for later kills, then, unless the session was
    /// killed, calls `arm(argument)`. [`RTP_OK`]: registered, and from that moment another thread
    /// may own the session. [`RTP_KILLED`] / [`RTP_NO_RESOURCE`]: still owned by the caller.
    /// The session must be detached.
    pub session_arm: extern "C" fn(
        context: *mut c_void,
        session: *mut rtp_session,
        token: u64,
        arm: rtp_arm_function,
        argument: *mut c_void,
    ) -> u32,
    /// Ends a detached session with reason `RTP_CLOSE_*`: error packet where one is due, rollback,
    /// counters (consumes `session`). No kill for its token arrives afterwards. May block.
    pub session_close: extern "C" fn(context: *mut c_void, session: *mut rtp_session, reason: u32),
    /// Turns a channel away with reason `RTP_REJECT_*`: error packet, close, counters
    /// (consumes `channel`). Doesn't block.
    pub session_reject: extern "C" fn(context: *mut c_void, channel: *mut rtp_channel, reason: u32),
    /// Writes `length` bytes of UTF-8 `text` to the error log with severity `RTP_LOG_*`.
    pub log: extern "C" fn(context: *mut c_void, level: u32, text: *const c_char, length: usize),
}
