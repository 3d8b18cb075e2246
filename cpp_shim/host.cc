// SPDX-License-Identifier: GPL-2.0-only

#include "host.h"

#include <algorithm>

#include "log.h"
#include "session.h"
#include "threads.h"

namespace rtp {

namespace {

enum loglevel severity_of(uint32_t level) {
  switch (level) {
    case RTP_LOG_ERROR:
      return ERROR_LEVEL;
    case RTP_LOG_WARNING:
      return WARNING_LEVEL;
    default:
      return INFORMATION_LEVEL;
  }
}

void log(void *, uint32_t level, const char *text, size_t length) noexcept {
  if (level == RTP_LOG_CONNECTION_REPORT) {
    LogErr(INFORMATION_LEVEL, ER_THREAD_POOL_CONNECTION_INIT_REPORT,
           std::string(text, length).c_str());
    return;
  }
  // The server cuts longer lines itself, but printf wants the length as an int.
  const int shown = static_cast<int>(std::min<size_t>(length, LOG_BUFF_MAX));
  LogPluginErrMsg(severity_of(level), ER_LOG_PRINTF_MSG, "%.*s", shown, text);
}

}  // namespace

const rtp_host host = {
    RTP_ABI_VERSION, sizeof(rtp_host),
    nullptr,         thread_spawn,
    thread_join,     thread_id,
    session_open,    session_attach,
    session_detach,  session_step,
    session_arm,     session_close,
    session_reject,  log,
};

}  // namespace rtp
