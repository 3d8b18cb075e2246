// SPDX-License-Identifier: GPL-2.0-only
//
// The SQL tables that include/rtp_tables.inc lists: in the performance schema (tables.cc) and, the
// deprecated ones, in the information schema (schema_tables.cc).

#ifndef RTP_SHIM_TABLES_H
#define RTP_SHIM_TABLES_H

#include "compat.h"
#include "rtp.h"

namespace rtp {

// SQL types as they are written in rtp_tables.inc; the numbers are unsigned.
enum class ColumnType { INT, BIGINT, VARCHAR };

struct Column {
  uint32_t table;
  const char *name;
  ColumnType type;
  uint32_t length;
  bool is_nullable;
};

// The columns of all tables, one table after the other.
#define RTP_COLUMN(table, index, name, type, length, is_nullable) \
  {table, #name, ColumnType::type, length, is_nullable},
constexpr Column columns[] = {
#include "rtp_tables.inc"
};

// The columns of one table.
constexpr const Column *columns_of(uint32_t table) {
  const Column *column = columns;
  while (column->table != table) column++;
  return column;
}

// A copy of the rows of one table. Without a pool there are none.
class Snapshot {
 public:
  Snapshot() = default;
  Snapshot(const Snapshot &) = delete;
  Snapshot &operator=(const Snapshot &) = delete;
  ~Snapshot() { rtp_table_close(rows_); }

  // Replaces the copy. False for lack of memory.
  bool take(uint32_t table) noexcept;
  size_t rows() const { return rtp_table_rows(rows_); }
  uint64_t id(size_t row) const { return rtp_table_row_id(rows_, row); }
  bool find(uint64_t id, size_t *row) const { return rtp_table_find(rows_, id, row) == RTP_OK; }
  rtp_cell cell(size_t row, size_t column) const {
    rtp_cell cell{RTP_CELL_NULL, 0, nullptr};
    (void)rtp_table_cell(rows_, row, column, &cell);
    return cell;
  }

 private:
  rtp_snapshot *rows_ = nullptr;
};

// Adds the tables to the performance schema. False: it doesn't take them.
bool add_tables(SERVICE_TYPE(registry) * registry) noexcept;
// Removes those that were added.
void remove_tables(SERVICE_TYPE(registry) * registry) noexcept;

// For the descriptors of the information schema's tables.
template <uint32_t table>
int init_schema_table(void *schema_table) noexcept;
#define RTP_SCHEMA_TABLE(table, name, columns) \
  extern template int init_schema_table<table>(void *) noexcept;
#include "rtp_tables.inc"

}  // namespace rtp

#endif  // RTP_SHIM_TABLES_H
