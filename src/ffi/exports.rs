//! Functions that the shim calls. Each one checks its arguments, converts them and calls the core
//! behind the panic guard.

use super::guard::{or_abort, or_recover};
use super::host_table::{HostTable, ThreadStart};
use super::types::*;
use crate::config::{Refusal, Settings, Values, rules, status, vars};
use crate::conn::Token;
use crate::driver;
use crate::host::{Channel, Host, LogLevel, RejectReason};
use crate::pool::{Pool, SystemPlatform};
use crate::stats::WaitKind;
use std::ffi::c_void;
use std::sync::Arc;

/// What a `rtp_pool` pointer points to: the pool, shared with its threads.
pub(super) struct Handle {
    pub(super) pool: Arc<Pool>,
}

/// Borrows the pool behind a pointer.
///
/// # Safety
/// `pool` is null or came from [`rtp_pool_create`] and hasn't been destroyed; the shim keeps it
/// until after `rtp_pool_shutdown`.
pub(super) unsafe fn borrow<'a>(pool: *mut rtp_pool) -> Option<&'a Handle> {
    // SAFETY: guaranteed by the caller.
    unsafe { pool.cast::<Handle>().as_ref() }
}

/// [`RTP_ABI_VERSION`] of the core.
#[unsafe(no_mangle)]
pub extern "C" fn rtp_abi_version() -> u32 {
    RTP_ABI_VERSION
}

/// Stores in `value` the default of a system variable on this machine (container limits and CPU
/// affinity are respected) with `groups` thread groups.
///
/// # Safety
/// `value` is null or points to a writable `uint64_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtp_variable_default(variable: u32, groups: u64, value: *mut u64) -> u32 {
    or_recover(RTP_INTERNAL, || {
        // SAFETY: guaranteed by the caller.
        let Some(value) = (unsafe { value.as_mut() }) else { return RTP_NULL_ARGUMENT };
        let vcpus = u64::from(Settings::machine_vcpus());
        match rules::default_value(variable, vcpus, groups) {
            Some(default) => {
                *value = default;
                RTP_OK
            }
            None => RTP_OUT_OF_RANGE,
        }
    })
}

/// Corrects the start values of all system variables where they don't fit together, and stores in
/// `corrections` the `RTP_CORRECTION_*` flags of what the error log should say.
///
/// # Safety
/// `values` is null or points to `count` writable values; `corrections` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtp_variables_correct(
    values: *mut u64,
    count: usize,
    corrections: *mut u32,
) -> u32 {
    or_recover(RTP_INTERNAL, || {
        // SAFETY: guaranteed by the caller.
        let Some(corrections) = (unsafe { corrections.as_mut() }) else {
            return RTP_NULL_ARGUMENT;
        };
        if values.is_null() {
            return RTP_NULL_ARGUMENT;
        }
        if count != vars::VARIABLES.len() {
            return RTP_ABI_MISMATCH;
        }
        // SAFETY: `count` values, guaranteed by the caller and as many as `Values` has.
        let done = rules::correct(unsafe { &mut *values.cast::<Values>() });
        *corrections = [
            (done.one_query_thread, RTP_CORRECTION_ONE_QUERY_THREAD),
            (done.query_threads_lowered, RTP_CORRECTION_QUERY_THREADS),
            (done.listeners_off, RTP_CORRECTION_LISTENERS),
            (done.report_interval_replaced, RTP_CORRECTION_REPORT_INTERVAL),
        ]
        .iter()
        .fold(0, |flags, (is_done, flag)| if *is_done { flags | flag } else { flags });
        RTP_OK
    })
}

/// The share of one thread group in a `thread_pool_max_transactions_limit`, for messages.
#[unsafe(no_mangle)]
pub extern "C" fn rtp_transactions_per_group(limit: u64, groups: u64) -> u64 {
    rules::transactions_per_group(limit, groups)
}

