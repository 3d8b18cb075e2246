// SPDX-License-Identifier: GPL-2.0-only

#include "variables.h"

#include <cstring>

#include "hooks.h"
#include "log.h"

namespace rtp {

namespace {

enum class Access { READ_ONLY, DYNAMIC, DYNAMIC_CONNECTION_ADMIN, SESSION };

struct Description {
  const char *name;
  Access access;
  bool deprecated;
  uint64_t default_value;
};

#define RTP_VARIABLE(index, name, kind, access, deprecated, def, ...) \
  {"thread_pool_" #name, Access::access, deprecated, def},
constexpr Description descriptions[] = {
#include "rtp_vars.inc"
};
#undef RTP_VARIABLE

// Like Oracle's, variables that need CONNECTION_ADMIN are persisted with the read-only ones, which
// the server applies before the plugin starts.
constexpr int flags_of(Access access) {
  switch (access) {
    case Access::READ_ONLY:
      return PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY;
    case Access::DYNAMIC_CONNECTION_ADMIN:
      return PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_PERSIST_AS_READ_ONLY;
    default:
      return PLUGIN_VAR_RQCMDARG;
  }
}

// ---------------------------------------------------------------------------------------------
// SET

// Raises an error if the session may not change the variable. The server's function is true when
// the privilege is missing.
bool is_denied(const Description &variable, THD *thd) {
  if (variable.access != Access::DYNAMIC_CONNECTION_ADMIN || thd == nullptr ||
      !thd_check_connection_admin_privilege(thd)) {
    return false;
  }
  my_error(ER_SPECIFIC_ACCESS_DENIED_ERROR, MYF(0), "CONNECTION_ADMIN");
  return true;
}

// Only max_active_query_threads is both deprecated and dynamic. Oracle's warning misspells its
// name; whoever compares whole messages, as Oracle's test suite does, expects it so.
void warn_if_deprecated(const Description &variable, THD *thd) {
  if (!variable.deprecated || thd == nullptr) return;
  push_deprecated_warn_no_replacement(thd, "Plugin variable thread_pool_max_actuve_query_threads");
}

void raise_wrong_value(const Description &variable, const std::string &value) {
  my_error(ER_WRONG_VALUE_FOR_VAR, MYF(0), variable.name, value.c_str());
}

// Raises an error if the core refuses the value.
bool is_refused(uint32_t index, uint64_t value, uint32_t result);

template <uint32_t index, typename Type>
int check(THD *thd, SYS_VAR *, void *save, st_mysql_value *value) {
  const Description &variable = descriptions[index];
  long long number = 0;
  if (is_denied(variable, thd)) return 1;
  warn_if_deprecated(variable, thd);
  // Fails for NULL; the server then raises the error.
  if (value->val_int(value, &number) != 0) return 1;
  if (number < 0 && value->is_unsigned(value) == 0) {
    raise_wrong_value(variable, std::to_string(number));
    return 1;
  }
  const auto magnitude = static_cast<uint64_t>(number);
  const uint32_t result = rtp_pool_check_variable(active_pool(), index, magnitude);
  if (is_refused(index, magnitude, result)) return 1;
  *static_cast<Type *>(save) = static_cast<Type>(number);
  return 0;
}

void log_change(const Description &variable, uint64_t before, uint64_t after) {
  const std::string text =
      "Old value: " + std::to_string(before) + ", new value: " + std::to_string(after);
  LogErr(SYSTEM_LEVEL, ER_THREAD_POOL_SYSVAR_CHANGE, variable.name + strlen("thread_pool_"),
         text.c_str());
}

template <uint32_t index, typename Type>
void update(THD *thd, SYS_VAR *, void *target, const void *save) {
  const Description &variable = descriptions[index];
  // SET … = DEFAULT comes here without a check (sql/sql_plugin_var.cc), and so do words.
  if (is_denied(variable, thd)) return;
  const Type value = *static_cast<const Type *>(save);
  rtp_pool *pool = active_pool();
  if (pool != nullptr && is_refused(index, value, rtp_pool_set_variable(pool, index, value))) {
    return;
  }
  log_change(variable, *static_cast<Type *>(target), value);
  *static_cast<Type *>(target) = value;
}

// ---------------------------------------------------------------------------------------------
// The variables. RTP_DEFINE_kind makes the value, where the kind has one, and its descriptor.

#define RTP_DEFINE_NUMBER(type, kind, index, name, access, def, min, max, comment)                 \
  type value_##name = def;                                                                         \
  MYSQL_SYSVAR_##kind(name, value_##name, flags_of(Access::access), comment, (check<index, type>), \
                      (update<index, type>), def, min, max, 0);
#define RTP_DEFINE_ULONG(...) RTP_DEFINE_NUMBER(unsigned long, ULONG, __VA_ARGS__)
#define RTP_DEFINE_UINT(...) RTP_DEFINE_NUMBER(unsigned int, UINT, __VA_ARGS__)

#define RTP_DEFINE_BOOL(index, name, access, def, min, max, comment) \
  bool value_##name = def;                                           \
  MYSQL_SYSVAR_BOOL(name, value_##name, flags_of(Access::access), comment, nullptr, nullptr, def);

#define RTP_DEFINE_WORDS(name, ...)                    \
  const char *words_##name[] = {__VA_ARGS__, nullptr}; \
  TYPELIB library_##name = {array_elements(words_##name) - 1, "", words_##name, nullptr};
#define RTP_DEFINE_ENUM(index, name, access, def, min, max, comment, ...)           \
  RTP_DEFINE_WORDS(name, __VA_ARGS__)                                               \
  unsigned long value_##name = def;                                                 \
  MYSQL_SYSVAR_ENUM(name, value_##name, flags_of(Access::access), comment, nullptr, \
                    (update<index, unsigned long>), def, &library_##name);

#define RTP_DEFINE_SESSION_ULONG(index, name, access, def, min, max, comment)                \
  MYSQL_THDVAR_ULONG(name, flags_of(Access::access), comment, (check<index, unsigned long>), \
                     nullptr, def, min, max, 0);
#define RTP_DEFINE_SESSION_UINT(index, name, access, def, min, max, comment)               \
  MYSQL_THDVAR_UINT(name, flags_of(Access::access), comment, (check<index, unsigned int>), \
                    nullptr, def, min, max, 0);
#define RTP_DEFINE_SESSION_ENUM(index, name, access, def, min, max, comment, ...)   \
  RTP_DEFINE_WORDS(name, __VA_ARGS__)                                               \
  MYSQL_THDVAR_ENUM(name, flags_of(Access::access), comment, nullptr, nullptr, def, \
                    &library_##name);

#define RTP_VARIABLE(index, name, kind, access, deprecated, ...) \
  RTP_DEFINE_##kind(index, name, access, __VA_ARGS__)
#include "rtp_vars.inc"
#undef RTP_VARIABLE

// The present global value.
#define RTP_VALUE_ULONG(name) value_##name
#define RTP_VALUE_UINT(name) value_##name
#define RTP_VALUE_BOOL(name) value_##name
#define RTP_VALUE_ENUM(name) value_##name
#define RTP_VALUE_SESSION_ULONG(name) THDVAR(nullptr, name)
#define RTP_VALUE_SESSION_UINT(name) THDVAR(nullptr, name)
#define RTP_VALUE_SESSION_ENUM(name) THDVAR(nullptr, name)

bool is_refused(uint32_t index, uint64_t value, uint32_t result) {
  if (result == RTP_OK) return false;
  if (result == RTP_LISTENERS_NEED_LIMIT) {
    my_error(ER_TP_CANNOT_DISABLE_MTL_WITH_DL, MYF(0));
  } else if (result == RTP_TOO_MANY_QUERY_THREADS) {
    const bool is_limit = index == RTP_VARIABLE_MAX_TRANSACTIONS_LIMIT;
    const uint64_t limit = is_limit ? value : value_max_transactions_limit;
    const uint64_t threads = is_limit ? value_query_threads_per_group : value;
    my_error(ER_TP_QUERY_THRS_PER_GRP_EXCEEDS_TXN_THR_LIMIT, MYF(0), static_cast<uint>(threads),
             static_cast<uint>(rtp_transactions_per_group(limit, value_size)));
  } else {
    raise_wrong_value(descriptions[index], std::to_string(value));
  }
  return true;
}

// ---------------------------------------------------------------------------------------------
// Start

// Did nobody give the variable a value? When the server can't say, the value is left alone.
bool is_default(SERVICE_TYPE(system_variable_source) * sources, const char *name) {
  enum_variable_source source = enum_variable_source::COMMAND_LINE;
  return !sources->get(name, strlen(name), &source) && source == enum_variable_source::COMPILED;
}

// Gives all numbers that the user left alone the default for this machine. The number of groups
// comes first, since other defaults depend on it.
void apply_defaults() {
  my_service<SERVICE_TYPE(system_variable_source)> sources("system_variable_source", reg_srv);
  [[maybe_unused]] const auto apply = [&](uint32_t index, auto &descriptor) {
    uint64_t value = 0;
    if (rtp_variable_default(index, value_size, &value) != RTP_OK) return;
    // The server reads the default of SET … = DEFAULT from the descriptor.
    descriptor.def_val = value;
    if (sources.is_valid() && is_default(sources, descriptions[index].name)) {
      *descriptor.value = value;
    }
  };
  static_assert(RTP_VARIABLE_SIZE == 0);
#define RTP_APPLY_ULONG(index, name) apply(index, MYSQL_SYSVAR_NAME(name));
#define RTP_APPLY_UINT(index, name) apply(index, MYSQL_SYSVAR_NAME(name));
#define RTP_APPLY_BOOL(index, name)
#define RTP_APPLY_ENUM(index, name)
#define RTP_APPLY_SESSION_ULONG(index, name)
#define RTP_APPLY_SESSION_UINT(index, name)
#define RTP_APPLY_SESSION_ENUM(index, name)
#define RTP_VARIABLE(index, name, kind, ...) RTP_APPLY_##kind(index, name)
#include "rtp_vars.inc"
#undef RTP_VARIABLE
}

void log_corrections(uint32_t corrections, uint64_t query_threads_before,
                     uint64_t report_interval_before) {
  if (corrections & RTP_CORRECTION_ONE_QUERY_THREAD) {
    LogErr(WARNING_LEVEL, ER_WARN_THREAD_POOL_QUERY_THREADS_MISMATCH_INCOMPATIBLE_ALGO);
  }
  if (corrections & RTP_CORRECTION_QUERY_THREADS) {
    const uint after = value_query_threads_per_group;
    // Existing monitoring looks for the end of the sentence that Oracle's pool adds.
    const char *remark = after == 1 && value_algorithm == 1
                             ? " Please note that the auto-corrected value "
                               "thread_pool_query_threads_per_group(1) is not recommended when "
                               "used with HIGH_CONCURRENCY_ALGORITHM."
                             : "";
    LogErr(WARNING_LEVEL, ER_WARN_THREAD_POOL_QUERY_THREADS_INCOMPATIBLE_MTL,
           static_cast<uint>(query_threads_before), after, after, remark);
  }
  if (corrections & RTP_CORRECTION_LISTENERS) {
    LogErr(WARNING_LEVEL, ER_WARN_THREAD_POOL_DEDICATED_LISTENERS_INCOMPATIBLE_MTL);
  }
  if (corrections & RTP_CORRECTION_REPORT_INTERVAL) {
    LogPluginErrMsg(WARNING_LEVEL, ER_LOG_PRINTF_MSG,
                    "thread_pool_connection_report_interval can't be %u: use 0 or 60 to 600. It "
                    "is now %u",
                    static_cast<uint>(report_interval_before), value_connection_report_interval);
  }
}

void log_deprecated() {
  const auto values = variable_values();
  for (size_t i = 0; i < values.size(); i++) {
    const Description &variable = descriptions[i];
    if (variable.deprecated && values[i] != variable.default_value) {
      const std::string text = std::string("The plugin variable ") + variable.name;
      LogErr(WARNING_LEVEL, ER_DEPRECATE_MSG_NO_REPLACEMENT, text.c_str());
    }
  }
}

void correct() {
  auto values = variable_values();
  const uint64_t query_threads = value_query_threads_per_group;
  const uint64_t report_interval = value_connection_report_interval;
  uint32_t corrections = 0;
  if (rtp_variables_correct(values.data(), values.size(), &corrections) != RTP_OK) return;
  value_query_threads_per_group = values[RTP_VARIABLE_QUERY_THREADS_PER_GROUP];
  value_dedicated_listeners = values[RTP_VARIABLE_DEDICATED_LISTENERS] != 0;
  value_connection_report_interval = values[RTP_VARIABLE_CONNECTION_REPORT_INTERVAL];
  log_corrections(corrections, query_threads, report_interval);
}

}  // namespace

SYS_VAR *system_variables[variable_count + 1] = {
#define RTP_VARIABLE(index, name, ...) MYSQL_SYSVAR(name),
#include "rtp_vars.inc"
#undef RTP_VARIABLE
    nullptr};

void settle_variables() noexcept {
  apply_defaults();
  log_deprecated();
  correct();
}

std::array<uint64_t, variable_count> variable_values() noexcept {
  return {
#define RTP_VARIABLE(index, name, kind, ...) RTP_VALUE_##kind(name),
#include "rtp_vars.inc"
#undef RTP_VARIABLE
  };
}

void read_session_variables(THD *thd, rtp_outcome *outcome) noexcept {
  if (THDVAR(thd, high_priority_connection) != 0) outcome->flags |= RTP_OUTCOME_HIGH_PRIORITY;
  outcome->priority = THDVAR(thd, priority);
  outcome->high_prio_mode = THDVAR(thd, high_prio_mode);
  outcome->high_prio_tickets = THDVAR(thd, high_prio_tickets);
}

std::string describe_variables() {
  std::string text;
  const auto values = variable_values();
  for (size_t i = 0; i < values.size(); i++) {
    if (i > 0) text += ", ";
    text += descriptions[i].name;
    text += " = " + std::to_string(values[i]);
  }
  return text;
}

}  // namespace rtp
