// SPDX-License-Identifier: GPL-2.0-only

#include "variables.h"

#include <cstring>

#include "hooks.h"

namespace rtp {

namespace {

// SQL type and mutability as they are written in rtp_vars.inc.
using ULONG = unsigned long;
using UINT = unsigned int;
enum class Mutability { READ_ONLY, DYNAMIC, DYNAMIC_CONNECTION_ADMIN };

struct Description {
  const char *name;
  Mutability mutability;
  uint64_t min, max;
};

#define RTP_VARIABLE(index, name, type, mutability, def, min, max, comment) \
  {"thread_pool_" #name, Mutability::mutability, min, max},
constexpr Description descriptions[] = {
#include "rtp_vars.inc"
};
#undef RTP_VARIABLE

// Like Oracle's, variables that need CONNECTION_ADMIN are persisted with the read-only ones, which
// the server applies before the plugin starts.
constexpr int flags_of(Mutability mutability) {
  switch (mutability) {
    case Mutability::READ_ONLY:
      return PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY;
    case Mutability::DYNAMIC_CONNECTION_ADMIN:
      return PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_PERSIST_AS_READ_ONLY;
    default:
      return PLUGIN_VAR_RQCMDARG;
  }
}

// Raises an error if the session may not change the variable. The server's function is true when
// the privilege is missing.
bool is_denied(const Description &variable, THD *thd) {
  if (variable.mutability != Mutability::DYNAMIC_CONNECTION_ADMIN || thd == nullptr ||
      !thd_check_connection_admin_privilege(thd)) {
    return false;
  }
  my_error(ER_SPECIFIC_ACCESS_DENIED_ERROR, MYF(0), "CONNECTION_ADMIN");
  return true;
}

// Raises an error if the number isn't in range.
bool is_out_of_range(const Description &variable, long long number, bool is_unsigned) {
  const auto magnitude = static_cast<uint64_t>(number);
  const bool is_negative = number < 0 && !is_unsigned;
  if (!is_negative && magnitude >= variable.min && magnitude <= variable.max) return false;
  const std::string text = is_negative ? std::to_string(number) : std::to_string(magnitude);
  my_error(ER_WRONG_VALUE_FOR_VAR, MYF(0), variable.name, text.c_str());
  return true;
}

template <uint32_t index, typename Type>
int check(THD *thd, SYS_VAR *, void *save, st_mysql_value *value) {
  const Description &variable = descriptions[index];
  long long number = 0;
  if (is_denied(variable, thd)) return 1;
  // Fails for NULL; the server then raises the error.
  if (value->val_int(value, &number) != 0) return 1;
  if (is_out_of_range(variable, number, value->is_unsigned(value) != 0)) return 1;
  *static_cast<Type *>(save) = static_cast<Type>(number);
  return 0;
}

template <uint32_t index, typename Type>
void update(THD *thd, SYS_VAR *, void *target, const void *save) {
  // SET … = DEFAULT comes here without a check (sql/sql_plugin_var.cc).
  if (is_denied(descriptions[index], thd)) return;
  const Type value = *static_cast<const Type *>(save);
  rtp_pool *pool = active_pool();
  if (pool != nullptr && rtp_pool_set_variable(pool, index, value) != RTP_OK) {
    my_error(ER_WRONG_VALUE_FOR_VAR, MYF(0), descriptions[index].name,
             std::to_string(value).c_str());
    return;
  }
  *static_cast<Type *>(target) = value;
}

#define RTP_VARIABLE(index, name, type, mutability, def, min, max, comment)          \
  type value_##name = def;                                                           \
  MYSQL_SYSVAR_##type(name, value_##name, flags_of(Mutability::mutability), comment, \
                      (check<index, type>), (update<index, type>), def, min, max, 0);
#include "rtp_vars.inc"
#undef RTP_VARIABLE

// Did nobody give the variable a value? When the server can't say, the value is left alone.
bool is_default(SERVICE_TYPE(system_variable_source) * sources, const char *name) {
  enum_variable_source source = enum_variable_source::COMMAND_LINE;
  return !sources->get(name, strlen(name), &source) && source == enum_variable_source::COMPILED;
}

}  // namespace

SYS_VAR *system_variables[variable_count + 1] = {
#define RTP_VARIABLE(index, name, ...) MYSQL_SYSVAR(name),
#include "rtp_vars.inc"
#undef RTP_VARIABLE
    nullptr};

void apply_variable_defaults(SERVICE_TYPE(registry) * registry) noexcept {
  my_service<SERVICE_TYPE(system_variable_source)> sources("system_variable_source", registry);
  const auto apply = [&](uint32_t index, auto &descriptor) {
    uint64_t value = 0;
    if (rtp_variable_default(index, &value) != RTP_OK) return;
    // The server reads the default of SET … = DEFAULT from the descriptor.
    descriptor.def_val = value;
    if (sources.is_valid() && is_default(sources, descriptions[index].name)) {
      *descriptor.value = value;
    }
  };
#define RTP_VARIABLE(index, name, ...) apply(index, MYSQL_SYSVAR_NAME(name));
#include "rtp_vars.inc"
#undef RTP_VARIABLE
}

std::array<uint64_t, variable_count> variable_values() noexcept {
  return {
#define RTP_VARIABLE(index, name, ...) value_##name,
#include "rtp_vars.inc"
#undef RTP_VARIABLE
  };
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
