// SPDX-License-Identifier: GPL-2.0-only
//
// What the server calls: the connection handler and the thread events.

#ifndef RTP_SHIM_HOOKS_H
#define RTP_SHIM_HOOKS_H

#include "compat.h"
#include "rtp.h"

namespace rtp {

// The pool that the hooks and the variables serve: null before it has started and after its end.
rtp_pool *active_pool() noexcept;
void set_active_pool(rtp_pool *pool) noexcept;

// Makes the pool the server's connection handler. False: the server refused.
bool install_hooks() noexcept;
// Gives the connections back to the server's own handler, after the pool has ended. Does nothing
// when the hooks aren't installed.
void remove_hooks() noexcept;

}  // namespace rtp

#endif  // RTP_SHIM_HOOKS_H
