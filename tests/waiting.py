"""A running kdeclare, for scripts that call it many times.

    python -m tests.waiting SOCKET

It listens on the socket. Each command runs in a fork, with the arguments, environment, folder and open files
of `hand_over.py`, which replaces kdeclare on PATH; so no command pays for the imports again.
"""

import gc
import importlib
import json
import os
import pkgutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from socketserver import BaseRequestHandler, ForkingMixIn, UnixStreamServer

import kdeclare
from kdeclare.cli.main import main

MESSAGE = 1 << 16
"""The maximum number of bytes of a command and its environment."""

ROOT = Path(__file__).parents[1]


@contextmanager
def run_server(module: str = "tests.waiting", python: str = sys.executable) -> Iterator[str]:
    """Serve ``module`` as the command line of a running kdeclare, until the end of the block.

    python: of the environment of kdeclare.
    """
    with tempfile.TemporaryDirectory() as folder:  # pytest's own paths are too long for a socket
        waits = Path(folder) / "socket"
        command = [python, "-m", module, str(waits)]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout
            assert server.stdout.readline() == "ready\n"
            yield f"{sys.executable} -IS {ROOT}/tests/hand_over.py {waits}"
            server.terminate()


def serve(where: str, run: Callable[[list[str]], int]) -> None:
    """Wait for commands; ``run`` returns the exit code of one."""

    class Command(BaseRequestHandler):
        """Run one command in the fork that was created for it."""

        def handle(self) -> None:
            message, files, _, _ = socket.recv_fds(self.request, MESSAGE, 3)
            arguments, environ, folder = json.loads(message)
            for number, file in enumerate(files):
                os.dup2(file, number)
                os.close(file)
            os.environ.clear()
            os.environ.update(environ)
            os.chdir(folder)
            sys.stdout = os.fdopen(1, "w", closefd=False)
            sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
            code = run(arguments)
            sys.stdout.flush()
            self.request.sendall(bytes([code]))

    with _Server(where, Command) as server:
        for found in pkgutil.walk_packages(kdeclare.__path__, "kdeclare."):
            importlib.import_module(found.name)
        gc.freeze()  # forks skip garbage collection of existing objects, which would also copy them
        print("ready", flush=True)
        server.serve_forever()


class _Server(ForkingMixIn, UnixStreamServer):
    pass


if __name__ == "__main__":
    serve(sys.argv[1], main)
