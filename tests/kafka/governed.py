"""Projects with policies at real brokers, what those brokers have, and what was said of it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kdeclare.core.exit_codes import ExitCode
from tests.beds import KafkaBed, topic_resource
from tests.commands import Ran
from tests.kafka.test_bad_input import Project, open_project

RULES = "kdeclare.policy.rules:"
BOUNDS = {"name": "bounds", "class": f"{RULES}PartitionBounds", "config": {"max": 4}}

Manifest = tuple[str, str, Mapping[str, Any]]
"""Kind, name, spec."""

State = tuple[str, Sequence[tuple[int, ...]], Mapping[str, str | None]]
"""A topic: its id, the replicas of its partitions, its overrides."""


@dataclass
class GovernedProject(Project):
    """A project whose project file has policies; ``all.yaml`` may hold some, too."""

    def declare_policies(self, *entries: Mapping[str, Any], manifests: Sequence[str] = ("all.yaml",)) -> None:
        """From now on the project file has these, and its manifests are in these files."""
        environments = {"real": {"bootstrapServers": self.bootstrap}}
        spec = {"manifests": list(manifests), "environments": environments, "policies": list(entries)}
        self._write("kdeclare.yaml", [("Project", "bad", spec)])

    def _write(self, file: str, manifests: Any) -> None:
        documents = (
            {"apiVersion": "kdeclare/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
            for kind, name, spec in manifests
        )
        (self.folder / file).write_text(yaml.safe_dump_all(documents, sort_keys=False))

    def write(self, file: str, *manifests: Manifest) -> None:
        """Write a file of manifests."""
        self._write(file, manifests)

    def topic(self, short: str, **spec: Any) -> Manifest:
        """A topic of this project alone, of one partition with one replica if nothing is said."""
        alike = {} if "assignments" in spec else {"partitions": 1, "replicationFactor": 1}
        return ("Topic", self.name(short), {**alike, **spec})

    def strip_prefix(self, name: str) -> str:
        """Of a topic or a resource, without what all topics of this project have in front."""
        return name.rpartition("/")[2].removeprefix(self.prefix)

    def run_denied(self, *arguments: str) -> Ran:
        """The command, of which policies deny something."""
        ran = self(*arguments)
        assert ran.code is ExitCode.DENIED, ran
        return ran

    def read_verdicts(self, ran: Ran) -> dict[tuple[str, str], tuple[str, str]]:
        """Outcome and message by policy and topic, of a JSON document."""
        found = json.loads(ran.out)["verdicts"]
        return {
            (v["policy"], self.strip_prefix(v.get("topic") or v["resource"])): (v["outcome"], v["message"])
            for v in found
        }

    def read_denials(self, ran: Ran) -> set[tuple[str, str]]:
        """Policy and topic, of a JSON document."""
        return {key for key, (outcome, _) in self.read_verdicts(ran).items() if outcome == "deny"}

    def read_owned(self) -> set[str]:
        """The topics that the state has, without their prefix."""
        return set(map(self.strip_prefix, json.loads((self.state / "state.json").read_text())["resources"]))


def build_reassignment(topic: str, *replicas: int) -> Manifest:
    """Partition 0 of a topic, elsewhere."""
    wanted = {"topic": topic, "partition": 0, "replicas": list(replicas)}
    return ("Reassignment", "move", {"partitions": [wanted]})


def read_topics(bed: KafkaBed, *names: str) -> dict[str, State]:
    """What the brokers have of these topics."""
    found = bed.cluster.topics(names)
    return {
        name: (
            topic.topic_id,
            [partition.replicas for partition in topic.partitions],
            bed.overrides(topic_resource(name)),
        )
        for name, topic in found.items()
    }


@contextmanager
def open_governed_project(bootstrap: str, folder: Path) -> Iterator[tuple[GovernedProject, KafkaBed]]:
    """Such a project, and another client of the same cluster; the project's topics are gone at the end."""
    with open_project(bootstrap, folder) as (plain, bed):
        yield GovernedProject(folder, bootstrap, plain.prefix), bed
