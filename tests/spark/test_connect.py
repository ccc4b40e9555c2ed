"""Fleet commands on a Spark Connect server have the results of the local engine, and reveal no secret."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from kdeclare.cli.main import main
from kdeclare.core.diagnostics import Diagnostic, KdeclareError
from kdeclare.core.exit_codes import ExitCode
from kdeclare.fleet.spark.progress import report_progress
from kdeclare.fleet.spark.session import spark_session
from kdeclare.fleet.spark.tasks import read_clusters, ship_package
from kdeclare.fleet.tables.storage import LocalStorage
from tests.spark.changing_folders import read_files
from tests.spark.connect_server import ConnectServer, start_connect_server
from tests.spark.programs import run_program
from tests.spark.real_fleet import LITERAL, SECRETS, RealFleet, accept_drift, make_real_fleet
from tests.spark.test_two_engines import drop_run, list_written, read_findings
from tests.spark.tls_proxy import start_tls_proxy
from tests.unit.connect.https_stub import create_key_pair
from tests.unit.fleet.test_snapshot_diff import Fleet as SnapshotFleet

pytestmark = pytest.mark.spark

TOKEN = "open-sesame-to-the-server"


SESSIONS = """
import os, sys
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.fleet.spark.session import spark_session

for master in sys.argv[1:]:
    try:
        with spark_session(master or None, {}) as spark:
            print("rows", spark.range(3).count())
    except KdeclareError as problem:
        (item,) = problem.diagnostics
        print(item.code, item.detail, item.hint)
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    with start_connect_server(tmp_path_factory.mktemp("connect"), {}) as started:
        yield started


@pytest.fixture(autouse=True)
def in_clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("SPARK_", "PYSPARK_"))]:
        monkeypatch.delenv(name)
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def spark(server: ConnectServer) -> Iterator[SparkSession]:
    with spark_session(server.url, {}) as session:
        yield session


def audit(fleet: RealFleet, out: Path, *engine: str) -> dict[str, Any]:
    line = ["fleet", "audit", str(fleet.file), "--out", str(out), "--snapshot", str(fleet.snapshots)]
    assert main([*line, *engine]) == 0
    summary: dict[str, Any] = json.loads((out / "summary.json").read_text())
    return summary


def find_secrets(server: ConnectServer) -> list[str]:
    """Return the files of the server that contain a secret."""
    secrets = [text.encode() for text in (LITERAL, *SECRETS.values())]
    files = [(server.log, server.log.read_bytes()), *read_files(server.events), *read_files(server.local)]
    return [str(path) for path, data in files if any(secret in data for secret in secrets)]


