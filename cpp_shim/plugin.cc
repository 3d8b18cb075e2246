// SPDX-License-Identifier: GPL-2.0-only
//
// The plugin: its start, its end and its descriptor.

#include <cstring>

#include "compat.h"
#include "hooks.h"
#include "host.h"
#include "log.h"
#include "rtp.h"
#include "status.h"
#include "tables.h"
#include "threads.h"
#include "variables.h"

namespace rtp {

namespace {

constexpr char privilege[] = "TP_CONNECTION_ADMIN";

// What has been done so far. The server calls deinit after a failed init too, so each step is
// undone only if it was taken.
rtp_pool *pool = nullptr;
bool privilege_registered = false;

void log_error(const char *text) { LogPluginErrMsg(ERROR_LEVEL, ER_LOG_PRINTF_MSG, "%s", text); }

// The layout of the server's internal structures depends on the release and on whether it is a
// debug build. The server compares the release itself before init, but not the kind of build; that
// one shows in the version it reports (set_server_version in sql/mysqld.cc).
bool is_right_server() {
#ifdef NDEBUG
  constexpr bool built_for_debug = false;
#else
  constexpr bool built_for_debug = true;
#endif
  constexpr size_t length = sizeof(MYSQL_SERVER_VERSION) - 1;
  const bool is_same_release = strncmp(server_version, MYSQL_SERVER_VERSION, length) == 0 &&
                               !my_isdigit(&my_charset_latin1, server_version[length]);
  const bool is_debug = strstr(server_version, "-debug") != nullptr;
  if (is_same_release && is_debug == built_for_debug) return true;
  LogPluginErrMsg(ERROR_LEVEL, ER_LOG_PRINTF_MSG,
                  "This module was built for MySQL %s%s, but the server is %s; the thread pool "
                  "is not used",
                  MYSQL_SERVER_VERSION, built_for_debug ? "-debug" : "", server_version);
  return false;
}

// A second dynamic handler would silently replace the first (it's only a debug assertion in
// sql/conn_handler/connection_handler_manager.cc).
bool is_only_pool() {
  if (Connection_handler_manager::thread_handling <
      Connection_handler_manager::SCHEDULER_TYPES_COUNT) {
    return true;
  }
  log_error("Another thread pool is already active; this one is not used");
  return false;
}

bool register_privilege() {
  my_service<SERVICE_TYPE(dynamic_privilege_register)> service("dynamic_privilege_register",
                                                               reg_srv);
  privilege_registered =
      service.is_valid() && !service->register_privilege(STRING_WITH_LEN(privilege));
  if (!privilege_registered) {
    log_error("The privilege TP_CONNECTION_ADMIN can't be registered");
  }
  return privilege_registered;
}

void unregister_privilege() {
  if (!privilege_registered) return;
  privilege_registered = false;
  my_service<SERVICE_TYPE(dynamic_privilege_register)> service("dynamic_privilege_register",
                                                               reg_srv);
  if (service.is_valid()) {
    (void)service->unregister_privilege(STRING_WITH_LEN(privilege));
  }
}

bool start_pool() {
  if (rtp_abi_version() != RTP_ABI_VERSION) {
    log_error("The module's two halves don't fit together: build it anew");
    return false;
  }
  const auto values = variable_values();
  const uint32_t created = rtp_pool_create(&host, values.data(), values.size(), &pool);
  const uint32_t result = created == RTP_OK ? rtp_pool_start(pool) : created;
  if (result == RTP_OK) return true;
  LogPluginErrMsg(ERROR_LEVEL, ER_LOG_PRINTF_MSG,
                  "The thread pool can't start (error %u); it is not used", result);
  return false;
}

bool take_connections() {
  set_active_pool(pool);
  if (install_hooks()) return true;
  log_error("The server doesn't accept the thread pool; it is not used");
  return false;
}

int deinit(void *) {
  remove_tables(reg_srv);
  remove_hooks();
  // After a failed start the hooks didn't end the pool.
  set_active_pool(nullptr);
  if (pool != nullptr) {
    rtp_pool_shutdown(pool);
    rtp_pool_destroy(pool);
    pool = nullptr;
  }
  unregister_privilege();
  close_log();
  return 0;
}

// The server calls it in its main thread before it listens. After a failure it runs on without a
// pool.
int init(void *) {
  if (!open_log()) return 1;
  if (is_right_server() && is_only_pool() && register_privilege()) {
    register_thread_keys();
    settle_variables();
    if (start_pool() && take_connections()) {
      if (!add_tables(reg_srv)) {
        LogPluginErrMsg(
            WARNING_LEVEL, ER_LOG_PRINTF_MSG,
            "The performance schema doesn't take the thread pool's tables (tp_...); the "
            "pool works without them");
      }
      LogPluginErr(SYSTEM_LEVEL, ER_THREAD_POOL_PLUGIN_STARTED, describe_variables().c_str());
      return 0;
    }
  }
  (void)deinit(nullptr);
  return 1;
}

st_mysql_daemon interface = {MYSQL_DAEMON_INTERFACE_VERSION};
st_mysql_information_schema schema_interface = {MYSQL_INFORMATION_SCHEMA_INTERFACE_VERSION};

}  // namespace

}  // namespace rtp

#define author "thread_pool_rs authors"

// clang-format off
mysql_declare_plugin(thread_pool){
    MYSQL_DAEMON_PLUGIN,
    &rtp::interface,
    "thread_pool",
    author,
    "Runs the statements of all connections on a bounded number of threads",
    PLUGIN_LICENSE_GPL,
    rtp::init,
    nullptr,
    rtp::deinit,
    0x0100,
    rtp::status_variables,
    rtp::system_variables,
    nullptr,
    PLUGIN_OPT_NO_INSTALL | PLUGIN_OPT_NO_UNINSTALL,
}
#define RTP_SCHEMA_TABLE(table, name, columns)               \
  , {                                                        \
      MYSQL_INFORMATION_SCHEMA_PLUGIN,                       \
      &rtp::schema_interface,                                \
      #name,                                                 \
      author,                                                \
      "Deprecated; use the table of the performance schema", \
      PLUGIN_LICENSE_GPL,                                    \
      rtp::init_schema_table<table>,                         \
      nullptr,                                               \
      nullptr,                                               \
      0x0100,                                                \
      nullptr,                                               \
      nullptr,                                               \
      nullptr,                                               \
      0,                                                     \
  }
#include "rtp_tables.inc"
mysql_declare_plugin_end;
// clang-format on
