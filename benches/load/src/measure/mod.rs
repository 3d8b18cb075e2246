//! What is counted while the load runs.
//!
//! Each thread counts into a `Tally` of its own, behind a lock that only the main thread, once a second, ever contends
//! for. The main thread takes it away and adds it to the totals, so warm-up, time series and totals are the same thing.

mod errors;
mod fairness;
mod latency;

use std::time::Duration;

pub use errors::{ErrorCount, Errors};
pub use fairness::Fairness;
pub use latency::{Latencies, Summary};

/// Of one class of transactions, for example the reports of the workload `mixed`.
#[derive(Debug, Clone, Default)]
pub struct ClassTally {
    /// Those that succeeded.
    pub transactions: u64,
    /// Statements of these, BEGIN and COMMIT included.
    pub queries: u64,
    /// From the intended start to the end of those that succeeded.
    pub latencies: Latencies,
    /// Transactions of each connection of the class, also of those that other threads drive.
    pub connections: Vec<u64>,
}

/// What happened in some stretch of time.
#[derive(Debug, Clone)]
pub struct Tally {
    /// One per class.
    pub classes: Vec<ClassTally>,
    /// What failed.
    pub errors: Errors,
    /// From connecting the socket to a usable session.
    pub logins: Latencies,
    /// Arrivals of the open loop, and how late the client let them in.
    pub arrivals: Latencies,
    /// How many arrivals.
    pub arrival_count: u64,
}

impl Tally {
    /// For classes with so many connections each.
    pub fn new(connections: &[usize]) -> Self {
        let class =
            |count: &usize| ClassTally { connections: vec![0; *count], ..ClassTally::default() };
        Tally {
            classes: connections.iter().map(class).collect(),
            errors: Errors::default(),
            logins: Latencies::default(),
            arrivals: Latencies::default(),
            arrival_count: 0,
        }
    }

    /// A transaction of the class's connection with this number succeeded.
    pub fn succeeded(&mut self, class: usize, connection: usize, latency: Duration, queries: u32) {
        let tally = &mut self.classes[class];
        tally.transactions += 1;
        tally.queries += u64::from(queries);
        tally.latencies.record(latency);
        tally.connections[connection] += 1;
    }

    /// An arrival of the open loop was let in so late.
    pub fn arrived(&mut self, late: Duration) {
        self.arrivals.record(late);
        self.arrival_count += 1;
    }

    /// Adds what another thread or a later stretch has counted.
    pub fn merge(&mut self, other: &Tally) {
        for (mine, theirs) in self.classes.iter_mut().zip(&other.classes) {
            mine.transactions += theirs.transactions;
            mine.queries += theirs.queries;
            mine.latencies.merge(&theirs.latencies);
            for (mine, theirs) in mine.connections.iter_mut().zip(&theirs.connections) {
                *mine += theirs;
            }
        }
        self.errors.merge(&other.errors);
        self.logins.merge(&other.logins);
        self.arrivals.merge(&other.arrivals);
        self.arrival_count += other.arrival_count;
    }

    /// Forgets everything; keeps its memory.
    pub fn clear(&mut self) {
        for class in &mut self.classes {
            (class.transactions, class.queries) = (0, 0);
            class.latencies.clear();
            class.connections.fill(0);
        }
        self.errors = Errors::default();
        self.logins.clear();
        self.arrivals.clear();
        self.arrival_count = 0;
    }

    /// Of all classes.
    pub fn transactions(&self) -> u64 {
        self.classes.iter().map(|class| class.transactions).sum()
    }

    /// Of all classes.
    pub fn queries(&self) -> u64 {
        self.classes.iter().map(|class| class.queries).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Error;

    #[test]
    fn tallies_of_threads_and_stretches_add_up() {
        let mut thread = Tally::new(&[2, 3]);
        thread.succeeded(1, 2, Duration::from_millis(3), 5);
        thread.succeeded(0, 1, Duration::from_millis(4), 1);
        thread.errors.count(&Error::Server { code: 1213, message: "Deadlock".into() });
        thread.arrived(Duration::from_micros(10));
        let mut total = Tally::new(&[2, 3]);
        total.merge(&thread);
        total.merge(&thread);
        assert_eq!(total.classes[0].connections, [0, 2]);
        assert_eq!(total.classes[1].connections, [0, 0, 2]);
        assert_eq!((total.transactions(), total.queries(), total.arrival_count), (4, 12, 2));
        assert_eq!(total.classes[1].queries, 10);
        assert_eq!(total.errors.deadlocks(), 2);
        total.clear();
        assert_eq!((total.transactions(), total.queries(), total.arrival_count), (0, 0, 0));
        assert_eq!(total.classes[1].connections, [0; 3]);
        assert_eq!(total.errors.deadlocks(), 0);
        assert_eq!(total.classes[0].latencies.summary(), None);
    }
}
