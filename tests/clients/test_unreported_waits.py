"""Statements that wait for something that the server doesn't report, or that compute for long."""

import socket
import time

from harness import TRIES_FOR_MEDIAN, OwnServerTest, ServerTest, Target, pool_threads, timed, usual_most, wait_until
from mysql_wire import LOCAL_FILES

# Milliseconds; the promise is 5, and the client and the server share the processors with other things.
ANSWER_MILLISECONDS = 10
BUSY = "SELECT BENCHMARK(1000000000000, SHA2('a', 256))"


class UnreportedWaits(ServerTest):
    """Each try has a new statement that waits, so that the pool has to find it out each time."""

    needs_pool = True
    # 6 s, so that it isn't the stall limit that lets others go on.
    variables = {"stall_limit": 600}

    def setUp(self):
        super().setUp()
        self.make_table(1)

    def check(self, what, begin, end):
        """`begin` makes a session wait, `end` ends it."""
        for limit in (1, 2):
            self.set_global("thread_pool_concurrency_limit", limit)
            other = self.connect(Target.unix(), timeout=60)
            seconds = []
            for _ in range(TRIES_FOR_MEDIAN):
                blocked = [begin() for _ in range(limit)]
                seconds.append(timed(other.query, "SELECT 1"))
                for session in blocked:
                    end(session)
            self.assert_median(f"{what}, limit {limit}: statement of another session", seconds, ANSWER_MILLISECONDS)

    def test_slow_reader_of_a_large_result(self):
        self.check("slow reader", self.slow_reader, lambda session: session.close())

    def test_load_data_that_is_fed_slowly(self):
        self.set_global("local_infile", "ON")

        def begin():
            session = self.connect(Target.unix(), capabilities=LOCAL_FILES, database="test", timeout=60)
            session.send_query("LOAD DATA LOCAL INFILE 'f' INTO TABLE hot")
            request = session.framing.receive()
            self.assertEqual(request, b"\xfbf")
            session.framing.send(f"{session.thread_id + 1000}\t1\n".encode(), session.framing.sequence + 1)
            return session

        def end(session):
            # An empty packet ends the file.
            session.framing.send(b"", session.framing.sequence + 2)
            self.assertEqual(session.read_result().affected, 1)
            session.close()

        self.check("slow LOAD DATA", begin, end)

    def test_many_slow_readers_at_once(self):
        """More than the share of such waits: the others leave the limit as stalled statements."""
        self.set_global("thread_pool_concurrency_limit", 1)
        self.set_global("thread_pool_stall_limit", 6)
        for _ in range(20):
            self.slow_reader()
        other = self.connect(Target.unix(), timeout=60)
        # Each of 16 may take the stall limit of 60 ms.
        self.assertLess(timed(other.query, "SELECT 1"), 16 * 0.06 + 1)
        self.assert_median("then", [timed(other.query, "SELECT 1") for _ in range(TRIES_FOR_MEDIAN)], ANSWER_MILLISECONDS)


class SameGroup(ServerTest):
    """One thread group full of sleeping statements, with free rights to run."""

    needs_pool = True
    variables = {"concurrency_limit": 4}

    def test_sleeping_statements_dont_delay_point_selects(self):
        self.make_table(100)
        groups = int(self.variable("thread_pool_size"))
        sleepers = self.send_from_many(40 * groups, "SELECT SLEEP(1000)")
        reports = self.send_from_many(2, BUSY)
        other = self.connect(Target.unix(), timeout=60)
        seconds = [timed(other.query, f"SELECT n FROM test.hot WHERE id = {number}") for number in range(1, 101)]
        self.assert_median("point select", seconds, ANSWER_MILLISECONDS)
        self.kill_all(sleepers + reports)


class LongStatements(OwnServerTest):
    """Statements that compute for ever. On a server at rest: workers of a crowd stay for up to thread_pool_idle_timeout."""

    LIMIT = 2
    LONG = 20
    variables = {"concurrency_limit": LIMIT}

    def test_threads_are_bounded_and_the_limit_holds_again_afterwards(self):
        long = self.send_from_many(self.LONG, BUSY)
        running = "SELECT COUNT(*) FROM performance_schema.processlist WHERE command = 'Query' AND info LIKE '%BENCHMARK%' AND id <> CONNECTION_ID()"
        with Target.connect(Target.admin()) as watcher:
            wait_until(lambda: watcher.value(running) == str(self.LONG), "all have stalled, and so all run", 60)
            workers = len(pool_threads(("tp_worker",)))
            print(f"    {workers} workers for {self.LONG} statements", flush=True)
            # One for each, those that the limit allows beside them, and the admin group's.
            self.assertLessEqual(workers, self.LONG + self.LIMIT + 4)
            self.kill_all(long)
            # Nothing stalls now.
            self.set_global("thread_pool_stall_limit", 600)
            short = self.send_from_many(8, "SELECT BENCHMARK(300000, SHA2('a', 256))")
            counts = []
            deadline = time.monotonic() + 60
            while any(not is_answered(session) for session in short) and time.monotonic() < deadline:
                counts.append(int(watcher.value(running)))
            self.assertEqual(usual_most(counts), self.LIMIT)
        self.read_from_all(short)


def is_answered(session):
    """There's something to read."""
    session.sock.setblocking(False)
    try:
        return session.sock.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return False
    finally:
        session.sock.settimeout(60)
