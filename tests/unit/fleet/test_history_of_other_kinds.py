"""``fleet history`` of objects whose keys differ from the names of their resources."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from jsonschema import validate

from kdeclare.cli.main import main
from kdeclare.engine.planning.planfile import parse_plan, render_plan_file
from kdeclare.providers.connect import connection as connect_connection
from kdeclare.providers.connect.testing import MemoryConnectCluster
from kdeclare.providers.kafka import connection
from kdeclare.providers.kafka.acl.binding import parse_binding
from kdeclare.providers.kafka.client_quota.entity import QuotaEntity
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.providers.schema_registry.client import rest
from kdeclare.providers.schema_registry.testing import CONFLUENT, MemoryRegistry
from kdeclare.report.fleet.fleet_runs import build_fleet_schemas
from tests.browser.sample_audits import NOON

HEAD = "apiVersion: kdeclare/v1\nkind: {}\nmetadata: {{name: {}}}\nspec: {}\n"
HOUR = timedelta(hours=1)
OTHER, UNKNOWN = "not by a recorded run of the project", "origin unknown"


class Lab:
    """A fleet with one cluster that has a Connect cluster and a schema registry, all in memory."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys
        self.cluster, self.connect = MemoryCluster(), MemoryConnectCluster(lag=0)
        self.registry = MemoryRegistry(CONFLUENT)
        monkeypatch.setattr(connection, "connect_cluster", lambda *_: self.cluster)
        monkeypatch.setattr(connect_connection, "open_cluster", lambda *_: self.connect)
        monkeypatch.setattr(rest, "open_rest_registry", lambda *_: self.registry)
        systems = "connect: {eu: {urls: ['http://c:8083']}}, registries: {eu: {urls: ['http://r:8081']}}"
        environments = f"{{environments: {{lab: {{bootstrapServers: 'lab:9092', {systems}}}}}}}"
        Path("kdeclare.yaml").write_text(HEAD.format("Project", "shop", environments))
        fleet = "{clusters: [{name: lab, project: kdeclare.yaml, env: lab}]}"
        Path("fleet.yaml").write_text(HEAD.format("Fleet", "shop", fleet))
        Path("manifests").mkdir()
        self.clock: Any = None

    def declare(self, kind: str, name: str, /, **spec: Any) -> None:
        Path("manifests/all.yaml").write_text(HEAD.format(kind, name, json.dumps(spec)))

    def apply(self, *options: str) -> None:
        assert main(["apply", "--yes", "--env", "lab", *options]) == 0
        self.clock.shift(HOUR)

    def snapshot(self) -> None:
        assert main(["fleet", "snapshot", "fleet.yaml", "--out", "snapshots", "--engine", "local"]) == 0
        self.clock.shift(HOUR)

    def audit(self) -> None:
        line = ["fleet", "audit", "fleet.yaml", "--out", "audits", "--engine", "local"]
        assert main([*line, "--snapshot", "snapshots"]) == 0
        self.clock.shift(HOUR)

    def history(self, *words: str) -> tuple[dict[str, Any], str]:
        """Return the history as a document and as text."""
        line = ["fleet", "history", *words, "--out", "snapshots"]
        self.capsys.readouterr()
        assert main([*line, "--format", "json"]) == 0
        document = json.loads(self.capsys.readouterr().out)
        validate(document, build_fleet_schemas()["fleet-history"])
        assert main(line) == 0
        return document, " ".join(self.capsys.readouterr().out.split())

    def origins(self, key: str) -> tuple[list[list[str | None]], str]:
        """Return who made each change of an object: a number of a run, OTHER or UNKNOWN."""
        document, text = self.history("fleet.yaml", "lab", key)
        runs = {path.name: str(n) for n, path in enumerate(sorted(Path("state/shop/lab/runs").iterdir()))}
        return [
            [
                UNKNOWN if one["is_unknown"] else runs.get(one["run_id"], OTHER)
                for one in sorted(turn["origins"], key=lambda one: one["fields"])
            ]
            for turn in document["history"]
        ], text


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    monkeypatch.chdir(tmp_path)
    lab = Lab(monkeypatch, capsys)
    with time_machine.travel(NOON, tick=True) as clock:
        lab.clock = clock
        lab.snapshot()
        yield lab


def declare_sink(lab: Lab, **config: str) -> None:
    config = {"topics": "a", "file": "f", **config}
    more = {"class": "FileStreamSink", "connect": "eu", "name": "orders-sink"}
    lab.declare("Connector", "orders", config=config, **more)


def change_connector(lab: Lab, file: str) -> None:
    config = lab.connect.list_connectors()["orders-sink"].config
    lab.connect.replace_config("orders-sink", {**config, "file": file})


def test_runs_that_changed_a_connector_are_found_by_its_key(lab: Lab) -> None:
    declare_sink(lab, file="1")
    lab.apply()
    lab.snapshot()
    declare_sink(lab, file="2")
    lab.apply()
    lab.snapshot()
    change_connector(lab, "3")
    lab.snapshot()
    lab.apply()
    lab.snapshot()
    Path("manifests/all.yaml").unlink()
    lab.apply("--allow-deletes", "--allow-empty")
    lab.snapshot()
    origins, text = lab.origins("Connector/eu/orders-sink")
    assert origins == [["0"], ["1"], [OTHER], ["2"], ["3"]]
    assert f"3 {OTHER}" in text


