//! When a connection begins its next transaction.
//!
//! Closed loop: when its last one has ended, after a time to think. Open loop: arrivals come at a fixed rate whether
//! the server keeps up or not, and wait in one queue for a connection that is free. A transaction's latency counts from
//! its *intended* start, the arrival, so a server that stalls can't hide the waiting behind transactions that were never
//! begun (coordinated omission).

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use clap::ValueEnum;
use rand::{RngExt, rngs::SmallRng};
use serde::Serialize;
use tokio::{
    sync::{Mutex, mpsc},
    time::Instant,
};

/// The gaps between arrivals of the open loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Gaps {
    /// All the same.
    Constant,
    /// Exponentially distributed: arrivals of many independent users.
    Poisson,
}

/// The intended starts of one thread's share of the load, without end.
#[derive(Debug)]
pub struct Schedule {
    gaps: Gaps,
    rate: f64,
    next: Instant,
    rng: SmallRng,
}

impl Schedule {
    /// `rate`: arrivals per second, above 0.
    pub fn new(gaps: Gaps, rate: f64, first: Instant, rng: SmallRng) -> Self {
        Schedule { gaps, rate, next: first, rng }
    }
}

impl Iterator for Schedule {
    type Item = Instant;

    fn next(&mut self) -> Option<Instant> {
        let gap = match self.gaps {
            Gaps::Constant => 1.0,
            Gaps::Poisson => exponential(&mut self.rng),
        };
        let arrival = self.next;
        self.next += Duration::from_secs_f64(gap / self.rate);
        Some(arrival)
    }
}

/// Mean 1; cut at 20, beyond which one in 500 million would lie.
fn exponential(rng: &mut SmallRng) -> f64 {
    (-(1.0 - rng.random::<f64>()).ln()).min(20.0)
}

/// Waits until a moment. Tests use tokio's timer in simulated time; a run needs a finer one.
pub trait Alarm {
    /// Returns at `at` or, if that is past, at once.
    fn until(&mut self, at: Instant) -> impl Future<Output = ()>;
}

/// Arrivals that are due, waiting for a connection.
#[derive(Debug)]
pub struct Arrivals {
    queue: Mutex<mpsc::UnboundedReceiver<Instant>>,
    /// Written by the dispatcher and by connections of one thread, read by the report afterwards: no ordering needed.
    waiting: AtomicU64,
}

impl Arrivals {
    /// The queue, and the end of it that `dispatch` fills.
    pub fn new() -> (Arc<Self>, mpsc::UnboundedSender<Instant>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Arc::new(Arrivals { queue: Mutex::new(receiver), waiting: AtomicU64::new(0) }), sender)
    }

    /// How many arrivals no connection has taken yet.
    pub fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed)
    }

    async fn take(&self) -> Option<Instant> {
        let arrival = self.queue.lock().await.recv().await;
        if arrival.is_some() {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        arrival
    }
}

/// Lets arrivals in when they are due; `late` gets how long after that it was, which is the client's own fault.
pub async fn dispatch(
    schedule: Schedule,
    mut alarm: impl Alarm,
    arrivals: Arc<Arrivals>,
    sender: mpsc::UnboundedSender<Instant>,
    mut late: impl FnMut(Duration),
) {
    for arrival in schedule {
        alarm.until(arrival).await;
        late(arrival.elapsed());
        arrivals.waiting.fetch_add(1, Ordering::Relaxed);
        if sender.send(arrival).is_err() {
            return;
        }
    }
}

/// What a connection asks before each transaction.
#[derive(Debug, Clone)]
pub enum Pacing {
    /// At once, or after thinking for this time in the mean.
    Closed(Option<Duration>),
    /// When an arrival is there.
    Open(Arc<Arrivals>),
}

impl Pacing {
    /// Waits for the moment to begin, and returns the intended start. None: there is nothing more to do.
    pub async fn next(&self, rng: &mut SmallRng) -> Option<Instant> {
        match self {
            Pacing::Closed(None) => {}
            Pacing::Closed(Some(mean)) => tokio::time::sleep(mean.mul_f64(exponential(rng))).await,
            Pacing::Open(arrivals) => return arrivals.take().await,
        }
        Some(Instant::now())
    }

