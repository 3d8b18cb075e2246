// SPDX-License-Identifier: GPL-2.0-only
//
// The deprecated tables of the information schema.

#include <algorithm>

#include "hooks.h"
#include "sql/field.h"
#include "sql/sql_show.h"
#include "sql/table.h"
#include "tables.h"

namespace rtp {

namespace {

struct SchemaTable {
  uint32_t table;
  const char *old_name, *new_name;
};

#define RTP_TABLE(index, name, ...) \
  {index, "information_schema." #name, "performance_schema." #name},
constexpr SchemaTable schema_tables[] = {
#include "rtp_tables.inc"
};

ST_FIELD_INFO field_of(const Column &column) {
  const uint flags = column.is_nullable ? MY_I_S_MAYBE_NULL : 0;
  switch (column.type) {
    case ColumnType::INT:
      return {column.name, 10, MYSQL_TYPE_LONG, 0, flags | MY_I_S_UNSIGNED, nullptr, 0};
    case ColumnType::BIGINT:
      return {column.name, 20, MYSQL_TYPE_LONGLONG, 0, flags | MY_I_S_UNSIGNED, nullptr, 0};
    default:
      return {column.name, column.length, MYSQL_TYPE_STRING, 0, flags, nullptr, 0};
  }
}

void store(Field *field, const rtp_cell &cell) {
  if (cell.kind == RTP_CELL_NULL) {
    field->set_null();
    return;
  }
  field->set_notnull();
  if (cell.kind == RTP_CELL_TEXT) {
    field->store(cell.text, cell.number, system_charset_info);
  } else {
    field->store(static_cast<longlong>(cell.number), true);
  }
}

int fill(THD *thd, TABLE *to, const SchemaTable &schema_table, size_t count) {
  push_deprecated_warn(thd, schema_table.old_name, schema_table.new_name);
  if (rtp_pool *pool = active_pool()) rtp_pool_note_deprecated_table(pool);
  Snapshot snapshot;
  if (!snapshot.take(schema_table.table)) {
    my_error(ER_OUT_OF_RESOURCES, MYF(0));
    return 1;
  }
  for (size_t row = 0; row < snapshot.rows(); row++) {
    for (size_t i = 0; i < count; i++) store(to->field[i], snapshot.cell(row, i));
    if (schema_table_store_record(thd, to)) return 1;
  }
  return 0;
}

template <uint32_t table>
constexpr size_t column_count = 0;
#define RTP_SCHEMA_TABLE(table, name, columns) \
  template <>                                  \
  constexpr size_t column_count<table> = columns;
#include "rtp_tables.inc"

template <uint32_t table>
ST_FIELD_INFO fields[column_count<table> + 1];

template <uint32_t table>
int fill_table(THD *thd, Table_ref *to, Item *) {
  return fill(thd, to->table, schema_tables[table], column_count<table>);
}

}  // namespace

template <uint32_t table>
int init_schema_table(void *argument) noexcept {
  constexpr size_t count = column_count<table>;
  std::transform(columns_of(table), columns_of(table) + count, fields<table>, field_of);
  fields<table>[count] = {nullptr, 0, MYSQL_TYPE_NULL, 0, 0, nullptr, 0};
  auto *schema_table = static_cast<ST_SCHEMA_TABLE *>(argument);
  schema_table->fields_info = fields<table>;
  schema_table->fill_table = fill_table<table>;
  return 0;
}
#define RTP_SCHEMA_TABLE(table, name, columns) \
  template int init_schema_table<table>(void *) noexcept;
#include "rtp_tables.inc"

}  // namespace rtp
