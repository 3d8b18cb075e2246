//! Functions with which the shim reads the tables.

use super::exports::borrow;
use super::guard::or_recover;
use super::types::*;
use crate::tables::{Cell, Snapshot, TABLES};

/// Makes a copy of a table's rows (`table` is its index in `rtp_tables.inc`); the caller closes it.
/// Takes each lock of the pool for a few instructions only, one after the other.
///
/// # Safety
/// `pool` is null or a live pool; `snapshot` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtp_table_open(
    pool: *mut rtp_pool,
    table: u32,
    snapshot: *mut *mut rtp_snapshot,
) -> u32 {
    or_recover(RTP_INTERNAL, || {
        // SAFETY: guaranteed by the caller.
        let (Some(handle), false) = (unsafe { borrow(pool) }, snapshot.is_null()) else {
            return RTP_NULL_ARGUMENT;
        };
        let Some(table) = TABLES.get(table as usize) else { return RTP_OUT_OF_RANGE };
        let rows = Box::new(Snapshot::of(table, &handle.pool));
        // SAFETY: writable, guaranteed by the caller.
        unsafe { *snapshot = Box::into_raw(rows).cast() };
        RTP_OK
    })
}

/// Number of rows; 0 for null.
///
/// # Safety
/// `snapshot` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtp_table_rows(snapshot: *const rtp_snapshot) -> usize {
    or_recover(0, || {
        // SAFETY: guaranteed by the caller.
        unsafe { snapshot.cast::<Snapshot>().as_ref() }.map_or(0, Snapshot::rows)
    })
}

/// What names row `row` also in later snapshots of the same table, as long as what it describes
/// exists. 0 if there is no such row.
///
/// # Safety
/// `snapshot` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtp_table_row_id(snapshot: *const rtp_snapshot, row: usize) -> u64 {
    or_recover(0, || {
        // SAFETY: guaranteed by the caller.
        let rows = unsafe { snapshot.cast::<Snapshot>().as_ref() };
        rows.and_then(|rows| rows.id(row)).unwrap_or(0)
    })
}

/// Stores in `row` which row has the name `id`; [`RTP_OUT_OF_RANGE`] if none has.
///
/// # Safety
/// `snapshot` is null or open; `row` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtp_table_find(
    snapshot: *const rtp_snapshot,
    id: u64,
    row: *mut usize,
) -> u32 {
    or_recover(RTP_INTERNAL, || {
        // SAFETY: guaranteed by the caller.
        let (rows, row) = unsafe { (snapshot.cast::<Snapshot>().as_ref(), row.as_mut()) };
        let (Some(rows), Some(row)) = (rows, row) else { return RTP_NULL_ARGUMENT };
        let Some(found) = rows.find(id) else { return RTP_OUT_OF_RANGE };
        *row = found;
        RTP_OK
    })
}

/// Stores in `cell` the value of a column (by its index in `rtp_tables.inc`).
///
/// # Safety
/// `snapshot` is null or open; `cell` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtp_table_cell(
    snapshot: *const rtp_snapshot,
    row: usize,
    column: usize,
    cell: *mut rtp_cell,
) -> u32 {
    or_recover(RTP_INTERNAL, || {
        // SAFETY: guaranteed by the caller.
        let (rows, cell) = unsafe { (snapshot.cast::<Snapshot>().as_ref(), cell.as_mut()) };
        let (Some(rows), Some(cell)) = (rows, cell) else { return RTP_NULL_ARGUMENT };
        let Some(value) = rows.cell(row, column) else { return RTP_OUT_OF_RANGE };
        *cell = match value {
            Cell::Null => rtp_cell { kind: RTP_CELL_NULL, number: 0, text: std::ptr::null() },
            Cell::Number(number) => {
                rtp_cell { kind: RTP_CELL_NUMBER, number, text: std::ptr::null() }
            }
            Cell::Text(text) => rtp_cell {
                kind: RTP_CELL_TEXT,
                number: text.len() as u64,
                text: text.as_ptr().cast(),
            },
        };
        RTP_OK
    })
}

/// Frees a snapshot (consumes it; null is allowed).
///
/// # Safety
/// `snapshot` is null or open; nobody uses it or its texts afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtp_table_close(snapshot: *mut rtp_snapshot) {
    or_recover((), || {
        if !snapshot.is_null() {
            // SAFETY: it came from `rtp_table_open`; the caller gives it up.
            drop(unsafe { Box::from_raw(snapshot.cast::<Snapshot>()) });
        }
    });
}

/// Somebody has used a deprecated table of the information schema.
///
/// # Safety
/// `pool` is null or a live pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtp_pool_note_deprecated_table(pool: *mut rtp_pool) {
    or_recover((), || {
        // SAFETY: guaranteed by the caller.
        if let Some(handle) = unsafe { borrow(pool) } {
            handle.pool.registry.note_deprecated_table();
        }
    });
}
