//! Time as the scheduler sees it: whole microseconds on a monotonic clock, passed in by callers.

use std::ops::{Add, Sub};

/// A length of time in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Micros(pub u64);

impl Micros {
    /// `ms` milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000))
    }

    /// `s` seconds.
    pub const fn from_secs(s: u64) -> Self {
        Self(s.saturating_mul(1_000_000))
    }
}

/// A moment: microseconds since the pool was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub u64);

impl Moment {
    /// Later than every moment that happens.
    pub const NEVER: Moment = Moment(u64::MAX);

    /// Time passed since `earlier`; zero when `earlier` is later.
    pub fn since(self, earlier: Moment) -> Micros {
        Micros(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Micros> for Moment {
    type Output = Moment;

    fn add(self, length: Micros) -> Moment {
        Moment(self.0.saturating_add(length.0))
    }
}

impl Sub for Moment {
    type Output = Micros;

    fn sub(self, earlier: Moment) -> Micros {
        self.since(earlier)
    }
}

/// Source of the present moment.
pub trait Clock: Send + Sync {
    /// Now; never goes back.
    fn now(&self) -> Moment;
}

/// [`Clock`] of the operating system (CLOCK_MONOTONIC).
pub struct SystemClock {
    start: std::time::Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self { start: std::time::Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Moment {
        // One microsecond is added so that no moment is zero, which counters use for "not set".
        Moment(self.start.elapsed().as_micros() as u64 + 1)
    }
}
