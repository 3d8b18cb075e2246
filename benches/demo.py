#!/usr/bin/env python3
"""Usage: demo.py    (make demo)

Shows what the pool does: two servers with the same data, one without a pool and one that loads it from its my.cnf,
under sysbench in turn. Ends with a table, and with 0 only if no client met an error and 1,000 busy connections ran on
fewer than 100 threads of the server with the pool. (A burst of logins may take more for a moment: that is shown, not
judged.) Leaves nothing running or behind.
"""

import re
import shlex
import subprocess
import sys
import time

import load
import mysql_wire
from server import ServerFailure

WORKLOADS = ("oltp_point_select", "oltp_read_write")
CONNECTIONS = (1, 64, 1000)
ROUNDS = 2
SECONDS = 5
MOST_THREADS = 99
SAMPLE_SECONDS = 0.25
# After the last login; threads that were there for the logins end within this time.
SETTLE_SECONDS = 2.5


class Cell:
    """What one server did in one line of the table, over all rounds."""

    def __init__(self):
        self.tps = []
        self.p95 = []
        self.deadlocks = 0
        self.errors = 0
        self.threads = 0
        self.peak_threads = 0

    def add_threads(self, threads, busy):
        """One sample. `busy`: all clients have been at work for a while."""
        self.peak_threads = max(self.peak_threads, threads)
        if busy:
            self.threads = max(self.threads, threads)

    def add(self, output):
        self.tps.append(load.number(r"transactions:\s+\d+\s+\(([\d.]+) per sec", output))
        self.p95.append(load.number(r"95th percentile:\s+([\d.]+)", output))
        self.deadlocks += int(load.number(r"ignored errors:\s+(\d+)", output))
        self.errors += int(load.number(r"reconnects:\s+(\d+)", output))

    @property
    def mean_tps(self):
        return sum(self.tps) / len(self.tps)

    @property
    def mean_p95(self):
        return sum(self.p95) / len(self.p95)


def start_servers(folder, values):
    """The same data for both: the tables are made once, and the data folder is copied."""
    mysqld = shlex.split(values["MYSQLD"])
    plain = load.ConfiguredServer(mysqld, None, load.SERVER_OPTIONS, folder / "plain")
    pool = load.ConfiguredServer(mysqld, values["PLUGIN"], load.SERVER_OPTIONS, folder / "pool")
    load.say("[1/3] one set of tables for both servers")
    load.prepare(plain)
    load.copy_data(plain, pool)
    return plain, pool


def check_handling(server, expected):
    with mysql_wire.Connection(server.address()) as connection:
        rows = connection.query("SHOW VARIABLES LIKE 'thread_handling'").rows
    if rows != [["thread_handling", expected]]:
        log = server.log.read_text(errors="replace")
        raise load.Failure(f"SHOW VARIABLES LIKE 'thread_handling' says {rows} instead of {expected}:\n{log}")


def measure(server, workload, connections, cell):
    """One run, added to the cell."""
    settled = None
    with load.Sysbench(server, workload, connections=connections, seconds=SECONDS) as sysbench:
        while sysbench.running(SAMPLE_SECONDS):
            if settled is None and sysbench.started():
                settled = time.monotonic() + SETTLE_SECONDS
            cell.add_threads(server.threads(), settled is not None and time.monotonic() > settled)
        cell.add(sysbench.result())


def run_all(plain, pool):
    lines = [(workload, connections) for workload in WORKLOADS for connections in CONNECTIONS]
    table = {(line, server): Cell() for line in lines for server in (plain, pool)}
    for done, (workload, connections) in enumerate(lines, 1):
        for _ in range(ROUNDS):
            for server in (plain, pool):
                measure(server, workload, connections, table[(workload, connections), server])
        load.say(f"      {done}/{len(lines)}  {workload} at {connections} connections")
    return [(*line, table[line, plain], table[line, pool]) for line in lines]


def report(lines):
    load.say("")
    load.say(f"Mean of {ROUNDS} runs of {SECONDS} s each; latencies in ms; threads = the most that the server had while all were at work.")
    load.say("Deadlocks are part of oltp_read_write: InnoDB rolls a transaction back and sysbench begins another. Errors are")
    load.say("lost connections; any other error ends the demo.")
    load.say("")
    half = f" | {'TPS':>8} {'p95 ms':>9} {'threads':>8}"
    load.say(f"{'':25} | {'without a pool':^27} | {'with the pool':^27} |       | {'deadlocks':^14} |")
    load.say(f"{'workload':17}{'clients':>8}{half}{half} | ratio | {'without':>7} {'with':>6} | errors")
    load.say("-" * 113)
    for workload, connections, plain, pool in lines:
        load.say(
            f"{workload:17} {connections:7,}"
            + "".join(f" | {cell.mean_tps:8,.0f} {cell.mean_p95:9,.2f} {cell.threads:8,}" for cell in (plain, pool))
            + f" | {pool.mean_tps / plain.mean_tps:5.2f} | {plain.deadlocks:7,} {pool.deadlocks:6,}"
            + f" | {plain.errors + pool.errors:6,}"
        )
    load.say("")


def judge(lines):
    errors = sum(plain.errors + pool.errors for _, _, plain, pool in lines)
    if errors:
        raise load.Failure(f"{errors} connections were lost")
    crowded = [pool for _, connections, _, pool in lines if connections == max(CONNECTIONS)]
    busiest = max(pool.threads for pool in crowded)
    load.say(
        f"With {max(CONNECTIONS):,} busy connections the server with the pool had {busiest} threads; "
        f"up to {max(pool.peak_threads for pool in crowded)} while all of them logged in at once."
    )
    if not 0 < busiest <= MOST_THREADS:
        raise load.Failure(f"the server with the pool may have at most {MOST_THREADS} threads")
    load.say("No client met an error.")


def demo(folder, values):
    plain, pool = start_servers(folder, values)
    load.say("[2/3] starting a server without a pool, and one with this in its my.cnf:")
    with plain, pool:
        load.say("      " + "  ".join(line for line in pool.configuration.read_text().splitlines() if "plugin" in line))
        check_handling(plain, "one-thread-per-connection")
        check_handling(pool, "loaded-dynamically")
        load.say("      SHOW VARIABLES LIKE 'thread_handling' on the second: loaded-dynamically")
        runs = len(WORKLOADS) * len(CONNECTIONS) * ROUNDS * 2
        load.say(f"[3/3] {runs} runs of sysbench through unix sockets, {SECONDS} s each, in turn")
        lines = run_all(plain, pool)
        report(lines)
        judge(lines)


def main():
    start = time.monotonic()
    try:
        load.raise_descriptor_limit()
        values = load.environment()
        with load.workspace() as folder:
            demo(folder, values)
    except (load.Failure, ServerFailure) as failure:
        sys.exit(f"FAILED: {failure}")
    except KeyboardInterrupt:
        sys.exit(130)
    load.say(f"The demo took {time.monotonic() - start:.0f} s.")


if __name__ == "__main__":
    main()
