"""A realistic fleet on disk, without brokers: projects, their state, and a later snapshot."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kdeclare.cli.main import main
from kdeclare.core.documents import dump_document
from kdeclare.core.resources.changes import FieldOp
from kdeclare.fleet.tables.row_builder import Row, batch_rows, read_live_rows
from kdeclare.fleet.tables.rows import CLUSTER
from kdeclare.fleet.tables.snapshots import SnapshotCluster, SnapshotRecord, format_snapshot_path
from kdeclare.providers.kafka import connection
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.providers.kafka.request_values import ConfigAlteration, ConfigOp, NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.connections import connections_to

SECRETS = {
    "KEYSTORE_PASSWORD": "correct-horse-of-the-keystore",
    "SASL_PASSWORD": "battery-staple-of-a-variable",
}
"""Variables that manifests and the fleet file refer to."""
LITERAL = "tr0ub4dor-of-the-fleet-file"
"""A password in the fleet file."""

SHARED = "eu-1-billing"
"""The name of an entry that refers to the same cluster as eu-1."""

SNAPSHOT = "20261121T040000Z-1f3a"
TAKEN_AT = datetime(2026, 11, 21, 4, tzinfo=UTC)

_FLEET = """\
apiVersion: kdeclare/v1
kind: Fleet
metadata: {name: shop}
spec:
  clusters:
    - {name: eu-1, labels: {region: eu}, project: shop/kdeclare.yaml, env: eu-1}
    - {name: eu-2, labels: {region: eu}, project: shop/kdeclare.yaml, env: eu-2}
    - name: lab
      bootstrapServers: lab:9092
      clientConfig:
        security.protocol: SASL_SSL
        sasl.jaas.config: org.apache.kafka.common.security.plain.PlainLoginModule required password="LITERAL";
        ssl.key.password: ${env.SASL_PASSWORD}
      manifests: [lab]
"""
_PROJECT = """\
apiVersion: kdeclare/v1
kind: Project
metadata: {name: shop}
spec:
  policies:
    - {name: names, class: "rules.naming:Lower"}
    - {name: people, class: "rules.naming:Curious"}
  environments:
    eu-1: {bootstrapServers: 'eu-1:9092'}
    eu-2: {bootstrapServers: 'eu-2:9092'}
"""
_POLICY = '''\
import os
import signal
import time
from pathlib import Path

import psutil

from kdeclare.policy import PolicyViolation, RequestMetadata, TopicActionsPolicy
from rules.words import WHY

FUSE = Path("FOLDER") / "fuse"


class Lower(TopicActionsPolicy):
    """Requires lower-case names. The fuse file makes the policy stop its task, once."""

    def validate(self, request: RequestMetadata) -> None:
        if FUSE.exists():
            action = FUSE.read_text()
            FUSE.with_name("burnt").write_text(os.getcwd())
            FUSE.unlink()
            if action == "kill python":
                os.kill(os.getpid(), signal.SIGKILL)
            if action == "kill java":
                next(p for p in psutil.Process().parents() if p.name() == "java").kill()
            time.sleep(60)
        if request.topic != request.topic.lower():
            raise PolicyViolation(WHY)


class Curious(TopicActionsPolicy):
    """Denies everything to User:nobody."""

    def validate(self, request: RequestMetadata) -> None:
        if request.principal == "User:nobody":
            raise PolicyViolation("not by you")
'''
_TOPIC = """\
---
apiVersion: kdeclare/v1
kind: Topic
metadata: {{name: {name}, labels: {{team: checkout}}}}
spec: {{partitions: 2, replicationFactor: 2, configs: {{retention.ms: 1000}}{more}}}
"""
_BROKER = """\
---
apiVersion: kdeclare/v1
kind: BrokerConfig
metadata: {name: "1"}
spec:
  configs:
    log.cleaner.threads: 2
    listener.name.internal.ssl.keystore.password: ${env.KEYSTORE_PASSWORD}
"""


_MOVE = """\
---
apiVersion: kdeclare/v1
kind: Reassignment
metadata: {name: shrink, labels: {team: billing}}
spec: {partitions: [{topic: t.4, partition: 0, replicas: [1]}]}
"""
"""Contradicts the replication factor of t.4."""


@dataclass(frozen=True)
class RealFleet:
    """Three clusters: much drift in eu-1, little in eu-2, and lab was never applied."""

    folder: Path
    clusters: Mapping[str, MemoryCluster] = field(
        default_factory=lambda: {
            name: MemoryCluster({1: "a", 2: "b", 3: "a"}, cluster_id=f"id-{name}")
            for name in ("eu-1", "eu-2", "lab")
        }
    )

    @property
    def file(self) -> Path:
        """The path of the fleet file."""
        return self.folder / "fleet.yaml"

    @property
    def snapshots(self) -> Path:
        """The path of the snapshot's rows."""
        return self.folder / "snapshots"

    @property
    def fuse(self) -> Path:
        """A file that names what the next call of the policy does to its task.

        "kill java" and "kill python" kill processes of the task. "wait" stops it for a minute.
        """
        return self.folder / "fuse"

    @property
    def burnt(self) -> Path:
        """The file in which the policy leaves the working folder of the task that it stops."""
        return self.folder / "burnt"

    def list_files(self, cluster: str) -> list[Path]:
        """Return the Parquet files of a cluster in the snapshot."""
        return sorted(self.snapshots.glob(f"data/*/*/cluster={cluster}/*.parquet"))


