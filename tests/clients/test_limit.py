"""thread_pool_concurrency_limit holds, also when it is changed under load."""

import threading
import time

from harness import ServerTest, Target, usual_most

CLIENTS = 12
SECONDS = 1.0
RUNNING = "SELECT COUNT(*) FROM performance_schema.processlist WHERE command = 'Query' AND info LIKE '%BENCHMARK%' AND id <> CONNECTION_ID()"


class ConcurrencyLimit(ServerTest):
    """Statements of some milliseconds from more clients than the limit; none of them stalls."""

    needs_pool = True
    variables = {"stall_limit": 600, "concurrency_limit": 1}

    def test_change_under_load(self):
        stop = threading.Event()
        failures = []

        def work():
            try:
                with Target.connect(timeout=60) as session:
                    while not stop.is_set():
                        session.query("SELECT BENCHMARK(20000, SHA2('a', 256))")
            except Exception as failure:  # pylint: disable=broad-except
                failures.append(failure)

        clients = [threading.Thread(target=work) for _ in range(CLIENTS)]
        for client in clients:
            client.start()
        most = {}
        try:
            with Target.connect(Target.admin(), timeout=60) as watcher:
                for limit in (1, 6, 2, 4, 1):
                    watcher.query(f"SET GLOBAL thread_pool_concurrency_limit = {limit}")
                    # Whoever runs when the limit is lowered may end its statement.
                    time.sleep(0.5)
                    deadline = time.monotonic() + SECONDS
                    counts = []
                    while time.monotonic() < deadline:
                        counts.append(int(watcher.value(RUNNING)))
                    most[limit] = usual_most(counts)
                    self.assertEqual(most[limit], limit, f"statements that run at a limit of {limit}")
        finally:
            stop.set()
            for client in clients:
                client.join(60)
        print(f"    most statements by limit: {most}", flush=True)
        self.assertEqual(failures, [])
