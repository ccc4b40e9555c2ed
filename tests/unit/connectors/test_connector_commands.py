"""Connectors on the command line: import, policies, doctor, positions, and plan files."""

import json

import pytest
import yaml

from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.live.faults import Fault
from kdeclare.providers.connect.client.port import UNREACHABLE
from kdeclare.providers.connect.testing import MemoryConnectCluster
from tests.unit.cli.command_line import CommandLine
from tests.unit.connectors.conftest import write_project, write_sink

SINK = {"connector.class": "FileStreamSink", "tasks.max": "2", "topics": "orders", "file": "out.txt"}


def disconnect(connect: MemoryConnectCluster) -> None:
    for method in ("identify", "list_connectors", "describe_connector"):
        connect.faults.fail(Fault(UNREACHABLE, "connection refused"), nth=None, method=method)


# import


def test_imported_manifests_match_live_connectors(
    kdeclare: CommandLine, connect: MemoryConnectCluster
) -> None:
    connect.create_connector("plain", {**SINK, "db.password": "${file:/etc/secrets:db}", "flag": "true"})
    connect.create_connector("odd name", {"connector.class": "FileStreamSource", "topic": "a: b"})
    ran = kdeclare("import", "--out", "manifests")
    assert ran.code == ExitCode.OK, ran
    plan = kdeclare("plan", "--detailed-exitcode")
    assert plan.code == ExitCode.OK, plan
    assert plan.out.startswith("No changes."), plan
    assert kdeclare("apply", "--yes").code == ExitCode.OK
    assert connect.requests() == ["POST /connectors"] * 2  # those of the test itself


def test_import_moves_common_values_of_connectors_to_defaults(
    kdeclare: CommandLine, connect: MemoryConnectCluster
) -> None:
    for name in ("a", "b", "c"):
        secrets = {"db.password": "${file:/etc/secrets:db}", "api.key": "hunter2-hunter2"}
        connect.create_connector(name, {**SINK, **secrets, "file": f"{name}.txt"})
    ran = kdeclare("import", "--factor-defaults", "--out", "manifests")
    assert (ran.code, "Defaults/connectors has 4 common values of 3 Connector" in ran.err) == (0, True), ran
    texts = {file.stem: file.read_text() for file in (kdeclare.folder / "manifests").rglob("*.yaml")}
    assert yaml.safe_load(texts["connectors"])["spec"]["defaults"] == {
        "class": "FileStreamSink",
        "tasksMax": 2,
        "config": {"topics": "orders"},
        "state": "RUNNING",
    }
    config = yaml.safe_load(texts["a"])["spec"]["config"]
    assert config["file"] == "a.txt"
    assert config["db.password"] == "${file:/etc/secrets:db}"
    assert "hunter2" not in "".join(texts.values())
    for name in "ABC":
        kdeclare.monkeypatch.setenv(f"{name}_API_KEY", "hunter2-hunter2")
    ran = kdeclare("validate")
    assert ran.code == ExitCode.OK, ran


def test_imported_secrets_become_references(kdeclare: CommandLine, connect: MemoryConnectCluster) -> None:
    config = {
        "connector.class": "org.example.PasswordSinkConnector",
        "topics": "a",
        "url": "x",
        "pin": "99999999",
    }
    connect.create_connector("sink", {**config, "db.password": "hunter2-hunter2"})
    assert kdeclare("import", "--out", "manifests").code == ExitCode.OK
    (file,) = (kdeclare.folder / "manifests").rglob("*.yaml")
    text = file.read_text()
    assert yaml.safe_load(text)["spec"]["config"] == {
        "db.password": "${env.SINK_DB_PASSWORD}",
        "pin": "${env.SINK_PIN}",
        "topics": "a",
        "url": "x",
    }
    kdeclare.monkeypatch.setenv("SINK_DB_PASSWORD", "hunter2-hunter2")
    kdeclare.monkeypatch.setenv("SINK_PIN", "99999999")
    assert kdeclare("plan", "--detailed-exitcode").code == ExitCode.OK


