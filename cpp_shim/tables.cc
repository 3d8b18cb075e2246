// SPDX-License-Identifier: GPL-2.0-only

#include "tables.h"

#include <algorithm>
#include <iterator>
#include <new>

#include "hooks.h"

namespace rtp {

bool Snapshot::take(uint32_t table) noexcept {
  rtp_table_close(rows_);
  rows_ = nullptr;
  rtp_pool *pool = active_pool();
  return pool == nullptr || rtp_table_open(pool, table, &rows_) == RTP_OK;
}

namespace {

// What the optimizer is told; it only decides about the order of a join.
constexpr unsigned long long rows_expected = 1000;

#define RTP_TABLE(index, name, columns, key_columns, definition) key_columns,
constexpr size_t key_columns[] = {
#include "rtp_tables.inc"
};
constexpr size_t max_key_columns = *std::max_element(key_columns, std::end(key_columns));

SERVICE_TYPE(pfs_plugin_table_v1) *table_service = nullptr;
SERVICE_TYPE(pfs_plugin_column_integer_v1) *integer_service = nullptr;
SERVICE_TYPE(pfs_plugin_column_bigint_v1) *bigint_service = nullptr;
SERVICE_TYPE(pfs_plugin_column_string_v2) *string_service = nullptr;
bool added = false;

// A statement's way through a table. The server saves and restores `position` by itself.
struct Cursor {
  explicit Cursor(uint32_t of_table) : table(of_table) {}

  const uint32_t table;
  // Name of the present row.
  uint64_t position = 0;
  size_t row = 0;
  size_t next = 0;
  Snapshot snapshot;
  // Conditions on the first columns of the key.
  size_t conditions = 0;
  PSI_plugin_key_uinteger keys[max_key_columns]{};

  bool go_to(size_t to) {
    if (to >= snapshot.rows()) return false;
    row = to;
    next = to + 1;
    position = snapshot.id(to);
    return true;
  }

