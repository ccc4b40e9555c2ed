"""A standalone Spark cluster on 127.0.0.1 whose worker can have a disk of its own."""

import os
import shlex
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest

from tests.ports import reserve_port
from tests.spark.changing_folders import read_files
from tests.spark.programs import SHORT_LIVED
from tests.startup_cache import spark_java_options

SECRET = "entre-nous-on-the-wire"
AUTHENTICATED = {"spark.authenticate": "true", "spark.authenticate.secret": SECRET}
ENCRYPTED = AUTHENTICATED | {"spark.network.crypto.enabled": "true"}
"""Settings of a Spark cluster; the driver needs the same."""

_HOME = Path(pyspark.__file__).parent
_START_SECONDS = 180
_OWN_DISK = 'for folder in $FOLDERS; do mount -t tmpfs tmpfs "$folder" || exit 1; done; exec "$@"'


@dataclass(frozen=True)
class StandaloneSpark:
    """A running cluster.

    environ: variables for drivers. work: the folder where the workers' executors run. local: of their
    temporary files.
    """

    master: str
    environ: Mapping[str, str]
    work: Path
    local: Path

    def files_left(self) -> dict[str, bytes]:
        """Return all files of executors, by path."""
        return {str(path): data for folder in (self.work, self.local) for path, data in read_files(folder)}


@contextmanager
def start_standalone_spark(
    folder: Path, settings: Mapping[str, str], workers: Sequence[Sequence[Path]] = ((),)
) -> Iterator[StandaloneSpark]:
    """Start a master and workers with one core each, and stop them afterwards.

    settings: of Spark, for all of them and for drivers.
    workers: for each, the folders in whose place it has a disk of its own, empty at first.
    """
    conf = folder / "spark.conf"
    conf.write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    # Not SPARK_CONF_DIR: with one more folder on its class path, Java cannot use the archive of classes.
    given = ["--properties-file", str(conf)]
    environ = {
        "PYSPARK_SUBMIT_ARGS": shlex.join([*given, "pyspark-shell"]),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    work, local, port = folder / "work", folder / "local", reserve_port()
    local.mkdir()
    cluster = StandaloneSpark(f"spark://127.0.0.1:{port}", environ, work, local)
    with ExitStack() as stack:
        start = _Start(stack, folder, environ | {"SPARK_LOCAL_DIRS": str(local)})
        start("master", ["Master", *given, "--port", str(port)], ())
        for number, hidden in enumerate(workers):
            place = str(work / str(number))
            words = ["Worker", *given, "--cores", "1", "--memory", "1g", "--work-dir", place, cluster.master]
            start(f"worker-{number}", words, hidden)
        yield cluster


def skip_without_own_disks() -> None:
    """Skip the test if this process cannot create mount namespaces."""
    tried = subprocess.run(
        ["unshare", "--mount", "sh", "-c", "mount -t tmpfs tmpfs /mnt"], capture_output=True, check=False
    )
    if tried.returncode:
        pytest.skip(f"no mount namespaces here: {tried.stderr.decode().strip()}")


@dataclass(frozen=True)
class _Start:
    stack: ExitStack
    folder: Path
    environ: Mapping[str, str]

    def __call__(self, name: str, words: Sequence[str], hidden: Sequence[Path]) -> None:
        """Start a daemon, and wait until it is ready."""
        kind, *options = words
        line = [f"{_HOME}/bin/spark-class", f"org.apache.spark.deploy.{kind.lower()}.{kind}"]
        line += ["--host", "127.0.0.1", "--webui-port", "0", *options]
        if hidden:
            line = ["unshare", "--mount", "sh", "-c", _OWN_DISK, "sh", *line]
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
        daemons = {"SPARK_DAEMON_JAVA_OPTS": spark_java_options(), "FOLDERS": " ".join(map(str, hidden))}
        variables = {**clean, **SHORT_LIVED, **daemons, **self.environ}
        log = self.folder / f"{name}.log"
        with log.open("wb") as output:
            daemon = subprocess.Popen(line, env=variables, stdout=output, stderr=output, cwd=self.folder)
        self.stack.callback(_stop, daemon)
        ready = {"Master": "I have been elected leader", "Worker": "Successfully registered with master"}
        deadline = time.monotonic() + _START_SECONDS
        while ready[kind] not in (said := log.read_text()):
            assert daemon.poll() is None, said
            assert time.monotonic() < deadline, said
            time.sleep(0.1)


def _stop(daemon: "subprocess.Popen[bytes]") -> None:
    daemon.terminate()
    try:
        daemon.wait(20)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()
