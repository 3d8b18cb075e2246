"""A session that holds what others wait for gets on, whoever waits and however many."""

import os
import signal
import threading
import time

from harness import TRIES_FOR_MEDIAN, ServerTest, Target, pool_threads, threads, timed, wait_until
from mysql_wire import ServerError

PAUSE_SECONDS = 0.005
# The promise, which half of the tries must keep ...
HOLDER_MILLISECONDS = 10
# ... and what each of them must, on a machine that others load.
ANSWER_SECONDS = 1.0


class LockoutTest(ServerTest):
    """One statement at a time, if there is a pool with a limit."""

    variables = {"concurrency_limit": 1}

    def setUp(self):
        super().setUp()
        self.make_table(2)
        # Without a pool the crowd proves nothing but that the test is right.
        self.waiters = Target.crowd if self.has_pool else 60

    def assert_quick(self, what, seconds):
        print(f"    {what}: {seconds * 1000:.1f} ms", flush=True)
        self.assertLess(seconds, ANSWER_SECONDS)

    def assert_gets_on(self, holder, statements):
        """The holder's statements begin within 10 ms, each after a pause in which its session became idle."""
        seconds = []
        for number in range(TRIES_FOR_MEDIAN):
            time.sleep(PAUSE_SECONDS)
            seconds.append(timed(holder.query, statements[number % len(statements)]))
        self.assert_median("statements of the holder", seconds, HOLDER_MILLISECONDS)
        self.assert_quick("slowest of them", max(seconds))

    def hold_row(self):
        """A session whose transaction has locked the first row."""
        holder = self.connect(Target.unix())
        holder.query("BEGIN")
        holder.query("UPDATE test.hot SET n = 1 WHERE id = 1")
        return holder


class LockHolders(LockoutTest):
    """Every permitted worker waits for the lock, and more sessions are queued."""

    def check(self, take, wait, give, between=("SELECT 1",), waits_in_state=None):
        """`take`, `between` and `give` are the holder's statements, `wait` is everybody else's."""
        holder = self.connect(Target.unix())
        for statement in take:
            holder.query(statement)
        waiters = self.send_from_many(self.waiters, wait)
        if waits_in_state:
            query = f"SELECT COUNT(*) > 0 FROM performance_schema.processlist WHERE state = '{waits_in_state}'"
            # The control session would have to wait itself if there are more waiters than workers.
            with Target.connect(Target.admin()) as watcher:
                wait_until(lambda: watcher.value(query) == "1", f"somebody is in state {waits_in_state}")
        self.assert_gets_on(holder, between)
        self.assert_quick("the statement that gives the lock back", timed(holder.query, give))
        self.read_from_all(waiters)

    def test_row(self):
        self.check(
            take=("BEGIN", "UPDATE test.hot SET n = 1 WHERE id = 1"),
            wait="UPDATE test.hot SET n = n + 1 WHERE id = 1",
            waits_in_state="updating",
            between=("SELECT COUNT(*) FROM test.hot", "UPDATE test.hot SET n = 2 WHERE id = 2"),
            give="COMMIT",
        )
        self.assertEqual(self.control.value("SELECT n FROM test.hot WHERE id = 1"), str(1 + self.waiters))

    def test_lock_tables(self):
        self.check(
            take=("LOCK TABLES test.hot WRITE",),
            wait="SELECT * FROM test.hot",
            waits_in_state="Waiting for table metadata lock",
            between=("SELECT n FROM test.hot",),
            give="UNLOCK TABLES",
        )

    def test_global_read_lock(self):
        self.check(
            take=("FLUSH TABLES WITH READ LOCK",),
            wait="INSERT IGNORE INTO test.hot VALUES (3, 0)",
            waits_in_state="Waiting for global read lock",
            between=("SELECT n FROM test.hot",),
            give="UNLOCK TABLES",
        )

    def test_metadata_lock(self):
        """A reader's open transaction keeps ALTER TABLE waiting, and that everybody else."""
        holder = self.connect(Target.unix())
        holder.query("BEGIN")
        holder.query("SELECT * FROM test.hot")
        alter = self.connect(Target.unix(), timeout=60)
        alter.send_query("ALTER TABLE test.hot ADD COLUMN m INT")
        self.wait_state(alter.thread_id, "Waiting for table metadata lock")
        waiters = self.send_from_many(self.waiters, "SELECT id FROM test.hot")
        self.assert_gets_on(holder, ("SELECT * FROM test.hot",))
        self.assert_quick("its commit", timed(holder.query, "COMMIT"))
        alter.read_result()
        self.read_from_all(waiters)

    def test_user_lock(self):
        self.check(
            take=("SELECT GET_LOCK('hot', 10)",),
            wait="SELECT IF(GET_LOCK('hot', 30), RELEASE_LOCK('hot'), 0)",
            waits_in_state="User lock",
            give="SELECT RELEASE_LOCK('hot')",
        )

    def test_backup_lock(self):
        self.check(
            take=("LOCK INSTANCE FOR BACKUP",),
            wait="ANALYZE TABLE no_such_database.t",
            give="UNLOCK INSTANCE",
        )

    def test_prepared_branch(self):
        """The lock belongs to an XA branch that its session has prepared; the same session ends it."""
        self.check(
            take=("XA START 'hot'", "UPDATE test.hot SET n = 1 WHERE id = 1", "XA END 'hot'", "XA PREPARE 'hot'"),
            wait="UPDATE test.hot SET n = n + 1 WHERE id = 1",
            waits_in_state="updating",
            # What a session may do between the two is little.
            between=("XA RECOVER",),
            give="XA COMMIT 'hot'",
        )

    def test_holder_that_disconnects(self):
        """Nothing but its end frees the others."""
        holder = self.hold_row()
        waiters = self.send_from_many(self.waiters, "UPDATE test.hot SET n = n + 1 WHERE id = 1")
        holder.close()
        start = time.monotonic()
        waiters[0].read_result()
        self.assert_quick("first of the waiting sessions", time.monotonic() - start)
        self.read_from_all(waiters[1:])


