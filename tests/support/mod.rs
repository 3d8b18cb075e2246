//! A host for tests on real threads: sessions are Unix sockets, commands are single bytes.
#![allow(unreachable_pub, reason = "a module of each test program that uses it")]

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use thread_pool_rs::conn::Token;
use thread_pool_rs::driver;
use thread_pool_rs::host::*;
use thread_pool_rs::stats::WaitKind;
use thread_pool_rs::time::Micros;

/// Answers with one byte.
pub const PING: u8 = b'p';
/// Opens a transaction.
pub const BEGIN: u8 = b'b';
/// Ends it.
pub const COMMIT: u8 = b'c';
/// A wait of 1 ms that is reported to the pool.
pub const WAIT: u8 = b'w';
/// Computes for 0.5 ms.
pub const WORK: u8 = b'r';
/// Waits for one more byte of its client, without a report.
pub const READ: u8 = b'd';
/// Ends the session.
pub const QUIT: u8 = b'q';

/// One session; its lock plays the part of LOCK_thd_data.
pub struct FakeSession {
    stream: UnixStream,
    lock: Mutex<Locked>,
    holds_locks: AtomicBool,
    attached: AtomicBool,
}

#[derive(Default)]
struct Locked {
    token: Option<Token>,
    killed: bool,
}

/// What happened, counted.
#[derive(Default)]
pub struct Counts {
    pub opened: AtomicUsize,
    pub closed: AtomicUsize,
    pub timeouts: AtomicUsize,
    pub rejected: AtomicUsize,
    pub statements: AtomicUsize,
    pub running: AtomicUsize,
    pub most_running: AtomicUsize,
    pub threads: AtomicUsize,
    pub most_threads: AtomicUsize,
    pub joined: AtomicUsize,
}

/// The host. Channels are boxed `UnixStream`s.
#[derive(Default)]
pub struct FakeHost {
    pub counts: Counts,
    pub wait_timeout_ms: AtomicU64,
    /// Threads that may still be started; `usize::MAX` by default.
    pub threads_left: Mutex<Option<usize>>,
    pub log_lines: Mutex<Vec<String>>,
    sessions: Mutex<Vec<Arc<FakeSession>>>,
}

impl FakeHost {
    /// A host whose sessions may be idle for a long time.
    pub fn new() -> Arc<Self> {
        let host = Self::default();
        host.wait_timeout_ms.store(3_600_000, Ordering::Relaxed);
        Arc::new(host)
    }

    /// A client and the channel to hand to the pool.
    pub fn connect() -> (UnixStream, Channel) {
        let (client, server) = UnixStream::pair().unwrap();
        client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        (client, Channel::from_raw(Box::into_raw(Box::new(server)) as usize))
    }

    /// Kills every session, as the server does: under the session's lock.
    pub fn kill_all(&self, kill: impl Fn(Token)) {
        let sessions: Vec<_> = self.sessions.lock().unwrap().clone();
        for session in sessions {
            let mut locked = session.lock.lock().unwrap();
            locked.killed = true;
            let _ = session.stream.shutdown(std::net::Shutdown::Both);
            if let Some(token) = locked.token {
                kill(token);
            }
        }
    }

    fn raise(most: &AtomicUsize, now: usize) {
        most.fetch_max(now, Ordering::SeqCst);
    }

    fn outcome(&self, session: &FakeSession, close: bool) -> Outcome {
        Outcome {
            close: close || session.lock.lock().unwrap().killed,
            buffered: false,
            holds_locks: session.holds_locks.load(Ordering::Relaxed),
            is_plain: false,
            wait_timeout: Micros::from_millis(self.wait_timeout_ms.load(Ordering::Relaxed)),
            ..Outcome::default()
        }
    }

    fn execute(&self, session: &FakeSession, command: u8) -> bool {
        match command {
            QUIT => return false,
            BEGIN => session.holds_locks.store(true, Ordering::Relaxed),
            COMMIT => session.holds_locks.store(false, Ordering::Relaxed),
            WAIT => {
                driver::wait_begin(WaitKind::RowLock);
                self.counts.running.fetch_sub(1, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(1));
                driver::wait_end();
                self.counts.running.fetch_add(1, Ordering::SeqCst);
            }
            READ => {
                return (&session.stream).read_exact(&mut [0]).is_ok()
                    && self.answer(session, READ);
            }
            WORK => compute(Duration::from_micros(500)),
            _ => {}
        }
        self.answer(session, command)
    }

    fn answer(&self, session: &FakeSession, command: u8) -> bool {
        (&session.stream).write_all(&[command]).is_ok()
    }
}

