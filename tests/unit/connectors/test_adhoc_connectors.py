"""`kdeclare connector` on in-memory Connect clusters: list, describe, and changes of the state."""

import json

import pytest
from jsonschema import Draft202012Validator

from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.live.faults import Fault
from kdeclare.providers.connect import connection
from kdeclare.providers.connect.client.connectors_port import ConnectorOffset, LiveConnector, TargetState
from kdeclare.providers.connect.client.port import UNREACHABLE
from kdeclare.providers.connect.commands.connectors.connector_views import build_connector_schemas
from kdeclare.providers.connect.testing import MemoryConnectCluster
from tests.unit.cli.command_line import CommandLine
from tests.unit.connectors.conftest import ENVIRONMENTS, write_project, write_sink
from tests.unit.report.golden_files import check_schema

SINK = {"connector.class": "FileStreamSink", "tasks.max": "2", "topics": "orders", "file": "out.txt"}


@pytest.fixture
def us(
    kdeclare: CommandLine, connect: MemoryConnectCluster, monkeypatch: pytest.MonkeyPatch
) -> MemoryConnectCluster:
    """A second Connect cluster of the project."""
    other = MemoryConnectCluster(lag=0)
    urls = {"eu": "https://lab:8083", "us": "https://us:8083"}
    clusters = {(urls["eu"],): connect, (urls["us"],): other}
    monkeypatch.setattr(connection, "open_cluster", lambda target, *_: clusters[tuple(target.urls)])
    endpoints = {name: {"urls": [url]} for name, url in urls.items()}
    environments = {"lab": {**ENVIRONMENTS["lab"], "connect": endpoints}}
    kdeclare.write("kdeclare.yaml", "Project", "shop", environments=environments)
    return other


def disconnect(connect: MemoryConnectCluster) -> None:
    for method in ("identify", "list_connectors", "describe_connector"):
        connect.faults.fail(Fault(UNREACHABLE, "connection refused"), nth=None, method=method)


# list


def test_list_shows_connectors_of_all_connect_clusters(
    kdeclare: CommandLine, connect: MemoryConnectCluster, us: MemoryConnectCluster
) -> None:
    connect.create_connector("sink", SINK)
    us.create_connector("other", {**SINK, "topics": "b"}, TargetState.STOPPED)
    ran = kdeclare("connector", "list")
    assert ran.code == ExitCode.OK, ran
    rows = [line.split() for line in ran.out.splitlines()]
    assert rows == [
        ["CONNECT", "NAME", "TYPE", "CLASS", "STATE", "TASKS", "RUNNING", "FAILED"],
        ["eu", "sink", "sink", "FileStreamSink", "RUNNING", "2", "2", "0"],
        ["us", "other", "sink", "FileStreamSink", "STOPPED", "0", "0", "0"],
    ]
    only = kdeclare("connector", "list", "--connect", "us")
    assert "other" in only.out
    assert "eu" not in only.out


def test_list_names_unreadable_connect_cluster_after_the_others(
    kdeclare: CommandLine, connect: MemoryConnectCluster, us: MemoryConnectCluster
) -> None:
    us.create_connector("other", SINK)
    disconnect(connect)
    ran = kdeclare("connector", "list")
    assert ran.code == ExitCode.ERROR, ran
    assert ran.out.splitlines()[-2].startswith("us")
    assert ran.out.splitlines()[-1] == "eu: not read: connection refused."


def test_list_prints_documents(kdeclare: CommandLine, connect: MemoryConnectCluster) -> None:
    connect.create_connector("sink", SINK)
    document = json.loads(kdeclare("connector", "list", "--format", "json").out)
    Draft202012Validator(build_connector_schemas()["connector-list"]).validate(document)
    assert document["connectors"] == [
        {
            "connect": "eu",
            "name": "sink",
            "type": "sink",
            "class": "FileStreamSink",
            "state": "RUNNING",
            "tasks_total": 2,
            "tasks_running": 2,
            "tasks_failed": 0,
        }
    ]


def test_list_rejects_unknown_connect_cluster(kdeclare: CommandLine, connect: MemoryConnectCluster) -> None:
    ran = kdeclare("connector", "list", "--connect", "nowhere")
    assert ran.code == ExitCode.ERROR, ran
    assert "nowhere" in ran.err


@pytest.mark.parametrize("name", ["connector-describe", "connector-list"])
def test_schemas_are_published(name: str) -> None:
    check_schema(name, build_connector_schemas()[name])