# policies


def use_policy(kdeclare: CommandLine, name: str, **config: object) -> None:
    entry = {
        "name": "rule",
        "class": f"kdeclare.providers.connect.connector_policies:{name}",
        "selector": {"kind": "Connector"},
        **({"config": config} if config else {}),
    }
    write_project(kdeclare, policies=[entry])


def test_policy_allows_certain_classes(kdeclare: CommandLine, connect: MemoryConnectCluster) -> None:
    use_policy(kdeclare, "AllowedClasses", allowed=["FileStreamSource"])
    write_sink(kdeclare)
    ran = kdeclare("plan")
    assert ran.code == ExitCode.DENIED, ran
    assert "The connector class is FileStreamSink instead of FileStreamSource." in ran.out
    use_policy(kdeclare, "AllowedClasses", allowed=["FileStreamSource", "FileStreamSink"])
    assert kdeclare("plan").code == ExitCode.OK


def test_policy_limits_tasks(kdeclare: CommandLine, connect: MemoryConnectCluster) -> None:
    use_policy(kdeclare, "MaximumTasks", maximum=4)
    write_sink(kdeclare, tasksMax=5)
    ran = kdeclare("plan")
    assert ran.code == ExitCode.DENIED, ran
    assert "'tasksMax' is 5, but at most 4 is allowed." in ran.out
    write_sink(kdeclare, tasksMax=4)
    assert kdeclare("plan").code == ExitCode.OK


def test_policy_requires_dead_letter_queue(kdeclare: CommandLine, connect: MemoryConnectCluster) -> None:
    use_policy(kdeclare, "DeadLetterQueueRequired")
    write_sink(kdeclare, {"errors.tolerance": "all"})
    ran = kdeclare("plan")
    assert ran.code == ExitCode.DENIED, ran
    assert "the sink needs 'errors.deadletterqueue.topic.name'" in " ".join(ran.out.split())
    write_sink(kdeclare, {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "dlq"})
    assert kdeclare("plan").code == ExitCode.OK


def test_policy_evaluates_changes_of_existing_connectors(
    kdeclare: CommandLine, connect: MemoryConnectCluster
) -> None:
    write_sink(kdeclare)
    assert kdeclare("apply", "--yes").code == ExitCode.OK
    use_policy(kdeclare, "MaximumTasks", maximum=1)
    write_sink(kdeclare, tasksMax=3)
    assert kdeclare("plan").code == ExitCode.DENIED
    write_sink(kdeclare, {"file": "other.txt"})
    assert kdeclare("plan").code == ExitCode.OK


def test_rule_can_use_fields_of_connectors(kdeclare: CommandLine, connect: MemoryConnectCluster) -> None:
    rule = "after.config['file'].startsWith('/data/') && after.state == 'RUNNING'"
    kdeclare.write(
        "manifests/rule.yaml",
        "Policy",
        "folder",
        selector={"kind": "Connector"},
        actions=["CREATE", "MODIFY"],
        rule=rule,
        message="Files are in /data.",
    )
    write_sink(kdeclare, state="RUNNING")
    assert kdeclare("plan").code == ExitCode.DENIED
    write_sink(kdeclare, {"file": "/data/out.txt"}, state="RUNNING")
    assert kdeclare("plan").code == ExitCode.OK


# doctor


def test_doctor_checks_connect_clusters(kdeclare: CommandLine, connect: MemoryConnectCluster) -> None:
    connect.create_connector("sink", SINK)
    document = json.loads(kdeclare("doctor", "--format", "json").out)
    checks = {
        check["name"]: (check["standing"], check["what"])
        for check in document["checks"]
        if check["section"] == "Connect clusters"
    }
    assert checks == {"connect/eu": ("ok", "responds, with Kafka Connect 4.3.1 and 1 connector")}


