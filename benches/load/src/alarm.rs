//! A timer finer than tokio's, which has a resolution of 1 ms.

use std::{io, os::fd::OwnedFd};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::{
    io::{Interest, unix::AsyncFd},
    time::Instant,
};

use crate::pacing::Alarm;

/// A timerfd in the event loop of its thread.
#[derive(Debug)]
pub struct TimerAlarm(AsyncFd<OwnedFd>);

impl TimerAlarm {
    /// Fails if no file descriptor is left.
    pub fn new() -> io::Result<Self> {
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?;
        // SAFETY: the descriptor is an OwnedFd, always the same and open until it is dropped; the AsyncFd owns it and
        // nobody takes it out.
        #[expect(unsafe_code, reason = "tokio can't see that OwnedFd keeps its descriptor")]
        let registered = unsafe { AsyncFd::register_with_interest(timer, Interest::READABLE) };
        Ok(TimerAlarm(registered?))
    }
}

impl Alarm for TimerAlarm {
    async fn until(&mut self, at: Instant) {
        let left = at.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        let it_value =
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &once)
            .expect("the timer and the time are valid");
        let mut count = [0; 8];
        self.0
            .async_io(Interest::READABLE, |timer| Ok(rustix::io::read(timer, &mut count)?))
            .await
            .expect("a timer can be read");
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn never_rings_early() {
        let mut alarm = TimerAlarm::new().unwrap();
        for microseconds in [0, 1, 150, 2500] {
            let at = Instant::now() + Duration::from_micros(microseconds);
            alarm.until(at).await;
            assert!(Instant::now() >= at);
        }
        alarm.until(Instant::now() - Duration::from_millis(1)).await;
    }
}
