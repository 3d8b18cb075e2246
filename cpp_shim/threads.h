// SPDX-License-Identifier: GPL-2.0-only
//
// The pool's operating system threads, made the server's way.

#ifndef RTP_SHIM_THREADS_H
#define RTP_SHIM_THREADS_H

#include "compat.h"
#include "rtp.h"

namespace rtp {

// Instrument of a session: performance_schema.threads shows it as
// thread/thread_pool/tp_one_connection.
extern PSI_thread_key key_session;

// Announces the pool's threads to the performance schema. Call it before any other thread is made.
void register_thread_keys() noexcept;

// Where the server's stack overrun check starts to count on the calling thread. `local` is the
// address of a local variable; it's the answer on threads that the pool didn't make.
const char *stack_base(const char *local) noexcept;

// Members of rtp_host.
uint32_t thread_spawn(void *context, uint32_t role, void *start, rtp_thread **thread) noexcept;
void thread_join(void *context, rtp_thread *thread) noexcept;
uint64_t thread_id(void *context) noexcept;

}  // namespace rtp

#endif  // RTP_SHIM_THREADS_H