  bool matches(size_t candidate) {
    for (size_t i = 0; i < conditions; i++) {
      const rtp_cell cell = snapshot.cell(candidate, i);
      if (!integer_service->match_key_unsigned(false, cell.number, &keys[i])) return false;
    }
    return true;
  }
};

Cursor *cursor_of(PSI_table_handle *handle) { return reinterpret_cast<Cursor *>(handle); }
Cursor *cursor_of(PSI_index_handle *handle) { return reinterpret_cast<Cursor *>(handle); }

template <uint32_t table>
PSI_table_handle *open_table(PSI_pos **position) {
  auto *cursor = new (std::nothrow) Cursor(table);
  if (cursor == nullptr) return nullptr;
  *position = reinterpret_cast<PSI_pos *>(&cursor->position);
  return reinterpret_cast<PSI_table_handle *>(cursor);
}

void close_table(PSI_table_handle *handle) { delete cursor_of(handle); }

void reset_position(PSI_table_handle *handle) { cursor_of(handle)->next = 0; }

int begin(Cursor *cursor) {
  cursor->next = 0;
  return cursor->snapshot.take(cursor->table) ? 0 : PFS_HA_ERR_RECORD_FILE_FULL;
}

int rnd_init(PSI_table_handle *handle, bool) { return begin(cursor_of(handle)); }

int rnd_next(PSI_table_handle *handle) {
  Cursor *cursor = cursor_of(handle);
  return cursor->go_to(cursor->next) ? 0 : PFS_HA_ERR_END_OF_FILE;
}

int rnd_pos(PSI_table_handle *handle) {
  Cursor *cursor = cursor_of(handle);
  size_t row = 0;
  const bool exists = cursor->snapshot.find(cursor->position, &row);
  return exists && cursor->go_to(row) ? 0 : PFS_HA_ERR_RECORD_DELETED;
}

int index_init(PSI_table_handle *handle, unsigned, bool, PSI_index_handle **index) {
  *index = reinterpret_cast<PSI_index_handle *>(handle);
  return begin(cursor_of(handle));
}

int index_read(PSI_index_handle *index, PSI_key_reader *reader, unsigned, int find_flag) {
  Cursor *cursor = cursor_of(index);
  const Column *column = columns_of(cursor->table);
  for (size_t i = 0; i < key_columns[cursor->table]; i++) {
    cursor->keys[i].m_name = column[i].name;
    integer_service->read_key_unsigned(reader, &cursor->keys[i], find_flag);
  }
  cursor->conditions = table_service->get_parts_found(reader);
  return 0;
}

int index_next(PSI_table_handle *handle) {
  Cursor *cursor = cursor_of(handle);
  for (size_t row = cursor->next; row < cursor->snapshot.rows(); row++) {
    if (cursor->matches(row) && cursor->go_to(row)) return 0;
  }
  return PFS_HA_ERR_END_OF_FILE;
}

int read_column_value(PSI_table_handle *handle, PSI_field *field, unsigned index) {
  const Cursor *cursor = cursor_of(handle);
  const rtp_cell cell = cursor->snapshot.cell(cursor->row, index);
  const bool is_null = cell.kind == RTP_CELL_NULL;
  switch (columns_of(cursor->table)[index].type) {
    case ColumnType::INT:
      integer_service->set_unsigned(field, {static_cast<unsigned long>(cell.number), is_null});
      break;
    case ColumnType::BIGINT:
      bigint_service->set_unsigned(field, {cell.number, is_null});
      break;
    case ColumnType::VARCHAR:
      // Stands for NULL if the length is zero.
      string_service->set_varchar_utf8mb4_len(field, cell.text, static_cast<unsigned>(cell.number));
      break;
  }
  return 0;
}

unsigned long long row_count() { return rows_expected; }

template <uint32_t table>
constexpr PFS_engine_table_proxy proxy() {
  PFS_engine_table_proxy proxy;
  proxy.rnd_next = rnd_next;
  proxy.rnd_init = rnd_init;
  proxy.rnd_pos = rnd_pos;
  proxy.index_init = index_init;
  proxy.index_read = index_read;
  proxy.index_next = index_next;
  proxy.read_column_value = read_column_value;
  proxy.reset_position = reset_position;
  proxy.open_table = open_table<table>;
  proxy.close_table = close_table;
  return proxy;
}

#define RTP_TABLE(index, name, columns, key_columns, definition)      \
  {proxy<index>(),           #name,    sizeof(#name) - 1, definition, \
   sizeof(Cursor::position), READONLY, nullptr,           row_count},
PFS_engine_table_share_proxy shares[] = {
#include "rtp_tables.inc"
};

#define RTP_TABLE(index, ...) &shares[index],
PFS_engine_table_share_proxy *share_list[] = {
#include "rtp_tables.inc"
};

template <typename Service>
void acquire(SERVICE_TYPE(registry) * registry, const char *name, Service *&service) {
  my_h_service handle = nullptr;
  if (!registry->acquire(name, &handle)) service = reinterpret_cast<Service *>(handle);
}

template <typename Service>
void release(SERVICE_TYPE(registry) * registry, Service *&service) {
  if (service == nullptr) return;
  registry->release(
      reinterpret_cast<my_h_service>(const_cast<std::remove_const_t<Service> *>(service)));
  service = nullptr;
}

}  // namespace

bool add_tables(SERVICE_TYPE(registry) * registry) noexcept {
  acquire(registry, "pfs_plugin_table_v1", table_service);
  acquire(registry, "pfs_plugin_column_integer_v1", integer_service);
  acquire(registry, "pfs_plugin_column_bigint_v1", bigint_service);
  acquire(registry, "pfs_plugin_column_string_v2", string_service);
  if (table_service == nullptr || integer_service == nullptr || bigint_service == nullptr ||
      string_service == nullptr) {
    return false;
  }
  added = table_service->add_tables(share_list, std::size(share_list)) == 0;
  return added;
}

void remove_tables(SERVICE_TYPE(registry) * registry) noexcept {
  if (added) (void)table_service->delete_tables(share_list, std::size(share_list));
  added = false;
  if (registry == nullptr) return;
  release(registry, table_service);
  release(registry, integer_service);
  release(registry, bigint_service);
  release(registry, string_service);
}

}  // namespace rtp
