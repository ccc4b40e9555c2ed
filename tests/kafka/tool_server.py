"""Kafka's command-line tools in one JVM, for scripts that call them many times.

Each tool that a script starts in a JVM of its own takes about two seconds of processor time.
"""

import json
import os
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socketserver import BaseRequestHandler, UnixStreamServer

from tests.kafka.java import KafkaTools
from tests.waiting import MESSAGE, ROOT


@contextmanager
def serve_tools(tools: KafkaTools) -> Iterator[str]:
    """Serve Kafka's tools until the end of the block. Return the command line that runs one of them.

    The arguments of this command line are the main class of the tool, and the arguments of the tool. Its
    output contains everything that the tool prints. Tools run one after another.
    """

    class Call(BaseRequestHandler):
        """Runs one tool."""

        def handle(self) -> None:
            message, files, _, _ = socket.recv_fds(self.request, MESSAGE, 3)
            (tool, *arguments), _, _ = json.loads(message)
            result = tools(tool, *arguments)
            os.write(files[1], result.text.encode())
            for file in files:
                os.close(file)
            self.request.sendall(bytes([result.code]))

    with tempfile.TemporaryDirectory() as folder:  # pytest's own paths are too long for a socket
        place = str(Path(folder) / "socket")
        with UnixStreamServer(place, Call) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            try:
                yield f"{sys.executable} -IS {ROOT}/tests/hand_over.py {place}"
            finally:
                server.shutdown()
                thread.join()
