// SPDX-License-Identifier: GPL-2.0-only
//
// Drives the core through its C interface. The server is faked: a channel is one end of a socket
// pair, a session answers each line with one line.

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rtp.h"

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
      abort();                                                                \
    }                                                                         \
  } while (false)

using namespace std::chrono_literals;

struct rtp_thread {
  std::thread thread;
};

// Stands for the channel before login and for the session after it. Lives as long as the test, so
// that a late call of the core is seen instead of crashing.
struct Connection {
  enum class Phase { channel, open, closed, rejected };

  explicit Connection(int server_end, int client_end, uint32_t timeout_s)
      : fd(server_end), client(client_end), wait_timeout_s(timeout_s) {}

  int fd;
  const int client;
  const uint32_t wait_timeout_s;
  std::mutex lock;  // the server's LOCK_thd_data; guards the next four
  bool killed = false;
  bool attached = false;
  bool has_socket = true;
  uint64_t token = 0;
  std::atomic<Phase> phase{Phase::channel};
  std::atomic<uint32_t> close_reason{0};
  bool in_transaction = false;
};

namespace {

std::atomic<int> threads_running{0};
std::atomic<int> threads_made{0};
std::atomic<int> refuse_threads_after{1 << 30};

Connection *connection_of(void *handle) { return static_cast<Connection *>(handle); }

// ---------------------------------------------------------------------------------------------
// The host

uint32_t thread_spawn(void *, uint32_t, void *start, rtp_thread **thread) {
  if (threads_made.fetch_add(1) >= refuse_threads_after) return RTP_NO_RESOURCE;
  threads_running++;
  *thread = new rtp_thread{std::thread([start] {
    rtp_thread_main(start);
    threads_running--;
  })};
  return RTP_OK;
}

void thread_join(void *, rtp_thread *thread) {
  thread->thread.join();
  delete thread;
}

rtp_outcome outcome_of(const Connection &connection, uint32_t flags) {
  rtp_outcome outcome{};
  outcome.flags = flags;
  outcome.wait_timeout_s = connection.wait_timeout_s;
  outcome.high_prio_tickets = UINT32_MAX;
  return outcome;
}

uint64_t thread_id(void *) { return 0; }

uint32_t session_open(void *, rtp_channel *channel, rtp_opened *opened) {
  Connection *connection = connection_of(channel);
  CHECK(connection->phase == Connection::Phase::channel);
  char line[16] = {};
  if (recv(connection->fd, line, 6, MSG_WAITALL) != 6 || memcmp(line, "login\n", 6) != 0) {
    close(connection->fd);
    connection->phase = Connection::Phase::rejected;
    return RTP_LOGIN_FAILED;
  }
  connection->phase = Connection::Phase::open;
  *opened = {reinterpret_cast<rtp_session *>(connection), connection->fd,
             static_cast<uint32_t>(connection->fd), RTP_CONNECTION_USER,
             outcome_of(*connection, 0)};
  CHECK(send(connection->fd, "hello\n", 6, MSG_NOSIGNAL) == 6);
  return RTP_OK;
}

void session_attach(void *, rtp_session *session) {
  Connection *connection = connection_of(session);
  const std::lock_guard guard(connection->lock);
  CHECK(connection->phase == Connection::Phase::open);
  CHECK(!std::exchange(connection->attached, true));
}

void session_detach(void *, rtp_session *session) {
  Connection *connection = connection_of(session);
  const std::lock_guard guard(connection->lock);
  CHECK(std::exchange(connection->attached, false));
}

// Returns false at the end of the file.
bool read_line(int fd, std::string *line) {
  line->clear();
  for (char c = 0; recv(fd, &c, 1, 0) == 1;) {
    if (c == '\n') return true;
    line->push_back(c);
  }
  return false;
}

void session_step(void *, rtp_session *session, rtp_outcome *outcome) {
  Connection *connection = connection_of(session);
  *outcome = outcome_of(*connection, RTP_OUTCOME_CLOSE);
  {
    const std::lock_guard guard(connection->lock);
    CHECK(connection->attached);
    if (connection->killed) return;
  }
  std::string line;
  if (!read_line(connection->fd, &line) || line == "quit") return;
  if (line == "begin") connection->in_transaction = true;
  if (line == "commit") connection->in_transaction = false;
  if (line == "sleep") {
    rtp_wait_begin(1);
    rtp_wait_begin(5);  // waits nest
    std::this_thread::sleep_for(20ms);
    rtp_wait_end();
    rtp_wait_end();
  }
  line.push_back('\n');
  (void)send(connection->fd, line.data(), line.size(), MSG_NOSIGNAL);
  outcome->flags = connection->in_transaction ? RTP_OUTCOME_HOLDS_LOCKS : 0;
}

uint32_t session_arm(void *, rtp_session *session, uint64_t token, rtp_arm_function arm,
                     void *argument) {
  Connection *connection = connection_of(session);
  const std::lock_guard guard(connection->lock);
  CHECK(!connection->attached);
  connection->token = token;
  if (connection->killed) return RTP_KILLED;
  return arm(argument) == 0 ? RTP_OK : RTP_NO_RESOURCE;
}

void session_close(void *, rtp_session *session, uint32_t reason) {
  Connection *connection = connection_of(session);
  const std::lock_guard guard(connection->lock);
  CHECK(!connection->attached);
  CHECK(connection->phase.exchange(Connection::Phase::closed) == Connection::Phase::open);
  connection->close_reason = reason;
  connection->token = 0;
  if (connection->has_socket) close(connection->fd);
}

void session_reject(void *, rtp_channel *channel, uint32_t) {
  Connection *connection = connection_of(channel);
  CHECK(connection->phase.exchange(Connection::Phase::rejected) == Connection::Phase::channel);
  close(connection->fd);
}

void write_log(void *, uint32_t level, const char *text, size_t length) {
  fprintf(stderr, "log %u: %.*s\n", level, static_cast<int>(length), text);
}

const rtp_host host = {RTP_ABI_VERSION, sizeof(rtp_host), nullptr,      thread_spawn,
                       thread_join,     thread_id,        session_open, session_attach,
                       session_detach,  session_step,     session_arm,  session_close,
                       session_reject,  write_log};

// ---------------------------------------------------------------------------------------------
// A server with clients

class Server {
 public:
  Server() {
    uint64_t values[] = {
#define RTP_VARIABLE(index, ...) default_of(index),
#include "rtp_vars.inc"
#undef RTP_VARIABLE
    };
    CHECK(rtp_pool_create(&host, values, std::size(values), &pool) == RTP_OK);
  }

