"""Connections of replicas: a statement that never ends, and mostly sleeps."""

import time

from harness import TRIES_FOR_MEDIAN, OwnServerTest, Target, timed, wait_until

REPLICAS = 6
ANSWER_MILLISECONDS = 10
# A server without sessions needs some seconds.
SHUTDOWN_SECONDS = 15


class BinaryLogDump(OwnServerTest):
    """One statement at a time may run, and there are more replicas than the share for unreported waits."""

    variables = {"concurrency_limit": 1}
    options = ("--log-bin=binlog", "--server-id=1", "--sync-binlog=0")

    def start_replicas(self):
        file = self.control.query("SHOW BINARY LOG STATUS").rows[0][0]
        replicas = self.connect_many(REPLICAS, Target.tcp())
        # The server notices the end of a replica's connection only when it next has an event for it.
        self.addCleanup(self.kill_all, replicas)
        for number, replica in enumerate(replicas):
            replica.dump_binary_log(file, 100 + number)
        waits = "SELECT COUNT(*) FROM performance_schema.processlist WHERE command = 'Binlog Dump' AND state LIKE 'Source has sent%'"
        wait_until(lambda: self.control.value(waits) == str(REPLICAS), "all replicas wait for events")
        return replicas

    def test_others_run_at_once_and_for_ever(self):
        self.start_replicas()
        other = self.connect(Target.unix())
        self.assert_median("statement beside replicas", [timed(other.query, "SELECT 1") for _ in range(TRIES_FOR_MEDIAN)], ANSWER_MILLISECONDS)
        # When the replicas wait for long they take no share of anything: others that wait unreported still lose the
        # only right to run at once, and not only after the stall limit of 6 s. The pool looks at the replicas when
        # somebody else runs.
        time.sleep(0.3)
        other.query("SELECT BENCHMARK(50000, SHA2('a', 256))")
        self.set_global("thread_pool_stall_limit", 600)
        seconds = []
        for _ in range(TRIES_FOR_MEDIAN):
            slow = self.slow_reader()
            seconds.append(timed(other.query, "SELECT 1"))
            slow.close()
        self.assert_median("statement beside replicas and a slow client", seconds, ANSWER_MILLISECONDS)

    def test_replicas_get_what_others_commit(self):
        replicas = self.start_replicas()
        self.control.query("CREATE TABLE test.replicated (id INT PRIMARY KEY)")
        self.addCleanup(self.control.query, "DROP TABLE test.replicated")
        self.control.query("INSERT INTO test.replicated VALUES (4711)")
        for replica in replicas:
            while b"replicated" not in replica.framing.receive():
                pass

    def test_replica_can_be_killed(self):
        for replica in self.start_replicas():
            self.control.query(f"KILL {replica.thread_id}")
            self.wait_gone(replica.thread_id)
            replica.wait_closed()

    def test_server_stops_beside_replicas(self):
        replicas = self.start_replicas()
        seconds = timed(self.restart_server)
        print(f"    stop and start: {seconds:.1f} s", flush=True)
        self.assertLess(seconds, SHUTDOWN_SECONDS)
        for replica in replicas:
            replica.wait_closed()
