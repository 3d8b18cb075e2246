"""The load generator (benches/load) against the server under test."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from harness import ServerTest, Target, wait_until

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "load" / "rtp_load"
DATABASE = "load_test"
TABLES = 2
ROWS = 500
CONNECTIONS = 4
DATA = ("--database", DATABASE, "--tables", str(TABLES), "--rows", str(ROWS))
LIMIT_SECONDS = 60


class Load(ServerTest):
    """Each workload runs without errors, and says what it did; what can't work is refused with a remedy."""

    def setUp(self):
        super().setUp()
        self.assertTrue(PROGRAM.exists(), f"{PROGRAM} isn't built: run make load")
        self.control.query(f"DROP DATABASE IF EXISTS {DATABASE}")
        self.addCleanup(self.control.query, f"DROP DATABASE IF EXISTS {DATABASE}")
        self.program("prepare")

    def start(self, *arguments, address=None, user=None, password=None):
        """The finished process."""
        address = address or ["--socket", Target.socket]
        return subprocess.run(
            [PROGRAM, *arguments, *address, "--user", user or Target.user, *DATA],
            env={**os.environ, "MYSQL_PWD": password or Target.password},
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )

    def program(self, *arguments):
        """What it prints; it must succeed."""
        process = self.start(*arguments)
        self.assertEqual(process.returncode, 0, process.stderr)
        return process.stdout

    def load(self, workload, *options):
        """The result of one second; there must be no errors."""
        text = self.program(
            "run", workload, "--seconds", "1", "--warm-up-seconds", "0", "--connections", str(CONNECTIONS), *options
        )
        result = json.loads(text)
        self.assertEqual(result["errors"], {"total": 0, "kinds": []})
        self.assertEqual(result["unfinished"], 0)
        self.assertGreater(result["transactions"], 0)
        self.assertEqual(len(result["series"]), 1)
        self.assertEqual(sum(part["connections"] for part in result["classes"]), CONNECTIONS)
        self.assertEqual(sum(part["transactions"] for part in result["classes"]), result["transactions"])
        return result

    def refused(self, expected, *arguments):
        process = self.start(*arguments)
        self.assertEqual(process.returncode, 1, process.stdout)
        self.assertIn(expected, process.stderr)

    def test_prepare_makes_the_tables_of_sysbench(self):
        for table in range(1, TABLES + 1):
            rows = self.control.query(f"SELECT COUNT(*), MIN(id), MAX(id), MIN(LENGTH(c)), MAX(LENGTH(pad)) FROM {DATABASE}.sbtest{table}").rows
            self.assertEqual(rows, [[str(ROWS), "1", str(ROWS), "119", "59"]])
            keys = self.control.query(f"SHOW INDEX FROM {DATABASE}.sbtest{table}").rows
            self.assertEqual([row[2] for row in keys], ["PRIMARY", f"k_{table}"])
        self.refused(f"table {DATABASE}.sbtest1 is there already", "prepare")

    def test_reading_workloads(self):
        for workload, queries in (("point-select", 1), ("read-only", 16)):
            with self.subTest(workload):
                result = self.load(workload)
                self.assertEqual(result["queries"], result["transactions"] * queries)
                self.assertEqual(result["deadlocks"], 0)
                self.assertGreater(result["latency_ms"]["p50"], 0)
                self.assertGreater(result["classes"][0]["fairness"]["min"], 0)

    def test_writing_workloads(self):
        for workload, queries in (("read-write", 20), ("update-hot", 3)):
            with self.subTest(workload):
                result = self.load(workload)
                self.assertEqual(result["queries"], result["transactions"] * queries)

    def test_hot_updates_are_all_there(self):
        query = f"SELECT SUM(k) FROM {DATABASE}.sbtest1"
        before = int(self.control.value(query))
        result = self.load("update-hot")
        # What is committed just before and just after the measured time isn't counted.
        self.assertGreaterEqual(int(self.control.value(query)) - before, result["transactions"])

    def test_connect_query_logs_in_each_time(self):
        before = self.connections_so_far()
        result = self.load("connect-query")
        self.assertGreaterEqual(self.connections_so_far() - before, result["transactions"])
        self.assertGreater(result["logins"]["latency_ms"]["p50"], 0)

    def connections_so_far(self):
        return int(self.control.query("SHOW GLOBAL STATUS LIKE 'Connections'").rows[0][1])

    def test_mixed_and_idle_have_classes(self):
        result = self.load("mixed", "--reports", "1", "--oltp", "read-write")
        self.assertEqual([part["name"] for part in result["classes"]], ["report", "read-write"])
        self.assertTrue(all(part["transactions"] for part in result["classes"]))
        result = self.load("idle", "--active", "1")
        self.assertEqual([part["name"] for part in result["classes"]], ["point-select", "idle"])
        self.assertEqual(result["classes"][1]["transactions"], 0)

    def test_open_loop_keeps_its_rate(self):
        result = self.load("point-select", "--rate", "200", "--gaps", "poisson", "--threads", "1")
        arrivals = result["open_loop"]["arrivals"]
        self.assertTrue(100 < arrivals < 300, arrivals)
        # Whatever has arrived is done, waits, or is at work.
        undone = arrivals - result["transactions"] - result["open_loop"]["waiting_at_end"]
        self.assertLessEqual(abs(undone), CONNECTIONS)

    def test_login_with_a_password(self):
        """Of a new account, whose password the server hasn't seen: over TCP it's encrypted with the server's key."""
        addresses = {"socket": ["--socket", Target.socket], "TCP": ["--port", str(Target.port)]}
        for plain, (name, address) in enumerate(addresses.items()):
            with self.subTest(name):
                user, password = f"load{plain}", "a long secret"
                self.control.query(f"CREATE USER {user} IDENTIFIED BY '{password}'")
                self.addCleanup(self.control.query, f"DROP USER {user}")
                self.control.query(f"GRANT ALL ON {DATABASE}.* TO {user}")
                options = ("run", "idle", "--seconds", "1", "--warm-up-seconds", "0", "--connections", "2")
                process = self.start(*options, address=address, user=user, password="wrong")
                self.assertIn("server error 1045", process.stderr)
                process = self.start(*options, address=address, user=user, password=password)
                self.assertEqual(process.returncode, 0, process.stderr)
                self.assertEqual(json.loads(process.stdout)["errors"]["total"], 0)

    def test_think_time_slows_down(self):
        result = self.load("point-select", "--think-time-ms", "50")
        self.assertLess(result["transactions"], CONNECTIONS * 60)

    def test_server_side(self):
        if not Target.pid:
            self.skipTest("needs --pid")
        server = self.load("point-select", "--server-pid", str(Target.pid))["server"]
        self.assertGreater(server["voluntary_switches"], 0)
        self.assertGreater(server["threads_max"], CONNECTIONS)
        self.assertGreater(server["rss_max_bytes"], 10_000_000)

    @unittest.skipUnless(shutil.which("strace"), "strace isn't installed")
    def test_system_calls(self):
        if not Target.pid:
            self.skipTest("needs --pid")
        result = self.load("point-select", "--server-pid", str(Target.pid), "--strace", "--strace-seconds", "1")
        self.assertGreater(sum(result["strace"]["calls"].values()), result["strace"]["transactions"])

    def test_result_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "result.json"
            options = ("--seconds", "1", "--warm-up-seconds", "0")
            self.assertEqual(self.program("run", "point-select", *options, "--output", str(path)), "")
            self.assertEqual(json.loads(path.read_text(encoding="utf-8"))["format"], 1)
            missing = str(pathlib.Path(folder) / "missing" / "result.json")
            self.refused("--output", "run", "point-select", "--output", missing)

    def test_a_killed_session_is_counted_and_replaced(self):
        """Those of the load are the only ones beside the control session."""
        process = subprocess.Popen(
            [PROGRAM, "run", "point-select", "--socket", Target.socket, "--user", Target.user, *DATA]
            + ["--connections", "1", "--seconds", "3", "--warm-up-seconds", "0"],
            env={**os.environ, "MYSQL_PWD": Target.password},
            stdout=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(process.kill)
        self.kill_when_at_work()
        result = json.loads(process.communicate(timeout=LIMIT_SECONDS)[0])
        self.assertGreaterEqual(result["errors"]["total"], 1)
        self.assertGreater(result["series"][-1]["tps"], 0)

    def kill_when_at_work(self):
        threads = "SELECT t.processlist_id FROM performance_schema.threads t JOIN performance_schema.prepared_statements_instances p"
        condition = "ON p.owner_thread_id = t.thread_id WHERE p.count_execute > 100 LIMIT 1"
        found = []

        def at_work():
            found[:] = self.control.query(f"{threads} {condition}").rows
            return bool(found)

        wait_until(at_work, "the load executes statements")
        self.control.query(f"KILL {found[0][0]}")

    def test_what_the_server_lacks_is_named(self):
        self.control.query(f"DROP TABLE {DATABASE}.sbtest2")
        self.refused("there is no table sbtest2, --tables is 2", "run", "read-only")
        self.control.query(f"DELETE FROM {DATABASE}.sbtest1 WHERE id > 400")
        self.refused("table sbtest1 has rows up to 400, --rows is 500", "run", "read-only")
        most = int(self.control.value("SELECT @@max_connections"))
        wanted = most + 1
        self.refused(f"--connections {wanted} is more than the server allows, {most}", "run", "idle", "--connections", str(wanted))