/// Makes a pool. `host` is copied; `variables` holds the `count` values of all system variables in
/// the order of their index. Starts nothing.
///
/// # Safety
/// `host` is null or a complete table whose members keep their contract until the pool is
/// destroyed; `variables` points to `count` values; `pool` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtp_pool_create(
    host: *const rtp_host,
    variables: *const u64,
    count: usize,
    pool: *mut *mut rtp_pool,
) -> u32 {
    or_recover(RTP_INTERNAL, || {
        if host.is_null() || variables.is_null() || pool.is_null() {
            return RTP_NULL_ARGUMENT;
        }
        // SAFETY: not null, and complete as the caller guarantees; version and size come first
        // in every version of the table.
        let table = unsafe { &*host };
        let same_abi = table.abi_version == RTP_ABI_VERSION
            && table.struct_size as usize == size_of::<rtp_host>()
            && count == vars::VARIABLES.len();
        if !same_abi {
            return RTP_ABI_MISMATCH;
        }
        let host: Arc<dyn Host> = Arc::new(HostTable::new(*table));
        let settings = Settings::defaults(Settings::machine_vcpus());
        // SAFETY: `count` values, guaranteed by the caller.
        let values = unsafe { std::slice::from_raw_parts(variables, count) };
        for (index, value) in values.iter().enumerate() {
            if let Err(error) = settings.set(index as u32, *value) {
                host.log(LogLevel::Error, &error.to_string());
                return RTP_OUT_OF_RANGE;
            }
        }
        match Pool::new(Arc::clone(&host), Arc::new(SystemPlatform::default()), settings) {
            Ok(new) => {
                let handle = Box::new(Handle { pool: Arc::new(new) });
                // SAFETY: writable, guaranteed by the caller.
                unsafe { *pool = Box::into_raw(handle).cast() };
                RTP_OK
            }
            Err(error) => {
                let text = format!("No descriptors for the thread groups: {error}");
                host.log(LogLevel::Error, &text);
                RTP_NO_RESOURCE
            }
        }
    })
}

/// Starts the pool's permanent threads. On failure everything started is stopped again, the
/// reason is in the error log, and the pool can only be destroyed.
///
/// # Safety
/// `pool` is null or a live pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtp_pool_start(pool: *mut rtp_pool) -> u32 {
    or_recover(RTP_INTERNAL, || {
        // SAFETY: guaranteed by the caller.
        let Some(handle) = (unsafe { borrow(pool) }) else { return RTP_NULL_ARGUMENT };
        if handle.pool.is_stopping() {
            return RTP_WRONG_STATE;
        }
        match handle.pool.start() {
            Ok(()) => RTP_OK,
            Err(_) => RTP_NO_RESOURCE,
        }
    })
}

/// Gives the pool a newly accepted connection (consumes `channel`, whatever the result). Any
/// number of threads may call this at once. Doesn't block.
///
/// # Safety
/// `pool` is null or a live pool; `channel` is the caller's to give away.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtp_pool_add_connection(
    pool: *mut rtp_pool,
    channel: *mut rtp_channel,
    is_admin: u32,
) -> u32 {
    or_abort(|| {
        // SAFETY: guaranteed by the caller.
        let Some(handle) = (unsafe { borrow(pool) }) else { return RTP_NULL_ARGUMENT };
        if channel.is_null() {
            return RTP_NULL_ARGUMENT;
        }
        let channel = Channel::from_raw(channel as usize);
        match handle.pool.add_connection(channel, is_admin != 0) {
            Ok(()) => RTP_OK,
            Err(channel) => {
                handle.pool.host.channel_reject(channel, RejectReason::Shutdown);
                RTP_WRONG_STATE
            }
        }
    })
}

/// The session that was armed with `token` has been killed. Call with the session's lock held;
/// late and foreign tokens are ignored. Doesn't block and doesn't call the host.
///
/// # Safety
/// `pool` is null or a live pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtp_pool_kill(pool: *mut rtp_pool, token: u64) {
    or_abort(|| {
        // SAFETY: guaranteed by the caller.
        if let Some(handle) = unsafe { borrow(pool) } {
            handle.pool.kill(Token::from_raw(token));
        }
    });
}

fn refusal_code(refusal: Refusal) -> u32 {
    match refusal {
        Refusal::NoSuchVariable(_) | Refusal::OutOfRange(..) => RTP_OUT_OF_RANGE,
        Refusal::TooManyQueryThreads { .. } => RTP_TOO_MANY_QUERY_THREADS,
        Refusal::ListenersNeedLimit => RTP_LISTENERS_NEED_LIMIT,
    }
}

