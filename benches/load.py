"""Shared by the demo, by `make run` and by the shutdown check: servers set up through a my.cnf, and sysbench."""

import contextlib
import os
import pathlib
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "clients"))

import mysql_wire  # noqa: E402 (needs the path above)
from server import Server  # noqa: E402

DATABASE = "sbtest"
TABLES = 4
ROWS = 10_000
DESCRIPTORS = 8192

# What 1,000 sysbench clients need. Each of them prepares some 40 statements, beyond the default of 16,382 in all,
# and they all connect at once.
SERVER_OPTIONS = (
    "--max-connections=2000",
    "--max-prepared-stmt-count=1000000",
    "--back-log=2000",
    f"--open-files-limit={DESCRIPTORS}",
)


class Failure(Exception):
    """Something that the caller promised doesn't hold."""


def say(text):
    """Progress; at once, even into a pipe."""
    print(text, flush=True)


def environment():
    """What tests/env/env.sh says: where the module and MySQL are."""
    answer = subprocess.run([ROOT / "tests" / "env" / "env.sh"], stdout=subprocess.PIPE, text=True, check=False)
    if answer.returncode != 0:
        raise Failure("there is no environment to run in, see above")
    values = dict(shlex.split(line)[0].split("=", 1) for line in answer.stdout.splitlines())
    if not os.path.isfile(values["PLUGIN"]):
        raise Failure(f"{values['PLUGIN']} isn't built yet: run make first")
    mysqld = shlex.split(values["MYSQLD"])[0]
    if not os.path.isfile(mysqld):
        raise Failure(f"there is no {mysqld}: build MySQL's target mysqld first, or unset MYSQL_BUILD_DIR")
    return values


def raise_descriptor_limit():
    """Raises the soft limit; 1,000 clients and their server each need more than the usual 1,024."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < DESCRIPTORS:
        raise Failure(f"a process may open only {hard} files here, {DESCRIPTORS} are needed: raise ulimit -Hn")
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, hard))


def end_once(number, _):
    """Ends the script by way of its cleanup, which a further signal must not interrupt: a server would go on
    without its folder."""
    for other in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(other, signal.SIG_IGN)
    sys.exit(128 + number)


@contextlib.contextmanager
def workspace():
    """A temporary folder in which everything happens, also what the server helper keeps for later runs."""
    # The usual ways to end a script run the cleanup as well.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end_once)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="rtp.", dir=os.environ.get("TMPDIR", "/tmp")))
    os.environ["TMPDIR"] = str(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class ConfiguredServer(Server):
    """A server that gets all its options, the pool among them, from a my.cnf, as a user would set it up."""

    def _command(self):
        options = super()._command()[len(self.mysqld) + 1 :]  # without the program and --no-defaults
        lines = [option.removeprefix("--") for option in options]
        self.configuration = self.folder / "my.cnf"
        self.configuration.write_text("\n".join(["[mysqld]", *lines, ""]), encoding="utf-8")
        return [*self.mysqld, f"--defaults-file={self.configuration}"]

    def end(self, seconds=60):
        """SIGTERM. The exit code, or None when the server still runs after that time; the folder stays."""
        self.process.send_signal(signal.SIGTERM)
        return self.wait_end(seconds)

    def threads(self):
        """The number of threads, as the kernel counts them."""
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
        return int(re.search(r"^Threads:\s+(\d+)$", status, re.MULTILINE)[1])


class Sysbench:
    """One run of sysbench; a context manager that leaves no process behind."""

    def __init__(self, server, workload, command="run", connections=1, seconds=0, percentile=95):
        self.command = [
            "sysbench",
            workload,
            "--db-driver=mysql",
            f"--mysql-socket={server.socket}",
            "--mysql-user=root",
            f"--mysql-db={DATABASE}",
            f"--tables={TABLES}",
            f"--table-size={ROWS}",
            # Only deadlocks (1213) are survived: InnoDB rolled one transaction back and sysbench begins another. Any
            # other error ends sysbench with a message.
            "--mysql-ignore-errors=1213",
            "--rand-type=uniform",
            f"--threads={connections}",
            f"--time={seconds}",
            f"--percentile={percentile}",
            "--events=0",
            command,
        ]

    def __enter__(self):
        self.output = tempfile.TemporaryFile("w+", encoding="utf-8")
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.DEVNULL, stdout=self.output, stderr=subprocess.STDOUT
        )
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.output.close()

    def running(self, seconds):
        """Waits for the end at most that long. Whether the run goes on."""
        try:
            self.process.wait(seconds)
            return False
        except subprocess.TimeoutExpired:
            return True

    def started(self):
        """Whether all clients are connected and at work."""
        return b"Threads started!" in os.pread(self.output.fileno(), 1 << 16, 0)

    def result(self):
        """The output of a run that succeeded; waits for its end."""
        code = self.process.wait()
        self.output.seek(0)
        output = self.output.read()
        if code != 0:
            fatal = [line for line in output.splitlines() if "FATAL" in line] or output.splitlines()[-5:]
            raise Failure("sysbench failed: " + "; ".join(fatal[:3]))
        return output


def number(pattern, output):
    """The number that the pattern's group finds in sysbench's output."""
    found = re.search(pattern, output)
    if not found:
        raise Failure(f"sysbench's output has no {pattern}:\n{output}")
    return float(found[1])


def prepare(server):
    """Makes the tables once, with a server that hasn't been started and is stopped again."""
    say(f"      preparing {TABLES} tables of {ROWS:,} rows")
    server.start()
    try:
        fill(server)
    finally:
        code = server.end()
    if code != 0:
        raise Failure(f"the server that made the tables ended with {code}")


def copy_data(source, target):
    """Gives a server that hasn't been started the data of one that is stopped."""
    target.folder.mkdir()
    subprocess.run(["cp", "-a", "--reflink=auto", source.folder / "data", target.folder / "data"], check=True)
    (target.folder / "data" / "auto.cnf").unlink()


def fill(server):
    """Fills sysbench's tables."""
    with mysql_wire.Connection(server.address()) as connection:
        connection.query(f"CREATE DATABASE {DATABASE}")
    with Sysbench(server, "oltp_read_write", "prepare", connections=TABLES) as sysbench:
        sysbench.result()
