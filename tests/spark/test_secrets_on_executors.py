"""Remote executors receive secrets only over secure connections, and neither store nor reveal them."""

import json
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark import SparkConf

from kdeclare.cli.main import main
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.fleet.local.tables import read_rows
from kdeclare.fleet.spark.settings import reject_unsecured_network
from kdeclare.fleet.tables.rows import FINDINGS
from kdeclare.fleet.tables.storage import LocalStorage
from tests.spark.changing_folders import list_folders
from tests.spark.executor_secrets import ExecutorSearch
from tests.spark.programs import run_program, start_program
from tests.spark.real_fleet import LITERAL, SECRETS, RealFleet, make_real_fleet
from tests.spark.standalone import AUTHENTICATED, ENCRYPTED, SECRET, StandaloneSpark, start_standalone_spark
from tests.spark.test_separate_disks import ONE_COMMAND, SETTINGS, run_command

pytestmark = pytest.mark.spark

REPORTS = ("summary.json", "report.md", "report.html")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> RealFleet:
    with pytest.MonkeyPatch.context() as patch:
        return make_real_fleet(tmp_path_factory.mktemp("fleet"), patch)


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneSpark]:
    with start_standalone_spark(tmp_path_factory.mktemp("standalone"), SETTINGS) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def search(standalone: StandaloneSpark) -> ExecutorSearch:
    return ExecutorSearch(standalone, LITERAL, tuple(SECRETS.values()), SECRETS)


@pytest.mark.thorough
def test_failed_audit_leaves_no_secret(fleet: RealFleet, search: ExecutorSearch) -> None:
    """The audit fails after executors have read the declared resources, for which they need the secrets."""
    damaged = fleet.folder / "damaged"
    shutil.copytree(fleet.snapshots, damaged)
    (file,) = damaged.glob("data/*/*/cluster=eu-1/*.parquet")
    shutil.copy(file, file.with_name("copy.parquet"))
    audited = search.audit(fleet.folder, fleet.file, "failed", "--snapshot", str(damaged))
    assert audited.code == 1
    assert "Duplicate resource" in audited.err


