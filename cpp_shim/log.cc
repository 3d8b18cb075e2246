// SPDX-License-Identifier: GPL-2.0-only

#include "log.h"

SERVICE_TYPE(registry) *reg_srv = nullptr;
SERVICE_TYPE(log_builtins) *log_bi = nullptr;
SERVICE_TYPE(log_builtins_string) *log_bs = nullptr;

namespace rtp {

bool open_log() noexcept { return !init_logging_service_for_plugin(&reg_srv, &log_bi, &log_bs); }

void close_log() noexcept {
  // The server's function follows reg_srv without a check, and deinit can come after a failed init.
  if (reg_srv != nullptr) {
    deinit_logging_service_for_plugin(&reg_srv, &log_bi, &log_bs);
  }
}

}  // namespace rtp
