#!/usr/bin/env python3
"""Usage: dispatch.py [--rounds N] [--seconds N] [--clients N,N...] [--workloads NAME,NAME...]    (make bench-dispatch)

What it costs to get a statement to a processor: three servers with the same data (without a pool, with the pool that
comes with the server, and with this one), under sysbench in turn, round by round. Prints medians: transactions per
second, their ratio to the server without a pool in the same round with its spread, latencies, processor time of the
server, context switches, and, if strace is installed, system calls for each transaction (counted in a run of its own,
since counting slows the server down). Leaves nothing running or behind.
"""

import argparse
import contextlib
import dataclasses
import os
import pathlib
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

import load
from server import ServerFailure

WORKLOADS = "oltp_point_select,oltp_read_only,oltp_read_write"
CLIENTS = "1,2,8,64,512"
NAMES = ("no pool", "server's pool", "this pool")
COUNT_SECONDS = 3
OPTIONS = (*load.SERVER_OPTIONS, "--innodb-buffer-pool-size=512M")


@dataclasses.dataclass
class Run:
    """What one server did in one run."""

    tps: float
    p99_ms: float
    max_ms: float
    processor_us: float
    switches: float
    calls: float = float("nan")


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def context_switches(pid):
    """Of the threads that are alive; those that end meanwhile are few."""
    total = 0
    for status in pathlib.Path(f"/proc/{pid}/task").glob("*/status"):
        try:
            total += sum(int(count) for count in re.findall(r"ctxt_switches:\s+(\d+)", status.read_text("ascii")))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total


def measure(server, workload, clients, seconds):
    with load.Sysbench(server, workload, connections=clients, seconds=seconds, percentile=99) as sysbench:
        while not sysbench.started():
            if not sysbench.running(0.01):
                break
        used, switched = processor_seconds(server.pid), context_switches(server.pid)
        sysbench.running(seconds * 0.9)
        switched = context_switches(server.pid) - switched
        output = sysbench.result()
        used = processor_seconds(server.pid) - used
    transactions = load.number(r"transactions:\s+(\d+)", output)
    tps = load.number(r"transactions:\s+\d+\s+\(([\d.]+) per sec", output)
    return Run(
        tps=tps,
        p99_ms=load.number(r"99th percentile:\s+([\d.]+)", output),
        max_ms=load.number(r"\bmax:\s+([\d.]+)", output),
        processor_us=used * 1e6 / transactions,
        switches=switched / (tps * seconds * 0.9),
    )


def count_calls(server, workload, clients):
    """System calls of the whole server for each transaction."""
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as report:
        with load.Sysbench(server, workload, connections=clients, seconds=COUNT_SECONDS) as sysbench:
            while not sysbench.started() and sysbench.running(0.01):
                pass
            command = ["strace", "-c", "-f", "-o", report.name, "-p", str(server.pid)]
            strace = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                output = sysbench.result()
            finally:
                strace.send_signal(signal.SIGINT)
                strace.wait(30)
        calls = re.search(r"^100\.00\s+\S+\s+(?:\S+\s+)?(\d+)\s+(?:\d+\s+)?total$", report.read(), re.MULTILINE)
    # Strace needs a moment to attach to every thread, so the first calls are missing.
    return int(calls[1]) / load.number(r"transactions:\s+(\d+)", output) if calls else float("nan")


def median(runs, field):
    return statistics.median(getattr(run, field) for run in runs)


def print_cell(workload, clients, runs):
    for name, mine in runs.items():
        ratios = sorted(run.tps / base.tps for run, base in zip(mine, runs[NAMES[0]]))
        values = {field.name: median(mine, field.name) for field in dataclasses.fields(Run)}
        load.say(
            f"{workload:18} {clients:6,}  {name:14}"
            " {tps:10,.0f} {p99_ms:9.2f} {max_ms:9.1f} {processor_us:9.0f} {switches:9.2f} {calls:7.1f}".format(**values)
            + f"   {statistics.median(ratios):5.2f} ({ratios[0]:.2f}-{ratios[-1]:.2f})"
        )


def run_all(servers, arguments):
    load.say(
        f"{'workload':18} {'clients':>6}  {'server':14} {'TPS':>10} {'p99 ms':>9} {'max ms':>9} {'CPU us':>9}"
        f" {'switches':>9} {'calls':>7}   ratio (spread)"
    )
    for workload in arguments.workloads.split(","):
        for clients in map(int, arguments.clients.split(",")):
            runs = {name: [] for name in servers}
            for server in servers.values():
                measure(server, workload, clients, 1)
            for _ in range(arguments.rounds):
                for name, server in servers.items():
                    runs[name].append(measure(server, workload, clients, arguments.seconds))
            if arguments.count:
                for name, server in servers.items():
                    calls = count_calls(server, workload, clients)
                    runs[name] = [dataclasses.replace(run, calls=calls) for run in runs[name]]
            print_cell(workload, clients, runs)


def make_servers(folder, values):
    """With copies of one data folder; not started."""
    mysqld = shlex.split(values["MYSQLD"])
    plain = load.ConfiguredServer(mysqld, None, OPTIONS, folder / "plain")
    load.prepare(plain)
    servers = {NAMES[0]: plain}
    theirs = pathlib.Path(values["MYSQL_ROOT"]) / "usr/lib/mysql/plugin/thread_pool.so"
    for name, plugin in zip(NAMES[1:], (theirs, pathlib.Path(values["PLUGIN"]))):
        if plugin.exists():
            servers[name] = load.ConfiguredServer(mysqld, str(plugin), OPTIONS, folder / plugin.stem)
            load.copy_data(plain, servers[name])
        else:
            load.say(f"{plugin} doesn't exist: {name} is left out")
    return servers


def main():
    parser = argparse.ArgumentParser(description="cost of dispatch, beside other servers")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=10, help="length of a run")
    parser.add_argument("--clients", default=CLIENTS)
    parser.add_argument("--workloads", default=WORKLOADS, help="sysbench's names")
    arguments = parser.parse_args()
    arguments.count = shutil.which("strace") is not None
    try:
        load.raise_descriptor_limit()
        values = load.environment()
        with load.workspace() as folder, contextlib.ExitStack() as running:
            servers = make_servers(folder, values)
            for server in servers.values():
                running.enter_context(server)
            run_all(servers, arguments)
    except (load.Failure, ServerFailure) as failure:
        sys.exit(f"FAILED: {failure}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
