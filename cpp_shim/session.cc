// SPDX-License-Identifier: GPL-2.0-only

#include "session.h"

#include <ctime>
#include <string>

#include "log.h"
#include "threads.h"
#include "variables.h"

namespace rtp {

namespace {

THD *thd_of(rtp_session *session) { return reinterpret_cast<THD *>(session); }

Channel_info *channel_of(rtp_channel *channel) { return reinterpret_cast<Channel_info *>(channel); }

// ---------------------------------------------------------------------------------------------
// Attaching

void attach(THD *thd, const char *local) {
  psi_make_current(thd_get_psi(thd));
  thd_set_thread_stack(thd, stack_base(local));
  thd_store_globals(thd);
  thd_clear_errors(thd);
}

// Leaves no instrumentation current: what the thread does between sessions must not be charged to a
// user.
void detach(THD *thd) {
  reset_thread_globals(thd);
  psi_make_current(nullptr);
}

// ---------------------------------------------------------------------------------------------
// Outcome

// Does somebody else possibly wait for this session? A metadata lock stands for LOCK TABLES, FLUSH
// TABLES WITH READ LOCK, LOCK INSTANCE, GET_LOCK and HANDLER too (sql/mdl.h). Without a lock, BEGIN
// and XA START still count: their statements belong together.
bool holds_locks(THD *thd) {
  return thd_in_active_multi_stmt_transaction(thd) || thd_is_transaction_active(thd) ||
         thd->mdl_context.has_locks() ||
         !thd->get_transaction()->xid_state()->has_state(XID_STATE::XA_NOTR);
}

// Has the server already taken bytes of the next command from the socket? has_data knows those of a
// TLS record. A compressed frame can hold several commands, whose rest stays in net->buff. Like the
// server's own handler, the next do_command must look there first, although the reply to the
// command before was written to the same buffer, so that it usually finds ER_UNKNOWN_COM_ERROR
// (sql-common/net_serv.cc).
bool has_buffered(THD *thd) {
  return thd_connection_has_data(thd) != 0 ||
         thd->get_protocol_classic()->get_net()->remain_in_buf > 0;
}

bool is_plain(THD *thd) {
  const NET *net = thd->get_protocol_classic()->get_net();
  return net->vio != nullptr && net->vio->type != VIO_TYPE_SSL && !net->compress;
}

rtp_outcome outcome_of(THD *thd, bool ended) {
  rtp_outcome outcome{};
  outcome.wait_timeout_s = static_cast<uint32_t>(thd_get_net_wait_timeout(thd));
  if (ended || !thd_connection_alive(thd)) {
    outcome.flags = RTP_OUTCOME_CLOSE;
    return outcome;
  }
  if (has_buffered(thd)) outcome.flags |= RTP_OUTCOME_BUFFERED;
  if (holds_locks(thd)) outcome.flags |= RTP_OUTCOME_HOLDS_LOCKS;
  if (is_plain(thd)) outcome.flags |= RTP_OUTCOME_PLAIN;
  read_session_variables(thd, &outcome);
  return outcome;
}

// ---------------------------------------------------------------------------------------------
// Login

// Consumes the channel. On failure it has been closed, and counted as the server's own handler does
// (sql/conn_handler/connection_handler_per_thread.cc).
THD *make_thd(Channel_info *channel) {
  THD *thd = nullptr;
  try {
    thd = create_thd(channel);
  } catch (...) {
    channel->send_error_and_close_channel(ER_OUT_OF_RESOURCES, 0, false);
  }
  destroy_channel_info(channel);
  if (thd == nullptr) {
    connection_errors_internal++;
    increment_aborted_connects();
    dec_connection_count();
  }
  return thd;
}

// From here on the session is in the process list and can be killed.
void publish(THD *thd, PSI_thread *psi, const char *local) {
  thd_init(thd, const_cast<char *>(stack_base(local)));
  thd_set_psi(thd, psi);
  PSI_THREAD_CALL(set_thread_id)(psi, thd_get_thread_id(thd));
  PSI_THREAD_CALL(set_thread_THD)(psi, thd);
  mysql_socket_set_thread_owner(thd_get_mysql_socket(thd));
}

bool log_in(THD *thd) {
  try {
    return !thd_prepare_connection(thd);
  } catch (...) {
    return false;
  }
}

// The privilege is looked at once, at login. The server evaluates no privilege at all under
// --skip-grant-tables, where every account would seem to have it.
bool is_pool_admin(THD *thd) {
  return !skip_grant_tables() &&
         thd->security_context()->has_global_grant(STRING_WITH_LEN("TP_CONNECTION_ADMIN")).first;
}

uint32_t kind_of(THD *thd, bool came_by_admin_port) {
  if (came_by_admin_port) return RTP_CONNECTION_ADMIN_PORT;
  return is_pool_admin(thd) ? RTP_CONNECTION_ADMIN_PRIVILEGE : RTP_CONNECTION_USER;
}

// ---------------------------------------------------------------------------------------------
// End

// A telemetry component keeps its data in the session, where end_connection would free it.
void end_telemetry(PSI_thread *psi) {
  if (psi != nullptr) PSI_THREAD_CALL(abort_telemetry)(psi);
}

// What all ends of a session have in common. The session is attached.
void destroy(THD *thd) {
  PSI_thread *psi = thd_get_psi(thd);
  end_telemetry(psi);
  close_connection(thd, 0, false, false);
  thd->get_stmt_da()->reset_diagnostics_area();
  PSI_THREAD_CALL(set_thread_THD)(psi, nullptr);
  destroy_thd(thd, false);
  psi_make_current(nullptr);
  PSI_THREAD_CALL(delete_thread)(psi);
  // Last, since a shutdown of the server goes on when the count reaches zero.
  dec_connection_count();
}

// Sends an error that the client finds when it next looks, and marks the connection as broken, so
// that it counts as aborted. It's what the server does when its own read of a command fails
// (do_command in sql/sql_parse.cc, net_read_raw_loop in sql-common/net_serv.cc).
void send_last_error(THD *thd, uint error) {
  NET *net = thd->get_protocol_classic()->get_net();
  thd->lex->set_current_query_block(nullptr);
  thd->clear_error();
  thd->get_stmt_da()->reset_diagnostics_area();
  net_new_transaction(net);
  net->compress_pkt_nr = 0;
  net->last_errno = error;
  net->error = NET_ERROR_SOCKET_NOT_READABLE;
  my_error(error, MYF(0));
  thd->send_statement_status();
}

// The first line is the server's own. The second is that of Oracle's pool, which existing
// monitoring looks for; its numbers are strings.
void log_idle_timeout(THD *thd) {
  const Security_context *context = thd->security_context();
  const std::string account = Auth_id(context->priv_user(), context->priv_host()).auth_str();
  const long limit = static_cast<long>(thd_get_net_wait_timeout(thd));
  const long idle = static_cast<long>(time(nullptr) - thd->start_time.tv_sec);
  constexpr int by_socket = 1, by_packet = 0;
  LogErr(INFORMATION_LEVEL, ER_LOG_CLIENT_INTERACTION_TIMEOUT, account.c_str(), by_socket,
         by_packet, idle, limit);
  LogErr(INFORMATION_LEVEL, ER_NET_WAIT_ERROR2, std::to_string(limit).c_str(), account.c_str());
}

void tell_reason(THD *thd, uint32_t reason) {
  switch (reason) {
    case RTP_CLOSE_IDLE_TIMEOUT:
      log_idle_timeout(thd);
      send_last_error(thd, ER_CLIENT_INTERACTION_TIMEOUT);
      break;
    case RTP_CLOSE_NO_RESOURCE:
      send_last_error(thd, ER_OUT_OF_RESOURCES);
      break;
    default:
      break;
  }
}

}  // namespace

// ---------------------------------------------------------------------------------------------
// Members of the table

uint32_t session_open(void *, rtp_channel *handle, rtp_opened *opened) noexcept {
  Channel_info *channel = channel_of(handle);
  const bool came_by_admin_port = channel->is_admin_connection();
  // First, so that the memory of the session is charged to its user from the start.
  PSI_thread *psi = PSI_THREAD_CALL(new_thread)(key_session, 0, nullptr, 0);
  psi_make_current(psi);
  THD *thd = make_thd(channel);
  if (thd == nullptr) {
    psi_make_current(nullptr);
    PSI_THREAD_CALL(delete_thread)(psi);
    return RTP_LOGIN_FAILED;
  }
  publish(thd, psi, reinterpret_cast<const char *>(&thd));
  if (!log_in(thd)) {
    increment_aborted_connects();
    // Without end_connection: a session that never began reports no disconnect.
    destroy(thd);
    return RTP_LOGIN_FAILED;
  }
  // A session that joins the process list after the shutdown's round of kills isn't killed.
  const bool ended = connection_events_loop_aborted();
  *opened = {reinterpret_cast<rtp_session *>(thd), thd_get_fd(thd),
             static_cast<uint32_t>(thd_get_thread_id(thd)), kind_of(thd, came_by_admin_port),
             outcome_of(thd, ended)};
  thd_set_net_read_write(thd, 1);
  detach(thd);
  return RTP_OK;
}

void session_attach(void *, rtp_session *session) noexcept {
  THD *thd = thd_of(session);
  attach(thd, reinterpret_cast<const char *>(&thd));
}

void session_detach(void *, rtp_session *session) noexcept { detach(thd_of(session)); }

void session_step(void *, rtp_session *session, rtp_outcome *outcome) noexcept {
  THD *thd = thd_of(session);
  bool ended = true;
  thd_set_net_read_write(thd, 0);
  if (thd_connection_alive(thd)) {
    try {
      ended = do_command(thd);
    } catch (...) {
      // Out of memory inside a statement: what it left behind is only good for closing.
    }
  }
  *outcome = outcome_of(thd, ended);
  // Shown as waiting for the client.
  thd_set_net_read_write(thd, 1);
}

uint32_t session_arm(void *, rtp_session *session, uint64_t token, rtp_arm_function arm,
                     void *argument) noexcept {
  THD *thd = thd_of(session);
  uint32_t result = RTP_KILLED;
  thd_lock_data(thd);
  thd_set_scheduler_data(thd, reinterpret_cast<void *>(token));
  // A kill has closed the descriptor, and its number may by now belong to another session. KILL
  // QUERY leaves an idle session alone.
  if (thd->killed != THD::KILL_CONNECTION) {
    result = arm(argument) == 0 ? RTP_OK : RTP_NO_RESOURCE;
  }
  // The new owner, if there is one, needs this lock before it can destroy the session.
  thd_unlock_data(thd);
  return result;
}

void session_close(void *, rtp_session *session, uint32_t reason) noexcept {
  THD *thd = thd_of(session);
  attach(thd, reinterpret_cast<const char *>(&thd));
  thd_lock_data(thd);
  thd_set_scheduler_data(thd, nullptr);
  thd_unlock_data(thd);
  thd_set_net_read_write(thd, 0);
  if (thd_connection_alive(thd)) tell_reason(thd, reason);
  end_telemetry(thd_get_psi(thd));
  end_connection(thd);
  destroy(thd);
}

void session_reject(void *, rtp_channel *handle, uint32_t reason) noexcept {
  Channel_info *channel = channel_of(handle);
  if (reason == RTP_REJECT_SHUTDOWN) {
    channel->send_error_and_close_channel(ER_SERVER_SHUTDOWN, 0, true);
  } else {
    connection_errors_internal++;
    increment_aborted_connects();
    channel->send_error_and_close_channel(ER_OUT_OF_RESOURCES, 0, true);
  }
  destroy_channel_info(channel);
  dec_connection_count();
}

}  // namespace rtp
