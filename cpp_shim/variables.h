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

// Gives all variables that the user left alone the default for this machine, corrects what doesn't
// fit together, and warns of deprecated ones. Once, at the plugin's start.
void settle_variables() noexcept;

// The present global values, in the order of their index.
std::array<uint64_t, variable_count> variable_values() noexcept;

// Stores the session's variables in `outcome`. The session is attached.
void read_session_variables(THD *thd, rtp_outcome *outcome) noexcept;

// The present values for people: name = value, ...
std::string describe_variables();

}  // namespace rtp

#endif  // RTP_SHIM_VARIABLES_H