# describe


def test_describe_masks_secrets_and_shows_offsets(
    kdeclare: CommandLine, connect: MemoryConnectCluster
) -> None:
    config = {"connector.class": "org.example.PasswordSinkConnector", "topics": "a", "url": "x"}
    connect.create_connector("sink", {**config, "pin": "99999999", "db.password": "hunter2-hunter2"})
    offset = ConnectorOffset({"kafka_topic": "a", "kafka_partition": 0}, {"kafka_offset": 7})
    connect.set_offsets("sink", (offset,))
    ran = kdeclare("connector", "describe", "sink")
    assert ran.code == ExitCode.OK, ran
    assert "hunter2" not in ran.out
    assert "99999999" not in ran.out
    assert "url = x" in ran.out
    assert '{"kafka_partition":0,"kafka_topic":"a"}: {"kafka_offset":7}' in ran.out.replace(" ", "").replace(
        "}:{", "}: {"
    )
    assert "Manifest: none declares it" in ran.out
    assert "Owned by kdeclare: no" in ran.out


def test_describe_names_manifest_and_owner(kdeclare: CommandLine, connect: MemoryConnectCluster) -> None:
    kdeclare.monkeypatch.setenv("TARGET", "secret-file.txt")
    write_sink(kdeclare, {"file": "${env.TARGET}"})
    assert kdeclare("apply", "--yes").code == ExitCode.OK
    document = json.loads(kdeclare("connector", "describe", "sink", "--format", "json").out)
    Draft202012Validator(build_connector_schemas()["connector-describe"]).validate(document)
    assert (document["declared_by"], document["owned_by"]) == ("Connector/sink", "Connector/sink")
    assert "secret-file" not in json.dumps(document)


def test_describe_rejects_unknown_and_ambiguous_names(
    kdeclare: CommandLine, connect: MemoryConnectCluster, us: MemoryConnectCluster
) -> None:
    for cluster in (connect, us):
        cluster.create_connector("sink", SINK)
    ambiguous = kdeclare("connector", "describe", "sink")
    assert ambiguous.code == ExitCode.ERROR
    assert "Connector name is ambiguous" in ambiguous.err
    assert kdeclare("connector", "describe", "sink", "--connect", "us").code == ExitCode.OK
    missing = kdeclare("connector", "describe", "sinc")
    assert missing.code == ExitCode.ERROR
    assert "'sink'" in missing.err.split("hint:")[-1]


# changes


@pytest.mark.parametrize(
    ("action", "before", "after"),
    [("pause", None, "PAUSED"), ("stop", None, "STOPPED"), ("resume", TargetState.PAUSED, "RUNNING")],
)
def test_change_of_state_is_applied_and_rolled_back(
    kdeclare: CommandLine,
    connect: MemoryConnectCluster,
    action: str,
    before: TargetState | None,
    after: str,
) -> None:
    connect.create_connector("sink", SINK, before)
    earlier = describe(connect).state
    ran = kdeclare("connector", action, "sink", "--yes")
    assert ran.code == ExitCode.OK, ran
    assert describe(connect).state == after
    assert describe(connect).config == {"name": "sink", **SINK}
    again = kdeclare("connector", action, "sink", "--yes")
    assert again.code == ExitCode.OK, again
    assert kdeclare("rollback", "--yes").code == ExitCode.OK
    assert describe(connect).state == earlier


def test_declined_change_is_not_made(kdeclare: CommandLine, connect: MemoryConnectCluster) -> None:
    connect.create_connector("sink", SINK)
    assert kdeclare("connector", "stop", "sink").code != ExitCode.OK
    assert connect.requests() == ["POST /connectors"]


def test_change_warns_about_declared_state(kdeclare: CommandLine, connect: MemoryConnectCluster) -> None:
    write_sink(kdeclare, state="RUNNING")
    assert kdeclare("apply", "--yes").code == ExitCode.OK
    ran = kdeclare("connector", "pause", "sink", "--yes")
    assert ran.code == ExitCode.OK, ran
    assert "warning: Resource is managed by kdeclare" in ran.err
    assert "state of Connector/sink is declared in a manifest." in " ".join(ran.err.split())
    assert kdeclare("plan", "--detailed-exitcode").code == ExitCode.CHANGES


