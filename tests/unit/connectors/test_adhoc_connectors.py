"""`kdeclare connector` on in-memory Connect clusters: list, describe, and changes of the state."""

import json

import pytest
from jsonschema import Draft202012Validator

from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.live.faults import Fault
from kdeclare.providers.connect import connection
from kdeclare.providers.connect.client.connectors_port import ConnectorOffset, TargetState
from kdeclare.providers.connect.client.port import UNREACHABLE
from kdeclare.providers.connect.commands.connectors.connector_views import build_connector_schemas
from kdeclare.providers.connect.testing import MemoryConnectCluster
from tests.unit.cli.command_line import CommandLine
from tests.unit.connectors.conftest import ENVIRONMENTS, write_sink
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
    assert "other" in only.out and "eu" not in only.out


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
    assert "hunter2" not in ran.out and "99999999" not in ran.out
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
