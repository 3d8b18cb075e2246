// SPDX-License-Identifier: GPL-2.0-only
//
// What the core may ask of the server, as a table of functions.

#ifndef RTP_SHIM_HOST_H
#define RTP_SHIM_HOST_H

#include "rtp.h"

namespace rtp {

extern const rtp_host host;

}  // namespace rtp

#endif  // RTP_SHIM_HOST_H