/// Uses the processor; a sleeping thread would lose its credit.
fn compute(time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

fn borrow(session: &Session) -> &FakeSession {
    // SAFETY: `session_open` leaked an Arc, which `session_close` takes back.
    unsafe { &*(session.as_raw() as *const FakeSession) }
}

impl Host for FakeHost {
    fn thread_spawn(&self, _role: Role, body: ThreadBody) -> Option<Thread> {
        if let Some(left) = self.threads_left.lock().unwrap().as_mut() {
            *left = left.checked_sub(1)?;
        }
        let now = self.counts.threads.fetch_add(1, Ordering::SeqCst) + 1;
        Self::raise(&self.counts.most_threads, now);
        let handle: JoinHandle<()> = std::thread::spawn(body);
        Some(Thread::from_raw(Box::into_raw(Box::new(handle)) as usize))
    }

    fn thread_join(&self, thread: Thread) {
        // SAFETY: `thread_spawn` leaked the box; a thread is joined once.
        let handle = unsafe { Box::from_raw(thread.as_raw() as *mut JoinHandle<()>) };
        handle.join().unwrap();
        self.counts.threads.fetch_sub(1, Ordering::SeqCst);
        self.counts.joined.fetch_add(1, Ordering::SeqCst);
    }

    fn thread_id(&self) -> Option<u64> {
        None
    }

    fn session_open(&self, channel: Channel) -> Option<Opened> {
        // SAFETY: `connect` leaked the box; a channel is used once.
        let stream = *unsafe { Box::from_raw(channel.as_raw() as *mut UnixStream) };
        self.counts.opened.fetch_add(1, Ordering::SeqCst);
        let fd = stream.as_raw_fd();
        let session = Arc::new(FakeSession {
            stream,
            lock: Mutex::default(),
            holds_locks: AtomicBool::new(false),
            attached: AtomicBool::new(false),
        });
        let outcome = self.outcome(&session, false);
        self.sessions.lock().unwrap().push(Arc::clone(&session));
        let session = Session::from_raw(Arc::into_raw(session) as usize);
        Some(Opened { session, fd, id: fd as u32, kind: ConnectionKind::User, outcome })
    }

    fn session_attach(&self, session: &Session) {
        let attached = borrow(session).attached.swap(true, Ordering::SeqCst);
        assert!(!attached, "two threads have the same session");
    }

    fn session_detach(&self, session: &Session) {
        assert!(borrow(session).attached.swap(false, Ordering::SeqCst));
    }

    fn session_step(&self, session: &Session) -> Outcome {
        let session = borrow(session);
        let running = self.counts.running.fetch_add(1, Ordering::SeqCst) + 1;
        Self::raise(&self.counts.most_running, running);
        let mut command = [0];
        let got = (&session.stream).read(&mut command).unwrap_or(0);
        let alive = got == 1 && self.execute(session, command[0]);
        self.counts.statements.fetch_add(got, Ordering::SeqCst);
        self.counts.running.fetch_sub(1, Ordering::SeqCst);
        self.outcome(session, !alive)
    }

    fn session_arm(&self, session: &Session, token: Token, arm: &mut dyn FnMut() -> i32) -> Armed {
        let session = borrow(session);
        assert!(!session.attached.load(Ordering::SeqCst), "armed while attached");
        // Another thread may close the session before this one has let go of the lock.
        // SAFETY: the Arc behind the session is alive until `session_close`.
        let keep = unsafe {
            Arc::increment_strong_count(session);
            Arc::from_raw(session)
        };
        let mut locked = keep.lock.lock().unwrap();
        locked.token = Some(token);
        if locked.killed {
            return Armed::Killed;
        }
        if arm() == 0 { Armed::Yes } else { Armed::Refused }
    }

    fn session_close(&self, session: Session, reason: CloseReason) {
        // SAFETY: takes back what `session_open` leaked.
        let session = unsafe { Arc::from_raw(session.as_raw() as *const FakeSession) };
        assert!(!session.attached.load(Ordering::SeqCst), "closed while attached");
        session.lock.lock().unwrap().token = None;
        let _ = session.stream.shutdown(std::net::Shutdown::Both);
        self.sessions.lock().unwrap().retain(|s| !Arc::ptr_eq(s, &session));
        if reason == CloseReason::IdleTimeout {
            self.counts.timeouts.fetch_add(1, Ordering::SeqCst);
        }
        self.counts.closed.fetch_add(1, Ordering::SeqCst);
    }

    fn channel_reject(&self, channel: Channel, _reason: RejectReason) {
        // SAFETY: as in `session_open`.
        drop(unsafe { Box::from_raw(channel.as_raw() as *mut UnixStream) });
        self.counts.rejected.fetch_add(1, Ordering::SeqCst);
    }

    fn log(&self, _level: LogLevel, text: &str) {
        self.log_lines.lock().unwrap().push(text.to_owned());
    }
}
