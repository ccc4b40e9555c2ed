"""Executors that cannot see the driver's folder: missing files must not be mistaken for a result."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark import SparkConf

from kdeclare.cli.main import main
from kdeclare.fleet.spark.session import CheckSettings
from tests.commands import run_here
from tests.spark.programs import run_program
from tests.spark.real_fleet import SECRETS, RealFleet, make_real_fleet
from tests.spark.standalone import (
    ENCRYPTED,
    StandaloneSpark,
    skip_without_own_disks,
    start_standalone_spark,
)
from tests.startup_cache import spark_java_options

pytestmark = pytest.mark.spark

COMMANDS = """
import sys
from pathlib import Path
from kdeclare.cli.main import main
from kdeclare.fleet.spark.session import spark_session
from tests.spark.sharing import share_session
master, *lines = sys.argv[1:]
with spark_session(master, {}, log=Path("spark.log")) as spark, share_session(spark):
    for line in lines:
        print("exit code", main(line.split()))
        print("END", file=sys.stderr)
"""
ONE_COMMAND = """
import sys
from kdeclare.cli.main import main
print("exit code", main(sys.argv[1].split()))
"""
SETTINGS = ENCRYPTED | {
    "spark.executor.memory": "700m",
    "spark.executor.extraJavaOptions": spark_java_options(),
    "spark.sql.shuffle.partitions": "3",
}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> RealFleet:
    with pytest.MonkeyPatch.context() as patch:
        return make_real_fleet(tmp_path_factory.mktemp("fleet"), patch)


@pytest.fixture(scope="module")
def spark_with_own_disks(
    fleet: RealFleet, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StandaloneSpark]:
    """Start two workers that have ``out`` on their own disks; one of them shares ``mixed``."""
    skip_without_own_disks()
    folders = [fleet.folder / "out", fleet.folder / "mixed"]
    for folder in folders:
        folder.mkdir()
    with start_standalone_spark(
        tmp_path_factory.mktemp("apart"), SETTINGS, [folders, folders[:1]]
    ) as cluster:
        yield cluster


def run_command(fleet: RealFleet, spark: StandaloneSpark, line: str) -> tuple[list[str], str]:
    """Run a command with its own Spark session; return its output, and its stderr in one line."""
    done = run_program(fleet.folder, ONE_COMMAND, {**SECRETS, **spark.environ}, line)
    return done.stdout.splitlines(), " ".join(done.stderr.split())


def read_files(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


@dataclass(frozen=True)
class FailedCommands:
    """Four commands with executors that have disks of their own.

    printed: their exit codes, as lines. errors: the stderr of each, in one line. before: the files of ``out``
    before the commands.
    """

    printed: list[str]
    errors: list[str]
    before: dict[str, bytes]


@pytest.fixture(scope="module")
def failed_commands(fleet: RealFleet, spark_with_own_disks: StandaloneSpark) -> FailedCommands:
    """Run an audit, and then the commands in one Spark session, because executors take long to start."""
    audit, master = f"fleet audit {fleet.file} --snapshot {fleet.snapshots}", spark_with_own_disks.master
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SECRETS.items():
            patch.setenv(name, value)
        assert main([*audit.split(), "--out", str(fleet.folder / "out"), "--engine", "local"]) == 0
    before = read_files(fleet.folder / "out")
    where = f"--master {master} --shared-folders"
    lines = [
        f"{audit} --out out {where}",
        f"fleet snapshot fleet.yaml --out out --timeout 0.2 {where}",
        f"fleet plan fleet.yaml --out out --timeout 0.2 {where}",
        f"fleet audit fleet.yaml --snapshot snapshots --out mixed {where}",
    ]
    environ = {**SECRETS, **spark_with_own_disks.environ}
    done = run_program(fleet.folder, COMMANDS, environ, master, *lines)
    errors = [" ".join(said.split()) for said in done.stderr.split("END\n")]
    assert len(errors) == len(lines) + 1, done.stderr
    assert errors.pop() == ""
    return FailedCommands(done.stdout.splitlines(), errors, before)


@pytest.mark.thorough
def test_audit_snapshot_and_plan_fail_when_executors_have_own_disks(
    fleet: RealFleet, failed_commands: FailedCommands
) -> None:
    """Nothing is published, and the next audit is compared with the previous one."""
    errors = failed_commands.errors[:3]
    assert failed_commands.printed[:3] == ["exit code 1"] * 3, errors
    for said, table in zip(errors, ("declared", "live", "plans"), strict=True):
        assert said.count("error: Table incomplete") == 1, said
        assert f"of the table '{table}' were written, but this machine sees 0 rows." in said
        assert said.count("Pass an --out location that the Spark driver and all executors share") == 1
    assert read_files(fleet.folder / "out") == failed_commands.before
    assert not (fleet.folder / "out" / "_unfinished").exists()


@pytest.mark.thorough
def test_audit_fails_when_one_of_two_executors_has_its_own_disk(
    fleet: RealFleet, failed_commands: FailedCommands
) -> None:
    said = failed_commands.errors[3]
    assert failed_commands.printed[3:] == ["exit code 1"], said
    assert "error: Table incomplete" in said
    assert read_files(fleet.folder / "mixed") == {}


def test_local_folder_with_other_master_is_refused_unless_declared_shared(
    fleet: RealFleet, tmp_path: Path
) -> None:
    """The check happens before any connection to the master, which does not exist."""
    master = "spark://127.0.0.1:1"
    (tmp_path / "spark-defaults.conf").write_text(f"spark.master {master}\n")
    spark = StandaloneSpark(master, {"SPARK_CONF_DIR": str(tmp_path)}, tmp_path, tmp_path)
    shutil.rmtree(fleet.folder / "nowhere", ignore_errors=True)
    line = f"fleet audit fleet.yaml --snapshot snapshots --out nowhere --master {master}"
    printed, said = run_command(fleet, spark, line)
    assert printed == ["exit code 1"]
    assert said.count("error: Local folder with remote executors") == 1
    assert f"Tasks run on {master}, but" in said
    assert "these locations are local to this machine: --out nowhere, --snapshot snapshots." in said
    assert "--shared-folders" in said
    assert not (fleet.folder / "nowhere").exists()


@pytest.mark.parametrize(
    "line",
    [
        "fleet snapshot fleet.yaml --out file://{}/nowhere",
        "fleet plan fleet.yaml --out nowhere",
        "fleet history eu-1 t.1 --out snapshots",
        "fleet audit fleet.yaml --snapshot snapshots --out s3a://bucket/a",
    ],
)
def test_every_command_refuses_local_folders_with_other_masters(
    fleet: RealFleet, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the check of settings runs here."""
    settings = SparkConf(loadDefaults=False).setMaster("spark://127.0.0.1:1")

    @contextmanager
    def checked(*_: object, check_settings: CheckSettings, **__: object) -> Iterator[None]:
        check_settings(settings)
        yield

    monkeypatch.setattr("kdeclare.fleet.spark.session.spark_session", checked)
    words = [*line.format(fleet.folder).split(), "--engine", "spark"]
    ran = run_here(fleet.folder, *words, environ=SECRETS)
    assert ran.code == 1
    assert ran.err.count("error: Local folder with remote executors") == 1
    assert not (fleet.folder / "nowhere").exists()
