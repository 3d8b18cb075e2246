// SPDX-License-Identifier: GPL-2.0-only

#include "threads.h"

#include <iterator>
#include <new>

struct rtp_thread {
  my_thread_handle handle;
  void *start;
};

namespace rtp {

PSI_thread_key key_session;

namespace {

PSI_thread_key key_worker;
PSI_thread_key key_login;
PSI_thread_key key_warden;

thread_local const char *own_stack_base = nullptr;

PSI_thread_key key_of(uint32_t role) {
  switch (role) {
    case RTP_ROLE_LOGIN:
      return key_login;
    case RTP_ROLE_WARDEN:
      return key_warden;
    default:
      return key_worker;
  }
}

extern "C" void *thread_body(void *argument) {
  const auto *thread = static_cast<rtp_thread *>(argument);
  // It can only fail in debug builds of the server, for lack of memory; then the thread has no
  // debug trace, but `start` must be handed over all the same.
  (void)my_thread_init();
  own_stack_base = reinterpret_cast<const char *>(&thread);
  PSI_thread *own_psi = psi_current();

  rtp_thread_main(thread->start);

  // The server removes the instrumentation that is current at the end of a thread.
  psi_make_current(own_psi);
  my_thread_end();
  return nullptr;
}

// Like the server's attributes for connection threads (sql/mysqld.cc), whose stack has the size
// that its stack overrun check counts on, but joinable.
int create(PSI_thread_key key, rtp_thread *thread) {
  size_t stack_size = 0;
  my_thread_attr_t attributes;
  my_thread_attr_getstacksize(get_connection_attrib(), &stack_size);
  if (const int error = my_thread_attr_init(&attributes)) return error;
  my_thread_attr_setstacksize(&attributes, stack_size);
  const int error = mysql_thread_create(key, &thread->handle, &attributes, thread_body, thread);
  my_thread_attr_destroy(&attributes);
  return error;
}

}  // namespace

void register_thread_keys() noexcept {
  // Names and flags are those of Oracle's pool as far as it has such a thread.
  PSI_thread_info threads[] = {
      {&key_worker, "tp_worker", "tp_worker", PSI_FLAG_NO_SEQNUM, 0,
       "Runs statements for any session of the pool"},
      {&key_login, "tp_login", "tp_login", PSI_FLAG_NO_SEQNUM, 0, "Performs logins for the pool"},
      {&key_warden, "tp_stall_check", "tp_stall", PSI_FLAG_SINGLETON, 0,
       "Watches the pool for stalls and timeouts"},
      {&key_session, "tp_one_connection", "tp_connection", PSI_FLAG_USER | PSI_FLAG_NO_SEQNUM, 0,
       "A session of the pool"},
  };
  mysql_thread_register("thread_pool", threads, std::size(threads));
}

const char *stack_base(const char *local) noexcept {
  return own_stack_base != nullptr ? own_stack_base : local;
}

uint32_t thread_spawn(void *, uint32_t role, void *start, rtp_thread **thread) noexcept {
  auto *made = new (std::nothrow) rtp_thread{{}, start};
  if (made == nullptr) return RTP_NO_RESOURCE;
  if (create(key_of(role), made) != 0) {
    delete made;
    return RTP_NO_RESOURCE;
  }
  inc_thread_created();
  *thread = made;
  return RTP_OK;
}

void thread_join(void *, rtp_thread *thread) noexcept {
  my_thread_join(&thread->handle, nullptr);
  delete thread;
}

uint64_t thread_id(void *) noexcept { return PSI_THREAD_CALL(get_current_thread_internal_id)(); }

}  // namespace rtp
