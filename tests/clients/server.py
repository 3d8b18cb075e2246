#!/usr/bin/env python3
"""Starts and stops private MySQL servers on a unix socket and on loopback TCP ports.

    eval "$(tests/clients/server.py start --mysqld "$MYSQLD" [--pool --plugin "$PLUGIN"] [-- OPTION...])"
    ... SERVER_PID SERVER_DIR SERVER_SOCKET SERVER_PORT SERVER_ADMIN_PORT are set ...
    tests/clients/server.py stop "$SERVER_DIR"

The account is root without a password. `start` returns when the server answers, or fails with the end of its
error log. `stop` ends the server by its process id, removes its folder, and fails unless the server ended by itself in
time. A fresh data folder is made once for each server program and then copied.
"""

import argparse
import contextlib
import fcntl
import hashlib
import os
import pathlib
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import mysql_wire

START_SECONDS = 120
STOP_SECONDS = 60
POLL_SECONDS = 0.02


class ServerFailure(Exception):
    """The server didn't start, or didn't stop as it should."""


def temporary_folder():
    """Where data folders go by default. Short, because a unix socket's path has at most 107 bytes."""
    return pathlib.Path(os.environ.get("TMPDIR", "/tmp"))


def user_options():
    """mysqld refuses to run as root unless told so."""
    return ["--user=root"] if os.geteuid() == 0 else []


def free_ports(count):
    """TCP ports of the loopback interface that nobody uses."""
    with contextlib.ExitStack() as stack:
        ports = []
        for _ in range(count):
            probe = stack.enter_context(socket.socket())
            probe.bind(("127.0.0.1", 0))
            ports.append(probe.getsockname()[1])
        return ports


