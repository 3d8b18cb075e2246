// SPDX-License-Identifier: GPL-2.0-only
//
// The life of a session: members of rtp_host. A rtp_session is the server's THD, a rtp_channel its
// Channel_info.

#ifndef RTP_SHIM_SESSION_H
#define RTP_SHIM_SESSION_H

#include "compat.h"
#include "rtp.h"

namespace rtp {

inline rtp_channel *handle_of(Channel_info *channel) {
  return reinterpret_cast<rtp_channel *>(channel);
}

// The token of an armed session lives in the THD as its scheduler data; null stands for none.
static_assert(sizeof(void *) == sizeof(uint64_t));
inline uint64_t token_of(THD *thd) {
  return reinterpret_cast<uint64_t>(thd_get_scheduler_data(thd));
}

uint32_t session_open(void *context, rtp_channel *channel, rtp_opened *opened) noexcept;
void session_attach(void *context, rtp_session *session) noexcept;
void session_detach(void *context, rtp_session *session) noexcept;
void session_step(void *context, rtp_session *session, rtp_outcome *outcome) noexcept;
uint32_t session_arm(void *context, rtp_session *session, uint64_t token, rtp_arm_function arm,
                     void *argument) noexcept;
void session_close(void *context, rtp_session *session, uint32_t reason) noexcept;
void session_reject(void *context, rtp_channel *channel, uint32_t reason) noexcept;

}  // namespace rtp

#endif  // RTP_SHIM_SESSION_H
