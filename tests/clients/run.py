#!/usr/bin/env python3
"""Runs the client tests against a running server.

    tests/clients/run.py --socket PATH --port PORT [--admin-port PORT] [--pid PID] [--sessions N] [NAME...]

The tests want the server for themselves, and an account with all privileges. They don't care whether the server has
a pool: what they expect was measured without one. NAME is a module, class or test, for example test_kill.Kill.test_idle.
"""

import argparse
import pathlib
import random
import sys
import time
import unittest

from harness import Target, allow_descriptors

TEST_SECONDS = 60


class Result(unittest.TextTestResult):
    """Prints the time of each test."""

    def startTest(self, test):  # noqa: N802
        self._start = time.monotonic()
        super().startTest(test)

    def getDescription(self, test):  # noqa: N802
        return test.id()

    def addSuccess(self, test):  # noqa: N802
        super().addSuccess(test)
        self.stream.writeln(f"    {time.monotonic() - self._start:.2f} s")


def parse_arguments():
    parser = argparse.ArgumentParser(description="client tests for a MySQL server with or without thread pool")
    parser.add_argument("--socket", required=True, help="the server's unix socket")
    parser.add_argument("--port", type=int, required=True, help="its TCP port on the loopback interface")
    parser.add_argument("--admin-port", type=int, help="its administrative port")
    parser.add_argument("--user", default="root")
    parser.add_argument("--password", default="")
    parser.add_argument("--pid", type=int, help="its process id, to look for leaks")
    parser.add_argument("--sessions", type=int, default=1000, help="size of the crowd for the test of mass KILL")
    parser.add_argument("--crowd", type=int, default=500, help="size of the crowd that waits for a lock, a login ...")
    parser.add_argument("--mysqld", help="the server's command, for tests that start servers of their own")
    parser.add_argument("--plugin", help="path of thread_pool_rs.so, for the same tests")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32), help="of the random tests")
    parser.add_argument("names", nargs="*", help="modules, classes or tests")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    descriptors = allow_descriptors(arguments.sessions + 500)
    arguments.sessions = min(arguments.sessions, descriptors - 500)
    for name, value in vars(arguments).items():
        setattr(Target, name, value)
    print(f"seed {Target.seed}", flush=True)
    here = str(pathlib.Path(__file__).resolve().parent)
    loader = unittest.TestLoader()
    tests = loader.loadTestsFromNames(arguments.names) if arguments.names else loader.discover(here, top_level_dir=here)
    result = unittest.TextTestRunner(sys.stdout, verbosity=2, resultclass=Result).run(tests)
    # Each failed subtest counts as a failure of its own.
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - len({test.id().split(' ')[0] for test, _ in result.failures + result.errors}) - len(result.skipped)} passed, {failed} failed, {len(result.skipped)} skipped")
    sys.exit(0 if result.wasSuccessful() else 1)


if __name__ == "__main__":
    main()
