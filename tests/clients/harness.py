"""What the client tests share: the server under test, waiting with a bound, counters, and processes."""

import contextlib
import os
import pathlib
import resource
import shlex
import statistics
import time
import unittest

from mysql_wire import Address, Connection, ServerError
from server import Server

WAIT_SECONDS = 20
# So many tries show what half of them take.
TRIES_FOR_MEDIAN = 25
# Sessions that aren't part of a crowd, and the server's own.
SPARE_SESSIONS = 200


class Target:
    """The server under test; filled in by run.py."""

    socket = None
    port = None
    admin_port = None
    user = "root"
    password = ""
    pid = None
    sessions = 1000
    crowd = 500
    seed = 0
    mysqld = None
    plugin = None

    @classmethod
    def unix(cls):
        return Address(socket_path=cls.socket)

    @classmethod
    def tcp(cls):
        return Address(port=cls.port)

    @classmethod
    def admin(cls):
        """The administrative port, if there is one."""
        return Address(port=cls.admin_port) if cls.admin_port else cls.unix()

    @classmethod
    def connect(cls, address=None, **options):
        options.setdefault("user", cls.user)
        options.setdefault("password", cls.password)
        return Connection(address or cls.unix(), **options)


def wait_until(condition, what, seconds=WAIT_SECONDS):
    """Waits until the condition holds; fails after that time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.005)


def status(connection, name):
    return int(connection.query(f"SHOW GLOBAL STATUS LIKE '{name}'").rows[0][1])


def timed(function, *arguments):
    """The seconds that a call takes."""
    start = time.monotonic()
    function(*arguments)
    return time.monotonic() - start


def usual_most(counts):
    """The largest count but for one in twenty: the list of sessions isn't read at one moment, so a statement that ends
    and its successor can both be counted."""
    return sorted(counts)[(len(counts) * 19 - 1) // 20]


def pool_threads(names=("tp_",)):
    """Folders in /proc of the pool's threads whose name begins with one of these."""
    found = []
    for task in pathlib.Path(f"/proc/{Target.pid}/task").iterdir():
        # A thread may end meanwhile.
        with contextlib.suppress(OSError):
            if (task / "comm").read_text(encoding="ascii").startswith(names):
                found.append(task)
    return found


def allow_descriptors(wanted):
    """Raises the limit of this process, as far as possible; returns what it is then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))
    return min(max(soft, wanted), hard)


def open_descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def threads(pid):
    return len(os.listdir(f"/proc/{pid}/task"))


def resident_kib(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


def end_remaining_sessions():
    """Kills what a failed test has left, so that later tests don't fail with it."""
    others = "FROM performance_schema.processlist WHERE id <> CONNECTION_ID() AND command <> 'Daemon'"
    with Target.connect(Target.admin()) as control:
        for (thread_id,) in control.query(f"SELECT id {others}").rows:
            with contextlib.suppress(ServerError):
                control.query(f"KILL {thread_id}")
        wait_until(lambda: control.value(f"SELECT COUNT(*) {others}") == "0", "killed sessions are gone")


