//! One place that decides what an atomic and a mutex are, so that the lock-free protocols run
//! unchanged under loom's model checker (`RUSTFLAGS="--cfg loom"`).

mod parker;
mod probe;

pub use parker::{Park, Parker};
pub use probe::{Probe, ThreadProbe, Watched};

#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};

#[cfg(not(loom))]
pub(crate) use parking_lot::Mutex;

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};

#[cfg(loom)]
pub(crate) use self::model::Mutex;

/// Stands between "tell the others" and "look at what they told" (`group/README.md`): what this
/// thread wrote before is seen by whoever this thread doesn't see. Sequentially consistent
/// operations on both sides give that by themselves, so production needs no instruction here;
/// loom knows sequential consistency of fences only.
#[cfg(not(loom))]
pub(crate) fn told_before_looking() {}

/// See the other one.
#[cfg(loom)]
pub(crate) fn told_before_looking() {
    loom::sync::atomic::fence(Ordering::SeqCst);
}

#[cfg(loom)]
mod model {
    /// loom's mutex with parking_lot's signature (no poisoning).
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T: Default> Default for Mutex<T> {
        fn default() -> Self {
            Self::new(T::default())
        }
    }

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
            self.0.lock().expect("a model thread panicked")
        }
    }
}
