"""Clients that leave in every way and in every state, and what the server counts.

The expected counters were measured on a server without pool; running this against such a server checks them again.
"""

import socket

from harness import Counters, ServerTest, Target, wait_until
from mysql_wire import COM_PING, COM_QUIT, packet

SHORT_STATEMENT = "SELECT SLEEP(0.3)"


# States. Each takes a session or a socket into the state.


def greeted(connection):
    """In the login: nothing sent yet."""


def half_header_of_login(connection):
    """In the login: two bytes of the packet's header."""
    connection.framing.stream.send(packet(connection.login_packet(), 1)[:2])


def half_login(connection):
    """In the login: half of the packet."""
    data = packet(connection.login_packet(), 1)
    connection.framing.stream.send(data[: len(data) // 2])


def idle(connection):
    """Logged in."""


def in_transaction(connection):
    """Holds a row lock."""
    connection.query("BEGIN")
    connection.query("INSERT INTO test.locked VALUES (1)")


def with_locked_tables(connection):
    """Holds a table lock."""
    connection.query("LOCK TABLES test.locked WRITE")


def running(connection):
    """Runs a statement and doesn't wait for its result."""
    connection.send_query(SHORT_STATEMENT)


def half_header(connection):
    """Has sent half of a header."""
    connection.framing.stream.send(packet(bytes([COM_PING]))[:2])


def half_body(connection):
    """Has sent a header and half of the body."""
    connection.framing.stream.send(packet(b"\x03SELECT 'never complete'")[:10])


# Ways to leave.


def quits(connection):
    connection.send_command(COM_QUIT)
    connection.close()


def fin(connection):
    connection.close()


def rst(connection):
    connection.reset_socket()


def half_closes(connection):
    """FIN, but reads on until the server has closed its side too."""
    connection.sock.shutdown(socket.SHUT_WR)
    connection.wait_closed()
    connection.close()


LOGIN_STATES = (greeted, half_header_of_login, half_login)
STATES = (idle, in_transaction, with_locked_tables, running, half_header, half_body)

# (state, way): (Aborted_clients, Aborted_connects)
EXPECTED = {}
for state in LOGIN_STATES:
    for way in (fin, rst, half_closes):
        EXPECTED[state, way] = (0, 1)
for state in STATES:
    for way in (fin, rst, half_closes):
        EXPECTED[state, way] = (1, 0)
for state in (idle, in_transaction, with_locked_tables, running):
    EXPECTED[state, quits] = (0, 0)


class Disconnect(ServerTest):
    """The session goes away, its locks with it, and the counters move as without pool."""

    def setUp(self):
        super().setUp()
        self.control.query("CREATE TABLE IF NOT EXISTS test.locked (id INT PRIMARY KEY)")

    def tearDown(self):
        self.control.query("DROP TABLE IF EXISTS test.locked")

    def check_all(self, **options):
        for (state, way), expected in EXPECTED.items():
            with self.subTest(state=state.__name__, way=way.__name__):
                counters = Counters(self.control)
                if state in LOGIN_STATES:
                    options_of_state = {"login": False} if not options.get("tls") else {"login": False, "tls": True}
                else:
                    options_of_state = options
                connection = self.connect(Target.tcp(), **options_of_state)
                state(connection)
                way(connection)
                self.assert_sessions_gone()
                self.assertEqual(counters.moved(), expected)
                self.assertEqual(self.control.query("SELECT * FROM test.locked FOR UPDATE NOWAIT").rows, [])

    def test_tcp(self):
        self.check_all()

    def test_tls(self):
        self.check_all(tls=True)

    def test_compressed(self):
        self.check_all(compression="zlib")

    def test_tls_handshake_not_finished(self):
        """Leaves between the request for TLS and the handshake."""
        counters = Counters(self.control)
        connection = self.connect(Target.tcp(), login=False)
        connection.capabilities |= 1 << 11
        connection.framing.send(connection.login_packet()[:32], 1)
        connection.framing.stream.send(b"\x16\x03\x01")
        connection.close()
        self.assert_sessions_gone()
        self.assertEqual(counters.moved(), (0, 1))

    def test_connect_and_leave_at_once(self):
        """Port scanners."""
        counters = Counters(self.control)
        for _ in range(50):
            sock = Target.tcp().open(5)
            sock.close()
        wait_until(lambda: counters.moved() == (0, 50), "50 connects are counted as aborted")
        self.assert_sessions_gone()

    def test_garbage_instead_of_login(self):
        counters = Counters(self.control)
        connection = self.connect(Target.tcp(), login=False)
        connection.framing.stream.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        connection.wait_closed()
        self.assert_sessions_gone()
        self.assertEqual(counters.moved(), (0, 1))


class HalfClose(ServerTest):
    """The answer still comes when the client has closed its sending side."""

    def check(self, address, **options):
        connection = self.connect(address, **options)
        connection.send_query("SELECT SLEEP(0.2), 'answer'")
        connection.sock.shutdown(socket.SHUT_WR)
        self.assertEqual(connection.read_result().rows, [["0", "answer"]])
        connection.wait_closed()

    def test_tcp(self):
        self.check(Target.tcp())

    def test_unix_socket(self):
        self.check(Target.unix())

    def test_tls(self):
        self.check(Target.tcp(), tls=True)

    def test_compressed(self):
        self.check(Target.tcp(), compression="zstd")

    def test_many_statements_before(self):
        connection = self.connect(Target.tcp())
        connection.framing.stream.send(b"".join(packet(b"\x03SELECT %d" % number) for number in range(50)))
        connection.sock.shutdown(socket.SHUT_WR)
        for number in range(50):
            self.assertEqual(connection.read_result().value(), str(number))
        connection.wait_closed()


class Crowd(ServerTest):
    """Many sessions that end in the same moment."""

    SESSIONS = 140

    def check(self, way, aborted_clients):
        counters = Counters(self.control)
        connections = [self.connect(Target.tcp()) for _ in range(self.SESSIONS)]
        for connection in connections:
            way(connection)
        self.assert_sessions_gone()
        self.assertEqual(counters.moved(), (aborted_clients, 0))

    def test_quit(self):
        self.check(quits, 0)

    def test_fin(self):
        self.check(fin, self.SESSIONS)

    def test_rst(self):
        self.check(rst, self.SESSIONS)
