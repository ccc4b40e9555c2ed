"""Files that let the JVMs and the Spark workers of tests start in half the time.

- Archives of loaded classes (application class data sharing): a broker, a Connect worker and Spark load 5,000
  to 20,000 classes each time they start; from an archive Java maps them ready to run. Java ignores an archive
  that was made by another Java or of other jars.
- A home for Spark without ``pyspark.zip``: each Python process that Spark starts would compile what it
  imports from there. Without it they import the installed pyspark, which is the same, compiled already.

``make startup-cache`` makes them in the virtual environment. All tests pass without them.
"""

import os
import shutil
import sys
from contextlib import closing, redirect_stderr, redirect_stdout
from pathlib import Path

FOLDER = Path(sys.prefix) / "startup-cache"
BROKER, WORKER, SPARK = "broker", "worker", "spark"

_QUICK_JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_QUIET_SHARING = "-Xlog:cds*=off"


def archive_options(name: str) -> tuple[str, ...]:
    """Java's options that use an archive; none where it has not been made."""
    file = _archive(name)
    return (f"-XX:SharedArchiveFile={file}", _QUIET_SHARING) if file.exists() else ()


def spark_java_options() -> str:
    """Java's options for drivers, executors and daemons of Spark that end soon.

    They do not compile for later, and do not collect garbage on other processors.
    """
    return " ".join((*_QUICK_JVM, *archive_options(SPARK)))


def spark_variables() -> dict[str, str]:
    """Environment variables for processes that start Spark."""
    home = {"SPARK_HOME": str(_spark_home())} if _spark_home().exists() else {}
    return home | {"SPARK_SUBMIT_OPTS": spark_java_options()}


def main() -> None:
    """Make all of it anew; each archive is written by a JVM when it ends."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    _link_spark_home()
    work = FOLDER / "work"
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        _run_sandbox(work / "sandbox")
        _run_audit(work / "audit")
    shutil.rmtree(work)


def _archive(name: str) -> Path:
    return FOLDER / f"{name}.jsa"


def _spark_home() -> Path:
    return FOLDER / "spark-home"


def _writing(name: str) -> tuple[str, ...]:
    return (f"-XX:ArchiveClassesAtExit={_archive(name)}", _QUIET_SHARING)


def _link_spark_home() -> None:
    import pyspark

    _spark_home().mkdir()
    for name in ("bin", "jars"):
        (_spark_home() / name).symlink_to(Path(pyspark.__file__).parent / name)


def _run_sandbox(folder: Path) -> None:
    import pytest

    from kdeclare import sandbox
    from kdeclare.providers.kafka.client import connect
    from kdeclare.providers.kafka.port import NewTopic
    from kdeclare.sandbox import SandboxSettings, launch
    from kdeclare.sandbox.workers import crew
    from tests.conftest import free_port

    folder.mkdir(parents=True)
    settings = SandboxSettings(folder, brokers=1, racks=1, port=free_port(1, 1), connect_workers=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(launch.HEAP_VARIABLE, " ".join((*launch._BROKER_HEAP, *_writing(BROKER))))
        patch.setattr(crew, "_HEAP", (*crew._HEAP, *_writing(WORKER)))
        try:
            running = sandbox.start(settings, print)
            with closing(connect(running.bootstrap, {})) as cluster:
                cluster.create_topics([NewTopic("a", 1, 1, None, {"retention.ms": "1000"})])
                cluster.delete_topics({"a": None})
            sandbox.stop(folder)
        finally:
            sandbox.reset(folder)


def _run_audit(folder: Path) -> None:
    import pytest

    from kdeclare.cli.main import main as kdeclare
    from kdeclare.fleet.spark import launching
    from tests.spark.real_fleet import SECRETS, real_fleet

    folder.mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("SPARK_", "PYSPARK_"))]:
            patch.delenv(name)
        options = " ".join((*_QUICK_JVM, *_writing(SPARK)))
        for name, value in {**SECRETS, **spark_variables(), "SPARK_SUBMIT_OPTS": options}.items():
            patch.setenv(name, value)
        patch.setattr(launching, "_END_SECONDS", 300.0)  # it writes the archive before it ends
        fleet = real_fleet(folder, patch)
        line = ["fleet", "audit", str(fleet.file), "--snapshot", str(fleet.snapshots)]
        assert kdeclare([*line, "--out", str(folder / "out"), "--master", "local[2]"]) == 0


if __name__ == "__main__":
    main()
