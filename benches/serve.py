#!/usr/bin/env python3
"""Usage: serve.py [FOLDER]    (make run)

Runs a server with the pool until Ctrl-C, on a free port and a socket of its own. The data is gone afterwards, unless
a FOLDER is given, in which it is kept for the next time.
"""

import contextlib
import pathlib
import shlex
import signal
import sys

import load
from server import STOP_SECONDS, ServerFailure


@contextlib.contextmanager
def serving(server):
    """Unlike the server helper, doesn't remove the folder at the end."""
    server.start()
    try:
        yield
    finally:
        if server.process.poll() is None:
            server.process.send_signal(signal.SIGTERM)
        code = server.wait_end(STOP_SECONDS)
        if code is None:
            server.process.kill()
        if code != 0:
            raise ServerFailure(f"the server ended with {code}:\n{server.log.read_text()}")


def serve(folder, values):
    server = load.ConfiguredServer(shlex.split(values["MYSQLD"]), values["PLUGIN"], load.SERVER_OPTIONS, folder)
    with serving(server):
        load.say(f"The server runs with the pool; its my.cnf is {server.configuration}, its log {server.log}.")
        load.say("Connect with one of")
        load.say(f"  {values['MYSQL']} --no-defaults --user=root --socket={server.socket}")
        load.say(f"  {values['MYSQL']} --no-defaults --user=root --host=127.0.0.1 --port={server.port}")
        load.say("Ctrl-C ends it.")
        server.process.wait()


def main():
    kept = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else None
    try:
        load.raise_descriptor_limit()
        values = load.environment()
        with load.workspace() as folder:
            try:
                serve(kept or folder / "server", values)
            except KeyboardInterrupt:
                load.say("\nThe server has ended.")
    except (load.Failure, ServerFailure) as failure:
        sys.exit(f"error: {failure}")


if __name__ == "__main__":
    main()
