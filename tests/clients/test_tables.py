"""The pool's tables in the performance schema, read while sessions come and go."""

import contextlib
import random
import threading

from harness import ServerTest, Target, wait_until
from mysql_wire import ServerError

TABLES = ("tp_connections", "tp_thread_state", "tp_thread_group_state", "tp_thread_group_stats")
CLIENTS = 8
ROUNDS = 100


def client(seed, answers, control_id):
    """Connects, asks and ends in a random way, over and over."""
    choice = random.Random(seed)
    for _ in range(ROUNDS):
        # A session may be killed by another client at any moment.
        with contextlib.suppress(ServerError, OSError, EOFError), Target.connect() as session:
            answers.append(session.value("SELECT 1"))
            match choice.randrange(4):
                case 0:
                    session.quit()
                case 1:
                    victim = session.thread_id - choice.randrange(3)
                    if victim > control_id:
                        session.query(f"KILL {victim}")
                case 2:
                    session.query("SELECT SLEEP(0.002)")
                case 3:
                    session.query("BEGIN")


class Tables(ServerTest):
    """Readers see whole rows and harm nobody; in the end the counters add up."""

    def setUp(self):
        super().setUp()
        if self.sum("COUNT(*)", "information_schema.tables WHERE table_name = 'tp_connections'") == 0:
            self.skipTest("needs the pool's tables")

    def sum(self, expression, table):
        return int(self.control.value(f"SELECT {expression} FROM {table}"))

    def open_connections(self):
        stats = "performance_schema.tp_thread_group_stats"
        return self.sum("SUM(connections_started) - SUM(connections_closed)", stats)

    def test_churn(self):
        started = self.sum("SUM(connections_started)", "performance_schema.tp_thread_group_stats")
        print(f"    seed {Target.seed}", flush=True)
        answers = []
        control_id = self.control.thread_id
        clients = [threading.Thread(target=client, args=(Target.seed + n, answers, control_id)) for n in range(CLIENTS)]
        for thread in clients:
            thread.start()
        reads = 0
        while any(thread.is_alive() for thread in clients):
            for table in TABLES:
                self.assertGreater(len(self.control.query(f"SELECT * FROM performance_schema.{table}").rows), 0)
            twins = "SELECT connection_id FROM performance_schema.tp_connections GROUP BY 1 HAVING COUNT(*) > 1"
            self.assertEqual(self.control.query(twins).rows, [])
            # Sorting by row names reads rows again that may be gone.
            self.control.query("SELECT SQL_BUFFER_RESULT * FROM performance_schema.tp_connections ORDER BY management_time, state")
            reads += 1
        for thread in clients:
            thread.join()
        print(f"    {reads} readings of all tables during {len(answers)} answers", flush=True)
        self.assertGreater(len(answers), CLIENTS * ROUNDS // 2)
        self.assert_sessions_gone()
        wait_until(lambda: self.open_connections() == 1, "the control session is the only one for the counters")
        self.assertEqual(self.sum("COUNT(*)", "performance_schema.tp_connections"), 1)
        self.assertEqual(self.sum("SUM(connection_count)", "performance_schema.tp_thread_group_state"), 1)
        now = self.sum("SUM(connections_started)", "performance_schema.tp_thread_group_stats")
        self.assertGreaterEqual(now - started, len(answers))
        executed = self.sum("SUM(queries_executed)", "performance_schema.tp_thread_group_stats")
        self.assertGreater(executed, len(answers))