class ServerTest(unittest.TestCase):
    """A test with a session `self.control` that watches and cleans up.

    Each test starts and ends with no session but that one.
    """

    # Variables of the pool, without `thread_pool_`, and their values during the test. A server without a pool has none.
    variables = {}
    # Tests of what only a pool promises.
    needs_pool = False

    def setUp(self):
        self.addCleanup(end_remaining_sessions)
        self.control = Target.connect()
        self.addCleanup(self.control.close)
        self._connections = contextlib.ExitStack()
        self.addCleanup(self.assert_sessions_gone)
        self.addCleanup(self._connections.close)
        self.control.query("CREATE DATABASE IF NOT EXISTS test")
        self.assert_sessions_gone()
        self.has_pool = self.variable("thread_pool_size") is not None
        if self.needs_pool and not (self.has_pool and Target.pid):
            self.skipTest("needs a pool and --pid")
        for name, value in self.variables.items():
            self.set_global(f"thread_pool_{name}", value)

    def variable(self, name):
        """The value of a global variable; None if there's no such variable."""
        rows = self.control.query(f"SHOW GLOBAL VARIABLES LIKE '{name}'").rows
        return rows[0][1] if rows else None

    def set_global(self, name, value):
        """Sets a variable, if there is such a one, until the end of the test."""
        old = self.variable(name)
        if old is None:
            return

        def set_to(new):
            with Target.connect(Target.admin()) as control:
                control.query(f"SET GLOBAL {name} = {new}")

        self.addCleanup(set_to, f"'{old}'" if old in ("ON", "OFF") else old)
        set_to(value)

    def connect(self, address=None, **options):
        """A session that is closed at the end of the test, if it is still open then."""
        connection = Target.connect(address, **options)
        self._connections.callback(connection.close)
        return connection

    def connect_many(self, count, address=None, **options):
        """A crowd of sessions; the server admits that many."""
        allow_descriptors(count + SPARE_SESSIONS)
        if count + SPARE_SESSIONS > int(self.variable("max_connections")):
            self.set_global("max_connections", count + SPARE_SESSIONS)
        return [self.connect(address or Target.unix(), timeout=120, **options) for _ in range(count)]

    def send_from_many(self, count, statement):
        """Sessions that all wait for the answer to this statement."""
        sessions = self.connect_many(count)
        for session in sessions:
            session.send_query(statement)
        return sessions

    def read_from_all(self, sessions):
        """Waits for everybody's answer, whatever it is."""
        for session in sessions:
            with contextlib.suppress(ServerError):
                session.read_result()

    def kill_all(self, sessions):
        """From the admin port, since ordinary sessions may have to wait."""
        with Target.connect(Target.admin()) as control:
            for session in sessions:
                with contextlib.suppress(ServerError):
                    control.query(f"KILL {session.thread_id}")

    def make_table(self, rows):
        """test.hot (id, n) with this many rows, numbered from 1."""
        self.control.query("CREATE TABLE test.hot (id INT PRIMARY KEY, n INT)")
        self.addCleanup(self.drop_table)
        self.control.query("INSERT INTO test.hot VALUES " + ", ".join(f"({number}, 0)" for number in range(1, rows + 1)))

    @staticmethod
    def drop_table():
        with Target.connect(Target.admin()) as control:
            control.query("DROP TABLE IF EXISTS test.hot")

    def slow_reader(self):
        """A session whose client doesn't read on after the first byte of a large result."""
        session = self.connect(Target.unix(), timeout=60)
        session.send_query("SELECT REPEAT('x', 16000000) UNION ALL SELECT REPEAT('y', 16000000)")
        session.sock.recv(1)
        return session

    def log_lines(self, text):
        """Number of lines with this text in the server's error log."""
        with Target.connect(Target.admin()) as control:
            return int(control.value(f"SELECT COUNT(*) FROM performance_schema.error_log WHERE data LIKE '%{text}%'"))

    def assert_median(self, what, seconds, milliseconds):
        """Half of the tries take no longer than that, if there is a pool; on a loaded machine others may."""
        median = statistics.median(seconds) * 1000
        print(f"    {what}: median {median:.1f} ms of {len(seconds)}, {max(seconds) * 1000:.1f} ms at most", flush=True)
        if self.has_pool:
            self.assertLessEqual(median, milliseconds, what)

    def assert_sessions_gone(self):
        """Nobody but the control session is connected, for the counter as for the list of sessions."""
        wait_until(lambda: status(self.control, "Threads_connected") == 1, "Threads_connected is 1")
        self.assertEqual(self.sessions_listed(), 1)

    def sessions_listed(self):
        return int(self.control.value("SELECT COUNT(*) FROM performance_schema.processlist WHERE command <> 'Daemon' AND user <> 'event_scheduler'"))

    def wait_gone(self, thread_id, seconds=WAIT_SECONDS):
        query = f"SELECT COUNT(*) FROM performance_schema.processlist WHERE id = {thread_id}"
        wait_until(lambda: self.control.value(query) == "0", f"session {thread_id} is gone", seconds)

    def wait_state(self, thread_id, state):
        query = f"SELECT state FROM performance_schema.processlist WHERE id = {thread_id}"
        wait_until(
            lambda: [[state]] == self.control.query(query).rows,
            f"session {thread_id} is in state {state}",
        )

    def wait_running(self, thread_id):
        query = f"SELECT command FROM performance_schema.processlist WHERE id = {thread_id}"
        wait_until(lambda: self.control.query(query).rows == [["Query"]], f"session {thread_id} runs")

    def assert_error(self, code, function, *arguments):
        with self.assertRaises(ServerError) as caught:
            function(*arguments)
        self.assertEqual(caught.exception.code, code, caught.exception)


class OwnServerTest(ServerTest):
    """Tests that need a server with options of their own; they take the place of the target's."""

    needs_pool = True
    options = ()
    environment = {}
    FIELDS = ("socket", "port", "admin_port", "pid")

    @classmethod
    def setUpClass(cls):
        if not (Target.mysqld and Target.plugin):
            raise unittest.SkipTest("needs --mysqld and --plugin")
        cls.server = Server(shlex.split(Target.mysqld), Target.plugin, cls.options, environment=cls.environment)
        cls.server.start()
        cls.target = {name: getattr(Target, name) for name in cls.FIELDS}
        cls.aim()

    @classmethod
    def aim(cls):
        for name in cls.FIELDS:
            setattr(Target, name, getattr(cls.server, name))

    def restart_server(self):
        """Sessions end; the control session is a new one."""
        self.server.restart()
        self.aim()
        self.control = Target.connect()

    @classmethod
    def tearDownClass(cls):
        for name, value in cls.target.items():
            setattr(Target, name, value)
        cls.server.stop()


class Counters:
    """How much the counters of ended sessions moved since this object was made."""

    NAMES = ("Aborted_clients", "Aborted_connects")

    def __init__(self, control):
        self.control = control
        self.start = self._read()

    def _read(self):
        return [status(self.control, name) for name in self.NAMES]

    def moved(self):
        """(Aborted_clients, Aborted_connects)"""
        return tuple(now - then for now, then in zip(self._read(), self.start))
