// SPDX-License-Identifier: GPL-2.0-only

#include "status.h"

#include <cstring>

#include "hooks.h"
#include "rtp.h"

namespace rtp {

namespace {

// `buffer` has room for any number (SHOW_VAR_FUNC_BUFF_SIZE). Without a pool the value is zero.
template <uint32_t index>
int show(MYSQL_THD, SHOW_VAR *variable, char *buffer) {
  uint64_t value = 0;
  if (rtp_pool *pool = active_pool()) (void)rtp_pool_status(pool, index, &value);
  memcpy(buffer, &value, sizeof(value));
  variable->type = SHOW_LONGLONG;
  variable->value = buffer;
  return 0;
}

}  // namespace

SHOW_VAR status_variables[] = {
#define RTP_STATUS(index, name, comment) \
  {name, reinterpret_cast<char *>(&show<index>), SHOW_FUNC, SHOW_SCOPE_GLOBAL},
#include "rtp_status.inc"
#undef RTP_STATUS
    {nullptr, nullptr, SHOW_UNDEF, SHOW_SCOPE_UNDEF}};

}  // namespace rtp