def test_runs_that_changed_a_quota_are_found_by_its_entity(lab: Lab) -> None:
    def declare(rate: int) -> None:
        lab.declare("ClientQuota", "team-a", entity={"user": "alice"}, limits={"producer_byte_rate": rate})

    declare(1000)
    lab.apply()
    lab.snapshot()
    declare(2000)
    lab.apply()
    lab.snapshot()
    lab.cluster.elsewhere().alter_quotas({QuotaEntity.parse_key("user=alice"): {"producer_byte_rate": 5.0}})
    lab.snapshot()
    assert lab.origins("ClientQuota/user=alice")[0] == [["0"], ["1"], [OTHER]]


@pytest.mark.slow
def test_runs_that_changed_a_binding_are_found_by_its_key(lab: Lab) -> None:
    def declare(*operations: str) -> None:
        entry = {"topic": "orders", "allow": list(operations)}
        lab.declare("Acl", "alice", principal="User:alice", bindings=[entry])

    declare("READ", "WRITE")
    lab.apply()
    lab.snapshot()
    declare("READ")
    lab.apply()
    write, read = (f"ALLOW User:alice {operation} topic:orders from *" for operation in ("WRITE", "READ"))
    lab.cluster.delete_acls([parse_binding(read)])
    lab.snapshot()
    lab.apply()
    lab.snapshot()
    assert lab.origins(f"Acl/{write}")[0] == [["0"], ["1"]]
    assert lab.origins(f"Acl/{read}")[0] == [["0"], [OTHER], ["2"]]


def test_run_that_changed_a_schema_is_never_mistaken_for_another_client(lab: Lab) -> None:
    def declare(*names: str) -> None:
        fields = [{"name": name, "type": "string", "default": ""} for name in names]
        schema = {"type": "record", "name": "Order", "fields": fields}
        lab.declare("Schema", "orders", subject="orders-value", schema=json.dumps(schema))

    declare("a")
    lab.apply()
    lab.snapshot()
    declare("a", "b")
    lab.apply()
    lab.snapshot()
    origins, text = lab.origins("Schema/orders-value")
    assert origins == [["0"], [UNKNOWN]]
    assert "origin unknown: a run of the project might have made the change" in text


def test_origin_is_unknown_if_the_object_of_a_changed_resource_is(lab: Lab) -> None:
    """Neither the plan nor the state contains the record of the connector."""
    declare_sink(lab, file="1")
    lab.apply()
    lab.snapshot()
    change_connector(lab, "2")
    lab.snapshot()
    state = Path("state/shop/lab")
    (file,) = state.rglob("plan.json")
    plan = parse_plan(file.read_text(), "the plan")
    file.write_text(render_plan_file(replace(plan, ownership=()))[0])
    (state / "state.json").unlink()
    origins, text = lab.origins("Connector/eu/orders-sink")
    assert origins == [[UNKNOWN], [OTHER]]
    assert "origin unknown: a run of the project might have made the change" in text


def test_findings_of_a_connector_are_found_by_its_key(lab: Lab) -> None:
    lab.connect.create_connector(
        "orders-sink", {"connector.class": "FileStreamSink", "topics": "a", "file": "0"}
    )
    lab.snapshot()
    lab.audit()
    declare_sink(lab, file="1")
    lab.snapshot()
    lab.audit()
    lab.apply("--adopt")
    lab.snapshot()
    lab.audit()
    audits = ("--audits", "audits")
    document, text = lab.history("fleet.yaml", "lab", "Connector/eu/orders-sink", *audits)
    assert [(one["finding"], one["path"], one["status"]) for one in document["findings"]] == [
        ("unmanaged", None, "fixed"),
        ("pending", "config.file", "fixed"),
    ]
    assert "can contain more findings" not in text
    document, text = lab.history("lab", "Connector/eu/orders-sink", *audits)
    assert [one["finding"] for one in document["findings"]] == ["unmanaged"]
    assert "Audits can contain more findings about this object" in text


def test_findings_of_a_binding_are_not_those_of_the_whole_set(lab: Lab) -> None:
    read, write = (f"ALLOW User:alice {operation} topic:orders from *" for operation in ("READ", "WRITE"))
    entry = {"topic": "orders", "allow": ["READ", "WRITE"]}
    lab.declare("Acl", "alice", principal="User:alice", bindings=[entry])
    lab.apply()
    lab.snapshot()
    lab.cluster.delete_acls([parse_binding(read)])
    lab.snapshot()
    lab.audit()
    lines = {
        binding: lab.history("fleet.yaml", "lab", f"Acl/{binding}", "--audits", "audits")[0]["findings"]
        for binding in (read, write)
    }
    assert [one["path"] for one in lines[read]] == ["bindings.topic:orders"]
    assert lines[write] == []


def test_findings_of_a_topic_are_complete_without_fleet_file(lab: Lab) -> None:
    lab.declare("Topic", "orders", partitions=1, replicationFactor=1)
    lab.apply()
    lab.snapshot()
    lab.audit()
    assert lab.history("lab", "orders", "--audits", "audits")[1].endswith("No findings in any audit.")
