"""Files that let the JVMs and the Spark workers of tests start in half the time.

- Archives of loaded classes (application class data sharing): a broker, a Connect worker and Spark load 5,000
  to 20,000 classes each time they start; Java maps the classes in an archive ready to run. Java ignores an
  archive that was created by another Java version or from other jars.
- A home for Spark without ``pyspark.zip``: otherwise, each Python process that Spark starts would compile
  what it imports from that file. Without it, they import the installed pyspark, which is identical but
  already compiled.

- A ``java`` for scripts that start Kafka in separate processes, which uses the matching archive.

``make startup-cache`` creates them in the virtual environment, in two parts: for Kafka and for Spark.
All tests pass without them.
"""

import io
import os
import shlex
import shutil
import sys
from contextlib import closing, redirect_stderr, redirect_stdout
from pathlib import Path

BROKER, WORKER, SPARK = "broker", "worker", "spark"

_FOLDER = Path(sys.prefix) / "startup-cache"
_OF_KAFKA, _OF_SPARK = _FOLDER / "kafka", _FOLDER / "spark"

# Without the optimizing compiler, Java reserves 48 MiB for compiled code. The session that tests share fills
# that within four audits, and Java then discards code that it compiles again.
_QUICK_JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:ReservedCodeCacheSize=256m")
_QUIET_SHARING = "-Xlog:cds*=off"

# Spark allocates memory in pages for large data, here 64 MiB each; zeroing and copying them takes a sixth of
# the CPU time of an audit of a few topics. Executors get this setting from their driver.
_SMALL_DATA = "-Dspark.buffer.pageSize=1m"


def path_with(*folders: Path) -> str:
    """Return a PATH for scripts that start Kafka: these folders, then a ``java`` that uses the archives."""
    own = [_programs()] if _programs().exists() else []
    return os.pathsep.join([*map(str, (*folders, *own)), os.environ["PATH"]])


def archive_options(name: str) -> tuple[str, ...]:
    """Return Java's options to use an archive; empty if it does not exist."""
    file = _archive(name)
    return (f"-XX:SharedArchiveFile={file}", _QUIET_SHARING) if file.exists() else ()


def spark_java_options() -> str:
    """Return Java's options for short-lived drivers, executors and daemons of Spark.

    They skip long-term compilation, and do not collect garbage on other processors.
    """
    return " ".join((*_QUICK_JVM, *archive_options(SPARK)))


def spark_variables() -> dict[str, str]:
    """Return environment variables for processes that start Spark."""
    home = {"SPARK_HOME": str(_spark_home())} if _spark_home().exists() else {}
    return home | {"SPARK_SUBMIT_OPTS": f"{spark_java_options()} {_SMALL_DATA}"}


def main(part: str) -> None:
    """Rebuild one part; a JVM writes each archive when it ends."""
    folder = _FOLDER / part
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    work = folder / "work"
    output = io.StringIO()
    try:
        with redirect_stdout(output), redirect_stderr(output):
            if folder == _OF_KAFKA:
                _run_sandbox(work / "sandbox")
                _write_programs()
            else:
                _link_spark_home()
                _run_audit(work / "audit")
    except BaseException:
        print(output.getvalue(), file=sys.stderr)
        raise
    shutil.rmtree(work)


def _programs() -> Path:
    return _OF_KAFKA / "bin"


def _write_programs() -> None:
    java = shutil.which("java")
    assert java is not None
    _programs().mkdir()
    lines = [
        "#!/bin/sh",
        'case " $* " in',
        f'*ConnectDistributed*) exec {java} {shlex.join(archive_options(WORKER))} "$@" ;;',
        f'*" kafka."* | *.kafka.tools.*) exec {java} {shlex.join(archive_options(BROKER))} "$@" ;;',
        f'*) exec {java} "$@" ;;',
        "esac",
    ]
    (_programs() / "java").write_text("\n".join(lines) + "\n")
    (_programs() / "java").chmod(0o755)
    # An example runs it; elsewhere it may not be on PATH.
    (_programs() / "keytool").symlink_to(Path(java).resolve().with_name("keytool"))


def _archive(name: str) -> Path:
    return (_OF_SPARK if name == SPARK else _OF_KAFKA) / f"{name}.jsa"


def _spark_home() -> Path:
    return _OF_SPARK / "home"


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
    from kdeclare.providers.kafka.request_values import NewTopic
    from kdeclare.sandbox import SandboxSettings, launch
    from kdeclare.sandbox.security import ADMIN
    from kdeclare.sandbox.workers import worker_startup
    from tests.conftest import connect_as, free_port

    folder.mkdir(parents=True)
    # A secure sandbox uses the classes of all others, and those of TLS, SASL and ACLs.
    port = free_port(1, 1, secure=True)
    settings = SandboxSettings(folder, brokers=1, racks=1, port=port, connect_workers=1, secure=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(launch.HEAP_VARIABLE, " ".join((*launch._BROKER_HEAP, *_writing(BROKER))))
        patch.setattr(worker_startup, "_HEAP", (*worker_startup._HEAP, *_writing(WORKER)))
        try:
            running = sandbox.start(settings, print)
            with closing(connect_as(running, ADMIN)) as cluster:
                cluster.create_topics([NewTopic("a", 1, 1, None, {"retention.ms": "1000"})])
                cluster.delete_topics({"a": None})
            sandbox.stop(folder)
        finally:
            sandbox.reset(folder)


def _run_audit(folder: Path) -> None:
    import pytest

    from kdeclare.cli.main import main as kdeclare
    from kdeclare.fleet.spark import session
    from tests.spark.real_fleet import SECRETS, make_real_fleet

    folder.mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        # in CI, references to variables would need permission
        for name in [name for name in os.environ if name == "CI" or name.startswith(("SPARK_", "PYSPARK_"))]:
            patch.delenv(name)
        options = " ".join((*_QUICK_JVM, *_writing(SPARK)))
        for name, value in {**SECRETS, **spark_variables(), "SPARK_SUBMIT_OPTS": options}.items():
            patch.setenv(name, value)
        patch.setattr(session, "_END_SECONDS", 300.0)  # writes the archive before it ends
        fleet = make_real_fleet(folder, patch)
        line = ["fleet", "audit", str(fleet.file), "--snapshot", str(fleet.snapshots)]
        assert kdeclare([*line, "--out", str(folder / "out"), "--master", "local[2]"]) == 0


if __name__ == "__main__":
    main(*sys.argv[1:])
