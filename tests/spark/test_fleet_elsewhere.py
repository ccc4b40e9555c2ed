"""An audit by executors in processes of their own: the same answers when one dies, and no secret told."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kdeclare.cli.main import main
from tests.spark.programs import run_program, told
from tests.spark.real_fleet import LITERAL, SECRETS, RealFleet, real_fleet
from tests.startup_cache import spark_java_options

pytestmark = pytest.mark.spark

REPORTS = ("summary.json", "report.md", "report.html")

AUDIT = """
import contextlib, io, json, sys
from pathlib import Path
from kdeclare.cli.main import main

events = Path("events").absolute()
events.mkdir()
settings = {
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.dir": events.as_uri(),
    "spark.executor.memory": "700m",
    "spark.executor.extraJavaOptions": sys.argv[1],
    "spark.sql.shuffle.partitions": "3",
    "spark.authenticate": "true",
    "spark.authenticate.secret": "entre-nous-on-the-wire",
    "spark.network.crypto.enabled": "true",
}
conf = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
line = "fleet audit fleet.yaml --snapshot snapshots --out elsewhere"
elsewhere = ["--master", "local-cluster[2,1,2048]", "--shared-folders"]
fuse = Path("fuse")
fuse.touch()
stdout, stderr = io.StringIO(), io.StringIO()
with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
    code = main([*line.split(), *elsewhere, *conf])
print(json.dumps([code, stdout.getvalue(), stderr.getvalue(), fuse.exists()]))
"""


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RealFleet:
    return real_fleet(tmp_path, monkeypatch)


def test_an_audit_elsewhere_survives_an_executor_and_tells_no_secret(
    fleet: RealFleet, in_shared_spark: None, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    line = ["fleet", "audit", str(fleet.file), "--snapshot", str(fleet.snapshots)]
    code = main([*line, "--out", str(fleet.folder / "here")])
    here = capsys.readouterr()
    assert code == 0, here.err
    code, out, err, fuse_is_left = told(run_program(fleet.folder, AUDIT, SECRETS, spark_java_options()))
    assert (code, fuse_is_left) == (0, False), err
    expected = findings(fleet.folder / "here")
    assert findings(fleet.folder / "elsewhere") == expected
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
    assert all("Policy 'people' asks for what no snapshot holds" in text for text in (here.out, out))
    assert not [row for row in expected if row["path"] == "policies.people"]
    tells_no_secret(fleet.folder, [here.out, here.err, out, err])


def findings(out: Path) -> list[dict[str, Any]]:
    """The findings of the one audit of a folder, in order."""
    (folder,) = (out / "findings").iterdir()
    return sorted(pq.read_table(folder, partitioning=None).to_pylist(), key=repr)


def tells_no_secret(folder: Path, said: list[str]) -> None:
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
