//! How a thread of the pool sleeps until another one has work for it.

use super::{Condvar, Mutex};
use crate::time::Micros;
use std::time::Duration;

/// The sleeping place of one thread. An `unpark` before the `park` is remembered (one of them).
pub trait Park: Send + Sync {
    /// Lets the thread's present or next `park` return.
    fn unpark(&self);

    /// Sleeps until an `unpark` or for `timeout` at most; returns at once when an `unpark` is
    /// pending. Only the owning thread calls this.
    fn park(&self, timeout: Option<Micros>);
}

/// [`Park`] for threads of the operating system.
#[derive(Default)]
pub struct Parker {
    unparked: Mutex<bool>,
    changed: Condvar,
}

impl Park for Parker {
    fn unpark(&self) {
        let mut unparked = self.unparked.lock();
        if !*unparked {
            *unparked = true;
            self.changed.notify_one();
        }
    }

    fn park(&self, timeout: Option<Micros>) {
        let mut unparked = self.unparked.lock();
        if !*unparked {
            match timeout {
                // Spurious returns are fine: every caller looks again at what it waited for.
                Some(t) => {
                    self.changed.wait_for(&mut unparked, Duration::from_micros(t.0));
                }
                None => self.changed.wait(&mut unparked),
            }
        }
        *unparked = false;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn an_unpark_before_the_park_is_remembered_once() {
        let parker = Parker::default();
        parker.unpark();
        parker.unpark();
        parker.park(None);
        assert!(!*parker.unparked.lock(), "the token is consumed");
    }

    #[test]
    fn an_unpark_from_another_thread_ends_an_endless_park() {
        let parker = Arc::new(Parker::default());
        let other = Arc::clone(&parker);
        let thread = std::thread::spawn(move || other.unpark());
        parker.park(None);
        thread.join().unwrap();
    }
}
