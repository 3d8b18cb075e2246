// SPDX-License-Identifier: GPL-2.0-only
//
// The status variables that include/rtp_status.inc lists.

#ifndef RTP_SHIM_STATUS_H
#define RTP_SHIM_STATUS_H

#include "compat.h"

namespace rtp {

// For the plugin's descriptor; ends with an entry without a name.
extern SHOW_VAR status_variables[];

}  // namespace rtp

#endif  // RTP_SHIM_STATUS_H