    /// Whether `next` may wait.
    pub fn waits(&self) -> bool {
        !matches!(self, Pacing::Closed(None))
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use tokio::time::sleep;

    use super::*;

    struct SimulatedAlarm;

    impl Alarm for SimulatedAlarm {
        async fn until(&mut self, at: Instant) {
            tokio::time::sleep_until(at).await;
        }
    }

    fn rng() -> SmallRng {
        SmallRng::seed_from_u64(3)
    }

    /// Latencies in ms of `count` transactions on `connections`, at 100 arrivals per second.
    async fn open_loop(
        connections: usize,
        count: usize,
        service: impl Fn(usize) -> Duration,
    ) -> Vec<u128> {
        let (arrivals, sender) = Arrivals::new();
        let schedule = Schedule::new(Gaps::Constant, 100.0, Instant::now(), rng());
        let dispatcher =
            tokio::spawn(dispatch(schedule, SimulatedAlarm, arrivals.clone(), sender, |late| {
                assert_eq!(late, Duration::ZERO);
            }));
        let pacing = Pacing::Open(arrivals);
        let latencies = std::cell::RefCell::new(Vec::new());
        let begun = std::cell::Cell::new(0);
        let connection = || async {
            while begun.get() < count {
                let number = begun.replace(begun.get() + 1);
                let intended = pacing.next(&mut rng()).await.unwrap();
                sleep(service(number)).await;
                latencies.borrow_mut().push(intended.elapsed().as_millis());
            }
        };
        match connections {
            1 => connection().await,
            2 => drop(tokio::join!(connection(), connection())),
            _ => unreachable!(),
        }
        dispatcher.abort();
        latencies.into_inner()
    }

    #[tokio::test(start_paused = true)]
    async fn open_loop_measures_from_the_intended_start() {
        // The first transaction stalls for 50 ms; those that arrive meanwhile wait, and take 1 ms each afterwards.
        let stall = |number| Duration::from_millis(if number == 0 { 50 } else { 1 });
        assert_eq!(open_loop(1, 8, stall).await, [50, 41, 32, 23, 14, 5, 1, 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_free_connection_takes_what_a_stalled_one_cannot() {
        let stall = |number| Duration::from_millis(if number == 0 { 45 } else { 1 });
        assert_eq!(open_loop(2, 7, stall).await, [1, 1, 1, 1, 45, 1, 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn arrivals_that_nobody_takes_are_counted() {
        let (arrivals, sender) = Arrivals::new();
        let schedule = Schedule::new(Gaps::Constant, 1000.0, Instant::now(), rng());
        let dispatcher =
            tokio::spawn(dispatch(schedule, SimulatedAlarm, arrivals.clone(), sender, |_| {}));
        sleep(Duration::from_micros(10_500)).await;
        assert_eq!(arrivals.waiting(), 11);
        assert!(arrivals.take().await.is_some());
        assert_eq!(arrivals.waiting(), 10);
        dispatcher.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn closed_loop_begins_at_once_or_after_thinking() {
        let start = Instant::now();
        assert_eq!(Pacing::Closed(None).next(&mut rng()).await, Some(start));
        let pacing = Pacing::Closed(Some(Duration::from_millis(100)));
        let mut rng = rng();
        for _ in 0..2000 {
            let before = Instant::now();
            // Thinking doesn't count as latency.
            let intended = pacing.next(&mut rng).await.unwrap();
            assert_eq!(intended, Instant::now());
            assert!(intended - before <= Duration::from_millis(2001));
        }
        let mean_ms = start.elapsed().as_millis() / 2000;
        assert!((92..110).contains(&mean_ms), "{mean_ms}");
    }

    #[tokio::test(start_paused = true)]
    async fn both_kinds_of_gaps_keep_the_rate() {
        for gaps in Gaps::value_variants() {
            let start = Instant::now();
            let last = Schedule::new(*gaps, 5000.0, start, rng()).nth(50_000).unwrap();
            let seconds = (last - start).as_secs_f64();
            assert!((9.8..10.2).contains(&seconds), "{gaps:?}: {seconds}");
        }
    }
}
