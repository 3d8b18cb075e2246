//! No panic crosses the boundary.

use std::panic::{AssertUnwindSafe, catch_unwind};

// The guards below are useless when a panic aborts at once.
const _: () = assert!(cfg!(panic = "unwind"), "build with panic = \"unwind\"");

/// For scheduler paths: after a panic the pool's state can't be trusted, so the process ends. The
/// panic's message is in the error log already (std's hook writes to stderr).
pub(super) fn or_abort<R>(f: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|_| std::process::abort())
}

/// For calls that change nothing before they could panic: the caller gets `fallback`.
pub(super) fn or_recover<R>(fallback: R, f: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or(fallback)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_on_a_read_only_path_becomes_the_fallback() {
        assert_eq!(or_recover(7, || panic!("expected by the test")), 7);
        assert_eq!(or_recover(7, || 1), 1);
    }
}
