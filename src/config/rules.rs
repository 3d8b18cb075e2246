//! Rules about the values of system variables: defaults that suit the machine, what a change may
//! not do, and what is corrected at start. Pure functions.
//!
//! The rules that tie variables together are those of Oracle's pool, so that its users see the
//! errors and warnings that they know.

use super::vars::{
    RTP_VARIABLE_ALGORITHM, RTP_VARIABLE_CONNECTION_REPORT_INTERVAL, RTP_VARIABLE_COUNT,
    RTP_VARIABLE_DEDICATED_LISTENERS, RTP_VARIABLE_MAX_TRANSACTIONS_LIMIT,
    RTP_VARIABLE_QUERY_THREADS_PER_GROUP, RTP_VARIABLE_SIZE, VARIABLES,
};
use std::fmt;

/// The values of all system variables, in the order of their index.
pub type Values = [u64; RTP_VARIABLE_COUNT as usize];

/// The default of a variable on a machine with `vcpus` processors at the server's disposal and
/// with `groups` thread groups. `None` if there is no such variable.
pub fn default_value(index: u32, vcpus: u64, groups: u64) -> Option<u64> {
    let variable = VARIABLES.get(index as usize)?;
    Some(match index {
        RTP_VARIABLE_SIZE => (vcpus / 2).clamp(1, 16),
        RTP_VARIABLE_MAX_TRANSACTIONS_LIMIT => default_transactions_limit(groups),
        _ => variable.default,
    })
}

/// The default of `thread_pool_max_transactions_limit`.
pub fn default_transactions_limit(groups: u64) -> u64 {
    (32 * groups).clamp(1, 512)
}

/// All defaults together.
pub fn default_values(vcpus: u64) -> Values {
    let groups = default_value(RTP_VARIABLE_SIZE, vcpus, 0).unwrap_or(1);
    std::array::from_fn(|index| default_value(index as u32, vcpus, groups).unwrap_or(0))
}

/// Oracle's share of one group in `thread_pool_max_transactions_limit`; 0 if that is 0.
pub fn transactions_per_group(limit: u64, groups: u64) -> u64 {
    limit.div_ceil(groups.max(1))
}

/// Why a variable can't be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no system variable with this index.
    NoSuchVariable(u32),
    /// The value isn't in the range of the variable with this index.
    OutOfRange(u32, u64),
    /// More idle workers than transactions per group.
    TooManyQueryThreads {
        /// Value of `thread_pool_query_threads_per_group`.
        query_threads: u64,
        /// [`transactions_per_group`].
        transactions: u64,
    },
    /// Dedicated listeners need a limit of transactions.
    ListenersNeedLimit,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchVariable(index) => write!(f, "there is no system variable {index}"),
            Self::OutOfRange(index, value) => {
                let v = &VARIABLES[*index as usize];
                let zero = if v.or_zero { "0 or " } else { "" };
                let (name, min, max) = (v.name, v.min, v.max);
                write!(f, "thread_pool_{name} can't be {value}: use {zero}{min} to {max}")
            }
            Self::TooManyQueryThreads { query_threads, transactions } => write!(
                f,
                "thread_pool_query_threads_per_group = {query_threads} is more than the \
                 {transactions} transactions that thread_pool_max_transactions_limit allows a group"
            ),
            Self::ListenersNeedLimit => write!(
                f,
                "thread_pool_max_transactions_limit can't be 0 while \
                 thread_pool_dedicated_listeners is ON"
            ),
        }
    }
}

/// Whether the value is in the variable's range.
pub fn check_range(index: u32, value: u64) -> Result<(), Refusal> {
    match VARIABLES.get(index as usize) {
        None => Err(Refusal::NoSuchVariable(index)),
        Some(variable) if variable.allows(value) => Ok(()),
        Some(_) => Err(Refusal::OutOfRange(index, value)),
    }
}

/// Whether a variable may be changed to `value` while all variables have the values `present`.
pub fn check_change(present: &Values, index: u32, value: u64) -> Result<(), Refusal> {
    check_range(index, value)?;
    if present[index as usize] == value {
        return Ok(());
    }
    let mut next = *present;
    next[index as usize] = value;
    let concerns_transactions = index == RTP_VARIABLE_MAX_TRANSACTIONS_LIMIT;
    if concerns_transactions || index == RTP_VARIABLE_QUERY_THREADS_PER_GROUP {
        let query_threads = next[RTP_VARIABLE_QUERY_THREADS_PER_GROUP as usize];
        if let Some(transactions) = too_few_transactions(&next) {
            return Err(Refusal::TooManyQueryThreads { query_threads, transactions });
        }
    }
    if concerns_transactions
        && value == 0
        && present[RTP_VARIABLE_DEDICATED_LISTENERS as usize] != 0
    {
        return Err(Refusal::ListenersNeedLimit);
    }
    Ok(())
}