class Bystanders(LockoutTest):
    """Sessions that have nothing to do with the lock. There are workers for all."""

    def setUp(self):
        super().setUp()
        self.set_global("thread_pool_max_threads", max(1024, 2 * Target.crowd))

    def test_row_lock_waiters_hold_no_right_to_run(self):
        holder = self.hold_row()
        waiters = self.send_from_many(self.waiters, "UPDATE test.hot SET n = n + 1 WHERE id = 1")
        bystander = self.connect(Target.unix())
        self.assert_quick("statement of a bystander", max(timed(bystander.query, "SELECT 1") for _ in range(50)))
        holder.query("ROLLBACK")
        self.read_from_all(waiters)

    def test_idle_transactions_hold_no_worker_and_no_right_to_run(self):
        """Sessions that sleep in the middle of a transaction."""
        before = len(pool_threads(("tp_worker",))) if Target.pid else 0
        idle = self.connect_many(50)
        for number, session in enumerate(idle):
            session.query("BEGIN")
            session.query(f"INSERT INTO test.hot VALUES ({100 + number}, 0)")
        bystander = self.connect(Target.unix())
        seconds = [timed(bystander.query, "SELECT 1") for _ in range(50)]
        self.assert_median("statement of a bystander", seconds, HOLDER_MILLISECONDS)
        if self.has_pool and Target.pid:
            # One for the limit, the admin group's, and what the inserts' waits needed.
            self.assertLessEqual(len(pool_threads(("tp_worker",))), before + 8)
        for session in idle:
            session.query("ROLLBACK")

    def test_long_rollback_of_a_closed_session(self):
        """It counts as a stalled statement, so others run beside it."""
        owner = self.connect(Target.unix(), timeout=60)
        owner.query("SET SESSION cte_max_recursion_depth = 1000000")
        owner.query("BEGIN")
        numbers = "WITH RECURSIVE c (n) AS (SELECT 10 UNION ALL SELECT n + 1 FROM c WHERE n < 600000) SELECT n, n FROM c"
        owner.query(f"INSERT INTO test.hot {numbers}")
        bystander = self.connect(Target.unix(), timeout=60)
        owner.close()
        slowest = 0
        rollback = "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'ROLLING BACK'"
        seen = False
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            # The server renews this table only if nobody has read it for 0.1 s.
            time.sleep(0.11)
            start = time.monotonic()
            rolls_back = bystander.value(rollback) != "0"
            slowest = max(slowest, time.monotonic() - start)
            seen = seen or rolls_back
            if seen and not rolls_back:
                break
        self.assertTrue(seen, "the rollback was too short to be seen")
        self.assert_quick("slowest statement beside the rollback", slowest)


