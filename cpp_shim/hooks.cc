// SPDX-License-Identifier: GPL-2.0-only

#include "hooks.h"

#include <atomic>

#include "session.h"

namespace rtp {

namespace {

std::atomic<rtp_pool *> pool{nullptr};
bool installed = false;

// Always returns false, "taken": after true the server would neither close the socket nor take
// back the count of the connection (sql/conn_handler/connection_handler_manager.cc).
bool add_connection(Channel_info *channel) noexcept {
  rtp_channel *handle = handle_of(channel);
  if (rtp_pool *target = active_pool()) {
    (void)rtp_pool_add_connection(target, handle, channel->is_admin_connection());
  } else {
    session_reject(nullptr, handle, RTP_REJECT_SHUTDOWN);
  }
  return false;
}

void end() noexcept {
  if (rtp_pool *target = pool.exchange(nullptr)) rtp_pool_shutdown(target);
}

// The session plays no part in the wait callbacks: it may be null, or belong to another thread
// (InnoDB passes the one of the transaction). The core knows what the calling thread runs.
void wait_begin(THD *, int kind) noexcept { rtp_wait_begin(kind); }

void wait_end(THD *) noexcept { rtp_wait_end(); }

// The server holds the session's lock.
void killed(THD *thd) noexcept {
  rtp_pool *target = active_pool();
  const uint64_t token = thd != nullptr ? token_of(thd) : 0;
  if (target != nullptr && token != 0) rtp_pool_kill(target, token);
}

// The server keeps pointers to these two. It stores the number of threads but never reads it.
Connection_handler_functions functions = {0, add_connection, end};
THD_event_functions events = {wait_begin, wait_end, killed};

}  // namespace

rtp_pool *active_pool() noexcept { return pool.load(std::memory_order_acquire); }

void set_active_pool(rtp_pool *new_pool) noexcept {
  pool.store(new_pool, std::memory_order_release);
}

bool install_hooks() noexcept {
  installed = my_connection_handler_set(&functions, &events) == 0;
  return installed;
}

void remove_hooks() noexcept {
  if (!installed) return;
  installed = false;
  (void)my_connection_handler_reset();
}

}  // namespace rtp
