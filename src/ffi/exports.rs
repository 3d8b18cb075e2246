//! Functions that the shim calls.

use super::types::*;
use std::ffi::c_void;

/// [`RTP_ABI_VERSION`] of the core.
#[unsafe(no_mangle)]
pub extern "C" fn rtp_abi_version() -> u32 {
    RTP_ABI_VERSION
}

/// Stores in `value` the default of a system variable on this machine (container limits and CPU
/// affinity are respected).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtp_variable_default(variable: u32, value: *mut u64) -> u32 {
    0
}

/// Makes a pool. `host` is copied; `variables` holds the `count` values of all system variables in
/// the order of their index. Starts nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtp_pool_create(
    host: *const rtp_host,
    variables: *const u64,
    count: usize,
    pool: *mut *mut rtp_pool,
) -> u32 {
    0
}

/// Starts the pool's permanent threads. On failure everything started is stopped again, the
/// reason is in the error log, and the pool can only be destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtp_pool_start(pool: *mut rtp_pool) -> u32 {
    0
}

/// Gives the pool a newly accepted connection (consumes `channel`, whatever the result). Any
/// number of threads may call this at once. Doesn't block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtp_pool_add_connection(
    pool: *mut rtp_pool,
    channel: *mut rtp_channel,
    is_admin: u32,
) -> u32 {
    0
}

/// The session that was armed with `token` has been killed. Call with the session's lock held;
/// late and foreign tokens are ignored. Doesn't block and doesn't call the host.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtp_pool_kill(pool: *mut rtp_pool, token: u64) {}

/// Gives a system variable a new value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtp_pool_set_variable(
    pool: *mut rtp_pool,
    variable: u32,
    value: u64,
) -> u32 {
    0
}

/// Stops all threads of the pool and waits for their end. Channels still waiting are rejected,
/// sessions still open are closed. Idempotent; also legal for a pool that was never started.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtp_pool_shutdown(pool: *mut rtp_pool) {}

/// Frees a pool after [`rtp_pool_shutdown`] (consumes `pool`; null is allowed).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtp_pool_destroy(pool: *mut rtp_pool) {}

/// Body of every thread that `thread_spawn` made; returns when the thread should end
/// (consumes `start`).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtp_thread_main(start: *mut c_void) {}

/// The calling thread is about to block in a wait of kind `kind` (the server's `THD_WAIT_*`
/// number). Legal on any thread, nested, under any server lock.
#[unsafe(no_mangle)]
pub extern "C" fn rtp_wait_begin(kind: u32) {}

/// Ends the innermost `rtp_wait_begin` of the calling thread.
#[unsafe(no_mangle)]
pub extern "C" fn rtp_wait_end() {}