@pytest.mark.thorough
def test_audit_has_same_findings_and_leaves_no_secret(
    server: ConnectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet = make_real_fleet(tmp_path / "fleet", monkeypatch, is_shared=True)
    accept_drift(fleet)
    connect = ("--master", server.url, "--shared-folders")
    engines = {"local": ("--engine", "local"), "connect": connect}
    audits = {name: audit(fleet, tmp_path / name, *options) for name, options in engines.items()}
    assert drop_run(audits["local"]) == drop_run(audits["connect"])
    assert audits["local"]["found"]["contested"] == 3
    assert audits["local"]["accepted"][0]["count"] > 3
    found = [read_findings(tmp_path / name, summary["audit_id"]) for name, summary in audits.items()]
    assert found[0] == found[1]
    (fleet.folder / "lab" / "all.yaml").unlink()
    for name, options in (("connect", engines["local"]), ("local", connect)):  # the other engine continues
        again = audit(fleet, tmp_path / name, *options)
        assert again["since"]["new"] == 0
        assert again["since"]["mended"] == 12
    documents = []
    for options in engines.values():
        capsys.readouterr()
        line = ["fleet", "report", "--out", str(tmp_path / "local"), "--format", "json", *options]
        assert main([*line, "--since", audits["local"]["audit_id"]]) == 0
        documents.append(json.loads(capsys.readouterr().out))
    assert documents[0] == documents[1]
    assert {finding["cluster"] for finding in documents[0]["fixed"]} == {"lab"}
    # Spark ends the processes of a session's tasks a minute after the last task. Then, their files are gone.
    deadline = time.monotonic() + 240
    while find_secrets(server) and time.monotonic() < deadline:
        time.sleep(5)
    assert find_secrets(server) == []
    assert not [path for path, _ in read_files(server.local) if path.name == "fleet.yaml"]


def test_history_and_diff_are_same(
    server: ConnectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    engines = (["--engine", "local"], ["--master", server.url, "--shared-folders"])
    fleet = make_real_fleet(tmp_path / "fleet", monkeypatch)
    for cluster, name in (("eu-1", "t.1"), ("eu-2", "BrokerConfig/1")):
        capsys.readouterr()
        line = ["fleet", "history", cluster, name, "--out", str(fleet.snapshots), "--format", "json"]
        results = [(main([*line, *options]), capsys.readouterr().out) for options in engines]
        assert results[0] == results[1]
        assert results[0][0] == 0
    snapshots = SnapshotFleet(tmp_path / "other")
    snapshots.take("20261121T040000Z-0001")
    snapshots.set_retention("eu-1", "orders", "1000")
    snapshots.take("20261122T040000Z-0001", us_1="connection refused")
    documents = []
    for options in engines:
        capsys.readouterr()
        assert snapshots.diff(*options, "--format", "json") == 1
        documents.append(json.loads(capsys.readouterr().out))
    assert documents[0] == documents[1]
    assert [change["name"] for change in documents[0]["changes"]] == ["orders"]


@pytest.mark.parametrize("command", ["snapshot", "plan"])
@pytest.mark.thorough
def test_command_writes_same_files(
    command: str, server: ConnectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No cluster of this fleet can be reached, so that each has one row, with the error."""
    fleet = make_real_fleet(tmp_path / "fleet", monkeypatch)
    line = ["fleet", command, str(fleet.file), "--timeout", "0.1"]
    assert main([*line, "--out", str(tmp_path / "local"), "--engine", "local"]) == 1
    monkeypatch.setenv("SPARK_REMOTE", server.url)
    assert main([*line, "--out", str(tmp_path / "connect"), "--shared-folders"]) == 1
    assert list_written(tmp_path / "connect") == list_written(tmp_path / "local")


def test_tasks_run_shipped_package(spark: SparkSession, tmp_path: Path) -> None:
    schema = pa.schema([(name, pa.string()) for name in ("cluster", "package")])
    reported = tmp_path / "reported"

    def read(cluster: str) -> Iterator[pa.RecordBatch]:
        import kdeclare

        # The server reports progress every few seconds, and says nothing about shorter requests.
        deadline = time.monotonic() + 120
        while not reported.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        yield pa.RecordBatch.from_pylist([{"cluster": cluster, "package": kdeclare.__file__}], schema)

    ship_package(spark)
    calls: list[tuple[str, int, int]] = []

    def handle_progress(*call: Any) -> None:
        calls.append(call)
        reported.touch()

    with report_progress(spark, handle_progress, "Reading clusters"):
        rows = read_clusters(spark, ["a", "b", "c"], read, schema, max_concurrency=2).collect()
    assert sorted(row["cluster"] for row in rows) == ["a", "b", "c"]
    assert all(row["package"].endswith("kdeclare.zip/kdeclare/__init__.py") for row in rows)
    # The last report need not be about the end.
    text, done, total = calls[-1]
    assert (text, total) == ("Reading clusters", 2)
    assert 0 <= done <= 2


def catch_diagnostic(action: Any) -> Diagnostic:
    with pytest.raises(KdeclareError) as raised:
        action()
    (item,) = raised.value.diagnostics
    assert "\n" not in item.detail
    assert "SQLSTATE" not in item.detail
    return item


def test_spark_errors_are_translated(server: ConnectServer, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged" / "part.parquet"
    damaged.parent.mkdir()
    pq.write_table(pa.table({"a": range(100_000)}), damaged)
    damaged.write_bytes(damaged.read_bytes()[:1000])

    def fail(reason: str) -> None:
        with spark_session(server.url, {}) as spark:
            if reason == "task":

                def divide(batches: Any) -> Any:
                    yield from (batch for batch in batches if 1 / 0)

                spark.range(1).mapInArrow(divide, "id long").collect()
            spark.read.schema("a long").parquet(f"file://{tmp_path}/{reason}").collect()

    item = catch_diagnostic(lambda: fail("damaged"))
    assert (item.code, str(damaged) in item.detail) == ("damaged-file", True)
    item = catch_diagnostic(lambda: fail("nowhere"))
    assert (item.code, item.detail) == ("cannot-read", f"{tmp_path}/nowhere does not exist.")
    item = catch_diagnostic(lambda: fail("task"))
    assert item.code == "internal-error"
    assert "ZeroDivisionError: division by zero" in item.detail


def test_request_that_is_too_large_is_explained(server: ConnectServer) -> None:
    archive = os.urandom(140 << 20)

    def read(cluster: str) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pylist([{"cluster": f"{cluster}{len(archive)}"}])

    def collect() -> None:
        with spark_session(server.url, {}) as spark:
            schema = pa.schema([("cluster", pa.string())])
            read_clusters(spark, ["a"], read, schema, max_concurrency=2).collect()

    assert catch_diagnostic(collect).code == "spark-message-too-large"


def open_session(master: str, **conf: str) -> None:
    with spark_session(master, conf):
        pass


def test_unusable_server_is_refused(server: ConnectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for host in ("spark.example.com:15002", "10.1.2.3", "[2001:db8::1]:1"):
        item = catch_diagnostic(lambda host=host: open_session(f"sc://{host}"))
        assert item.code == "spark-not-secured"
    for address in ("/token", "/;token=a=b", ";token=secret", "user:secret@host", ":1/", "host:secret/"):
        item = catch_diagnostic(lambda address=address: open_session(f"sc://{address}"))
        assert item.code == "bad-master"
        assert "secret" not in f"{item.detail}{item.hint}".replace("a=b", "secret")
    item = catch_diagnostic(lambda: open_session(server.url, **{"spark.executor.memory": "2g"}))
    assert (item.code, "spark.executor.memory" in item.detail) == ("server-setting", True)
    item = catch_diagnostic(lambda: open_session(server.url, **{"spark.sql.warehouse.dir": "/x"}))
    assert (item.code, "spark.sql.warehouse.dir" in item.detail) == ("server-setting", True)
    started = time.monotonic()
    item = catch_diagnostic(lambda: open_session("sc://127.0.0.1:1"))
    assert (item.code, "Connection refused" in item.detail) == ("spark-unreachable", True)
    assert time.monotonic() - started < 240


@pytest.mark.thorough
def test_master_takes_precedence_over_variable(tmp_path: Path) -> None:
    remote = {"SPARK_REMOTE": "sc://127.0.0.1:1"}
    assert run_program(tmp_path, SESSIONS, remote, "local[1]").stdout == "rows 3\n"
    arguments = {"PYSPARK_SUBMIT_ARGS": "--remote sc://127.0.0.1:1 pyspark-shell"}
    assert run_program(tmp_path, SESSIONS, arguments, "").stdout.startswith("bad-master Spark's own settings")


def test_locations_that_need_a_jvm_or_the_same_disk_are_refused(
    server: ConnectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet = make_real_fleet(tmp_path / "fleet", monkeypatch)
    line = ["fleet", "audit", str(fleet.file), "--snapshot", str(fleet.snapshots), "--master", server.url]
    capsys.readouterr()
    assert main([*line, "--out", str(tmp_path / "out")]) == ExitCode.ERROR
    text = " ".join(capsys.readouterr().err.split())
    assert f"Tasks run on {server.url}, but these locations are local to this machine" in text
    assert main([*line, "--out", "s3a://key:secret@bucket/a", "--shared-folders"]) == ExitCode.ERROR
    text = " ".join(capsys.readouterr().err.split())
    assert "Location not supported with Spark Connect" in text
    assert "secret" not in text
    assert LocalStorage(tmp_path).names("out") == ()


def test_missing_package_is_named(server: ConnectServer, tmp_path: Path) -> None:
    program = f"""
    import sys
    from kdeclare.cli.main import main
    sys.modules["grpc_status"] = None
    sys.exit(main(["fleet", "report", "--out", "x", "--master", "{server.url}", "--shared-folders"]))
    """
    done = run_program(tmp_path, program)
    assert done.returncode == 1
    text = " ".join(done.stderr.split())
    assert "Spark Connect needs Python packages that are not installed, such as grpcio-status." in text
    assert "pip install 'kdeclare[spark-connect]'" in text


@pytest.mark.thorough
def test_token_is_sent_over_tls(tmp_path: Path) -> None:
    cert, key = create_key_pair(tmp_path, "localhost")
    settings = {"spark.connect.authenticate.token": TOKEN}
    trusted = {"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(cert)}
    with start_connect_server(tmp_path, settings) as server, start_tls_proxy(cert, key, server.port) as port:
        url = f"sc://localhost:{port}/;use_ssl=true"
        tokens = (f"{url};token={TOKEN}", f"{url};token=wrong-{TOKEN}", url)
        good, wrong, missing = run_program(tmp_path, SESSIONS, trusted, *tokens).stdout.splitlines()
        assert good == "rows 3"
        for line in (wrong, missing):
            assert line.startswith("spark-login-failed"), line
            assert TOKEN not in line
        variable = trusted | {"SPARK_CONNECT_AUTHENTICATE_TOKEN": TOKEN}
        assert run_program(tmp_path, SESSIONS, variable, url).stdout == "rows 3\n"
        done = run_program(tmp_path, SESSIONS, {}, tokens[0])
        assert done.stdout.startswith("spark-unreachable"), done.stdout + done.stderr
        assert "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH" in done.stdout
        assert TOKEN not in done.stdout + done.stderr
        assert TOKEN not in server.log.read_text()
