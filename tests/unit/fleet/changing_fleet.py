"""A fleet on disk that changes at random between audits, which are incremental or full."""

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kdeclare.cli.main import main
from kdeclare.core.resources.changes import FieldOp
from kdeclare.fleet.local.tables import read_rows
from kdeclare.fleet.tables.row_builder import Row, build_unreachable_row, read_live_rows
from kdeclare.fleet.tables.rows import FINDINGS
from kdeclare.fleet.tables.storage import LocalStorage
from kdeclare.providers.kafka import connection
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.providers.kafka.request_values import ConfigAlteration, ConfigOp, NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.connections import connections_to
from tests.spark.real_fleet import write_snapshot

OWN_CLUSTERS = ("plain", "ruled", "ready", "custom")
"""Projects with a state: without policies, with a CEL rule, with a ready-made policy, with custom code."""
SHARED = "shared"
"""An entry without a state for the cluster of ``ruled``."""
TOPICS = tuple(f"t{number}" for number in range(5))
_RUN_FIELDS = ("audit_id", "taken_at", "seconds", "trend")
_HEAD = "apiVersion: kdeclare/v1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec:\n"
_READY = (
    "  policies:\n    - {name: few, class: 'kdeclare.policy.rules:PartitionBounds', config: {max: MAX}}\n"
)
_CUSTOM = "  policies:\n    - {name: file, class: 'rules.file:ReadsFile'}\n"
_CUSTOM_CODE = """\
from pathlib import Path

from kdeclare.policy import PolicyViolation, TopicActionsPolicy


class ReadsFile(TopicActionsPolicy):
    def validate(self, request):
        if Path("WORD").read_text() in request.topic:
            raise PolicyViolation("the file names this topic")
"""
_WIDE = _HEAD.format(kind="Topic", name="wide") + (
    "  partitions: 2\n  replicationFactor: 2\n  placement: {strategy: cross-rack}\n"
)


