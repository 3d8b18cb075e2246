//! THE SQL tables. Each is declared in one file, with the function that makes its rows;
//! `include/rtp_tables.inc` (which the C++ shim expands) and `docs/tables.md` are generated from
//! the declarations. A new table is one such file and one entry in [`TABLES`].

mod connections;
mod group_state;
mod group_stats;
mod render;
mod thread_state;

pub use render::{render_documentation, render_include};

use crate::pool::Pool;
use crate::time::Moment;
use std::time::{SystemTime, UNIX_EPOCH};

/// All tables, in the order of their index at the boundary.
pub const TABLES: &[Table] =
    &[thread_state::TABLE, group_state::TABLE, group_stats::TABLE, connections::TABLE];

/// SQL type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// `int unsigned`
    Int,
    /// `bigint unsigned`
    Bigint,
    /// `varchar` of so many characters.
    Varchar(u32),
}

/// One column of a [`Table`].
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// SQL name.
    pub name: &'static str,
    /// SQL type.
    pub kind: ColumnType,
    /// It can be NULL.
    pub is_nullable: bool,
    /// What it means.
    pub meaning: &'static str,
}

/// A table of the performance schema.
pub struct Table {
    /// SQL name.
    pub name: &'static str,
    /// What it is for.
    pub meaning: &'static str,
    /// Its columns in their order.
    pub columns: &'static [Column],
    /// The first so many columns, all of them `int unsigned NOT NULL`, are a unique key.
    pub key_columns: usize,
    /// The first so many columns are also in a table of the information schema, which has the same
    /// name in upper case and is deprecated. 0 if there is no such table.
    pub information_schema_columns: usize,
    fill: fn(&Reading, &mut Snapshot),
}

/// One value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// NULL
    Null,
    /// A number.
    Number(u64),
    /// A text.
    Text(&'static str),
}

/// A type that the fields of a row can have; it decides about the column's SQL type.
trait Value {
    const KIND: ColumnType;
    const IS_NULLABLE: bool = false;
    fn cell(self) -> Cell;
}

impl Value for u32 {
    const KIND: ColumnType = ColumnType::Int;
    fn cell(self) -> Cell {
        Cell::Number(u64::from(self))
    }
}

impl Value for u64 {
    const KIND: ColumnType = ColumnType::Bigint;
    fn cell(self) -> Cell {
        Cell::Number(self)
    }
}

/// A text of at most `N` characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Text<const N: u32>(&'static str);

impl<const N: u32> Value for Text<N> {
    const KIND: ColumnType = ColumnType::Varchar(N);
    fn cell(self) -> Cell {
        debug_assert!(self.0.len() <= N as usize, "{} is too long", self.0);
        Cell::Text(self.0)
    }
}

impl<T: Value> Value for Option<T> {
    const KIND: ColumnType = T::KIND;
    const IS_NULLABLE: bool = true;
    fn cell(self) -> Cell {
        self.map_or(Cell::Null, T::cell)
    }
}

