#!/usr/bin/env python3
"""Usage: acceptance.py [TIMES]    (default 20)

kill -TERM in the middle of a run of sysbench with 1,000 connections ends the server with the pool with exit code 0
within 10 seconds, each of TIMES times. Prints how long it took, and totals.
"""

import pathlib
import shlex
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "benches"))

import load  # noqa: E402 (needs the path above)
import mysql_wire  # noqa: E402
from server import ServerFailure, end_of  # noqa: E402

CONNECTIONS = 1000
CONNECT_SECONDS = 60
BUSY_SECONDS = 2
END_SECONDS = 10
KILL_SECONDS = 60


def wait_busy(server, sysbench):
    """Until all clients are connected and have worked for a moment."""
    deadline = time.monotonic() + CONNECT_SECONDS
    with mysql_wire.Connection(server.address()) as connection:
        while int(connection.query("SHOW STATUS LIKE 'Threads_connected'").rows[0][1]) <= CONNECTIONS:
            if time.monotonic() > deadline or not sysbench.running(0.1):
                raise load.Failure(f"{CONNECTIONS:,} clients aren't connected after {CONNECT_SECONDS} s")
    if not sysbench.running(BUSY_SECONDS):
        sysbench.result()
        raise load.Failure("sysbench ended before the server")


def end_under_load(server):
    """Starts the server and ends it. What happened, and whether that was right."""
    server.start()
    try:
        with load.Sysbench(server, "oltp_read_write", connections=CONNECTIONS, seconds=600) as sysbench:
            wait_busy(server, sysbench)
            start = time.monotonic()
            code = server.end(KILL_SECONDS)
            seconds = time.monotonic() - start
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait()
    if code is None:
        return f"had to be killed after {seconds:.1f} s; its log ends with\n{end_of(server.log)}", False
    text = f"exit code {code} after {seconds:.2f} s"
    if code != 0:
        text += f"; its log ends with\n{end_of(server.log)}"
    return text, code == 0 and seconds <= END_SECONDS


def repeat(folder, values, times):
    """The number of failures."""
    failed = 0
    server = load.ConfiguredServer(shlex.split(values["MYSQLD"]), values["PLUGIN"], load.SERVER_OPTIONS, folder / "server")
    server.start()
    try:
        load.fill(server)
    finally:
        server.end()
    for number in range(1, times + 1):
        try:
            text, right = end_under_load(server)
        except (load.Failure, ServerFailure) as failure:
            text, right = str(failure), False
        load.say(f"{number}/{times} {'ok' if right else 'FAILED'}: {text}")
        failed += not right
    return failed


def main():
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    try:
        load.raise_descriptor_limit()
        values = load.environment()
        with load.workspace() as folder:
            failed = repeat(folder, values, times)
    except (load.Failure, ServerFailure) as failure:
        sys.exit(f"FAILED: {failure}")
    load.say(f"SIGTERM at {CONNECTIONS:,} busy connections: {times - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
