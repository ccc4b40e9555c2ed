"""Java that the tests bring along: compiled by them, against the very jars that the brokers run."""

import base64
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from kdeclare.java import find_java
from kdeclare.sandbox import resolve_kafka_classpath
from tests.startup_cache import BROKER, archive_options

QUICK_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""Java's options for programs that run briefly."""

_COMMAND_LINES = Path(__file__).with_name("CommandLines.java")


def compile_java(source: Path, into: Path) -> None:
    """Compile one file; a warning is an error."""
    javac = shutil.which("javac")
    assert javac is not None, "some tests compile Java, which needs javac on PATH"
    command = [
        javac,
        *(f"-J{option}" for option in QUICK_JVM),
        "-Xlint:all,-classfile,-processing,-serial",
        "-Werror",
        "-cp",
        resolve_kafka_classpath(),
    ]
    done = subprocess.run(
        [*command, "-d", str(into), str(source)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@dataclass(frozen=True)
class ToolResult:
    """How a tool ended, and all that it said."""

    code: int
    text: str


class KafkaTools:
    """Kafka's own command lines in one JVM, which lives until `close`."""

    def __init__(self, folder: Path) -> None:
        compile_java(_COMMAND_LINES, folder)
        path = f"{resolve_kafka_classpath()}:{folder}"  # in the order of the archive of classes
        self._jvm = subprocess.Popen(
            [find_java(), *QUICK_JVM, *archive_options(BROKER), "kdeclare.test.CommandLines"],
            env={"CLASSPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __call__(self, tool: str, *arguments: str) -> ToolResult:
        """Run one command line; ``tool`` is its main class."""
        assert self._jvm.stdin is not None
        assert self._jvm.stdout is not None
        self._jvm.stdin.write("\t".join([tool, *arguments]) + "\n")
        self._jvm.stdin.flush()
        code, _, text = self._jvm.stdout.readline().strip().partition(" ")
        return ToolResult(int(code), base64.b64decode(text).decode())

    def close(self) -> None:
        """End the JVM."""
        assert self._jvm.stdin is not None
        self._jvm.stdin.close()
        self._jvm.wait(timeout=120)