/// The transactions per group, if they are fewer than the idle workers.
fn too_few_transactions(values: &Values) -> Option<u64> {
    let limit = values[RTP_VARIABLE_MAX_TRANSACTIONS_LIMIT as usize];
    let transactions = transactions_per_group(limit, values[RTP_VARIABLE_SIZE as usize]);
    let query_threads = values[RTP_VARIABLE_QUERY_THREADS_PER_GROUP as usize];
    (limit != 0 && query_threads > 1 && query_threads > transactions).then_some(transactions)
}

/// What the error log says about the values at start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Corrections {
    /// `thread_pool_query_threads_per_group` was given as 1 although `thread_pool_algorithm` is 1.
    pub one_query_thread: bool,
    /// `thread_pool_query_threads_per_group` was lowered to the transactions per group.
    pub query_threads_lowered: bool,
    /// `thread_pool_dedicated_listeners` was switched off.
    pub listeners_off: bool,
    /// `thread_pool_connection_report_interval` was replaced by its default.
    pub report_interval_replaced: bool,
}

/// Corrects values that are each in the range that the server checks at start, but that don't fit
/// together.
pub fn correct(values: &mut Values) -> Corrections {
    let mut done = Corrections::default();
    let query_threads = RTP_VARIABLE_QUERY_THREADS_PER_GROUP as usize;
    done.one_query_thread =
        values[query_threads] == 1 && values[RTP_VARIABLE_ALGORITHM as usize] == 1;
    if let Some(transactions) = too_few_transactions(values) {
        values[query_threads] = transactions;
        done.query_threads_lowered = true;
    }
    let listeners = &mut values[RTP_VARIABLE_DEDICATED_LISTENERS as usize];
    let wants_listeners = std::mem::take(listeners);
    if values[RTP_VARIABLE_MAX_TRANSACTIONS_LIMIT as usize] == 0 {
        done.listeners_off = wants_listeners != 0;
    } else {
        values[RTP_VARIABLE_DEDICATED_LISTENERS as usize] = wants_listeners;
    }
    let interval = RTP_VARIABLE_CONNECTION_REPORT_INTERVAL as usize;
    if !VARIABLES[interval].allows(values[interval]) {
        values[interval] = VARIABLES[interval].default;
        done.report_interval_replaced = true;
    }
    done
}

#[cfg(test)]
mod tests {
    use super::super::vars::{Access, VariableType};
    use super::*;

    fn values(changes: &[(u32, u64)]) -> Values {
        let mut values = default_values(4);
        changes.iter().for_each(|(index, value)| values[*index as usize] = *value);
        values
    }

    const SIZE: u32 = RTP_VARIABLE_SIZE;
    const QUERY_THREADS: u32 = RTP_VARIABLE_QUERY_THREADS_PER_GROUP;
    const TRANSACTIONS: u32 = RTP_VARIABLE_MAX_TRANSACTIONS_LIMIT;
    const LISTENERS: u32 = RTP_VARIABLE_DEDICATED_LISTENERS;

    #[test]
    fn every_default_is_in_range_on_any_machine() {
        for (index, v) in VARIABLES.iter().enumerate() {
            assert!(v.min <= v.max, "{}", v.name);
            for vcpus in [1, 2, 3, 16, 64, 512, 4096] {
                let value = default_values(vcpus)[index];
                assert!(v.allows(value), "{} = {value}", v.name);
            }
        }
        assert_eq!(default_value(RTP_VARIABLE_COUNT, 2, 1), None);
    }

    #[test]
    fn words_have_a_number_each_and_switches_are_read_only() {
        for v in &VARIABLES {
            match v.kind {
                VariableType::Enum(words) => {
                    assert_eq!((v.min, v.max), (0, words.len() as u64 - 1), "{}", v.name);
                }
                VariableType::Bool => {
                    assert_eq!((v.min, v.max, v.access), (0, 1, Access::ReadOnly), "{}", v.name);
                }
                _ => {}
            }
        }
    }

    #[test]
    fn the_warning_of_the_shim_names_the_only_deprecated_variable_that_can_be_set() {
        let settable = VARIABLES.iter().filter(|v| v.deprecated && v.access != Access::ReadOnly);
        let names: Vec<_> = settable.map(|v| v.name).collect();
        assert_eq!(names, ["max_active_query_threads"]);
    }

