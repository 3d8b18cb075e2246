//! What the pool keeps in memory for a connection that is idle, to the byte.

use std::alloc::{GlobalAlloc, Layout, System};
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use thread_pool_rs::config::Settings;
use thread_pool_rs::conn::Token;
use thread_pool_rs::host::*;
use thread_pool_rs::pool::{Pool, SystemPlatform};
use thread_pool_rs::time::Micros;

/// Two chunks of the table of connections, nearly full.
const CONNECTIONS: usize = 2_000;
const MOST_BYTES: usize = 1_000;

/// Counts the bytes in use.
struct Counting;

static IN_USE: AtomicIsize = AtomicIsize::new(0);

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size() as isize, Ordering::SeqCst);
        // SAFETY: the caller's duties are the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size() as isize, Ordering::SeqCst);
        // SAFETY: the caller's duties are the same.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A server whose sessions are nothing but their sockets.
#[derive(Default)]
struct BareHost {
    armed: AtomicUsize,
}

impl Host for BareHost {
    fn thread_spawn(&self, _: Role, body: ThreadBody) -> Option<Thread> {
        let handle = std::thread::spawn(body);
        Some(Thread::from_raw(Box::into_raw(Box::new(handle)) as usize))
    }

    fn thread_join(&self, thread: Thread) {
        // SAFETY: `thread_spawn` leaked the box; a thread is joined once.
        let handle = unsafe { Box::from_raw(thread.as_raw() as *mut std::thread::JoinHandle<()>) };
        handle.join().unwrap();
    }

    fn session_open(&self, channel: Channel) -> Option<Opened> {
        let fd = channel.as_raw() as i32;
        let outcome = Outcome { wait_timeout: Micros::from_secs(28_800), ..Outcome::default() };
        let (session, kind) = (Session::from_raw(fd as usize), ConnectionKind::User);
        Some(Opened { session, fd, id: fd as u32, kind, outcome })
    }

    fn session_arm(&self, _: &Session, _: Token, arm: &mut dyn FnMut() -> i32) -> Armed {
        assert_eq!(arm(), 0);
        self.armed.fetch_add(1, Ordering::SeqCst);
        Armed::Yes
    }

    fn session_close(&self, session: Session, _: CloseReason) {
        // SAFETY: `connect` gave the descriptor away; a session is closed once.
        drop(unsafe { OwnedFd::from_raw_fd(session.as_raw() as i32) });
    }

    fn thread_id(&self) -> Option<u64> {
        None
    }

    fn session_attach(&self, _: &Session) {}

    fn session_detach(&self, _: &Session) {}

    fn session_step(&self, _: &Session) -> Outcome {
        unreachable!("no client sends anything")
    }

    fn channel_reject(&self, _: Channel, _: RejectReason) {
        unreachable!("the pool stops when all have logged in")
    }

    fn log(&self, _: LogLevel, _: &str) {}
}

/// Both ends need a descriptor.
fn allow_descriptors() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointers are to a local variable.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit), 0);
        limit.rlim_cur = limit.rlim_max;
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &limit), 0);
    }
}

#[test]
fn an_idle_connection_costs_less_than_a_kilobyte() {
    allow_descriptors();
    let host = Arc::new(BareHost::default());
    let server = Arc::clone(&host) as Arc<dyn Host>;
    let platform = Arc::new(SystemPlatform::default());
    let pool = Arc::new(Pool::new(server, platform, Settings::defaults(2)).unwrap());
    pool.start().unwrap();
    let mut clients = Vec::with_capacity(CONNECTIONS);
    let before = IN_USE.load(Ordering::SeqCst);
    for _ in 0..CONNECTIONS {
        let (client, server) = UnixStream::pair().unwrap();
        clients.push(client);
        pool.add_connection(Channel::from_raw(server.into_raw_fd() as usize), false).unwrap();
    }
    let deadline = Instant::now() + Duration::from_secs(20);
    while host.armed.load(Ordering::SeqCst) < CONNECTIONS {
        assert!(Instant::now() < deadline, "not all have logged in");
        std::thread::sleep(Duration::from_millis(1));
    }
    let used = IN_USE.load(Ordering::SeqCst) - before;
    println!("{} bytes for each of {CONNECTIONS} connections", used / CONNECTIONS as isize);
    assert!(used > 0, "nothing is counted");
    assert!((used as usize) < CONNECTIONS * MOST_BYTES, "{used} bytes");
    pool.shutdown();
}
