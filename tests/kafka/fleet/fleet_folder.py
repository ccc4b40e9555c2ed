"""A folder with a fleet file of real clusters, commands that run in it, and other clients of the clusters."""

import json
import os
import shlex
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.dataset
from jsonschema import Draft202012Validator

from kdeclare.providers.kafka.client import connect
from kdeclare.providers.kafka.ids import ConfigResource
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.report.fleet.fleet_runs import build_fleet_schemas
from kdeclare.sandbox import GroupSettings
from tests.beds import CLUSTER_WIDE, DELETE, SET, SUBTRACT, KafkaBed, all_created, topic_resource
from tests.startup_cache import spark_variables

CLUSTERS = ("eu-1", "eu-2", "lab")
"""The names of the clusters in fleet files, in the order of the sandboxes."""


@dataclass(frozen=True)
class RunningClusters:
    """Three clusters, and the command line of a kdeclare whose imports are done (see `tests.waiting`)."""

    settings: GroupSettings
    program: str


@dataclass
class FleetFolder:
    """The clusters, and the folder from which commands are run."""

    clusters: RunningClusters
    folder: Path

    @property
    def settings(self) -> GroupSettings:
        """The settings of the clusters."""
        return self.clusters.settings

    def bootstrap(self, cluster: str) -> str:
        """Return the address of a cluster."""
        return self.settings.members[CLUSTERS.index(cluster)].bootstrap

    def kdeclare(self, *arguments: str, code: int = 0, **variables: str) -> str:
        """Run the command in a process of its own, check its exit code, and return what it printed.

        variables: more environment variables of the process.
        """
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_", "KDECLARE_"))}
        repository = str(Path(__file__).parents[3])
        done = subprocess.run(
            [*shlex.split(self.clusters.program), *arguments],
            cwd=self.folder,
            env=clean | spark_variables() | {"PYTHONPATH": repository} | variables,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == code, f"{done.returncode}: " + done.stdout[-4000:] + done.stderr[-4000:]
        return done.stdout

    def fleet(
        self,
        command: str,
        out: str,
        *arguments: str,
        code: int = 0,
        file: str = "fleet.yaml",
        **variables: str,
    ) -> dict[str, Any]:
        """Run a fleet command, check its JSON output against the schema, and return the output."""
        options = ("--out", out, "--format", "json", *arguments)
        printed = self.kdeclare("fleet", command, file, *options, code=code, **variables)
        return parse_valid_output(f"fleet-{command}", printed)

    def read_summary(self, out: str = "audits") -> dict[str, Any]:
        """Return the summary of the latest audit."""
        summary: dict[str, Any] = json.loads((self.folder / out / "summary.json").read_text())
        return summary

    def read_findings(self, audit_id: str, out: str = "audits") -> list[dict[str, Any]]:
        """Return the findings of an audit, which any tool that reads Parquet sees like this."""
        table = pyarrow.dataset.dataset(self.folder / out / "findings", partitioning="hive")
        rows = table.to_table(filter=pyarrow.dataset.field("audit_id") == audit_id).to_pylist()
        return [row | {"labels": dict(row["labels"] or ())} for row in rows]

    @contextmanager
    def open_other_client(self, cluster: str) -> Iterator["OtherClient"]:
        """Open another client of a cluster. At the end, the broker knows everything that the client did."""
        bootstrap = self.bootstrap(cluster)
        with closing(connect(bootstrap, {})) as connected:
            yield OtherClient(KafkaBed(connected, bootstrap))
            _wait_for_broker(connected)


class OtherClient:
    """A client that changes one cluster outside kdeclare."""

    def __init__(self, bed: KafkaBed) -> None:
        self._bed = bed

    def set(self, topic: str, key: str, value: str) -> None:
        """Set a config of a topic."""
        self._alter(topic_resource(topic), (key, SET, value))

    def unset(self, topic: str, key: str) -> None:
        """Delete a config of a topic, so that the topic inherits the value."""
        self._alter(topic_resource(topic), (key, DELETE, None))

    def subtract(self, topic: str, key: str, element: str) -> None:
        """Remove an element from a list."""
        self._alter(topic_resource(topic), (key, SUBTRACT, element))

    def set_default(self, key: str, value: str) -> None:
        """Set a config of all brokers."""
        self._alter(CLUSTER_WIDE, (key, SET, value))

    def add_partitions(self, topic: str, partitions: int) -> None:
        """Increase the number of partitions of a topic."""
        assert self._bed.add_partitions(topic, partitions) is None

    def create(self, topic: str, partitions: int, **configs: str) -> None:
        """Create a topic. The names of configs have underscores instead of dots."""
        new = NewTopic(topic, partitions, 1, None, {k.replace("_", "."): v for k, v in configs.items()})
        assert all_created(self._bed.cluster.create_topics([new]))

    def delete(self, *topics: str) -> None:
        """Delete topics."""
        assert set(self._bed.cluster.delete_topics(dict.fromkeys(topics)).values()) == {None}

    def _alter(self, resource: ConfigResource, *ops: Any) -> None:
        assert self._bed.alter(resource, *ops) is None


def _wait_for_broker(cluster: Cluster) -> None:
    """Wait until the broker has received all earlier changes from its controller.

    A broker receives changes in order, so it has received all of them once it has seen the topic that was
    created last. After thousands of new topics, a broker can lag behind.
    """
    name, deadline = "marker", time.monotonic() + 120

    def wait(is_present: bool) -> None:
        while bool(cluster.topics([name])) is not is_present:
            assert time.monotonic() < deadline
            time.sleep(0.1)

    assert all_created(cluster.create_topics([NewTopic(name, 1, 1, None, {})]))
    wait(is_present=True)
    assert cluster.delete_topics({name: None}) == {name: None}
    wait(is_present=False)


def parse_valid_output(schema: str, printed: str) -> dict[str, Any]:
    """Parse the JSON output of a command, and check it against the schema."""
    document: dict[str, Any] = json.loads(printed)
    Draft202012Validator(build_fleet_schemas()[schema]).validate(document)
    return document


def list_comparable(rows: list[dict[str, Any]], *omitted: str) -> list[str]:
    """Return the rows of an audit without the omitted fields and those that differ from audit to audit."""
    differing = {"audit_id", "audited_at", "first_seen", "status", *omitted}
    return sorted(repr({k: v for k, v in row.items() if k not in differing}) for row in rows)


def dump_manifest(name: str, spec: Mapping[str, Any], team: str) -> str:
    """Return a manifest. A name without a kind is the name of a topic, which gets the label of the team."""
    kind, _, rest = name.rpartition("/")
    metadata = {"name": rest, "labels": {"team": team}} if not kind else {"name": rest}
    head = {"apiVersion": "kdeclare/v1", "kind": kind or "Topic"}
    return json.dumps(head | {"metadata": metadata, "spec": spec}) + "\n"


def build_topic_spec(partitions: int = 1, **configs: Any) -> dict[str, Any]:
    """Return the spec of a topic. The names of configs have underscores instead of dots."""
    dotted = {key.replace("_", "."): value for key, value in configs.items()}
    return {"partitions": partitions, "replicationFactor": 1, "configs": dotted}


def write_document(file: Path, kind: str, spec: Mapping[str, Any], name: str = "shop") -> None:
    """Write a project file or a fleet file."""
    head = {"apiVersion": "kdeclare/v1", "kind": kind, "metadata": {"name": name}}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(head | {"spec": spec}, indent=1))
