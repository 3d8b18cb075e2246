//! THE table of system variables. `include/rtp_vars.inc` (which the C++ shim expands) is generated
//! from it; adding a variable is one entry here plus its MTR tests.

/// SQL type of a system variable, as the server's plugin interface names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableType {
    /// `unsigned long`
    Ulong,
    /// `unsigned int`
    Uint,
}

/// When a system variable can be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutability {
    /// Only in my.cnf or on the command line.
    ReadOnly,
    /// By `SET GLOBAL` with SYSTEM_VARIABLES_ADMIN.
    Dynamic,
    /// By `SET GLOBAL` with SYSTEM_VARIABLES_ADMIN and CONNECTION_ADMIN.
    DynamicConnectionAdmin,
}

/// One system variable. Its SQL name is `thread_pool_` followed by `name`.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// Name without the plugin's prefix.
    pub name: &'static str,
    /// SQL type.
    pub kind: VariableType,
    /// When it can change.
    pub mutability: Mutability,
    /// Compiled default; [`default_value`] may replace it by one that suits the machine.
    pub default: u64,
    /// Smallest legal value.
    pub min: u64,
    /// Largest legal value.
    pub max: u64,
    /// One line for `--help` and the documentation.
    pub comment: &'static str,
}

/// Index of `thread_pool_size` in [`VARIABLES`].
pub const RTP_VARIABLE_SIZE: u32 = 0;
/// Index of `thread_pool_query_threads_per_group` in [`VARIABLES`].
pub const RTP_VARIABLE_QUERY_THREADS_PER_GROUP: u32 = 1;
/// Index of `thread_pool_stall_limit` in [`VARIABLES`].
pub const RTP_VARIABLE_STALL_LIMIT: u32 = 2;
/// Index of `thread_pool_concurrency_limit` in [`VARIABLES`].
pub const RTP_VARIABLE_CONCURRENCY_LIMIT: u32 = 3;
/// Index of `thread_pool_prio_kickup_timer` in [`VARIABLES`].
pub const RTP_VARIABLE_PRIO_KICKUP_TIMER: u32 = 4;
/// Index of `thread_pool_max_unused_threads` in [`VARIABLES`].
pub const RTP_VARIABLE_MAX_UNUSED_THREADS: u32 = 5;

/// All system variables, in the order of their `RTP_VARIABLE_*` index.
/// Names, ranges and defaults are those of Oracle's plugin, except for `concurrency_limit`, which
/// it doesn't have.
pub const VARIABLES: [Variable; 6] = [
    Variable {
        name: "size",
        kind: VariableType::Ulong,
        mutability: Mutability::ReadOnly,
        default: 16,
        min: 1,
        max: 512,
        comment: "Number of thread groups. Default: half of the vCPUs, 1 to 16",
    },
    Variable {
        name: "query_threads_per_group",
        kind: VariableType::Uint,
        mutability: Mutability::DynamicConnectionAdmin,
        default: 2,
        min: 1,
        max: 4096,
        comment: "Number of idle workers that a thread group keeps ready for a burst",
    },
    Variable {
        name: "stall_limit",
        kind: VariableType::Ulong,
        mutability: Mutability::Dynamic,
        default: 6,
        min: 4,
        max: 600,
        comment: "Time, in units of 10 ms, after which a statement that is still executing no \
                  longer counts against the concurrency limit",
    },
    Variable {
        name: "concurrency_limit",
        kind: VariableType::Uint,
        mutability: Mutability::DynamicConnectionAdmin,
        default: 0,
        min: 0,
        max: 100_000,
        comment: "Number of statements that may execute at the same time; 0 stands for twice the \
                  number of vCPUs",
    },
    Variable {
        name: "prio_kickup_timer",
        kind: VariableType::Ulong,
        mutability: Mutability::Dynamic,
        default: 1_000,
        min: 0,
        max: u32::MAX as u64,
        comment: "Time, in milliseconds, after which a statement in the low-priority queue goes \
                  before those of sessions that hold locks",
    },
    Variable {
        name: "max_unused_threads",
        kind: VariableType::Ulong,
        mutability: Mutability::Dynamic,
        default: 32,
        min: 0,
        max: 4096,
        comment: "About how many workers a thread group keeps asleep while they may not run, \
                  apart from those that wait for clients; 0 stands for no limit, so that they \
                  end only after some time",
    },
];

/// Number of entries in [`VARIABLES`].
pub const RTP_VARIABLE_COUNT: u32 = VARIABLES.len() as u32;

/// The default of a variable on a machine with `vcpus` processors at the server's disposal.
pub fn default_value(index: u32, vcpus: u64) -> Option<u64> {
    let variable = VARIABLES.get(index as usize)?;
    Some(match index {
        RTP_VARIABLE_SIZE => (vcpus / 2).clamp(1, 16),
        _ => variable.default,
    })
}

/// The text of `include/rtp_vars.inc`: one `RTP_VARIABLE(index, name, type, mutability, default,
/// min, max, comment)` line for each variable.
pub fn render_include() -> String {
    let mut text = String::from(
        "/* Generated from src/config/vars.rs by tests/header.rs; do not edit. */\n\
         /* RTP_VARIABLE(index, name, type, mutability, default, min, max, comment) */\n",
    );
    for (index, v) in VARIABLES.iter().enumerate() {
        let kind = match v.kind {
            VariableType::Ulong => "ULONG",
            VariableType::Uint => "UINT",
        };
        let mutability = match v.mutability {
            Mutability::ReadOnly => "READ_ONLY",
            Mutability::Dynamic => "DYNAMIC",
            Mutability::DynamicConnectionAdmin => "DYNAMIC_CONNECTION_ADMIN",
        };
        text.push_str(&format!(
            "RTP_VARIABLE({index}, {}, {kind}, {mutability}, {}, {}, {}, {:?})\n",
            v.name, v.default, v.min, v.max, v.comment
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_in_range_on_any_machine() {
        for (index, v) in VARIABLES.iter().enumerate() {
            assert!(v.min <= v.max, "{}", v.name);
            for vcpus in [1, 2, 3, 16, 64, 512, 4096] {
                let value = default_value(index as u32, vcpus).unwrap();
                assert!((v.min..=v.max).contains(&value), "{} = {value}", v.name);
            }
        }
        assert_eq!(default_value(RTP_VARIABLE_COUNT, 2), None);
    }

    #[test]
    fn size_is_half_of_the_vcpus_within_1_and_16() {
        let sizes = [1, 2, 3, 4, 32, 33, 128].map(|n| default_value(RTP_VARIABLE_SIZE, n).unwrap());
        assert_eq!(sizes, [1, 1, 1, 2, 16, 16, 16]);
    }
}