/// Whether [`rtp_pool_set_variable`] would accept the value; without a pool only the range is checked.
///
/// # Safety
/// `pool` is null or a live pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtp_pool_check_variable(
    pool: *mut rtp_pool,
    variable: u32,
    value: u64,
) -> u32 {
    or_recover(RTP_INTERNAL, || {
        // SAFETY: guaranteed by the caller.
        let checked = match unsafe { borrow(pool) } {
            Some(handle) => handle.pool.settings.check_change(variable, value),
            None => rules::check_range(variable, value),
        };
        checked.map_or_else(refusal_code, |()| RTP_OK)
    })
}

/// Gives a system variable a new value. The result says why that was refused:
/// [`RTP_OUT_OF_RANGE`], [`RTP_TOO_MANY_QUERY_THREADS`] or [`RTP_LISTENERS_NEED_LIMIT`].
///
/// # Safety
/// `pool` is null or a live pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtp_pool_set_variable(
    pool: *mut rtp_pool,
    variable: u32,
    value: u64,
) -> u32 {
    or_recover(RTP_INTERNAL, || {
        // SAFETY: guaranteed by the caller.
        let Some(handle) = (unsafe { borrow(pool) }) else { return RTP_NULL_ARGUMENT };
        handle.pool.set_variable(variable, value).map_or_else(refusal_code, |()| RTP_OK)
    })
}

/// Stores in `value` the present value of a status variable (its index in `rtp_status.inc`).
///
/// # Safety
/// `pool` is null or a live pool; `value` is null or points to a writable `uint64_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtp_pool_status(
    pool: *mut rtp_pool,
    variable: u32,
    value: *mut u64,
) -> u32 {
    or_recover(RTP_INTERNAL, || {
        // SAFETY: guaranteed by the caller.
        let (Some(handle), Some(value)) = (unsafe { (borrow(pool), value.as_mut()) }) else {
            return RTP_NULL_ARGUMENT;
        };
        let Some(entry) = status::STATUS_VARIABLES.get(variable as usize) else {
            return RTP_OUT_OF_RANGE;
        };
        *value = (entry.value)(&handle.pool);
        RTP_OK
    })
}

/// Stops all threads of the pool and waits for their end. Channels still waiting are rejected,
/// sessions still open are closed. Idempotent; also legal for a pool that was never started.
///
/// # Safety
/// `pool` is null or a live pool; the caller isn't a thread of the pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtp_pool_shutdown(pool: *mut rtp_pool) {
    or_abort(|| {
        // SAFETY: guaranteed by the caller.
        if let Some(handle) = unsafe { borrow(pool) } {
            handle.pool.shutdown();
        }
    });
}

/// Frees a pool after [`rtp_pool_shutdown`] (consumes `pool`; null is allowed).
///
/// # Safety
/// `pool` is null or a live pool that has been shut down; nobody uses it afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtp_pool_destroy(pool: *mut rtp_pool) {
    or_abort(|| {
        if !pool.is_null() {
            // SAFETY: it came from `rtp_pool_create`; the caller gives it up.
            drop(unsafe { Box::from_raw(pool.cast::<Handle>()) });
        }
    });
}

/// Body of every thread that `thread_spawn` made; returns when the thread should end
/// (consumes `start`).
///
/// # Safety
/// `start` is what `thread_spawn` was given, and this is the only call with it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtp_thread_main(start: *mut c_void) {
    or_abort(|| {
        // SAFETY: guaranteed by the caller.
        let start = unsafe { ThreadStart::from_pointer(start) };
        start.run();
    });
}

/// The calling thread is about to block in a wait of kind `kind` (the server's `THD_WAIT_*`
/// number). Legal on any thread, nested, under any server lock.
#[unsafe(no_mangle)]
pub extern "C" fn rtp_wait_begin(kind: u32) {
    or_abort(|| driver::wait_begin(WaitKind::from_raw(kind)));
}

/// Ends the innermost `rtp_wait_begin` of the calling thread.
#[unsafe(no_mangle)]
pub extern "C" fn rtp_wait_end() {
    or_abort(driver::wait_end);
}