@dataclass
class ChangingFleet:
    """The fleet, its clusters, and the values that the files contain.

    down: the clusters that cannot be read.
    """

    folder: Path
    chance: random.Random
    clusters: dict[str, MemoryCluster]
    now: datetime = datetime(2026, 11, 1, 3, tzinfo=UTC)
    down: set[str] = field(default_factory=set)
    limits: dict[str, int] = field(default_factory=lambda: {"ruled": 3, "ready": 3})
    labels: dict[str, str] = field(default_factory=dict)
    is_shared: bool = True
    names: int = 0

    @property
    def file(self) -> Path:
        return self.folder / "fleet.yaml"

    @property
    def word(self) -> Path:
        """The file that the custom policy reads."""
        return self.folder / "word"

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def write_fleet(self) -> None:
        """Write the fleet file, and all project files and policies."""
        entries = "".join(
            f"    - {{name: {name}, labels: {{tier: '{self.labels.get(name, 'gold')}'}}, "
            f"project: {name}/kdeclare.yaml, env: main}}\n"
            for name in OWN_CLUSTERS
        )
        if self.is_shared:
            entries += f"    - {{name: {SHARED}, bootstrapServers: 'ruled:9092', manifests: [{SHARED}]}}\n"
        accepted = "  acceptedDrift: [accepted.yaml]\n" if (self.folder / "accepted.yaml").exists() else ""
        self.write(
            "fleet.yaml", _HEAD.format(kind="Fleet", name="shop") + accepted + f"  clusters:\n{entries}"
        )
        for name in OWN_CLUSTERS:
            policies = {"ready": _READY.replace("MAX", str(self.limits["ready"])), "custom": _CUSTOM}
            environments = f"  environments:\n    main: {{bootstrapServers: '{name}:9092'}}\n"
            project = _HEAD.format(kind="Project", name=name) + policies.get(name, "") + environments
            self.write(f"{name}/kdeclare.yaml", project)
        rule = f"  rule: 'post == null || post.partitions <= {self.limits['ruled']}'\n  message: too many\n"
        self.write("ruled/manifests/policy.yaml", _HEAD.format(kind="Policy", name="few") + rule)
        self.write("custom/rules/file.py", _CUSTOM_CODE.replace("WORD", str(self.word)))

    def write_topic(self, owner: str, topic: str) -> None:
        """Declare a topic in a project, or in the manifests of the shared entry."""
        folder = SHARED if owner == SHARED else f"{owner}/manifests"
        retention, team = self.chance.choice((1000, 2000)), self.chance.choice(("a", "b"))
        self.write(
            f"{folder}/{topic}.yaml",
            "apiVersion: kdeclare/v1\nkind: Topic\n"
            f"metadata: {{name: {topic}, labels: {{team: {team}}}}}\n"
            f"spec: {{partitions: {self.chance.choice((2, 4))}, replicationFactor: 2, "
            f"configs: {{retention.ms: {retention}}}}}\n",
        )

    def apply(self, name: str) -> None:
        project = str(self.folder / name / "kdeclare.yaml")
        assert main(["apply", "--yes", "--adopt", "--project", project, "--env", "main"]) in (0, 3)

    def change_something(self) -> str:
        """Change one thing that findings can depend on. Return what has changed."""
        name, topic = self.chance.choice(OWN_CLUSTERS), self.chance.choice(TOPICS)
        owner = self.chance.choice((*OWN_CLUSTERS, SHARED))
        changes: dict[str, Callable[[], object]] = {
            "live config": lambda: self.alter_live(name, topic),
            "new topic": lambda: self.create_topic(name),
            "deleted topic": lambda: self.delete_topic(name, topic),
            "moved topic": lambda: self.move_wide(name),
            "manifest": lambda: self.write_topic(owner, topic),
            "removed manifest": lambda: self.remove_manifest(owner, topic),
            "applied": lambda: self.apply(name),
            "policy": lambda: self.set_limit(self.chance.choice(("ruled", "ready"))),
            "file of custom policy": lambda: self.word.write_text(self.chance.choice(("t1", "t2", "none"))),
            "labels of cluster": lambda: self.labels.update({name: self.chance.choice(("gold", "silver"))}),
            "outage": lambda: self.down.symmetric_difference_update({name}),
            "shared entry": lambda: setattr(self, "is_shared", not self.is_shared),
            "accepted drift": lambda: self.accept(name),
        }
        what = self.chance.choice(list(changes))
        changes[what]()
        self.write_fleet()
        return what

    def alter_live(self, name: str, topic: str) -> None:
        if topic in self.clusters[name].topics():
            value = self.chance.choice(("5", "1000", "2000"))
            alteration = ConfigOp(self.chance.choice(("retention.ms", "flush.ms")), FieldOp.SET, value)
            resource = ConfigResource(ConfigScope.TOPIC, topic)
            self.clusters[name].alter_configs([ConfigAlteration(resource, (alteration,))])

    def delete_topic(self, name: str, topic: str) -> None:
        if topic in self.clusters[name].topics():
            self.clusters[name].delete_topics({topic: None})

    def create_topic(self, name: str) -> None:
        self.names += 1
        self.clusters[name].create_topics([NewTopic(f"x{self.names}", self.names % 5 + 1, 1, None, {})])

    def move_wide(self, name: str) -> None:
        target = self.chance.choice(((1, 3), (1, 2)))
        self.clusters[name].reassign(
            {TopicPartition("wide", 0): target}, allow_replication_factor_change=False
        )
        self.clusters[name].tick(100)

    def remove_manifest(self, owner: str, topic: str) -> None:
        folder = SHARED if owner == SHARED else f"{owner}/manifests"
        (self.folder / folder / f"{topic}.yaml").unlink(missing_ok=True)

    def set_limit(self, name: str) -> None:
        self.limits[name] = self.chance.choice((2, 3))

    def accept(self, name: str) -> None:
        expires = self.now + timedelta(days=self.chance.choice((-1, 1, 100)))
        self.write(
            "accepted.yaml",
            _HEAD.format(kind="AcceptedDrift", name="sale")
            + f"  reason: Agreed.\n  expires: '{expires:%Y-%m-%d}'\n  clusters: [{name}]\n"
            "  resources: [{kind: Topic, names: ['/.*/']}]\n",
        )

    def take_snapshot(self) -> Path:
        """Replace the snapshot of all clusters, which all audits of a round read."""
        self.now += timedelta(days=1)
        rows: dict[str, list[Row]] = {}
        for name in (*OWN_CLUSTERS, *((SHARED,) if self.is_shared else ())):
            if name in self.down:
                rows[name] = [build_unreachable_row(name, {}, self.now, "connection refused")]
                continue
            cluster = self.clusters["ruled" if name == SHARED else name]
            rows[name] = list(read_live_rows(connections_to(cluster), name, {}, self.now))
        shutil.rmtree(self.folder / "snapshots", ignore_errors=True)
        write_snapshot(self.folder / "snapshots", rows)
        return self.folder / "snapshots"

    def audit(self, out: str, engine: str, *options: str) -> dict[str, Any]:
        """Audit the snapshot. Return the summary."""
        line = ["fleet", "audit", str(self.file), "--out", str(self.folder / out), "--engine", engine]
        assert main([*line, "--snapshot", str(self.folder / "snapshots"), *options]) == (
            1 if self.down else 0
        )
        return self.read_summary(out)

    def read_summary(self, out: str) -> dict[str, Any]:
        summary: dict[str, Any] = json.loads((self.folder / out / "summary.json").read_text())
        return summary

    def read_table(self, out: str, table: str, audit_id: str) -> bytes:
        """Return a table of an audit as bytes, in a fixed order."""
        rows = read_rows(LocalStorage(self.folder / out), f"{table}/audit_id={audit_id}", FINDINGS)
        rows = [row | {"labels": sorted((row["labels"] or {}).items())} for row in rows]
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, FINDINGS) as writer:
            writer.write_table(pa.Table.from_pylist(sorted(rows, key=repr), FINDINGS))
        return bytes(sink.getvalue())

    def expect_same(self, incremental: dict[str, Any], full: dict[str, Any]) -> None:
        """Compare the results of an incremental audit with those of a full audit."""
        for table in ("findings", "unseen"):
            tables = [
                self.read_table(out, table, summary["audit_id"])
                for out, summary in (("incremental", incremental), ("full", full))
            ]
            assert tables[0] == tables[1], table
        assert _drop_run(incremental) == _drop_run(full)


