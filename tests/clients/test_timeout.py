"""Timeouts: not early, at most a second late, with error 4031."""

import selectors
import time

from harness import Counters, ServerTest, Target, wait_until
from mysql_wire import INTERACTIVE, COM_PING, ServerError, packet

LATE_SECONDS = 1.0
# The server's clock starts a little before the client has read the answer.
EARLY_SECONDS = 0.02
TIMEOUT_ERROR = 4031


class WaitTimeout(ServerTest):
    """Idle sessions."""

    def assert_closed_with_error(self, connection):
        """The client reads the error, and then the end of the connection."""
        self.assert_error(TIMEOUT_ERROR, connection.read_result)
        self.assertRaises((EOFError, ConnectionError), connection.framing.receive)

    def assert_in_time(self, seconds, timeout):
        self.assertGreaterEqual(seconds, timeout - EARLY_SECONDS)
        self.assertLessEqual(seconds, timeout + LATE_SECONDS)

    def check_crowd(self, ways):
        """Sessions of several kinds with timeouts of 1 to 3 s."""
        counters = Counters(self.control)
        with selectors.DefaultSelector() as selector:
            for number in range(51):
                address, options = ways[number % len(ways)]
                connection = self.connect(address, **options)
                timeout = 1 + number % 3
                connection.query(f"SET SESSION wait_timeout = {timeout}")
                selector.register(connection.sock, selectors.EVENT_READ, (connection, timeout, time.monotonic()))
            while selector.get_map():
                events = selector.select(10)
                self.assertTrue(events, f"{len(selector.get_map())} sessions weren't closed")
                now = time.monotonic()
                for key, _ in events:
                    connection, timeout, start = key.data
                    selector.unregister(key.fileobj)
                    self.assert_in_time(now - start, timeout)
                    self.assert_closed_with_error(connection)
        self.assert_sessions_gone()
        self.assertEqual(counters.moved(), (51, 0))

    def test_plain(self):
        self.check_crowd([(Target.tcp(), {}), (Target.unix(), {})])

    def test_tls_and_compression(self):
        self.check_crowd([(Target.tcp(), {"compression": "zlib"}), (Target.tcp(), {"compression": "zstd"}), (Target.unix(), {})])

    def test_tls(self):
        connection = self.connect(Target.tcp(), tls=True)
        connection.query("SET SESSION wait_timeout = 1")
        start = time.monotonic()
        self.assert_error(TIMEOUT_ERROR, connection.read_result)
        self.assert_in_time(time.monotonic() - start, 1)

    def test_interactive(self):
        old = self.control.value("SELECT @@GLOBAL.interactive_timeout")
        self.control.query("SET GLOBAL interactive_timeout = 1")
        interactive = self.connect(Target.tcp(), capabilities=INTERACTIVE)
        start = time.monotonic()
        ordinary = self.connect(Target.tcp())
        self.control.query(f"SET GLOBAL interactive_timeout = {old}")
        self.assert_closed_with_error(interactive)
        self.assert_in_time(time.monotonic() - start, 1)
        ordinary.ping()

    def test_timeout_set_before_login(self):
        """The first wait after the login has the timeout too."""
        old = self.control.value("SELECT @@GLOBAL.wait_timeout")
        self.control.query("SET GLOBAL wait_timeout = 1")
        connection = self.connect(Target.tcp())
        start = time.monotonic()
        self.control.query(f"SET GLOBAL wait_timeout = {old}")
        self.assert_closed_with_error(connection)
        self.assert_in_time(time.monotonic() - start, 1)

    def test_active_session_stays(self):
        """Each command starts the time anew."""
        connection = self.connect(Target.tcp())
        connection.query("SET SESSION wait_timeout = 1")
        end = time.monotonic() + 4
        while time.monotonic() < end:
            time.sleep(0.7)
            connection.ping()

    def test_timeout_changes(self):
        """A longer timeout holds from the next wait on, and so does a shorter one."""
        connection = self.connect(Target.tcp())
        connection.query("SET SESSION wait_timeout = 1")
        connection.query("SET SESSION wait_timeout = 100")
        time.sleep(2.2)
        connection.ping()
        connection.query("SET SESSION wait_timeout = 1")
        start = time.monotonic()
        self.assert_closed_with_error(connection)
        self.assert_in_time(time.monotonic() - start, 1)

    def test_running_statement_isnt_idle(self):
        connection = self.connect(Target.tcp())
        connection.query("SET SESSION wait_timeout = 1")
        self.assertEqual(connection.value("SELECT SLEEP(2.5)"), "0")
        connection.ping()

    def test_row_lock_is_released(self):
        self.control.query("CREATE TABLE test.t (id INT PRIMARY KEY)")
        self.control.query("INSERT INTO test.t VALUES (1)")
        holder = self.connect(Target.tcp())
        holder.query("SET SESSION wait_timeout = 1")
        holder.query("BEGIN")
        holder.query("UPDATE test.t SET id = 2")
        start = time.monotonic()
        self.assertEqual(self.control.query("UPDATE test.t SET id = 3").affected, 1)
        self.assertLessEqual(time.monotonic() - start, 1 + LATE_SECONDS)
        self.assertEqual(self.control.value("SELECT id FROM test.t"), "3")
        self.assert_closed_with_error(holder)
        self.control.query("DROP TABLE test.t")

    def test_longest_timeout(self):
        """The largest value doesn't overflow into a short one."""
        connection = self.connect(Target.tcp())
        connection.query("SET SESSION wait_timeout = 31536000")
        time.sleep(1.5)
        connection.ping()

    def test_half_a_packet(self):
        """A client that sends a part of a packet and stops."""
        counters = Counters(self.control)
        for part in (2, 4, 10):
            with self.subTest(bytes_sent=part):
                connection = self.connect(Target.tcp())
                connection.query("SET SESSION wait_timeout = 1, SESSION net_read_timeout = 1")
                connection.framing.stream.send(packet(b"\x03SELECT 'never complete'")[:part])
                start = time.monotonic()
                connection.wait_closed()
                self.assert_in_time(time.monotonic() - start, 1)
        self.assert_sessions_gone()
        self.assertEqual(counters.moved(), (3, 0))

    def test_race_with_statements(self):
        """Statements that arrive just when the timeout ends are answered, or the error is."""
        survivors = 0
        for number in range(15):
            connection = self.connect(Target.tcp())
            connection.query("SET SESSION wait_timeout = 1")
            time.sleep(0.99 + number / 1000)
            try:
                connection.send_command(COM_PING)
                connection.read_result()
                survivors += 1
            except ServerError as error:
                self.assertEqual(error.code, TIMEOUT_ERROR)
            except (EOFError, ConnectionError):
                pass
            connection.close()
        print(f"    {survivors} of 15 were in time", flush=True)
        self.assert_sessions_gone()


class ConnectTimeout(ServerTest):
    """Logins that stop half way."""

    def test_half_login(self):
        old = self.control.value("SELECT @@connect_timeout")
        self.control.query("SET GLOBAL connect_timeout = 2")
        self.addCleanup(self.control.query, f"SET GLOBAL connect_timeout = {old}")
        counters = Counters(self.control)
        start = time.monotonic()
        connections = [self.connect(Target.tcp(), login=False) for _ in range(20)]
        for number, connection in enumerate(connections):
            connection.framing.stream.send(packet(connection.login_packet(), 1)[:number])
        # Others can log in meanwhile.
        self.connect(Target.tcp()).quit()
        self.assertLess(time.monotonic() - start, 1.5)
        for connection in connections:
            connection.wait_closed()
        seconds = time.monotonic() - start
        self.assertGreaterEqual(seconds, 2 - EARLY_SECONDS)
        self.assertLessEqual(seconds, 2 + 2 * LATE_SECONDS)
        wait_until(lambda: counters.moved() == (0, 20), "20 aborted connects")
