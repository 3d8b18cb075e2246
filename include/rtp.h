/* Contract between the C++ shim and the Rust core of thread_pool_rs. */

#ifndef RTP_H
#define RTP_H

/* Generated from src/ffi by tests/header.rs; do not edit. */

#include <stddef.h>
#include <stdint.h>

/* Opaque: a session after login (the server's THD). */
typedef struct rtp_session rtp_session;
/* Opaque: an accepted connection before login (the server's Channel_info). */
typedef struct rtp_channel rtp_channel;
/* Opaque: a joinable thread made by the server side. */
typedef struct rtp_thread rtp_thread;
/* Opaque: the pool. */
typedef struct rtp_pool rtp_pool;
/* Opaque: a copy of a table's rows. */
typedef struct rtp_snapshot rtp_snapshot;

// Index of `thread_pool_size` in [`VARIABLES`].
#define RTP_VARIABLE_SIZE 0

// Index of `thread_pool_query_threads_per_group` in [`VARIABLES`].
#define RTP_VARIABLE_QUERY_THREADS_PER_GROUP 1

// Index of `thread_pool_stall_limit` in [`VARIABLES`].
#define RTP_VARIABLE_STALL_LIMIT 2

// Index of `thread_pool_concurrency_limit` in [`VARIABLES`].
#define RTP_VARIABLE_CONCURRENCY_LIMIT 3

// Index of `thread_pool_prio_kickup_timer` in [`VARIABLES`].
#define RTP_VARIABLE_PRIO_KICKUP_TIMER 4

// Index of `thread_pool_max_unused_threads` in [`VARIABLES`].
#define RTP_VARIABLE_MAX_UNUSED_THREADS 5

// Index of `thread_pool_algorithm` in [`VARIABLES`].
#define RTP_VARIABLE_ALGORITHM 6

// Index of `thread_pool_max_transactions_limit` in [`VARIABLES`].
#define RTP_VARIABLE_MAX_TRANSACTIONS_LIMIT 7

// Index of `thread_pool_dedicated_listeners` in [`VARIABLES`].
#define RTP_VARIABLE_DEDICATED_LISTENERS 8

// Index of `thread_pool_transaction_delay` in [`VARIABLES`].
#define RTP_VARIABLE_TRANSACTION_DELAY 9

// Index of `thread_pool_connection_report_interval` in [`VARIABLES`].
#define RTP_VARIABLE_CONNECTION_REPORT_INTERVAL 10

// Index of `thread_pool_longrun_trx_limit` in [`VARIABLES`].
#define RTP_VARIABLE_LONGRUN_TRX_LIMIT 11

// Index of `thread_pool_idle_timeout` in [`VARIABLES`].
#define RTP_VARIABLE_IDLE_TIMEOUT 12

// Index of `thread_pool_max_threads` in [`VARIABLES`].
#define RTP_VARIABLE_MAX_THREADS 13

// Index of `thread_pool_oversubscribe` in [`VARIABLES`].
#define RTP_VARIABLE_OVERSUBSCRIBE 14

// Version of this contract. Both sides refuse a partner that speaks another one.
#define RTP_ABI_VERSION 1

// Success.
#define RTP_OK 0

// A pointer that must not be null was null.
#define RTP_NULL_ARGUMENT 1000

// The partner was compiled against another [`RTP_ABI_VERSION`] or table size.
#define RTP_ABI_MISMATCH 1001

// The call isn't legal in the pool's present state (for example start after shutdown).
#define RTP_WRONG_STATE 1002

// A number was outside its documented range; nothing was changed.
#define RTP_OUT_OF_RANGE 1003

// The operating system refused a resource (thread, descriptor, memory).
#define RTP_NO_RESOURCE 1004

// The session was killed before the call; the caller must close it.
#define RTP_KILLED 1005

// Login failed; everything the login had acquired is released and counted.
#define RTP_LOGIN_FAILED 1006

// A group would have fewer transactions than idle workers; nothing was changed.
#define RTP_TOO_MANY_QUERY_THREADS 1008

// `thread_pool_dedicated_listeners` needs a limit of transactions; nothing was changed.
#define RTP_LISTENERS_NEED_LIMIT 1009

// A defect in the core was caught at the boundary (a panic); it is in the error log.
#define RTP_INTERNAL 1007

// Thread role: runs statements.
#define RTP_ROLE_WORKER 0

// Thread role: performs logins.
#define RTP_ROLE_LOGIN 1

// Thread role: the one thread that watches for stalls, timeouts and missing workers.
#define RTP_ROLE_WARDEN 2