/// Declares a table: its `Row`, whose fields are the columns, and its `TABLE`. `rows` is a function
/// that calls its second argument for each row, in the order of the rows' names (see
/// [`Snapshot::id`]).
macro_rules! table {
    (
        $(#[doc = $meaning:literal])+
        table $name:literal, key $key:literal, information_schema $visible:literal, rows $rows:path;
        $($(#[doc = $doc:literal])+ $column:ident: $kind:ty,)+
    ) => {
        #[allow(non_snake_case, reason = "the fields are the columns")]
        struct Row {
            $($(#[doc = $doc])+ $column: $kind,)+
        }

        $(#[doc = $meaning])+
        pub(super) const TABLE: $crate::tables::Table = $crate::tables::Table {
            name: $name,
            meaning: concat!($($meaning),+),
            columns: &[$($crate::tables::Column {
                name: stringify!($column),
                kind: <$kind as $crate::tables::Value>::KIND,
                is_nullable: <$kind as $crate::tables::Value>::IS_NULLABLE,
                meaning: concat!($($doc),+),
            }),+],
            key_columns: $key,
            information_schema_columns: $visible,
            fill: |reading, snapshot| $rows(reading, &mut |id, row: Row| {
                snapshot.add(id, &[$($crate::tables::Value::cell(row.$column)),+]);
            }),
        };
    };
}
use table;

/// The circumstances under which all rows of one snapshot are made.
struct Reading<'a> {
    pool: &'a Pool,
    now: Moment,
    /// The clock on the wall, in µs since 1970, at `now`.
    wall_us: u64,
}

impl Reading<'_> {
    /// A moment in µs since 1970, by the present time of day.
    fn time_of_day(&self, at: Moment) -> u64 {
        self.wall_us.saturating_add(at.since(self.now).0).saturating_sub(self.now.since(at).0)
    }

    /// The same; 0 for what hasn't happened or never will.
    fn time_or_zero(&self, at: Moment) -> u64 {
        if at == Moment::default() || at == Moment::NEVER { 0 } else { self.time_of_day(at) }
    }
}

/// A copy of all rows of a table at one time.
pub struct Snapshot {
    columns: usize,
    ids: Vec<u64>,
    cells: Vec<Cell>,
}

impl Snapshot {
    /// Reads a table. Takes locks of the pool one after the other, for a few instructions each.
    pub fn of(table: &Table, pool: &Pool) -> Self {
        let mut snapshot = Self { columns: table.columns.len(), ids: vec![], cells: vec![] };
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let wall_us = since_1970.as_micros() as u64;
        (table.fill)(&Reading { pool, now: pool.clock.now(), wall_us }, &mut snapshot);
        snapshot
    }

    fn add(&mut self, id: u64, row: &[Cell]) {
        debug_assert!(self.ids.last().is_none_or(|last| *last < id), "rows are ordered by name");
        debug_assert_eq!(row.len(), self.columns);
        self.ids.push(id);
        self.cells.extend_from_slice(row);
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.ids.len()
    }

    /// The name of a row: not zero, and the same in all snapshots of the table for as long as what
    /// the row describes exists.
    pub fn id(&self, row: usize) -> Option<u64> {
        self.ids.get(row).copied()
    }

    /// The row with this name.
    pub fn find(&self, id: u64) -> Option<usize> {
        self.ids.binary_search(&id).ok()
    }

    /// A value.
    pub fn cell(&self, row: usize, column: usize) -> Option<Cell> {
        let exists = row < self.ids.len() && column < self.columns;
        exists.then(|| self.cells[row * self.columns + column])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_keep_the_rules() {
        for table in TABLES {
            assert!(table.information_schema_columns <= table.columns.len(), "{}", table.name);
            for column in &table.columns[..table.key_columns] {
                assert_eq!((column.kind, column.is_nullable), (ColumnType::Int, false));
            }
            for (index, column) in table.columns.iter().enumerate() {
                let same = |other: &&Column| other.name == column.name;
                assert!(table.columns[..index].iter().find(same).is_none(), "{}", column.name);
                assert!(column.meaning.trim().ends_with('.'), "{}: {}", table.name, column.name);
            }
        }
    }

    #[test]
    fn rows_are_found_by_name_and_nothing_is_outside() {
        let mut snapshot = Snapshot { columns: 2, ids: vec![], cells: vec![] };
        snapshot.add(3, &[Cell::Number(1), Cell::Null]);
        snapshot.add(9, &[Cell::Number(2), Cell::Text("two")]);
        assert_eq!((snapshot.find(9), snapshot.find(4)), (Some(1), None));
        assert_eq!((snapshot.id(1), snapshot.id(2)), (Some(9), None));
        assert_eq!(snapshot.cell(1, 1), Some(Cell::Text("two")));
        assert_eq!((snapshot.cell(0, 2), snapshot.cell(2, 0)), (None, None));
    }
}