@pytest.mark.slow
def test_doctor_warns_of_logins_without_encryption(
    kdeclare: CommandLine, connect: MemoryConnectCluster
) -> None:
    kdeclare.monkeypatch.setenv("TOKEN", "correct-horse")

    def find_warnings(url: str, **login: str) -> list[tuple[str, str]]:
        endpoint = {"urls": [url], **login}
        environments = {"lab": {"bootstrapServers": "lab:9092", "connect": {"eu": endpoint}}}
        kdeclare.write("kdeclare.yaml", "Project", "shop", environments=environments)
        checks = json.loads(kdeclare("doctor", "--format", "json").out)["checks"]
        warnings = [one for one in checks if one["section"] == "Connect clusters" and one["standing"] != "ok"]
        return [(one["name"], one["what"]) for one in warnings]

    expected = [("connect/eu encryption", "credentials are sent without encryption")]
    assert find_warnings("http://lab:8083", bearerToken="${env.TOKEN}") == expected
    assert find_warnings("http://lab:8083") == []
    assert find_warnings("https://lab:8083", bearerToken="${env.TOKEN}") == []


def test_doctor_reports_missing_and_unreachable_clusters(
    kdeclare: CommandLine, connect: MemoryConnectCluster
) -> None:
    write_sink(kdeclare, connect="us")
    disconnect(connect)
    ran = kdeclare("doctor")
    assert ran.code != ExitCode.OK
    assert "connect/eu" in ran.out
    assert "connection refused" in ran.out
    assert "connect/us" in ran.out


# positions


def test_errors_of_connect_have_positions_in_overlays(
    kdeclare: CommandLine, connect: MemoryConnectCluster
) -> None:
    write_sink(kdeclare)
    overlay = kdeclare.folder / "lab.yaml"
    overlay.write_text("kind: Connector\nmetadata: {name: sink}\nspec:\n  tasksMax: 0\n")
    environments = {
        "lab": {
            "bootstrapServers": "lab:9092",
            "connect": {"eu": {"urls": ["https://lab:8083"]}},
            "overlays": ["lab.yaml"],
        }
    }
    kdeclare.write("kdeclare.yaml", "Project", "shop", environments=environments)
    ran = kdeclare("plan", "--format", "json")
    assert ran.code == ExitCode.ERROR
    (problem,) = (one for one in json.loads(ran.out)["diagnostics"] if one["severity"] == "error")
    assert (problem["place"]["file"].rpartition("/")[2], problem["place"]["line"]) == ("lab.yaml", 4)


# plan files


def test_plan_file_is_applied_with_secrets_by_reference(
    kdeclare: CommandLine, connect: MemoryConnectCluster
) -> None:
    kdeclare.monkeypatch.setenv("DB", "hunter2-hunter2")
    write_sink(kdeclare, {"db.password": "${env.DB}"}, state="PAUSED")
    assert kdeclare("plan", "--out", "plan.json").code == ExitCode.OK
    assert "hunter2" not in (kdeclare.folder / "plan.json").read_text()
    ran = kdeclare("apply", "plan.json", "--yes")
    assert ran.code == ExitCode.OK, ran
    live = connect.describe_connector("sink")
    assert live is not None
    assert (live.config["db.password"], live.state) == ("hunter2-hunter2", "PAUSED")
    assert kdeclare("plan", "--detailed-exitcode").code == ExitCode.OK


def test_literal_secret_cannot_be_saved(kdeclare: CommandLine, connect: MemoryConnectCluster) -> None:
    write_sink(kdeclare, {"db.password": "hunter2-hunter2"})
    ran = kdeclare("plan", "--out", "plan.json")
    assert ran.code == ExitCode.ERROR
    assert not (kdeclare.folder / "plan.json").exists()
    assert kdeclare("apply", "--yes").code == ExitCode.OK


def test_unreachable_cluster_is_exit_code_1_and_the_rest_is_applied(
    kdeclare: CommandLine, connect: MemoryConnectCluster
) -> None:
    write_sink(kdeclare)
    kdeclare.topic("orders")
    disconnect(connect)
    ran = kdeclare("plan")
    assert ran.code == ExitCode.ERROR
    assert "connect/eu did not respond: connection refused." in " ".join(ran.err.split() + ran.out.split())
