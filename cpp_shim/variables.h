// SPDX-License-Identifier: GPL-2.0-only
//
// The system variables that include/rtp_vars.inc lists.

#ifndef RTP_SHIM_VARIABLES_H
#define RTP_SHIM_VARIABLES_H

#include <array>
#include <string>

#include "compat.h"
#include "rtp.h"

namespace rtp {

#define RTP_VARIABLE(...) +1
constexpr size_t variable_count = 0
#include "rtp_vars.inc"
    ;
#undef RTP_VARIABLE

// For the plugin's descriptor; ends with a null.
extern SYS_VAR *system_variables[variable_count + 1];

// Gives all variables that the user left alone the default for this machine. Needs `registry`.
void apply_variable_defaults(SERVICE_TYPE(registry) * registry) noexcept;

// The present values, in the order of their index.
std::array<uint64_t, variable_count> variable_values() noexcept;

// The same for people: name = value, ...
std::string describe_variables();

}  // namespace rtp

#endif  // RTP_SHIM_VARIABLES_H