  ~Server() {
    rtp_pool_shutdown(pool);
    rtp_pool_shutdown(pool);  // idempotent
    CHECK(threads_running == 0);
    for (Connection &connection : connections) {
      CHECK(connection.phase == Connection::Phase::closed ||
            connection.phase == Connection::Phase::rejected);
      close(connection.client);
    }
    rtp_pool_destroy(pool);
  }

  static uint64_t default_of(uint32_t variable) {
    uint64_t value = 0;
    constexpr uint64_t groups = 2;
    CHECK(rtp_variable_default(variable, groups, &value) == RTP_OK);
    return value;
  }

  // A connection whose client has said nothing yet.
  Connection &connect(uint32_t wait_timeout_s = 28800) {
    int ends[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    const std::lock_guard guard(lock);
    Connection &connection = connections.emplace_back(ends[0], ends[1], wait_timeout_s);
    CHECK(rtp_pool_add_connection(pool, reinterpret_cast<rtp_channel *>(&connection), 0) == RTP_OK);
    return connection;
  }

  Connection &log_in(uint32_t wait_timeout_s = 28800) {
    Connection &connection = connect(wait_timeout_s);
    CHECK(ask(connection, "login") == "hello");
    return connection;
  }

  // Empty: the server has closed the connection.
  static std::string ask(Connection &connection, const std::string &question) {
    const std::string line = question + "\n";
    (void)send(connection.client, line.data(), line.size(), MSG_NOSIGNAL);
    std::string answer;
    return read_line(connection.client, &answer) ? answer : "";
  }

  // As KILL does it: the socket is closed first, unless the session's owner is using it, and the
  // core is told under the session's lock.
  void kill(Connection &connection) {
    const std::lock_guard guard(connection.lock);
    if (connection.killed || connection.phase != Connection::Phase::open) return;
    connection.killed = true;
    shutdown(connection.fd, SHUT_RDWR);
    if (!connection.attached) {
      close(connection.fd);
      connection.has_socket = false;
    }
    if (connection.token != 0) rtp_pool_kill(pool, connection.token);
  }

  rtp_pool *pool = nullptr;
  std::mutex lock;
  std::deque<Connection> connections;
};

void wait_for_end(const Connection &connection) {
  for (int i = 0; i < 1000 && connection.phase == Connection::Phase::open; i++)
    std::this_thread::sleep_for(10ms);
  CHECK(connection.phase == Connection::Phase::closed);
}

// ---------------------------------------------------------------------------------------------
// Tests

void rejects_bad_partners() {
  rtp_pool *pool = nullptr;
  std::vector<uint64_t> values;
#define RTP_VARIABLE(index, name, kind, access, deprecated, def, ...) values.push_back(def);
#include "rtp_vars.inc"
#undef RTP_VARIABLE
  CHECK(rtp_pool_create(nullptr, values.data(), values.size(), &pool) == RTP_NULL_ARGUMENT);
  CHECK(rtp_pool_create(&host, nullptr, values.size(), &pool) == RTP_NULL_ARGUMENT);
  CHECK(rtp_pool_create(&host, values.data(), values.size(), nullptr) == RTP_NULL_ARGUMENT);
  CHECK(rtp_pool_create(&host, values.data(), values.size() - 1, &pool) == RTP_ABI_MISMATCH);
  rtp_host other = host;
  other.abi_version++;
  CHECK(rtp_pool_create(&other, values.data(), values.size(), &pool) == RTP_ABI_MISMATCH);
  values[0] = 1 << 20;
  CHECK(rtp_pool_create(&host, values.data(), values.size(), &pool) == RTP_OUT_OF_RANGE);
  rtp_pool_destroy(nullptr);
  // Legal on any thread at any time.
  rtp_wait_begin(2);
  rtp_wait_end();
}

void never_started_pool_ends() { Server server; }

void start_without_threads_fails_cleanly() {
  for (int allowed = 0; allowed < 3; allowed++) {
    threads_made = 0;
    refuse_threads_after = allowed;
    Server server;
    const uint32_t result = rtp_pool_start(server.pool);
    refuse_threads_after = 1 << 30;
    if (result != RTP_OK) CHECK(result == RTP_NO_RESOURCE);
    if (allowed == 0) CHECK(result == RTP_NO_RESOURCE);
  }
}

void many_clients_get_their_answers() {
  Server server;
  CHECK(rtp_pool_start(server.pool) == RTP_OK);
  std::vector<std::thread> clients;
  for (int client = 0; client < 32; client++) {
    clients.emplace_back([&server, client] {
      Connection &connection = server.log_in();
      for (int i = 0; i < 200; i++) {
        const std::string question = "ping " + std::to_string(client) + " " + std::to_string(i);
        CHECK(Server::ask(connection, question) == question);
      }
      for (const char *question : {"begin", "ping", "sleep", "commit", "sleep"}) {
        CHECK(Server::ask(connection, question) == question);
      }
      if (client % 2 == 0) {
        CHECK(Server::ask(connection, "quit").empty());
        wait_for_end(connection);
      }
    });
  }
  for (std::thread &client : clients) client.join();
}

void killed_sessions_end_once() {
  Server server;
  CHECK(rtp_pool_start(server.pool) == RTP_OK);
  Connection &idle = server.log_in();
  CHECK(Server::ask(idle, "ping") == "ping");
  std::this_thread::sleep_for(50ms);
  server.kill(idle);
  wait_for_end(idle);
  // Kills that race with statements and with the end of the session.
  std::vector<std::thread> pairs;
  for (int i = 0; i < 8; i++) {
    pairs.emplace_back([&server, i] {
      for (int round = 0; round < 50; round++) {
        Connection &victim = server.log_in();
        std::thread killer([&server, &victim, i, round] {
          std::this_thread::sleep_for(std::chrono::microseconds((i * 53 + round * 17) % 500));
          server.kill(victim);
        });
        while (!Server::ask(victim, "ping").empty()) {
        }
        killer.join();
        wait_for_end(victim);
      }
    });
  }
  for (std::thread &pair : pairs) pair.join();
}

void idle_session_times_out() {
  Server server;
  CHECK(rtp_pool_start(server.pool) == RTP_OK);
  Connection &connection = server.log_in(1);
  Connection &patient = server.log_in();
  std::this_thread::sleep_for(500ms);
  CHECK(Server::ask(connection, "ping") == "ping");
  std::this_thread::sleep_for(700ms);
  CHECK(connection.phase == Connection::Phase::open);
  wait_for_end(connection);
  CHECK(connection.close_reason == RTP_CLOSE_IDLE_TIMEOUT);
  CHECK(Server::ask(patient, "ping") == "ping");
}

void variables_are_checked() {
  Server server;
  CHECK(rtp_pool_start(server.pool) == RTP_OK);
  CHECK(rtp_pool_set_variable(server.pool, RTP_VARIABLE_STALL_LIMIT, 100) == RTP_OK);
  CHECK(rtp_pool_set_variable(server.pool, RTP_VARIABLE_STALL_LIMIT, 3) == RTP_OUT_OF_RANGE);
  CHECK(rtp_pool_set_variable(server.pool, 1000, 3) == RTP_OUT_OF_RANGE);
  CHECK(rtp_pool_set_variable(nullptr, RTP_VARIABLE_STALL_LIMIT, 100) == RTP_NULL_ARGUMENT);
  CHECK(rtp_pool_check_variable(server.pool, RTP_VARIABLE_STALL_LIMIT, 3) == RTP_OUT_OF_RANGE);
  CHECK(rtp_pool_check_variable(nullptr, RTP_VARIABLE_STALL_LIMIT, 3) == RTP_OUT_OF_RANGE);
  CHECK(rtp_pool_set_variable(server.pool, RTP_VARIABLE_QUERY_THREADS_PER_GROUP, 4096) ==
        RTP_TOO_MANY_QUERY_THREADS);
}

void start_values_are_corrected() {
  std::vector<uint64_t> values;
#define RTP_VARIABLE(index, name, kind, access, deprecated, def, ...) values.push_back(def);
#include "rtp_vars.inc"
#undef RTP_VARIABLE
  values[RTP_VARIABLE_SIZE] = 2;
  values[RTP_VARIABLE_QUERY_THREADS_PER_GROUP] = 8;
  values[RTP_VARIABLE_MAX_TRANSACTIONS_LIMIT] = 4;
  values[RTP_VARIABLE_CONNECTION_REPORT_INTERVAL] = 59;
  uint32_t corrections = 0;
  CHECK(rtp_variables_correct(nullptr, values.size(), &corrections) == RTP_NULL_ARGUMENT);
  CHECK(rtp_variables_correct(values.data(), values.size(), nullptr) == RTP_NULL_ARGUMENT);
  CHECK(rtp_variables_correct(values.data(), 1, &corrections) == RTP_ABI_MISMATCH);
  CHECK(rtp_variables_correct(values.data(), values.size(), &corrections) == RTP_OK);
  CHECK(corrections == (RTP_CORRECTION_QUERY_THREADS | RTP_CORRECTION_REPORT_INTERVAL));
  CHECK(values[RTP_VARIABLE_QUERY_THREADS_PER_GROUP] == 2);
  CHECK(values[RTP_VARIABLE_QUERY_THREADS_PER_GROUP] ==
        rtp_transactions_per_group(values[RTP_VARIABLE_MAX_TRANSACTIONS_LIMIT], 2));
}

// At the end of a pool some clients are idle, one is in a transaction, and one hasn't logged in.
void shutdown_closes_what_is_open() {
  Server server;
  CHECK(rtp_pool_start(server.pool) == RTP_OK);
  server.log_in();
  CHECK(Server::ask(server.log_in(), "begin") == "begin");
  Connection &silent = server.connect();
  shutdown(silent.client, SHUT_WR);  // else its login would go on
}

}  // namespace

int main() {
  CHECK(rtp_abi_version() == RTP_ABI_VERSION);
  const struct {
    const char *name;
    void (*run)();
  } tests[] = {
#define TEST(name) {#name, name}
      TEST(rejects_bad_partners),
      TEST(never_started_pool_ends),
      TEST(start_without_threads_fails_cleanly),
      TEST(many_clients_get_their_answers),
      TEST(killed_sessions_end_once),
      TEST(idle_session_times_out),
      TEST(variables_are_checked),
      TEST(start_values_are_corrected),
      TEST(shutdown_closes_what_is_open),
#undef TEST
  };
  for (const auto &test : tests) {
    printf("%s\n", test.name);
    fflush(stdout);
    test.run();
  }
}