def test_change_of_undeclared_state_does_not_warn(
    kdeclare: CommandLine, connect: MemoryConnectCluster
) -> None:
    write_sink(kdeclare)
    assert kdeclare("apply", "--yes").code == ExitCode.OK
    ran = kdeclare("connector", "pause", "sink", "--yes")
    assert ran.code == ExitCode.OK, ran
    assert "warning" not in ran.err
    assert kdeclare("plan", "--detailed-exitcode").code == ExitCode.OK


def test_change_can_be_written_to_the_manifest(kdeclare: CommandLine, connect: MemoryConnectCluster) -> None:
    write_sink(kdeclare, state="RUNNING")
    assert kdeclare("apply", "--yes").code == ExitCode.OK
    ran = kdeclare("connector", "stop", "sink", "--write-manifest", "--yes")
    assert ran.code == ExitCode.OK, ran
    assert "state: STOPPED" in (kdeclare.folder / "manifests/sink.yaml").read_text()
    assert "No changes." in kdeclare("plan").out


def test_policies_see_the_live_connector(kdeclare: CommandLine, connect: MemoryConnectCluster) -> None:
    entry = {
        "name": "rule",
        "class": "kdeclare.providers.connect.connector_policies:AllowedClasses",
        "selector": {"kind": "Connector"},
        "config": {"allowed": ["FileStreamSource"]},
    }
    write_project(kdeclare, policies=[entry])
    connect.create_connector("sink", SINK)
    ran = kdeclare("connector", "stop", "sink", "--yes")
    assert ran.code == ExitCode.DENIED, ran
    assert "The connector class is FileStreamSink" in " ".join((ran.out + ran.err).split())
    assert describe(connect).state == "RUNNING"


def test_change_affects_only_the_named_connect_cluster(
    kdeclare: CommandLine, connect: MemoryConnectCluster, us: MemoryConnectCluster
) -> None:
    write_sink(kdeclare, connect="eu", state="RUNNING")
    assert kdeclare("apply", "--yes").code == ExitCode.OK
    us.create_connector("sink", SINK)
    ran = kdeclare("connector", "stop", "sink", "--connect", "us", "--yes")
    assert ran.code == ExitCode.OK, ran
    assert "warning" not in ran.err
    assert (describe(connect).state, describe(us).state) == ("RUNNING", "STOPPED")


def test_restart_sends_a_restart_of_all_tasks(kdeclare: CommandLine, connect: MemoryConnectCluster) -> None:
    connect.create_connector("sink", SINK)
    ran = kdeclare("connector", "restart", "sink", "--yes")
    assert ran.code == ExitCode.OK, ran
    (request,) = connect.requests()[1:]
    assert request == "POST /connectors/sink/restart?includeTasks=true&onlyFailed=false"


def test_restart_of_failures_skips_running_connectors(
    kdeclare: CommandLine, connect: MemoryConnectCluster
) -> None:
    connect.create_connector("sink", SINK)
    ran = kdeclare("connector", "restart", "sink", "--only-failed", "--yes")
    assert ran.code == ExitCode.OK, ran
    assert "Neither the connector nor a task has failed." in ran.out
    assert connect.requests() == ["POST /connectors"]


def test_restart_repairs_what_has_failed(kdeclare: CommandLine, connect: MemoryConnectCluster) -> None:
    connect.missing_folders.add("/gone")
    connect.create_connector("sink", {**SINK, "file": "/gone/out.txt"})
    failed = kdeclare("connector", "restart", "sink", "--only-failed", "--yes")
    assert failed.code == ExitCode.PARTIAL, failed
    connect.missing_folders.clear()
    ran = kdeclare("connector", "restart", "sink", "--only-failed", "--yes")
    assert ran.code == ExitCode.OK, ran
    assert {task.state for task in describe(connect).tasks} == {"RUNNING"}


def test_restart_refuses_stopped_connectors(kdeclare: CommandLine, connect: MemoryConnectCluster) -> None:
    connect.create_connector("sink", SINK, TargetState.STOPPED)
    ran = kdeclare("connector", "restart", "sink", "--yes")
    assert ran.code == ExitCode.ERROR, ran
    assert "kdeclare connector resume sink" in ran.out + ran.err
    assert connect.requests() == ["POST /connectors"]


def describe(connect: MemoryConnectCluster) -> LiveConnector:
    connector = connect.describe_connector("sink")
    assert connector is not None
    return connector