@pytest.mark.thorough
def test_audit_after_executor_loss_has_same_result_and_no_secret(
    fleet: RealFleet,
    search: ExecutorSearch,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One executor is killed; its replacement ends like those of every successful audit."""
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    capsys.readouterr()
    line = ["fleet", "audit", str(fleet.file), "--snapshot", str(fleet.snapshots)]
    code = main([*line, "--out", str(fleet.folder / "here"), "--engine", "local"])
    here = capsys.readouterr()
    assert code == 0, here.err
    fleet.fuse.write_text("kill java")
    (fleet.folder / "events").mkdir()
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": (fleet.folder / "events").as_uri(),
    }
    conf = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    there = search.audit(fleet.folder, fleet.file, "elsewhere", "--snapshot", str(fleet.snapshots), *conf)
    assert (there.code, fleet.fuse.exists()) == (0, False), there.err
    expected = read_findings(fleet.folder / "here")
    assert read_findings(fleet.folder / "elsewhere") == expected
    found = {(row["cluster"], row["finding"], row["name"]) for row in expected}
    assert {
        ("eu-1", "changed", "t.1"),
        ("eu-1", "changed", "1"),
        ("eu-1", "missing", "t.2"),
        ("eu-2", "policy", "Loud"),
        ("eu-2", "unmanaged", "Loud"),
        ("lab", "pending", "t.0"),
    } <= found
    assert [row["cluster"] for row in expected if row["name"] == "wide"] == ["eu-1"]
    assert all(
        "Policy 'people' needs data that snapshots do not contain" in text for text in (here.out, there.out)
    )
    assert not [row for row in expected if row["path"] == "policies.people"]
    expect_no_secret(fleet.folder, [here.out, here.err, there.out, there.err])


def read_findings(out: Path) -> list[dict[str, Any]]:
    """Return the findings of the only audit of a folder, in order."""
    (folder,) = (out / "findings").iterdir()
    return sorted(read_rows(LocalStorage(out), f"findings/{folder.name}", FINDINGS), key=repr)


def expect_no_secret(folder: Path, said: list[str]) -> None:
    events = [path.read_text() for path in (folder / "events").rglob("*") if path.is_file()]
    (log,) = (text for text in events if "SparkListenerTaskEnd" in text)
    assert "SparkListenerExecutorRemoved" in log
    assert "kdeclare.zip" in log
    assert "fleet.zip" not in log
    reports = [(folder / out / name).read_text() for out in ("here", "elsewhere") for name in REPORTS]
    files = [path for out in ("here", "elsewhere") for path in (folder / out).rglob("*.parquet")]
    assert len(files) >= 4
    tables = [json.dumps(pq.read_table(path, partitioning=None).to_pylist(), default=str) for path in files]
    for text in (*said, *events, *reports, *tables):
        for secret in (LITERAL, *SECRETS.values()):
            assert secret not in text


@pytest.mark.parametrize("number", [pytest.param(signal.SIGTERM, marks=pytest.mark.thorough), signal.SIGKILL])
@pytest.mark.thorough
def test_killed_driver_leaves_no_file(
    fleet: RealFleet, standalone: StandaloneSpark, search: ExecutorSearch, number: signal.Signals
) -> None:
    """The driver is killed while a task works in the unpacked archive."""
    fleet.fuse.write_text("wait")
    fleet.burnt.unlink(missing_ok=True)
    words = f"fleet audit {fleet.file} --snapshot {fleet.snapshots} --out killed --master {standalone.master}"
    program = start_program(
        fleet.folder, ONE_COMMAND, {**SECRETS, **standalone.environ}, f"{words} --shared-folders"
    )
    try:
        while fleet.fuse.exists():
            assert program.poll() is None, program.communicate()
            time.sleep(0.02)
        assert list_unpacked(standalone)
        program.send_signal(number)
        program.wait(300)
    finally:
        fleet.fuse.unlink(missing_ok=True)
        program.kill()
        program.communicate()
    assert search.wait_until_cleaned() == []
    assert list_unpacked(standalone) == []


@pytest.mark.thorough
def test_killed_python_worker_leaves_no_file(
    fleet: RealFleet, standalone: StandaloneSpark, search: ExecutorSearch
) -> None:
    """Spark repeats the task in another Python process. The files of the first one are removed."""
    fleet.fuse.write_text("kill python")
    fleet.burnt.unlink(missing_ok=True)
    words = f"fleet audit {fleet.file} --snapshot {fleet.snapshots} --out repeated"
    done = run_program(
        fleet.folder,
        ONE_COMMAND,
        {**SECRETS, **standalone.environ},
        f"{words} --master {standalone.master} --shared-folders",
    )
    assert not fleet.fuse.exists()
    assert done.stdout.splitlines()[-1] == "exit code 0", done.stderr
    assert search.wait_until_cleaned() == []
    assert list_unpacked(standalone) == []
    assert Path(fleet.burnt.read_text()).is_relative_to(standalone.local), "the task worked in its own files"


def list_unpacked(standalone: StandaloneSpark) -> list[Path]:
    """Return the folders in which tasks have unpacked an archive."""
    return [path for path in list_folders(standalone.local) if path.name.startswith("kdeclare-")]


@pytest.mark.thorough
def test_secrets_are_not_sent_to_unprotected_master(fleet: RealFleet, tmp_path: Path) -> None:
    """The check happens before any connection to the master, which does not exist."""
    master = "spark://127.0.0.1:1"
    (tmp_path / "spark-defaults.conf").write_text(
        f"spark.master {master}\nspark.authenticate true\nspark.authenticate.secret {SECRET}\n"
    )
    spark = StandaloneSpark(master, {"SPARK_CONF_DIR": str(tmp_path)}, tmp_path, tmp_path)
    printed, said = run_command(fleet, spark, "fleet plan fleet.yaml --out plans --shared-folders")
    assert printed == ["exit code 1"]
    assert "error: Spark does not protect credentials" in said
    assert (
        f"Spark would send the credentials of the clusters to {master} without protection, because none of "
        "spark.network" in said
    )
    assert "Set spark.authenticate=true and spark.network.crypto.enabled=true" in said
    assert "entre-nous" not in said


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "spark.authenticate is not true and none of spark.network.crypto.enabled, spark.ssl.rpc"),
        (AUTHENTICATED, "protection, because none of spark.network.crypto.enabled, spark.ssl.rpc.enabled"),
        ({"spark.network.crypto.enabled": "true"}, "because spark.authenticate is not true."),
    ],
)
def test_missing_protection_of_master_is_reported(settings: dict[str, str], words: str) -> None:
    asked = SparkConf(loadDefaults=False).setAll([*settings.items(), ("spark.master", "spark://there:7077")])
    with pytest.raises(KdeclareError) as raised:
        reject_unsecured_network(asked)
    (item,) = raised.value.diagnostics
    assert item.summary == "Spark does not protect credentials"
    assert "send the credentials of the clusters to spark://there:7077 without protection" in item.detail
    assert words in item.detail
    assert "Set spark.authenticate=true and spark.network.crypto.enabled=true" in item.hint
    assert "entre-nous" not in item.detail + item.hint


def test_encryption_settings_match_the_docs() -> None:
    text = (Path(__file__).parents[2] / "docs" / "fleet-spark.md").read_text()
    for key in ENCRYPTED:
        assert key in text
