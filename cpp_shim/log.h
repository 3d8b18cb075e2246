// SPDX-License-Identifier: GPL-2.0-only
//
// Access to the server's error log. Never call these in a wait callback: logging takes locks.

#ifndef RTP_SHIM_LOG_H
#define RTP_SHIM_LOG_H

#include "compat.h"

// The names under which the server's logging macros look for their services.
extern SERVICE_TYPE(registry) * reg_srv;
extern SERVICE_TYPE(log_builtins) * log_bi;
extern SERVICE_TYPE(log_builtins_string) * log_bs;

namespace rtp {

// False: the error log can't be had, and must not be used.
bool open_log() noexcept;
void close_log() noexcept;

}  // namespace rtp

#endif  // RTP_SHIM_LOG_H