// Outcome flag: the session has ended (quit, end of file, error, kill) and must be closed.
#define RTP_OUTCOME_CLOSE 1

// Outcome flag: the server already holds bytes of the next command (TLS record or compressed
// frame), which no poll of the descriptor would report.
#define RTP_OUTCOME_BUFFERED 2

// Outcome flag: the session is inside a transaction or holds another lock.
#define RTP_OUTCOME_HOLDS_LOCKS 4

// Outcome flag: commands can be read off the socket, since it is neither encrypted nor compressed.
#define RTP_OUTCOME_PLAIN 8

// Outcome flag: the session's `thread_pool_high_priority_connection` is 1.
#define RTP_OUTCOME_HIGH_PRIORITY 16

// Why a session is closed: it ended by itself, or was killed.
#define RTP_CLOSE_ENDED 0

// Why a session is closed: `wait_timeout` ran out; the client is sent error 4031.
#define RTP_CLOSE_IDLE_TIMEOUT 1

// Why a session is closed: the pool couldn't register or keep it.
#define RTP_CLOSE_NO_RESOURCE 2

// Why a channel is rejected before login: the pool is stopping.
#define RTP_REJECT_SHUTDOWN 0

// Why a channel is rejected before login: no memory, descriptor or thread for it.
#define RTP_REJECT_NO_RESOURCE 1

// How a connection came in: by the ordinary port, with an ordinary account.
#define RTP_CONNECTION_USER 0

// How a connection came in: by the admin port.
#define RTP_CONNECTION_ADMIN_PORT 1

// How a connection came in: with an account that has the privilege TP_CONNECTION_ADMIN.
#define RTP_CONNECTION_ADMIN_PRIVILEGE 2

// Kind of a cell: NULL.
#define RTP_CELL_NULL 0

// Kind of a cell: a number.
#define RTP_CELL_NUMBER 1

// Kind of a cell: a text.
#define RTP_CELL_TEXT 2

// Severity of a log line, as the server's error log has it.
#define RTP_LOG_ERROR 0

// See [`RTP_LOG_ERROR`].
#define RTP_LOG_WARNING 1

// See [`RTP_LOG_ERROR`].
#define RTP_LOG_INFORMATION 2

// Like [`RTP_LOG_INFORMATION`], for the report about connections, which has an error number of
// its own (ER_THREAD_POOL_CONNECTION_INIT_REPORT).
#define RTP_LOG_CONNECTION_REPORT 3

// Correction of start values: `thread_pool_query_threads_per_group` was given as 1 although
// `thread_pool_algorithm` is 1. Nothing was changed.
#define RTP_CORRECTION_ONE_QUERY_THREAD 1

// Correction of start values: `thread_pool_query_threads_per_group` was lowered.
#define RTP_CORRECTION_QUERY_THREADS 2

// Correction of start values: `thread_pool_dedicated_listeners` was switched off.
#define RTP_CORRECTION_LISTENERS 4

// Correction of start values: `thread_pool_connection_report_interval` was replaced by its
// default.
#define RTP_CORRECTION_REPORT_INTERVAL 8

// What a session looks like after a command or after login.
typedef struct rtp_outcome {
  // `RTP_OUTCOME_*` flags.
  uint32_t flags;
  // The session's present `wait_timeout`, in seconds.
  uint32_t wait_timeout_s;
  // The number of its `thread_pool_priority`.
  uint32_t priority;
  // The number of its `thread_pool_high_prio_mode`.
  uint32_t high_prio_mode;
  // Its `thread_pool_high_prio_tickets`.
  uint32_t high_prio_tickets;
} rtp_outcome;

// A session that has just logged in.
typedef struct rtp_opened {
  // The session; owned by the receiver until `session_close`.
  rtp_session *session;
  // Its socket. Valid until the session is killed or closed.
  int32_t fd;
  // The server's name of the connection (`CONNECTION_ID()`).
  uint32_t id;
  // How it came in: `RTP_CONNECTION_*`.
  uint32_t kind;
  // What it looks like now.
  struct rtp_outcome outcome;
} rtp_opened;

// Registers the session's socket with the poller; called back by `session_arm` at most once,
// under the session's lock. Must not call the server. Returns 0, or an errno.
typedef int32_t (*rtp_arm_function)(void *argument);