class AllWorkersWait(LockoutTest):
    """More sessions wait for one row than the pool may have workers."""

    needs_pool = True

    def test_holder_and_admin_sessions_go_on_and_the_log_says_so(self):
        # The default is 1,024; a crowd that is smaller needs a smaller bound.
        most_workers = min(int(self.variable("thread_pool_max_threads")), Target.crowd)
        self.set_global("thread_pool_max_threads", most_workers)
        lines = self.log_lines("All workers")
        before = threads(Target.pid)
        self.control.query("CREATE USER pool_admin")
        self.addCleanup(self.drop_admin)
        self.control.query("GRANT TP_CONNECTION_ADMIN ON *.* TO pool_admin")
        holder = self.hold_row()
        waiters = self.send_from_many(most_workers + 100, "SELECT id FROM test.hot WHERE id = 1 FOR UPDATE")
        wait_until(lambda: len(pool_threads(("tp_worker",))) >= most_workers, "all workers wait")
        self.assert_gets_on(holder, ("SELECT n FROM test.hot", "UPDATE test.hot SET n = n + 1 WHERE id = 2"))
        wait_until(lambda: self.log_lines("All workers") > lines, "the error log says so")
        self.assert_admin_gets_on("through the admin port", Target.admin())
        self.assert_admin_gets_on("with the privilege", Target.unix(), user="pool_admin")
        most = threads(Target.pid)
        print(f"    {most - before} threads more", flush=True)
        self.assertLessEqual(most - before, most_workers + 40)
        holder.query("COMMIT")
        self.read_from_all(waiters)

    @staticmethod
    def drop_admin():
        with Target.connect(Target.admin()) as control:
            control.query("DROP USER pool_admin")

    def assert_admin_gets_on(self, what, address, **options):
        def log_in_and_run():
            with Target.connect(address, **options) as session:
                session.query("SELECT 1")

        self.assert_median(f"login and statement {what}", [timed(log_in_and_run) for _ in range(TRIES_FOR_MEDIAN)], 20)


class EndlessTransactions(LockoutTest):
    """Sessions that are in transactions all the time don't starve the others."""

    variables = {"concurrency_limit": 4}

    def check(self, kick_up_milliseconds):
        self.set_global("thread_pool_prio_kickup_timer", kick_up_milliseconds)
        stop = threading.Event()
        failures = []

        def work(number):
            try:
                with Target.connect(timeout=60) as connection:
                    connection.query("BEGIN")
                    connection.query(f"INSERT INTO test.hot VALUES ({100 + number}, 0)")
                    while not stop.is_set():
                        connection.query("SELECT BENCHMARK(1000, SHA2('a', 256))")
            except Exception as failure:  # pylint: disable=broad-except
                failures.append(failure)

        workers = [threading.Thread(target=work, args=(number,)) for number in range(16)]
        for worker in workers:
            worker.start()
        try:
            other = self.connect(Target.unix(), timeout=60)
            seconds = [timed(other.query, "SELECT 1") for _ in range(10)]
        finally:
            stop.set()
            for worker in workers:
                worker.join(60)
        self.assertEqual(failures, [])
        self.assert_median(f"kick-up after {kick_up_milliseconds} ms", seconds, kick_up_milliseconds + 50)
        # This client shares two processors with the others and the server.
        self.assertLess(max(seconds), kick_up_milliseconds / 1000 + 0.3)

    def test_autocommit_is_kicked_up_after_a_second(self):
        self.check(1000)

    def test_the_kick_up_timer_is_obeyed(self):
        self.check(200)


class StoppedServer(ServerTest):
    """The whole server loses its processors for longer than a timeout."""

    def test_statement_that_came_before_the_timeout_was_seen(self):
        """It is answered, or the session ends with the timeout's error; afterwards timeouts work as before."""
        if Target.pid is None:
            self.skipTest("needs --pid")
        sessions = [self.connect(Target.unix()) for _ in range(10)]
        for session in sessions:
            session.query("SET SESSION wait_timeout = 2")
        os.kill(Target.pid, signal.SIGSTOP)
        try:
            time.sleep(1)
            for session in sessions:
                session.send_query("SELECT 'late'")
            time.sleep(2)
        finally:
            os.kill(Target.pid, signal.SIGCONT)
        survivors = []
        for session in sessions:
            try:
                self.assertEqual(session.read_result().value(), "late")
                survivors.append(session)
            except ServerError as error:
                self.assertEqual(error.code, 4031)
        print(f"    {len(survivors)} of {len(sessions)} were answered", flush=True)
        self.assertTrue(survivors)
        start = time.monotonic()
        for session in survivors:
            self.assert_error(4031, session.read_result)
        self.assertLess(time.monotonic() - start, 3 + 1)
        self.assert_sessions_gone()
