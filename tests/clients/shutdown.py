#!/usr/bin/env python3
"""Stops servers at random moments, with sessions in every state, and compares the time with a server without pool.

    tests/clients/shutdown.py --mysqld "$MYSQLD" [--plugin "$PLUGIN"] [--rounds N] [--seed SEED] [-- OPTION...]

Each round makes the same crowd of sessions on a server without and on one with the pool, waits a random moment, and
stops the server by SIGTERM or by SHUTDOWN. It has to end with exit code 0, and the pool may cost one second.
"""

import argparse
import contextlib
import random
import resource
import shlex
import signal
import sys
import threading
import time

from mysql_wire import Address, Connection, ServerError, packet
from server import Server, ServerFailure, end_of

END_SECONDS = 60
SLOWER_SECONDS = 1.0
BUSY = "SELECT BENCHMARK(1000000000000, SHA2('a', 256))"


class Plan:
    """What a round does; drawn once and used for both servers."""

    def __init__(self, chance):
        def some(most):
            """Half of the rounds do without a state, since a single slow one would hide all others."""
            return chance.choice([0, chance.randrange(most)])

        self.idle = chance.randrange(60)
        self.running = some(10)
        self.busy = some(10)
        self.lock_waiting = some(10)
        self.half_open = some(20)
        self.queued = some(30)
        self.in_transaction = some(5)
        self.logins_go_on = chance.random() < 0.5
        self.moment = chance.choice([0, chance.random() * 0.02, chance.random() * 0.5])
        self.by_signal = chance.random() < 0.7

    def __str__(self):
        return ", ".join(f"{name} {value:.3f}" if isinstance(value, float) else f"{name} {value}" for name, value in vars(self).items())


class Crowd:
    """Sessions in many states."""

    def __init__(self, server, plan):
        self.addresses = [server.address(), Address(port=server.port)]
        self.plan = plan
        self.connections = []
        self.stop = threading.Event()

    def __enter__(self):
        self._set_up()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for connection in self.connections:
            connection.close()

    def _open(self, **options):
        connection = Connection(self.addresses[len(self.connections) % 2], timeout=END_SECONDS, **options)
        self.connections.append(connection)
        return connection

    def _set_up(self):
        holder = self._open()
        holder.query("CREATE DATABASE IF NOT EXISTS crowd")
        holder.query("CREATE TABLE IF NOT EXISTS crowd.t (id INT PRIMARY KEY, value INT)")
        holder.query("REPLACE INTO crowd.t VALUES (1, 1)")
        holder.query("BEGIN")
        holder.query("UPDATE crowd.t SET value = 2 WHERE id = 1")
        for _ in range(self.plan.idle):
            self._open()
        for number in range(self.plan.in_transaction):
            session = self._open()
            session.query("BEGIN")
            session.query(f"INSERT INTO crowd.t VALUES ({number + 10}, 0)")
        for _ in range(self.plan.half_open):
            session = self._open(login=False)
            session.framing.stream.send(packet(session.login_packet(), 1)[: len(self.connections) % 40])
        self._send(self.plan.running, "SELECT SLEEP(1000)")
        self._send(self.plan.lock_waiting, "UPDATE crowd.t SET value = 3 WHERE id = 1")
        self._send(self.plan.busy, BUSY)
        self._send(self.plan.queued, BUSY)
        if self.plan.logins_go_on:
            for _ in range(4):
                threading.Thread(target=self._log_in_again_and_again, daemon=True).start()

    def _send(self, count, statement):
        sessions = [self._open() for _ in range(count)]
        for session in sessions:
            session.send_query(statement)

    def _log_in_again_and_again(self):
        while not self.stop.is_set():
            with contextlib.suppress(OSError, EOFError, ServerError):
                with Connection(self.addresses[1], timeout=5) as session:
                    session.query("SELECT 1")


def stop_server(server, plan):
    """Asks the server to stop; returns the seconds until it has ended with code 0."""
    client = None if plan.by_signal else Connection(server.address(), timeout=END_SECONDS)
    time.sleep(plan.moment)
    start = time.monotonic()
    if plan.by_signal:
        server.process.send_signal(signal.SIGTERM)
    else:
        # The answer may be cut off by the end of the server.
        with contextlib.suppress(OSError, EOFError, ServerError):
            client.query("SHUTDOWN")
        client.close()
    code = server.wait_end(END_SECONDS)
    seconds = time.monotonic() - start
    if code is None:
        raise ServerFailure(f"the server (pid {server.pid}) still runs after {END_SECONDS} s:\n{end_of(server.log)}")
    if code != 0:
        raise ServerFailure(f"the server ended with {code}:\n{end_of(server.log)}")
    return seconds


def run_round(server, plan):
    server.start()
    with Crowd(server, plan):
        return stop_server(server, plan)


def main():
    parser = argparse.ArgumentParser(description="stop servers at random moments")
    parser.add_argument("--mysqld", required=True, help="the server's command, for example $MYSQLD")
    parser.add_argument("--plugin", help="path of thread_pool_rs.so; without it only the plain server is tried")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("option", nargs="*", help="options for mysqld, after --")
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    mysqld = shlex.split(arguments.mysqld)
    servers = {"plain": Server(mysqld, options=arguments.option)}
    if arguments.plugin:
        servers["pool"] = Server(mysqld, arguments.plugin, arguments.option)
    chance = random.Random(arguments.seed)
    print(f"seed {arguments.seed}", flush=True)
    failed = 0
    for number in range(arguments.rounds):
        plan = Plan(chance)
        try:
            seconds = {name: run_round(server, plan) for name, server in servers.items()}
            slow = seconds.get("pool", 0) > seconds["plain"] + SLOWER_SECONDS
            message = ", ".join(f"{name} {value:.2f} s" for name, value in seconds.items())
        except (ServerFailure, OSError, EOFError, ServerError) as failure:
            slow, message = True, f"{type(failure).__name__}: {failure}"
        failed += slow
        print(f"round {number + 1}: {'FAILED' if slow else 'ok'}: {message} ({plan})", flush=True)
        kill_remaining(servers.values())
    for server in servers.values():
        server.start()
        server.stop()
    print(f"{arguments.rounds - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


def kill_remaining(servers):
    """A server that failed to stop must not disturb the next round."""
    for server in servers:
        if server.process and server.process.poll() is None:
            server.process.kill()
            server.process.wait()


if __name__ == "__main__":
    main()
