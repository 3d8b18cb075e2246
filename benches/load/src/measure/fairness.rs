//! How evenly the connections were served.

use serde::Serialize;

/// Of the transactions per connection.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fairness {
    /// Jain's index: 1 if all connections were served alike, 1/n if one of n got everything.
    pub jain: f64,
    /// Transactions of the connection that got least.
    pub min: u64,
    /// Transactions of the connection that got most.
    pub max: u64,
}

impl Fairness {
    /// None if there is no connection, or no transaction: then there's nothing to share.
    pub fn of(counts: &[u64]) -> Option<Self> {
        let sum: f64 = counts.iter().map(|count| *count as f64).sum();
        let squares: f64 = counts.iter().map(|count| (*count as f64).powi(2)).sum();
        let jain = sum * sum / (counts.len() as f64 * squares);
        Some(Fairness { jain, min: *counts.iter().min()?, max: *counts.iter().max()? })
            .filter(|_| sum > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_shares_have_index_1() {
        assert_eq!(Fairness::of(&[7; 5]), Some(Fairness { jain: 1.0, min: 7, max: 7 }));
    }

    #[test]
    fn one_of_four_that_gets_all_has_index_a_quarter() {
        assert_eq!(Fairness::of(&[0, 9, 0, 0]), Some(Fairness { jain: 0.25, min: 0, max: 9 }));
    }

    #[test]
    fn a_known_value() {
        // (1 + 2 + 3)^2 / (3 * (1 + 4 + 9))
        let jain = Fairness::of(&[1, 2, 3]).unwrap().jain;
        assert!((jain - 36.0 / 42.0).abs() < 1e-12);
    }

    #[test]
    fn nothing_to_share_has_no_index() {
        assert_eq!(Fairness::of(&[]), None);
        assert_eq!(Fairness::of(&[0, 0]), None);
    }
}