// What the core may ask of the server. All members must be set; none may throw, and none may
// block longer than its description says.
typedef struct rtp_host {
  // [`RTP_ABI_VERSION`] of the table's author.
  uint32_t abi_version;
  // `sizeof(rtp_host)` as the table's author sees it.
  uint32_t struct_size;
  // First argument of every member.
  void *context;
  // Starts a joinable server thread that calls `rtp_thread_main(start)`. On [`RTP_OK`]
  // `thread` is set and `start` has been handed over; on [`RTP_NO_RESOURCE`] neither.
  // Called on a thread that has no session attached.
  uint32_t (*thread_spawn)(void *context, uint32_t role, void *start, rtp_thread **thread);
  // Waits for the end of a thread and frees it (consumes `thread`).
  void (*thread_join)(void *context, rtp_thread *thread);
  // What performance_schema.threads calls the calling thread, or 0 when it has no name there.
  // Called by each new thread before it does anything else.
  uint64_t (*thread_id)(void *context);
  // Logs a client in (consumes `channel`). Blocks up to the server's `connect_timeout` and
  // longer in authentication plugins. On [`RTP_OK`] `opened` is filled and the session is
  // detached; else [`RTP_LOGIN_FAILED`] and nothing is left.
  uint32_t (*session_open)(void *context, rtp_channel *channel, struct rtp_opened *opened);
  // Makes the session current on this thread. No session may be attached here.
  void (*session_attach)(void *context, rtp_session *session);
  // Undoes `session_attach` on the same thread.
  void (*session_detach)(void *context, rtp_session *session);
  // Reads and executes exactly one command of the attached session. Blocks for as long as the
  // statement takes; calls `rtp_wait_begin`/`rtp_wait_end` around waits the server knows of.
  void (*session_step)(void *context, rtp_session *session, struct rtp_outcome *outcome);
  // Under the session's lock: stores `token` for later kills, then, unless the session was
  // killed, calls `arm(argument)`. [`RTP_OK`]: registered, and from that moment another thread
  // may own the session. [`RTP_KILLED`] / [`RTP_NO_RESOURCE`]: still owned by the caller.
  // The session must be detached.
  uint32_t (*session_arm)(void *context,
                          rtp_session *session,
                          uint64_t token,
                          rtp_arm_function arm,
                          void *argument);
  // Ends a detached session with reason `RTP_CLOSE_*`: error packet where one is due, rollback,
  // counters (consumes `session`). No kill for its token arrives afterwards. May block.
  void (*session_close)(void *context, rtp_session *session, uint32_t reason);
  // Turns a channel away with reason `RTP_REJECT_*`: error packet, close, counters
  // (consumes `channel`). Doesn't block.
  void (*session_reject)(void *context, rtp_channel *channel, uint32_t reason);
  // Writes `length` bytes of UTF-8 `text` to the error log with severity `RTP_LOG_*`.
  void (*log)(void *context, uint32_t level, const char *text, size_t length);
} rtp_host;

// One value of a table.
typedef struct rtp_cell {
  // `RTP_CELL_*`.
  uint32_t kind;
  // The number; the length in bytes of a text.
  uint64_t number;
  // The text (UTF-8, not terminated); lives as long as its snapshot. Null for other kinds.
  const char *text;
} rtp_cell;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// [`RTP_ABI_VERSION`] of the core.
uint32_t rtp_abi_version(void);

// Stores in `value` the default of a system variable on this machine (container limits and CPU
// affinity are respected) with `groups` thread groups.
//
// # Safety
// `value` is null or points to a writable `uint64_t`.
uint32_t rtp_variable_default(uint32_t variable, uint64_t groups, uint64_t *value);

// Corrects the start values of all system variables where they don't fit together, and stores in
// `corrections` the `RTP_CORRECTION_*` flags of what the error log should say.
//
// # Safety
// `values` is null or points to `count` writable values; `corrections` is null or writable.
uint32_t rtp_variables_correct(uint64_t *values, size_t count, uint32_t *corrections);

// The share of one thread group in a `thread_pool_max_transactions_limit`, for messages.
uint64_t rtp_transactions_per_group(uint64_t limit, uint64_t groups);

// Makes a pool. `host` is copied; `variables` holds the `count` values of all system variables in
// the order of their index. Starts nothing.
//
// # Safety
// `host` is null or a complete table whose members keep their contract until the pool is
// destroyed; `variables` points to `count` values; `pool` is writable.
uint32_t rtp_pool_create(const struct rtp_host *host,
                         const uint64_t *variables,
                         size_t count,
                         rtp_pool **pool);

// Starts the pool's permanent threads. On failure everything started is stopped again, the
// reason is in the error log, and the pool can only be destroyed.
//
// # Safety
// `pool` is null or a live pool.
uint32_t rtp_pool_start(rtp_pool *pool);

