//! What one thread can find out about another without its help: does it run?

use super::{AtomicU64, Ordering};
use crate::time::Micros;
use std::fs::File;
use std::io::Read;
use std::mem::MaybeUninit;
use std::sync::OnceLock;

/// Looks at a thread from outside.
pub trait Probe: Send + Sync {
    /// Processor time that the thread has used; `None` when it can't be read.
    fn cpu_time(&self) -> Option<Micros>;

    /// True if the thread sleeps in the kernel; false if it runs, could run, or nothing is known.
    fn is_sleeping(&self) -> bool;
}

/// A thread that is looked at now and then.
#[derive(Default)]
pub struct Watched {
    /// Set by the thread when it starts.
    probe: OnceLock<Box<dyn Probe>>,
    /// Processor time at the last look, in µs. Only the one who looks uses it.
    cpu_seen_us: AtomicU64,
}

impl Watched {
    /// Makes the thread observable; called by itself.
    pub(crate) fn set_probe(&self, probe: Option<Box<dyn Probe>>) {
        if let Some(probe) = probe {
            // It is set once, so there's nothing to lose.
            let _ = self.probe.set(probe);
        }
    }

    /// True if the thread has slept since the last call.
    pub(crate) fn has_slept(&self) -> bool {
        let Some(probe) = self.probe.get() else { return false };
        let Some(Micros(used)) = probe.cpu_time() else { return false };
        let before = self.cpu_seen_us.swap(used, Ordering::Relaxed);
        // A thread that merely waits for a processor uses no time either, but doesn't sleep.
        used == before && probe.is_sleeping()
    }
}

/// [`Probe`] of a thread of this process.
pub struct ThreadProbe {
    clock: libc::clockid_t,
    stat: String,
}

impl ThreadProbe {
    /// A probe of the calling thread; `None` when the system doesn't offer one.
    pub fn of_this_thread() -> Option<Self> {
        let mut clock = MaybeUninit::uninit();
        // SAFETY: the calling thread is alive, and the pointer is writable.
        let error =
            unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), clock.as_mut_ptr()) };
        if error != 0 {
            return None;
        }
        // SAFETY: no arguments; can't fail.
        let thread = unsafe { libc::gettid() };
        // SAFETY: the call above has succeeded, so the value is set.
        let clock = unsafe { clock.assume_init() };
        Some(Self { clock, stat: format!("/proc/self/task/{thread}/stat") })
    }
}

impl Probe for ThreadProbe {
    fn cpu_time(&self) -> Option<Micros> {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the pointer is writable; a clock of a thread that has ended is an error.
        let result = unsafe { libc::clock_gettime(self.clock, &mut time) };
        (result == 0).then(|| Micros(time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1_000))
    }

    fn is_sleeping(&self) -> bool {
        // "tid (name) S …"; the name is at most 15 bytes and can contain blanks and parentheses.
        let mut text = [0u8; 64];
        let read = File::open(&self.stat).and_then(|mut file| file.read(&mut text));
        let Ok(length) = read else { return false };
        let end_of_name = text[..length].iter().rposition(|byte| *byte == b')');
        let state = end_of_name.and_then(|at| text[..length].get(at + 2));
        matches!(state, Some(b'S' | b'D'))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_blocked_thread_sleeps_and_uses_no_processor() {
        let (probe_to, probe_from) = mpsc::channel();
        let (end_to, end_from) = mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            probe_to.send(ThreadProbe::of_this_thread().unwrap()).unwrap();
            let _ = end_from.recv();
        });
        let probe = probe_from.recv().unwrap();
        while !probe.is_sleeping() {
            std::thread::yield_now();
        }
        let before = probe.cpu_time().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert_eq!(probe.cpu_time().unwrap(), before);
        drop(end_to);
        thread.join().unwrap();
    }

    #[test]
    fn a_thread_that_computes_runs_and_uses_the_processor() {
        let probe = ThreadProbe::of_this_thread().unwrap();
        let before = probe.cpu_time().unwrap();
        while probe.cpu_time().unwrap() < Micros(before.0 + 2_000) {
            assert!(!probe.is_sleeping(), "this thread is running this very code");
        }
    }
}
