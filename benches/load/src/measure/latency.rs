//! Latencies: a histogram, and what the report says of it.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// Finest step and longest latency; beyond the latter counts as the latter.
const LOWEST_NS: u64 = 1_000;
const HIGHEST_NS: u64 = 3_600_000_000_000;
/// Relative error below 0.1 %.
const DIGITS: u8 = 3;

/// Counts of latencies.
#[derive(Debug, Clone)]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Self {
        Latencies(
            Histogram::new_with_bounds(LOWEST_NS, HIGHEST_NS, DIGITS)
                .expect("the bounds are valid"),
        )
    }
}

impl Latencies {
    /// Counts one.
    pub fn record(&mut self, latency: Duration) {
        self.0.saturating_record(u64::try_from(latency.as_nanos()).unwrap_or(HIGHEST_NS));
    }

    /// Adds those of another.
    pub fn merge(&mut self, other: &Self) {
        self.0.add(&other.0).expect("both have the same bounds");
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// None if nothing was counted.
    pub fn summary(&self) -> Option<Summary> {
        let ms = |nanoseconds: u64| nanoseconds as f64 / 1e6;
        let quantile = |share| ms(self.0.value_at_quantile(share));
        (!self.0.is_empty()).then(|| Summary {
            mean: self.0.mean() / 1e6,
            p50: quantile(0.5),
            p95: quantile(0.95),
            p99: quantile(0.99),
            p999: quantile(0.999),
            max: ms(self.0.max()),
        })
    }
}

/// In milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 95 of 100 were faster.
    pub p95: f64,
    /// 99 of 100 were faster.
    pub p99: f64,
    /// 999 of 1,000 were faster.
    pub p999: f64,
    /// The slowest.
    pub max: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_what_was_counted() {
        let (mut odd, mut all) = (Latencies::default(), Latencies::default());
        for milliseconds in 1..=1000 {
            let half = if milliseconds % 2 == 1 { &mut odd } else { &mut all };
            half.record(Duration::from_millis(milliseconds));
        }
        all.merge(&odd);
        let summary = all.summary().unwrap();
        let near =
            |got: f64, wanted: f64| assert!((got / wanted - 1.0).abs() < 0.002, "{got} {wanted}");
        near(summary.mean, 500.5);
        near(summary.p50, 500.0);
        near(summary.p95, 950.0);
        near(summary.p99, 990.0);
        near(summary.p999, 999.0);
        near(summary.max, 1000.0);
        all.clear();
        assert_eq!(all.summary(), None);
    }

    #[test]
    fn a_latency_beyond_the_longest_counts_as_the_longest() {
        let mut latencies = Latencies::default();
        latencies.record(Duration::from_secs(1_000_000));
        assert!((latencies.summary().unwrap().max / 3.6e6 - 1.0).abs() < 0.002);
    }
}