def _drop_run(summary: dict[str, Any]) -> dict[str, Any]:
    """Drop what differs between two audits of the same fleet."""
    since = summary["since"] and {key: summary["since"][key] for key in ("new", "known", "mended")}
    clusters = [cluster | {"unchanged": None} for cluster in summary["clusters"]]
    rest = {name: value for name, value in summary.items() if name not in _RUN_FIELDS}
    return rest | {"since": since, "clusters": clusters}


def make_changing_fleet(folder: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> ChangingFleet:
    """Write all files, and apply the projects."""
    chance = random.Random(seed)
    clusters = {
        name: MemoryCluster({1: "a", 2: "b", 3: "a"}, cluster_id=f"id-{name}") for name in OWN_CLUSTERS
    }
    fleet = ChangingFleet(folder, chance, clusters)
    servers = {f"{name}:9092": cluster for name, cluster in clusters.items()}
    monkeypatch.setattr(connection, "connect_cluster", lambda where, *_: servers[where])
    for name in OWN_CLUSTERS:
        fleet.write(f"{name}/manifests/wide.yaml", _WIDE)
        for topic in TOPICS:
            fleet.write_topic(name, topic)
    fleet.write_topic(SHARED, "t0")
    fleet.write_topic(SHARED, "other")
    fleet.word.write_text("none")
    fleet.write_fleet()
    for name in OWN_CLUSTERS:
        fleet.apply(name)
    return fleet
