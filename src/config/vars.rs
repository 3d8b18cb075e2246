//! THE table of system variables. `include/rtp_vars.inc` (which the C++ shim expands) and
//! `docs/variables.md` are generated from it (`render.rs`); adding a variable is one entry here
//! plus its MTR tests.

/// SQL type of a system variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableType {
    /// `unsigned long`
    Ulong,
    /// `unsigned int`
    Uint,
    /// `ON` or `OFF`. Only for variables that are read-only.
    Bool,
    /// One of these words; its number is its place.
    Enum(&'static [&'static str]),
}

/// Who may change a system variable, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Global; only in my.cnf or on the command line.
    ReadOnly,
    /// Global; by `SET GLOBAL` with SYSTEM_VARIABLES_ADMIN.
    Dynamic,
    /// Global; by `SET GLOBAL` with SYSTEM_VARIABLES_ADMIN and CONNECTION_ADMIN.
    DynamicConnectionAdmin,
    /// Global and session; by `SET GLOBAL` with SYSTEM_VARIABLES_ADMIN, and by each session for
    /// itself without any privilege.
    Session,
}

/// Whose users know a system variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Oracle's plugin: name, range, default and errors are the same.
    Oracle,
    /// Percona's pool: the name is the same; the details say what differs.
    Percona,
    /// MariaDB's pool, likewise.
    MariaDb,
    /// Both of them.
    PerconaAndMariaDb,
    /// Nobody yet.
    Own,
}

/// One system variable. Its SQL name is `thread_pool_` followed by `name`.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// Name without the plugin's prefix.
    pub name: &'static str,
    /// SQL type.
    pub kind: VariableType,
    /// Who may change it.
    pub access: Access,
    /// Whose it is.
    pub origin: Origin,
    /// Compiled default; [`super::rules::default_value`] may replace it by one that suits the
    /// machine.
    pub default: u64,
    /// How the documentation calls a default that depends on the machine.
    pub default_text: Option<&'static str>,
    /// Smallest legal value.
    pub min: u64,
    /// Largest legal value.
    pub max: u64,
    /// 0 is legal too, although it is less than `min`.
    pub or_zero: bool,
    /// Unit of the number.
    pub unit: &'static str,
    /// Accepted for the sake of existing my.cnf files; to set it raises a warning.
    pub deprecated: bool,
    /// One line for `--help` and the documentation.
    pub comment: &'static str,
    /// What else the documentation says.
    pub details: &'static str,
}

const NUMBER: Variable = Variable {
    name: "",
    kind: VariableType::Ulong,
    access: Access::Dynamic,
    origin: Origin::Oracle,
    default: 0,
    default_text: None,
    min: 0,
    max: 0,
    or_zero: false,
    unit: "",
    deprecated: false,
    comment: "",
    details: "",
};

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
/// Index of `thread_pool_algorithm` in [`VARIABLES`].
pub const RTP_VARIABLE_ALGORITHM: u32 = 6;
/// Index of `thread_pool_max_transactions_limit` in [`VARIABLES`].
pub const RTP_VARIABLE_MAX_TRANSACTIONS_LIMIT: u32 = 7;
/// Index of `thread_pool_dedicated_listeners` in [`VARIABLES`].
pub const RTP_VARIABLE_DEDICATED_LISTENERS: u32 = 8;
/// Index of `thread_pool_transaction_delay` in [`VARIABLES`].
pub const RTP_VARIABLE_TRANSACTION_DELAY: u32 = 9;
/// Index of `thread_pool_connection_report_interval` in [`VARIABLES`].
pub const RTP_VARIABLE_CONNECTION_REPORT_INTERVAL: u32 = 10;
/// Index of `thread_pool_longrun_trx_limit` in [`VARIABLES`].
pub const RTP_VARIABLE_LONGRUN_TRX_LIMIT: u32 = 11;
/// Index of `thread_pool_idle_timeout` in [`VARIABLES`].
pub const RTP_VARIABLE_IDLE_TIMEOUT: u32 = 12;
/// Index of `thread_pool_max_threads` in [`VARIABLES`].
pub const RTP_VARIABLE_MAX_THREADS: u32 = 13;
/// Index of `thread_pool_oversubscribe` in [`VARIABLES`].
pub const RTP_VARIABLE_OVERSUBSCRIBE: u32 = 14;

