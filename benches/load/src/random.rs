//! Which rows are hit: the distributions that sysbench 1.0 offers, and its strings of digits.

use clap::ValueEnum;
use rand::{Rng, RngExt, rngs::SmallRng};
use serde::Serialize;

/// How often sysbench averages for a value of its bell curve (--rand-spec-iter).
const BELL_VALUES: u32 = 12;
/// Share of special's picks that fall on the favourite rows (--rand-spec-res).
const SPECIAL_PICKS: f64 = 0.75;
/// Share of rows that are favourites, in the middle of the range (--rand-spec-pct).
const SPECIAL_ROWS: f64 = 0.01;
/// Sysbench's --rand-pareto-h.
const PARETO_H: f64 = 0.2;

/// A distribution of row numbers. The names and parameters are those of sysbench's --rand-type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// Every row alike.
    Uniform,
    /// A bell curve over the whole range.
    Gaussian,
    /// 75 % of the picks on 1 % of the rows, the others as in gaussian; sysbench's default.
    Special,
    /// Low numbers far more often.
    Pareto,
}

impl Distribution {
    /// A number from 1 to `count`.
    pub fn pick(self, rng: &mut SmallRng, count: u32) -> u32 {
        let share = match self {
            Distribution::Uniform => return rng.random_range(1..=count),
            Distribution::Gaussian => bell(rng),
            Distribution::Special if rng.random::<f64>() < SPECIAL_PICKS => {
                0.5 + (rng.random::<f64>() - 0.5) * SPECIAL_ROWS
            }
            Distribution::Special => bell(rng),
            Distribution::Pareto => rng.random::<f64>().powf(PARETO_H.ln() / (1.0 - PARETO_H).ln()),
        };
        // At most `count` despite rounding.
        (1 + (share * f64::from(count)) as u32).min(count)
    }
}

/// From 0 to 1, around 0.5.
fn bell(rng: &mut SmallRng) -> f64 {
    (0..BELL_VALUES).map(|_| rng.random::<f64>()).sum::<f64>() / f64::from(BELL_VALUES)
}

/// Groups of 11 random digits with dashes between: what sysbench puts into its columns c (10 groups) and pad (5).
pub fn digits(rng: &mut impl Rng, groups: usize) -> Vec<u8> {
    let mut text = vec![b'-'; groups * 12 - 1];
    for group in text.chunks_mut(12) {
        let mut number = rng.random_range(0..100_000_000_000u64);
        for digit in &mut group[..11] {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    const ROWS: u32 = 1000;
    const PICKS: usize = 100_000;

    /// How often each row was picked; index 0 is row 1.
    fn picks(distribution: Distribution) -> Vec<usize> {
        let mut rng = SmallRng::seed_from_u64(7);
        let mut counts = vec![0; ROWS as usize];
        for _ in 0..PICKS {
            counts[distribution.pick(&mut rng, ROWS) as usize - 1] += 1;
        }
        counts
    }

    fn share(counts: &[usize]) -> f64 {
        counts.iter().sum::<usize>() as f64 / PICKS as f64
    }

    #[test]
    fn uniform_hits_every_row_alike() {
        let counts = picks(Distribution::Uniform);
        assert!(counts.iter().all(|&count| (50..200).contains(&count)));
    }

    #[test]
    fn special_has_favourites_in_the_middle() {
        let counts = picks(Distribution::Special);
        let favourites = share(&counts[495..505]);
        assert!((0.74..0.80).contains(&favourites), "{favourites}");
    }

    #[test]
    fn gaussian_is_symmetric_and_narrow() {
        let counts = picks(Distribution::Gaussian);
        // The standard deviation of the mean of 12 uniform values is 1/12 of the range.
        let within = share(&counts[417..583]);
        assert!((0.66..0.71).contains(&within), "{within}");
        assert!((0.49..0.51).contains(&share(&counts[..500])));
    }

    #[test]
    fn pareto_favours_low_numbers() {
        // By its definition a share h of the rows gets 1 - h of the picks.
        let low = share(&picks(Distribution::Pareto)[..200]);
        assert!((0.78..0.82).contains(&low), "{low}");
    }

    #[test]
    fn one_row_is_always_the_first() {
        let mut rng = SmallRng::seed_from_u64(1);
        for distribution in Distribution::value_variants() {
            assert_eq!(distribution.pick(&mut rng, 1), 1);
        }
    }

    #[test]
    fn strings_look_like_those_of_sysbench() {
        let text = digits(&mut SmallRng::seed_from_u64(1), 10);
        assert_eq!(text.len(), 119);
        for (index, byte) in text.iter().enumerate() {
            assert_eq!(*byte == b'-', index % 12 == 11, "{index}");
            assert!(*byte == b'-' || byte.is_ascii_digit());
        }
    }
}