def template(mysqld):
    """A fresh data folder to copy from, made on the first call for this server program."""
    program = pathlib.Path(shutil.which(mysqld[0]) or mysqld[0]).resolve()
    version = subprocess.run([*mysqld, "--no-defaults", "--version"], capture_output=True, check=True).stdout
    identity = hashlib.sha256(repr((str(program), program.stat().st_mtime_ns, version)).encode()).hexdigest()[:12]
    folder = temporary_folder() / f"thread_pool_rs_data.{os.geteuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.geteuid():
        raise ServerFailure(f"{folder} belongs to another user: set TMPDIR to a folder of yours")
    data = folder / identity
    with open(folder / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not data.exists():
            unfinished = folder / f"{identity}.unfinished"
            shutil.rmtree(unfinished, ignore_errors=True)
            log = folder / f"{identity}.log"
            command = [*mysqld, "--no-defaults", *user_options(), "--initialize-insecure", f"--datadir={unfinished}", f"--log-error={log}"]
            if subprocess.run(command, timeout=START_SECONDS, check=False).returncode != 0:
                raise ServerFailure(f"the data folder can't be initialised:\n{end_of(log)}")
            unfinished.rename(data)
    return data


def end_of(log, lines=15):
    try:
        return "\n".join(pathlib.Path(log).read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
    except OSError as error:
        return str(error)


def start_time(pid):
    """When a process started, in clock ticks since boot: tells a process from a later one with its id."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]


class Server:
    """A server with its folder. Use it as a context manager, or call `start` and `stop`."""

    def __init__(self, mysqld, plugin=None, options=(), folder=None, environment=None):
        self.mysqld = mysqld
        self.plugin = plugin
        self.options = list(options)
        self.environment = dict(environment or {})
        self.folder = pathlib.Path(folder) if folder else None
        self.process = None
        self.pid = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    @property
    def socket(self):
        return str(self.folder / "s")

    @property
    def log(self):
        return self.folder / "error.log"

    def address(self):
        return mysql_wire.Address(socket_path=self.socket)

    def _command(self):
        self.port, self.admin_port = free_ports(2)
        command = [
            *self.mysqld,
            "--no-defaults",
            *user_options(),
            f"--datadir={self.folder / 'data'}",
            f"--socket={self.socket}",
            f"--pid-file={self.folder / 'pid'}",
            f"--log-error={self.log}",
            "--bind-address=127.0.0.1",
            f"--port={self.port}",
            "--admin-address=127.0.0.1",
            f"--admin-port={self.admin_port}",
            "--mysqlx=OFF",
            "--skip-log-bin",
            "--log-error-verbosity=3",
        ]
        if self.plugin:
            plugin = pathlib.Path(self.plugin).resolve()
            command += [f"--plugin-dir={plugin.parent}", f"--plugin-load-add={plugin.name}"]
        return command + self.options

    def start(self):
        """Copies the template unless the folder has data already, starts the server, and waits until it answers."""
        if self.folder is None:
            self.folder = pathlib.Path(tempfile.mkdtemp(prefix="rtp.", dir=temporary_folder()))
        self.folder.mkdir(parents=True, exist_ok=True)
        if not (self.folder / "data").exists():
            source = template(self.mysqld)
            subprocess.run(["cp", "-a", "--reflink=auto", source, self.folder / "data"], check=True)
            # Every server has an identity of its own.
            (self.folder / "data" / "auto.cnf").unlink(missing_ok=True)
        with open(self.folder / "output", "wb") as output:
            self.process = subprocess.Popen(
                self._command(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env=os.environ | self.environment,
            )
        self.pid = self.process.pid
        (self.folder / "started").write_text(f"{self.pid} {start_time(self.pid)}", encoding="ascii")
        try:
            self._wait_ready()
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise

    def _wait_ready(self):
        deadline = time.monotonic() + START_SECONDS
        while True:
            if self.process.poll() is not None:
                raise ServerFailure(f"the server ended with {self.process.returncode}:\n{end_of(self.log)}")
            try:
                with mysql_wire.Connection(self.address(), timeout=5) as connection:
                    connection.ping()
                    return
            except (OSError, EOFError, mysql_wire.ServerError):
                if time.monotonic() > deadline:
                    raise ServerFailure(f"the server isn't ready after {START_SECONDS} s:\n{end_of(self.log)}") from None
            time.sleep(POLL_SECONDS)

    def wait_end(self, seconds):
        """The exit code, or None when the server still runs after that time."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def restart(self):
        """Ends the server, which must do so by itself, and starts it again with the same data."""
        self._end()
        self.start()

    def stop(self):
        """Ends the server and removes its folder; the exit code must be 0."""
        self._end()
        shutil.rmtree(self.folder)

    def _end(self):
        code = self.process.poll()
        if code is None:
            self.process.send_signal(signal.SIGTERM)
            code = self.wait_end(STOP_SECONDS)
        if code is None:
            self.process.kill()
            self.process.wait()
        if code != 0:
            raise ServerFailure(f"the server {'had to be killed' if code is None else f'ended with {code}'}:\n{end_of(self.log)}")


def stop_folder(folder):
    """Ends a server that another run of this script started."""
    folder = pathlib.Path(folder)
    pid, ticks = (folder / "started").read_text(encoding="ascii").split()
    for number, seconds in ((signal.SIGTERM, STOP_SECONDS), (signal.SIGKILL, STOP_SECONDS)):
        if start_time(pid) == ticks:
            os.kill(int(pid), number)
        deadline = time.monotonic() + seconds
        while start_time(pid) == ticks and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        if start_time(pid) != ticks:
            break
    if number == signal.SIGKILL:
        raise ServerFailure(f"the server had to be killed:\n{end_of(folder / 'error.log')}")
    shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser(description="start and stop private MySQL servers")
    commands = parser.add_subparsers(dest="command", required=True)
    start = commands.add_parser("start", help="start a server and print shell assignments")
    start.add_argument("--mysqld", required=True, help="the server's command, for example $MYSQLD")
    start.add_argument("--pool", action="store_true", help="load the thread pool")
    start.add_argument("--plugin", help="path of thread_pool_rs.so, needed for --pool")
    start.add_argument("--dir", help="folder for data, log and socket; a temporary one by default")
    start.add_argument("option", nargs="*", help="options for mysqld, after --")
    stop = commands.add_parser("stop", help="stop a server and remove its folder")
    stop.add_argument("dir", help="SERVER_DIR of start")
    arguments = parser.parse_args()
    try:
        if arguments.command == "stop":
            stop_folder(arguments.dir)
            return
        if arguments.pool and not arguments.plugin:
            parser.error("--pool needs --plugin")
        plugin = arguments.plugin if arguments.pool else None
        server = Server(shlex.split(arguments.mysqld), plugin, arguments.option, arguments.dir)
        server.start()
    except ServerFailure as failure:
        sys.exit(f"error: {failure}")
    values = {
        "PID": server.pid,
        "DIR": server.folder,
        "SOCKET": server.socket,
        "PORT": server.port,
        "ADMIN_PORT": server.admin_port,
    }
    for name, value in values.items():
        print(f"SERVER_{name}={shlex.quote(str(value))}")


if __name__ == "__main__":
    main()