/// All system variables, in the order of their `RTP_VARIABLE_*` index.
pub const VARIABLES: [Variable; 21] = [
    Variable {
        name: "size",
        access: Access::ReadOnly,
        default: 16,
        default_text: Some("half of the vCPUs, 1 to 16"),
        min: 1,
        max: 512,
        unit: "groups",
        comment: "Number of thread groups. Default: half of the vCPUs, 1 to 16",
        details: "A group has one epoll set, two queues and its own idle workers, so groups keep \
                  processors out of each other's way. They don't limit how many statements run: \
                  any worker serves any group's queue.",
        ..NUMBER
    },
    Variable {
        name: "query_threads_per_group",
        kind: VariableType::Uint,
        access: Access::DynamicConnectionAdmin,
        default: 2,
        min: 1,
        max: 4096,
        unit: "workers",
        comment: "Number of idle workers that a thread group keeps ready for a burst",
        details: "After a change, groups that have connections and fewer workers get the rest at \
                  once. As in Oracle's pool it can't be greater than thread_pool_max_transactions_limit \
                  divided by thread_pool_size (rounded up), unless it is 1 or that limit is 0: \
                  SET fails with error 4121, and at start the value is lowered with a warning.",
        ..NUMBER
    },
    Variable {
        name: "stall_limit",
        default: 6,
        min: 4,
        max: 600,
        unit: "10 ms",
        comment: "Time, in units of 10 ms, after which a statement that is still executing no \
                  longer counts against the concurrency limit",
        details: "Percona's and MariaDB's variable of the same name is in milliseconds.",
        ..NUMBER
    },
    Variable {
        name: "concurrency_limit",
        kind: VariableType::Uint,
        access: Access::DynamicConnectionAdmin,
        origin: Origin::Own,
        max: 100_000,
        unit: "statements",
        comment: "Number of statements that may execute at the same time; 0 stands for twice the \
                  number of vCPUs",
        details: "Statements that wait for a lock don't count, nor do stalled ones. When it is 0 \
                  and thread_pool_oversubscribe isn't, that one decides.",
        ..NUMBER
    },
    Variable {
        name: "prio_kickup_timer",
        default: 1_000,
        max: u32::MAX as u64,
        unit: "ms",
        comment: "Time, in milliseconds, after which a statement in the low-priority queue goes \
                  before those of sessions that hold locks",
        ..NUMBER
    },
    Variable {
        name: "max_unused_threads",
        default: 32,
        max: 4096,
        unit: "workers",
        comment: "About how many workers a thread group keeps asleep while they may not run, \
                  apart from those that wait for clients; 0 stands for no limit, so that they \
                  end only after some time",
        ..NUMBER
    },
    Variable {
        name: "algorithm",
        access: Access::ReadOnly,
        default: 1,
        max: 1,
        deprecated: true,
        comment: "Accepted for compatibility; it has no effect",
        details: "In Oracle's pool: 0 for few, 1 for many statements at the same time.",
        ..NUMBER
    },
    Variable {
        name: "max_transactions_limit",
        kind: VariableType::Uint,
        access: Access::DynamicConnectionAdmin,
        default: 32,
        default_text: Some("32 × thread_pool_size, at most 512"),
        max: 1_000_000,
        unit: "transactions",
        comment: "Number of transactions that may be open at the same time; 0 and the default \
                  stand for no limit",
        details: "In Oracle's pool every group has its share of the limit; here it is one limit \
                  for the whole pool. A statement outside a transaction is one of its own, and \
                  so is whatever else leaves a session holding locks (LOCK TABLES, GET_LOCK). \
                  The first statement of a transaction beyond the limit waits, and no worker with \
                  it; pings and the end of a connection don't wait if the connection is neither \
                  encrypted nor compressed. Admin connections are exempt. Transactions that are \
                  open when the limit comes into force don't count.",
        ..NUMBER
    },
    Variable {
        name: "dedicated_listeners",
        kind: VariableType::Bool,
        access: Access::ReadOnly,
        max: 1,
        deprecated: true,
        comment: "Accepted for compatibility; it has no effect, since no thread is a listener",
        details: "As in Oracle's pool it is switched off at start, with a warning, when \
                  thread_pool_max_transactions_limit is 0, and while it is on that one can't be \
                  set to 0 (error 6140).",
        ..NUMBER
    },
    Variable {
        name: "transaction_delay",
        kind: VariableType::Uint,
        access: Access::DynamicConnectionAdmin,
        max: 300_000,
        unit: "ms",
        comment: "Time, in milliseconds, by which the beginning of each transaction is delayed",
        details: "A statement outside a transaction is one of its own. A delayed statement holds \
                  no worker. Admin connections are exempt, and so are pings and the end of a \
                  connection that is neither encrypted nor compressed. Unlike in Oracle's pool a \
                  value in my.cnf is in force from the start.",
        ..NUMBER
    },
    Variable {
        name: "connection_report_interval",
        kind: VariableType::Uint,
        access: Access::DynamicConnectionAdmin,
        default: 120,
        min: 60,
        max: 600,
        or_zero: true,
        unit: "s",
        comment: "Time, in seconds, between two reports about connections in the error log; 0 \
                  stands for none",
        details: "The reports are lines of the level INFO, so they are seen only with \
                  log_error_verbosity = 3. In the first three minutes they come ten times as \
                  often. A value of 1 to 59 in my.cnf is replaced by the default with a warning.",
        ..NUMBER
    },
    Variable {
        name: "longrun_trx_limit",
        kind: VariableType::Uint,
        access: Access::DynamicConnectionAdmin,
        default: 2_000,
        min: 10,
        max: 86_400_000,
        unit: "ms",
        comment: "Time, in milliseconds, after which a transaction no longer counts against \
                  thread_pool_max_transactions_limit",
        details: "Oracle's pool waits until as many transactions as the limit allows are that \
                  old, and then suspends the limit for all others for 5 s or longer.",
        ..NUMBER
    },
    Variable {
        name: "idle_timeout",
        kind: VariableType::Uint,
        origin: Origin::PerconaAndMariaDb,
        default: 30,
        min: 1,
        max: u32::MAX as u64,
        unit: "s",
        comment: "Time, in seconds, after which a worker that waits for clients in vain ends, \
                  unless its thread group would be left with less than \
                  thread_pool_query_threads_per_group",
        details: "The default of Percona and MariaDB is 60.",
        ..NUMBER
    },
    Variable {
        name: "max_threads",
        kind: VariableType::Uint,
        access: Access::DynamicConnectionAdmin,
        origin: Origin::PerconaAndMariaDb,
        default: 1_024,
        min: 1,
        max: 100_000,
        unit: "workers",
        comment: "Number of workers that the pool has at most, apart from those for sessions \
                  that hold locks and for admin connections",
        details: "Each session that waits for a lock occupies a worker; when all are in use, \
                  statements wait in the queue, except those of sessions that hold locks and of \
                  admin connections. The default of Percona is 100000, of MariaDB 65536.",
        ..NUMBER
    },
    Variable {
        name: "oversubscribe",
        kind: VariableType::Uint,
        access: Access::DynamicConnectionAdmin,
        origin: Origin::PerconaAndMariaDb,
        max: 65_536,
        unit: "workers",
        comment: "Another way to set the concurrency limit: thread_pool_size × (1 + this); 0 \
                  stands for not set",
        details: "In the pools of Percona and MariaDB a group runs one statement and up to this \
                  many more at the same time, so the product is what a whole pool of theirs \
                  allows; their default is 3. It counts only while thread_pool_concurrency_limit \
                  is 0.",
        ..NUMBER
    },
    Variable {
        name: "max_active_query_threads",
        kind: VariableType::Uint,
        access: Access::DynamicConnectionAdmin,
        max: 512,
        deprecated: true,
        comment: "Accepted for compatibility; it has no effect",
        details: "In Oracle's pool: most statements that a group executes at the same time. Use \
                  thread_pool_concurrency_limit, which is for the whole pool.",
        ..NUMBER
    },
    Variable {
        name: "concurrency_control",
        kind: VariableType::Enum(&["AUTO", "FIXED"]),
        origin: Origin::Own,
        max: 1,
        comment: "Who finds the concurrency limit",
        details: "FIXED: the variables. AUTO does the same for now.",
        ..NUMBER
    },
    Variable {
        name: "high_priority_connection",
        access: Access::Session,
        max: 1,
        comment: "1: the session's statements go into the high-priority queue",
        details: "They go before all others except those of sessions that hold locks, and unlike \
                  these never run beyond the concurrency limit. Like any other session variable it is read after each statement, so it is in \
                  force from the next one on. A new session begins with the global value.",
        ..NUMBER
    },
    Variable {
        name: "priority",
        kind: VariableType::Enum(&["high", "low", "auto"]),
        access: Access::Session,
        origin: Origin::MariaDb,
        default: 2,
        max: 2,
        comment: "Queue for the session's statements: high, low, or what the other variables say \
                  (auto)",
        details: "It goes before thread_pool_high_priority_connection and \
                  thread_pool_high_prio_mode. With low, statements inside a transaction wait like \
                  all others, and whoever waits for the transaction's locks waits with them.",
        ..NUMBER
    },
    Variable {
        name: "high_prio_mode",
        kind: VariableType::Enum(&["transactions", "statements", "none"]),
        access: Access::Session,
        origin: Origin::Percona,
        max: 2,
        comment: "What goes into the high-priority queue: statements of sessions that hold locks \
                  (transactions), all statements of the session (statements), or nothing (none)",
        ..NUMBER
    },
    Variable {
        name: "high_prio_tickets",
        kind: VariableType::Uint,
        access: Access::Session,
        origin: Origin::Percona,
        default: u32::MAX as u64,
        max: u32::MAX as u64,
        unit: "statements",
        comment: "Number of times that an open transaction may go into the high-priority queue",
        details: "After that one statement goes into the low-priority queue, and the count begins \
                  anew. 0: transactions have no priority. It counts only with \
                  thread_pool_high_prio_mode = transactions.",
        ..NUMBER
    },
];

/// Number of entries in [`VARIABLES`].
pub const RTP_VARIABLE_COUNT: u32 = VARIABLES.len() as u32;

impl Variable {
    /// True if the value is in range.
    pub fn allows(&self, value: u64) -> bool {
        (self.min..=self.max).contains(&value) || value == 0 && self.or_zero
    }
}