def make_real_fleet(folder: Path, monkeypatch: pytest.MonkeyPatch, *, is_shared: bool = False) -> RealFleet:
    """Write all files, apply the projects, let the clusters drift, and take the snapshot.

    is_shared: whether a fourth entry, `SHARED`, declares three topics of eu-1: one like the project of eu-1,
        one differently, and one that eu-1 does not declare. Its manifests contain a contradiction.
    """
    fleet = RealFleet(folder)
    for name, text in _build_files(folder).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    with monkeypatch.context() as patch:
        servers = {f"{name}:9092": cluster for name, cluster in fleet.clusters.items()}
        patch.setattr(connection, "connect_cluster", lambda where, *_: servers[where])
        for name, value in SECRETS.items():
            patch.setenv(name, value)
        for env in ("eu-1", "eu-2"):
            project = str(folder / "shop" / "kdeclare.yaml")
            assert main(["apply", "--yes", "--project", project, "--env", env]) == 0
    _make_drift(fleet)
    clusters = dict(fleet.clusters)
    if is_shared:
        clusters[SHARED] = clusters["eu-1"]
        entry = f"    - {{name: {SHARED}, bootstrapServers: 'eu-1:9092', manifests: [billing]}}\n"
        fleet.file.write_text(fleet.file.read_text() + entry)
        (folder / "billing").mkdir()
        other = _TOPIC.format(name="t.4", more="").replace("1000", "2000")
        topics = (_TOPIC.format(name="t.3", more=""), other, _TOPIC.format(name="Loud", more=""))
        (folder / "billing" / "all.yaml").write_text("".join(topics) + _MOVE)
    rows = {name: list(read_live_rows(connections_to(c), name, {}, TAKEN_AT)) for name, c in clusters.items()}
    write_snapshot(fleet.snapshots, rows)
    return fleet


def accept_drift(fleet: RealFleet) -> None:
    """Accept the drift of all topics of eu-1. Two more documents accept nothing: one of them has expired."""
    template = """\
---
apiVersion: kdeclare/v1
kind: AcceptedDrift
metadata: {{name: {name}}}
spec:
  reason: Agreed.
  expires: '{expires}'
  clusters: [{cluster}]
  resources: [{{kind: Topic, names: [/.*/]}}]
"""
    texts = [
        template.format(name="topics", expires="2999-12-31", cluster="eu-1"),
        template.format(name="old", expires="2020-01-01", cluster="eu-1"),
        template.format(name="unused", expires="2999-12-31", cluster="gone"),
    ]
    (fleet.folder / "accepted.yaml").write_text("".join(texts))
    text = fleet.file.read_text()
    fleet.file.write_text(text.replace("spec:\n", "spec:\n  acceptedDrift: [accepted.yaml]\n", 1))


def write_snapshot(folder: Path, clusters: Mapping[str, Sequence[Row]]) -> None:
    """Write the rows of clusters as a snapshot in a folder."""
    path = format_snapshot_path(SNAPSHOT, TAKEN_AT)
    write_rows(folder / path, clusters)
    told = tuple(_describe_cluster(name, rows) for name, rows in clusters.items())
    record = SnapshotRecord(SNAPSHOT, "shop", TAKEN_AT, 1.0, path, told)
    (folder / "snapshots").mkdir()
    (folder / "snapshots" / f"{SNAPSHOT}.json").write_text(json.dumps(dump_document(record)))


def write_rows(folder: Path, clusters: Mapping[str, Sequence[Row]]) -> None:
    """Write the table of a snapshot, partitioned by cluster."""
    for name, rows in clusters.items():
        file = folder / f"cluster={name}" / "part-0.parquet"
        file.parent.mkdir(parents=True)
        pq.write_table(pa.Table.from_batches(batch_rows(rows)).drop_columns("cluster"), file)


def _build_files(folder: Path) -> Mapping[str, str]:
    topics = "".join(_TOPIC.format(name=f"t.{n}", more="") for n in range(12))
    wide = _TOPIC.format(name="wide", more=", placement: {strategy: cross-rack}")
    return {
        "fleet.yaml": _FLEET.replace("LITERAL", LITERAL),
        "shop/kdeclare.yaml": _PROJECT,
        "shop/rules/naming.py": _POLICY.replace("FOLDER", str(folder)),
        "shop/rules/words.py": 'WHY = "names are in lower case"\n',
        "shop/manifests/all.yaml": topics + wide + _BROKER,
        "lab/all.yaml": topics,
    }


def _make_drift(fleet: RealFleet) -> None:
    for name in ("eu-1", "eu-2"):
        fleet.clusters[name].create_topics([NewTopic("Loud", 1, 1, None, {})])
    cluster = fleet.clusters["eu-1"]
    topic = ConfigResource(ConfigScope.TOPIC, "t.1")
    cluster.alter_configs([ConfigAlteration(topic, (ConfigOp("retention.ms", FieldOp.SET, "5"),))])
    broker = ConfigResource(ConfigScope.BROKER, "1")
    cluster.alter_configs([ConfigAlteration(broker, (ConfigOp("log.cleaner.threads", FieldOp.SET, "3"),))])
    cluster.delete_topics({"t.2": None})
    cluster.reassign({TopicPartition("wide", 0): (1, 3)}, allow_replication_factor_change=False)
    cluster.tick(100)


def _describe_cluster(name: str, rows: Sequence[Row]) -> SnapshotCluster:
    own = next(row for row in rows if row["kind"] == CLUSTER)
    resources = [row for row in rows if row["kind"] != CLUSTER]
    return SnapshotCluster(
        name,
        cluster_id=own["cluster_id"],
        taken_at=TAKEN_AT,
        topics=sum(row["kind"] == "Topic" for row in resources),
        resources=sum(row["body"] is not None for row in resources),
        failed=sum(row["error"] is not None for row in resources),
        error=own["error"],
    )
