//! What is generated from the declarations.

use super::{Column, ColumnType, TABLES, Table};
use std::fmt::Write;

fn sql_type(column: &Column) -> String {
    let kind = match column.kind {
        ColumnType::Int => "int unsigned".to_owned(),
        ColumnType::Bigint => "bigint unsigned".to_owned(),
        ColumnType::Varchar(length) => format!("varchar({length})"),
    };
    if column.is_nullable { kind } else { kind + " NOT NULL" }
}

/// What stands between the parentheses of CREATE TABLE.
fn definition(table: &Table) -> String {
    let column = |column: &Column| format!("`{}` {}", column.name, sql_type(column));
    let mut parts: Vec<String> = table.columns.iter().map(column).collect();
    if table.key_columns > 0 {
        let key = table.columns[..table.key_columns].iter().map(|c| format!("`{}`", c.name));
        parts.push(format!("UNIQUE KEY ({})", key.collect::<Vec<_>>().join(", ")));
    }
    parts.join(", ")
}

/// The text of `include/rtp_tables.inc`: for each table a line `RTP_TABLE`, one
/// `RTP_SCHEMA_TABLE` if the information schema has it too, and one `RTP_COLUMN` for each column.
pub fn render_include() -> String {
    let mut text = String::from(
        "/* Generated from src/tables by tests/header.rs; do not edit. Define what you need of:\n\
         \x20  RTP_TABLE(index, name, columns, key_columns, definition)\n\
         \x20  RTP_COLUMN(table, index, name, type, length, is_nullable)\n\
         \x20  RTP_SCHEMA_TABLE(table, NAME, columns) */\n",
    );
    for name in ["RTP_TABLE", "RTP_COLUMN", "RTP_SCHEMA_TABLE"] {
        let _ = write!(text, "#ifndef {name}\n#define {name}(...)\n#endif\n");
    }
    for (index, table) in TABLES.iter().enumerate() {
        let (name, columns, key) = (table.name, table.columns.len(), table.key_columns);
        let definition = definition(table);
        let _ = writeln!(text, "RTP_TABLE({index}, {name}, {columns}, {key}, {definition:?})");
        if table.information_schema_columns > 0 {
            let (name, columns) = (name.to_uppercase(), table.information_schema_columns);
            let _ = writeln!(text, "RTP_SCHEMA_TABLE({index}, {name}, {columns})");
        }
        for (number, column) in table.columns.iter().enumerate() {
            let (kind, length) = match column.kind {
                ColumnType::Int => ("INT", 0),
                ColumnType::Bigint => ("BIGINT", 0),
                ColumnType::Varchar(length) => ("VARCHAR", length),
            };
            let (name, is_nullable) = (column.name, column.is_nullable);
            let _ = writeln!(
                text,
                "RTP_COLUMN({index}, {number}, {name}, {kind}, {length}, {is_nullable})"
            );
        }
    }
    text.push_str("#undef RTP_TABLE\n#undef RTP_COLUMN\n#undef RTP_SCHEMA_TABLE\n");
    text
}

/// The text of `docs/tables.md`.
pub fn render_documentation() -> String {
    let mut text = String::from(
        "<!-- Generated from src/tables by tests/header.rs; do not edit. -->\n\
         # Tables of the thread pool\n\n\
         All are in `performance_schema` and read-only. Their names, columns and types are those of \
         Oracle's thread pool. A statement reads a copy that is made when it opens the table; \
         reading disturbs no session. Times are µs since 1970 (`FROM_UNIXTIME(t / 1e6)`), and 0 for \
         what hasn't happened.\n\n\
         `information_schema` has the first columns of three of them once more, in tables that are \
         deprecated: each use makes a warning and adds to the status variable \
         `Deprecated_thread_pool_i_s_usage_count`.\n",
    );
    for table in TABLES {
        let _ = write!(text, "\n## {}\n\n{}", table.name, table.meaning.trim());
        if table.key_columns > 0 {
            let key = table.columns[..table.key_columns].iter().map(|c| format!("`{}`", c.name));
            let _ = write!(text, " Key: {}.", key.collect::<Vec<_>>().join(", "));
        }
        if table.information_schema_columns > 0 {
            let last = &table.columns[table.information_schema_columns - 1];
            let _ = write!(
                text,
                " In `information_schema.{}` up to `{}`.",
                table.name.to_uppercase(),
                last.name
            );
        }
        text.push_str("\n\n| column | type | meaning |\n|---|---|---|\n");
        for column in table.columns {
            let (name, kind) = (column.name, sql_type(column));
            let _ = writeln!(text, "| `{name}` | {kind} | {} |", column.meaning.trim());
        }
    }
    text
}
