"""``fleet history FLEET``: which changes between snapshots were made by runs of kdeclare."""

import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from jsonschema import validate

from kdeclare.cli.main import main
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.resources.changes import Action, FieldOp
from kdeclare.fleet.history.change_origins import RunWrite, find_origins
from kdeclare.fleet.history.object_history import list_turns
from kdeclare.providers.kafka import connection
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.request_values import ConfigAlteration, ConfigOp
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.report.fleet.fleet_runs import build_fleet_schemas
from kdeclare.report.fleet.snapshot_text import render_object_history_text
from tests.browser.sample_audits import NOON
from tests.unit.report.golden_files import check_golden
from tests.unit.report.test_topic_history_text import ORDERS, STORY

DAY = timedelta(days=1)


def make_write(
    run_id: str, day: float, values: Mapping[str, JsonValue], action: Action = Action.UPDATE
) -> RunWrite:
    moment = NOON + day * DAY
    return RunWrite(run_id, "ci@runner", moment, moment, action, values)


WRITES = [
    make_write("create", 0.5, {"configs.retention.ms": "604800000"}, Action.CREATE),
    make_write("early", 0.9, {"configs.retention.ms": "1000"}),
    make_write("widen", 4.5, {"partitions": 3, "configs.cleanup.policy": ["compact"]}),
    make_write("other-value", 5.5, {"configs.cleanup.policy": ["delete"]}),
    make_write("again", 7.5, {}, Action.CREATE),
    make_write("late", 9, {}, Action.DELETE),
]


def test_history_with_origins_matches_golden_file() -> None:
    check_golden("topic-history-origins", render_object_history_text("eu-1", ORDERS, STORY, writes=WRITES))


def test_only_runs_that_set_the_value_in_the_period_are_origins() -> None:
    turns = list_turns(STORY)
    origins = [[(origin.run_id, origin.fields) for origin in find_origins(turn, WRITES)] for turn in turns]
    moved, extended = "assignments.1", "assignments.2"
    assert origins == [
        [("create", ())],
        [],  # not read
        [
            ("widen", ("partitions", extended, "configs.cleanup.policy")),
            (None, (moved, "configs.retention.ms")),
        ],
        [(None, ("configs.cleanup.policy",))],
        [(None, ())],
        [("again", ())],
    ]


def test_first_snapshot_has_no_origin() -> None:
    (turn,) = list_turns(STORY[1:2])
    assert find_origins(turn, WRITES) == ()


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemoryCluster:
    cluster = MemoryCluster()
    monkeypatch.setattr(connection, "connect_cluster", lambda *_: cluster)
    monkeypatch.chdir(tmp_path)
    head = "apiVersion: kdeclare/v1\nkind: {}\nmetadata: {{name: shop}}\nspec:\n"
    environments = "  environments: {lab: {bootstrapServers: 'lab:9092'}}\n"
    Path("kdeclare.yaml").write_text(head.format("Project") + environments)
    entries = "  clusters: [{name: lab, project: kdeclare.yaml, env: lab}]\n"
    Path("fleet.yaml").write_text(head.format("Fleet") + entries)
    Path("manifests").mkdir()
    return cluster


def declare(retention: int, partitions: int = 1, more: str = "") -> None:
    Path("manifests/orders.yaml").write_text(
        "apiVersion: kdeclare/v1\nkind: Topic\nmetadata: {name: orders}\n"
        f"spec: {{partitions: {partitions}, replicationFactor: 1, "
        f"configs: {{retention.ms: {retention}{more}}}}}\n"
    )


def change_elsewhere(cluster: MemoryCluster, **configs: str) -> None:
    operations = tuple(ConfigOp(key.replace("_", "."), FieldOp.SET, value) for key, value in configs.items())
    resource = ConfigResource(ConfigScope.TOPIC, "orders")
    cluster.elsewhere().alter_configs([ConfigAlteration(resource, operations)])


def run(*words: str) -> None:
    assert main([*words]) == 0


def read_history(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    capsys.readouterr()
    run("fleet", "history", "fleet.yaml", "lab", "orders", "--out", "snapshots", "--format", "json")
    document = json.loads(capsys.readouterr().out)
    validate(document, build_fleet_schemas()["fleet-history"])
    return [turn for turn in document["history"] if turn["turn"] != "unknown"]


def test_runs_of_kdeclare_are_told_apart_from_other_clients(
    cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    with time_machine.travel(NOON, tick=True) as clock:

        def take_snapshot() -> None:
            run("fleet", "snapshot", "fleet.yaml", "--out", "snapshots", "--engine", "local")
            clock.shift(3600)

        take_snapshot()
        declare(1000)
        run("apply", "--yes", "--env", "lab")
        clock.shift(3600)
        take_snapshot()
        declare(2000, partitions=3, more=", cleanup.policy: [compact, delete]")
        run("apply", "--yes", "--env", "lab")
        change_elsewhere(cluster, flush_ms="7")
        clock.shift(3600)
        take_snapshot()
        change_elsewhere(cluster, retention_ms="5")
        take_snapshot()
        run("apply", "--yes", "--env", "lab")
        clock.shift(3600)
        change_elsewhere(cluster, retention_ms="6")
        take_snapshot()
        cluster.elsewhere().delete_topics({"orders": None})
        take_snapshot()
    runs = sorted(path.name for path in Path("state/shop/lab/runs").iterdir())
    history = read_history(capsys)
    found = [[(one["run_id"], set(one["fields"])) for one in turn["origins"]] for turn in history]
    assert found[0] == [(runs[0], set())], "created"
    by_run = dict(found[1])
    assert by_run[None] == {"configs.flush.ms"}
    assert by_run[runs[1]] >= {"configs.retention.ms", "configs.cleanup.policy", "partitions"}
    assert found[2:] == [
        [(None, {"configs.retention.ms"})],
        [(None, {"configs.retention.ms"})],
        [(None, set())],
    ]
    assert {one["user"] for turn in history for one in turn["origins"] if one["run_id"]} != {None}
    run("fleet", "history", "fleet.yaml", "lab", "orders", "--out", "snapshots")
    shown = capsys.readouterr().out
    assert f"by run {runs[0]} (" in shown
    assert "flush.ms: not by a recorded run of the project" in shown


def test_history_without_fleet_file_has_no_origins(
    cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    declare(1000)
    run("apply", "--yes", "--env", "lab")
    run("fleet", "snapshot", "fleet.yaml", "--out", "snapshots", "--engine", "local")
    capsys.readouterr()
    run("fleet", "history", "lab", "orders", "--out", "snapshots", "--format", "json")
    assert [turn["origins"] for turn in json.loads(capsys.readouterr().out)["history"]] == [None]