// Gives the pool a newly accepted connection (consumes `channel`, whatever the result). Any
// number of threads may call this at once. Doesn't block.
//
// # Safety
// `pool` is null or a live pool; `channel` is the caller's to give away.
uint32_t rtp_pool_add_connection(rtp_pool *pool, rtp_channel *channel, uint32_t is_admin);

// The session that was armed with `token` has been killed. Call with the session's lock held;
// late and foreign tokens are ignored. Doesn't block and doesn't call the host.
//
// # Safety
// `pool` is null or a live pool.
void rtp_pool_kill(rtp_pool *pool, uint64_t token);

// Whether [`rtp_pool_set_variable`] would accept the value; without a pool only the range is checked.
//
// # Safety
// `pool` is null or a live pool.
uint32_t rtp_pool_check_variable(rtp_pool *pool,
                                 uint32_t variable,
                                 uint64_t value);

// Gives a system variable a new value. The result says why that was refused:
// [`RTP_OUT_OF_RANGE`], [`RTP_TOO_MANY_QUERY_THREADS`] or [`RTP_LISTENERS_NEED_LIMIT`].
//
// # Safety
// `pool` is null or a live pool.
uint32_t rtp_pool_set_variable(rtp_pool *pool, uint32_t variable, uint64_t value);

// Stores in `value` the present value of a status variable (its index in `rtp_status.inc`).
//
// # Safety
// `pool` is null or a live pool; `value` is null or points to a writable `uint64_t`.
uint32_t rtp_pool_status(rtp_pool *pool, uint32_t variable, uint64_t *value);

// Stops all threads of the pool and waits for their end. Channels still waiting are rejected,
// sessions still open are closed. Idempotent; also legal for a pool that was never started.
//
// # Safety
// `pool` is null or a live pool; the caller isn't a thread of the pool.
void rtp_pool_shutdown(rtp_pool *pool);

// Frees a pool after [`rtp_pool_shutdown`] (consumes `pool`; null is allowed).
//
// # Safety
// `pool` is null or a live pool that has been shut down; nobody uses it afterwards.
void rtp_pool_destroy(rtp_pool *pool);

// Body of every thread that `thread_spawn` made; returns when the thread should end
// (consumes `start`).
//
// # Safety
// `start` is what `thread_spawn` was given, and this is the only call with it.
void rtp_thread_main(void *start);

// The calling thread is about to block in a wait of kind `kind` (the server's `THD_WAIT_*`
// number). Legal on any thread, nested, under any server lock.
void rtp_wait_begin(uint32_t kind);

// Ends the innermost `rtp_wait_begin` of the calling thread.
void rtp_wait_end(void);

// Makes a copy of a table's rows (`table` is its index in `rtp_tables.inc`); the caller closes it.
// Takes each lock of the pool for a few instructions only, one after the other.
//
// # Safety
// `pool` is null or a live pool; `snapshot` is writable.
uint32_t rtp_table_open(rtp_pool *pool, uint32_t table, rtp_snapshot **snapshot);

// Number of rows; 0 for null.
//
// # Safety
// `snapshot` is null or open.
size_t rtp_table_rows(const rtp_snapshot *snapshot);

// What names row `row` also in later snapshots of the same table, as long as what it describes
// exists. 0 if there is no such row.
//
// # Safety
// `snapshot` is null or open.
uint64_t rtp_table_row_id(const rtp_snapshot *snapshot, size_t row);

// Stores in `row` which row has the name `id`; [`RTP_OUT_OF_RANGE`] if none has.
//
// # Safety
// `snapshot` is null or open; `row` is null or writable.
uint32_t rtp_table_find(const rtp_snapshot *snapshot, uint64_t id, size_t *row);

// Stores in `cell` the value of a column (by its index in `rtp_tables.inc`).
//
// # Safety
// `snapshot` is null or open; `cell` is null or writable.
uint32_t rtp_table_cell(const rtp_snapshot *snapshot,
                        size_t row,
                        size_t column,
                        struct rtp_cell *cell);

// Frees a snapshot (consumes it; null is allowed).
//
// # Safety
// `snapshot` is null or open; nobody uses it or its texts afterwards.
void rtp_table_close(rtp_snapshot *snapshot);

// Somebody has used a deprecated table of the information schema.
//
// # Safety
// `pool` is null or a live pool.
void rtp_pool_note_deprecated_table(rtp_pool *pool);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* RTP_H */
