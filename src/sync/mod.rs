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
pub(crate) use parking_lot::{Condvar, Mutex};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};

#[cfg(loom)]
pub(crate) use self::model::{Condvar, Mutex};

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
    use std::ops::{Deref, DerefMut};
    use std::time::Duration;

    const PANICKED: &str = "a model thread panicked";

    /// loom's mutex with parking_lot's signature (no poisoning).
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    /// Empty only while a [`Condvar`] has it.
    pub(crate) struct Guard<'a, T>(Option<loom::sync::MutexGuard<'a, T>>);

    impl<T: Default> Default for Mutex<T> {
        fn default() -> Self {
            Self::new(T::default())
        }
    }

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> Guard<'_, T> {
            Guard(Some(self.0.lock().expect(PANICKED)))
        }
    }

    impl<T> Deref for Guard<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            self.0.as_ref().expect("not waiting")
        }
    }

    impl<T> DerefMut for Guard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            self.0.as_mut().expect("not waiting")
        }
    }

    /// loom's condition variable with parking_lot's signature.
    #[derive(Default)]
    pub(crate) struct Condvar(loom::sync::Condvar);

    impl Condvar {
        pub(crate) fn notify_one(&self) {
            self.0.notify_one();
        }

        pub(crate) fn wait<T>(&self, guard: &mut Guard<'_, T>) {
            guard.0 = guard.0.take().map(|inner| self.0.wait(inner).expect(PANICKED));
        }

        /// In models time doesn't pass, so that a sleep without a wake-up is found.
        pub(crate) fn wait_for<T>(&self, guard: &mut Guard<'_, T>, _: Duration) {
            self.wait(guard);
        }
    }
}