    #[test]
    fn size_is_half_of_the_vcpus_within_1_and_16() {
        let sizes = [1, 2, 3, 4, 32, 33, 128].map(|n| default_values(n)[SIZE as usize]);
        assert_eq!(sizes, [1, 1, 1, 2, 16, 16, 16]);
    }

    #[test]
    fn the_limit_of_transactions_follows_the_number_of_groups() {
        let limits = [1, 8, 16, 128].map(|groups| default_value(TRANSACTIONS, 4, groups).unwrap());
        assert_eq!(limits, [32, 256, 512, 512]);
    }

    #[test]
    fn a_change_is_refused_when_a_group_had_more_query_threads_than_transactions() {
        let present = values(&[(SIZE, 2), (QUERY_THREADS, 4), (TRANSACTIONS, 64)]);
        let refused = |query_threads, transactions| {
            Err(Refusal::TooManyQueryThreads { query_threads, transactions })
        };
        assert_eq!(check_change(&present, TRANSACTIONS, 7), Ok(()), "four each, rounded up");
        assert_eq!(check_change(&present, TRANSACTIONS, 6), refused(4, 3));
        assert_eq!(check_change(&present, TRANSACTIONS, 0), Ok(()), "no limit");
        assert_eq!(check_change(&present, QUERY_THREADS, 33), refused(33, 32));
        assert_eq!(check_change(&present, QUERY_THREADS, 1), Ok(()));
        let unlimited = values(&[(TRANSACTIONS, 0)]);
        assert_eq!(check_change(&unlimited, QUERY_THREADS, 4096), Ok(()));
        assert_eq!(
            check_change(&unlimited, QUERY_THREADS, 4097),
            Err(Refusal::OutOfRange(QUERY_THREADS, 4097))
        );
        assert_eq!(check_change(&unlimited, 99, 1), Err(Refusal::NoSuchVariable(99)));
    }

    #[test]
    fn one_query_thread_goes_with_any_limit() {
        let present = values(&[(SIZE, 2), (QUERY_THREADS, 1), (TRANSACTIONS, 64)]);
        assert_eq!(check_change(&present, TRANSACTIONS, 1), Ok(()));
    }

    #[test]
    fn dedicated_listeners_keep_the_limit() {
        let present = values(&[(LISTENERS, 1)]);
        assert_eq!(check_change(&present, TRANSACTIONS, 0), Err(Refusal::ListenersNeedLimit));
    }

    #[test]
    fn a_refusal_names_value_and_range() {
        let text = |index, value| check_range(index, value).unwrap_err().to_string();
        assert_eq!(
            text(super::super::vars::RTP_VARIABLE_STALL_LIMIT, 601),
            "thread_pool_stall_limit can't be 601: use 4 to 600"
        );
        assert_eq!(
            text(RTP_VARIABLE_CONNECTION_REPORT_INTERVAL, 59),
            "thread_pool_connection_report_interval can't be 59: use 0 or 60 to 600"
        );
        assert_eq!(check_range(RTP_VARIABLE_CONNECTION_REPORT_INTERVAL, 0), Ok(()));
    }

    #[test]
    fn defaults_need_no_correction() {
        for vcpus in [1, 2, 64] {
            let mut values = default_values(vcpus);
            assert_eq!(correct(&mut values), Corrections::default());
            assert_eq!(values, default_values(vcpus));
        }
    }

    #[test]
    fn what_does_not_fit_together_is_corrected_at_start() {
        let mut given = values(&[(SIZE, 2), (TRANSACTIONS, 4), (QUERY_THREADS, 8)]);
        let done = correct(&mut given);
        assert_eq!(given[QUERY_THREADS as usize], 2);
        assert_eq!(done, Corrections { query_threads_lowered: true, ..Corrections::default() });

        let mut given = values(&[(LISTENERS, 1), (TRANSACTIONS, 0)]);
        let done = correct(&mut given);
        assert_eq!(given[LISTENERS as usize], 0);
        assert_eq!(done, Corrections { listeners_off: true, ..Corrections::default() });

        let mut given = values(&[(LISTENERS, 1), (QUERY_THREADS, 1)]);
        let done = correct(&mut given);
        assert_eq!(given[LISTENERS as usize], 1);
        assert_eq!(done, Corrections { one_query_thread: true, ..Corrections::default() });

        let mut given = values(&[(RTP_VARIABLE_CONNECTION_REPORT_INTERVAL, 1)]);
        let done = correct(&mut given);
        assert_eq!(given[RTP_VARIABLE_CONNECTION_REPORT_INTERVAL as usize], 120);
        assert_eq!(done, Corrections { report_interval_replaced: true, ..Corrections::default() });
    }
}
