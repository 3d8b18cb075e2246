"""What the client tests share: the server under test, waiting with a bound, counters, and processes."""

import contextlib
import os
import pathlib
import time
import unittest

from mysql_wire import Address, Connection, ServerError

WAIT_SECONDS = 20


class Target:
    """The server under test; filled in by run.py."""

    socket = None
    port = None
    admin_port = None
    user = "root"
    password = ""
    pid = None
    sessions = 1000
    seed = 0

    @classmethod
    def unix(cls):
        return Address(socket_path=cls.socket)

    @classmethod
    def tcp(cls):
        return Address(port=cls.port)

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
    with Target.connect(Address(port=Target.admin_port) if Target.admin_port else None) as control:
        for (thread_id,) in control.query(f"SELECT id {others}").rows:
            with contextlib.suppress(ServerError):
                control.query(f"KILL {thread_id}")
        wait_until(lambda: control.value(f"SELECT COUNT(*) {others}") == "0", "killed sessions are gone")


class ServerTest(unittest.TestCase):
    """A test with a session `self.control` that watches and cleans up.

    Each test starts and ends with no session but that one.
    """

    def setUp(self):
        self.addCleanup(end_remaining_sessions)
        self.control = Target.connect()
        self.addCleanup(self.control.close)
        self._connections = contextlib.ExitStack()
        self.addCleanup(self.assert_sessions_gone)
        self.addCleanup(self._connections.close)
        self.control.query("CREATE DATABASE IF NOT EXISTS test")
        self.assert_sessions_gone()

    def connect(self, address=None, **options):
        """A session that is closed at the end of the test, if it is still open then."""
        connection = Target.connect(address, **options)
        self._connections.callback(connection.close)
        return connection

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
