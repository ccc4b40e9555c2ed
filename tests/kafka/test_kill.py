"""SIGKILL at random moments of a run at real brokers: the next command says so, the next apply ends it."""

import json
import os
import random
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.resources.changes import FieldOp
from kdeclare.providers.kafka.client import connect
from kdeclare.providers.kafka.ids import ConfigResource
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.request_values import ConfigAlteration, ConfigOp, ConfigQuery, NewTopic
from kdeclare.sandbox import SandboxStatus
from tests.beds import all_created, broker_resource, topic_resource
from tests.commands import Ran
from tests.kafka.test_bad_input import Project, wait_for_exit, wait_for_first_request
from tests.polling import wait_for
from tests.thoroughness import pick

pytestmark = [pytest.mark.kafka, pytest.mark.sampled]

ROUNDS = pick(3, 10)
SEED = int(os.environ.get("KDECLARE_TEST_SEED", "0")) or random.randrange(1, 1_000_000)
BROKER = broker_resource(1)
BROKER_KEYS = {"log.cleaner.backoff.ms": "14000", "log.cleaner.io.max.bytes.per.second": "1000000000"}


def build_first_topics(project: Project) -> list[NewTopic]:
    """The topics that are there when the project is applied for the first time."""

    def made(short: str, partitions: int, factor: int, **configs: str) -> NewTopic:
        dotted = {key.replace("_", "."): value for key, value in configs.items()}
        return NewTopic(project.name(short), partitions, factor, None, dotted)

    return [
        made("grow", 2, 1, min_insync_replicas="1"),
        made("shrink", 2, 3, min_insync_replicas="2"),
        made("lists", 1, 1, cleanup_policy="delete"),
        made("edit", 1, 1, retention_ms="7000000"),
        made("move", 2, 2),
    ]


def declare_changes(project: Project, away: int) -> None:
    """Fifteen operations, seven of which need others. ``away``: where the one replica of ``move`` goes."""

    def topic(short: str, partitions: int, factor: int, **configs: Any) -> tuple[str, str, dict[str, Any]]:
        dotted = {key.replace("_", "."): value for key, value in configs.items()}
        spec = {"partitions": partitions, "replicationFactor": factor, "configs": dotted}
        return "Topic", project.name(short), spec

    moved = [{"topic": project.name("move"), "partition": n, "replicas": [away, 1]} for n in range(2)]
    project.declare(
        topic("grow", 4, 3, min_insync_replicas=2, retention_ms=8000000),
        topic("shrink", 3, 2, min_insync_replicas=1),
        topic("lists", 1, 1, cleanup_policy={"append": ["compact"], "subtract": ["delete"]}),
        topic("edit", 3, 1, retention_ms=9000000, flush_ms=60000),
        *(topic(f"new{n}", 1, 1, retention_ms=5000000) for n in range(3)),
        ("Reassignment", "move", {"partitions": moved}),
        ("BrokerConfig", "1", {"configs": BROKER_KEYS}),
    )


@dataclass
class Round:
    """One project in a folder of its own, and what is around it."""

    project: Project
    cluster: Cluster

    def prepare(self) -> None:
        """The same beginning for every round."""
        self.clear_broker()
        topics = build_first_topics(self.project)
        assert all_created(self.cluster.create_topics(topics))

        def there() -> bool:
            seen = self.cluster.topics([t.topic for t in topics])
            return len(seen) == len(topics) and all(
                len(p.isr) == len(p.replicas) for t in seen.values() for p in t.partitions
            )

        wait_for(there, every=0.02)
        held = self.cluster.topics([self.project.name("move")])
        used = {r for p in held[self.project.name("move")].partitions for r in p.replicas}
        declare_changes(self.project, 3 if used != {1, 3} else 2)

    def clear_broker(self) -> None:
        ops = tuple(ConfigOp(key, FieldOp.DELETE, None) for key in BROKER_KEYS)
        assert self.cluster.alter_configs([ConfigAlteration(BROKER, ops)]) == {BROKER: None}

    def end_state(self) -> Any:
        """All that was asked for, without the project's prefix. Where Kafka put what is its own affair."""
        names = [n for n in self.cluster.topics() if n.startswith(self.project.prefix)]
        # A move to where it is to go, begun by the run that was killed, is left to itself.
        wait_for(lambda: not self.cluster.moves(names), every=0.02)
        topics = self.cluster.topics(names)
        resources: list[ConfigResource] = [BROKER, *(topic_resource(name) for name in names)]
        configs = self.cluster.configs([ConfigQuery(r, overrides=True) for r in resources])
        state = json.loads((self.project.state / "state.json").read_text().replace(self.project.prefix, ""))
        return {
            "shapes": {self.short(n): [len(p.replicas) for p in t.partitions] for n, t in topics.items()},
            "configs": {
                self.short(resource.name): {k: e.value for k, e in entries.items() if k in OURS}
                for resource, entries in configs.items()
            },
            "owned": {id_: _remove_id(record) for id_, record in state["resources"].items()},
        }

    def short(self, name: str) -> str:
        return name.removeprefix(self.project.prefix)

    def clean(self) -> None:
        names = [n for n in self.cluster.topics() if n.startswith(self.project.prefix)]
        self.cluster.delete_topics(dict.fromkeys(names))
        self.clear_broker()


# what shows no effect is waited for until the deadline of its request
SOON = {"requestDeadline": "10s", "clientConfig": {"request.timeout.ms": "10000"}}
OURS = {*BROKER_KEYS, "min.insync.replicas", "cleanup.policy", "retention.ms", "flush.ms"}


@pytest.fixture
def cluster(sandbox: SandboxStatus) -> Iterator[Cluster]:
    opened = connect(sandbox.bootstrap, {})
    yield opened
    opened.close()


def test_apply_recovers_after_kill_at_random_moments(
    sandbox: SandboxStatus, cluster: Cluster, tmp_path: Path
) -> None:
    """KDECLARE_TEST_SEED repeats the moments; what the brokers do in the meantime is up to them."""
    chance = random.Random(SEED)
    print(f"KDECLARE_TEST_SEED={SEED}")
    undisturbed = Round(Project(tmp_path / "undisturbed", sandbox.bootstrap, environment=SOON), cluster)
    undisturbed.prepare()
    whole, length = measure_run(undisturbed.project)
    assert whole.code is ExitCode.OK, whole
    counts = json.loads(whole.out)["counts"]
    assert counts["done"] >= 12
    assert undisturbed.project.in_order()
    end = undisturbed.end_state()
    undisturbed.clean()
    print(f"{counts['done']} operations in {length:.2f} s")
    open_ = 0
    for number in range(ROUNDS):
        round_ = Round(Project(tmp_path / str(number), sandbox.bootstrap, environment=SOON), cluster)
        round_.prepare()
        moment = chance.uniform(0, length)
        print(f"round {number}: killed {moment:.3f} s into the run", end="; ")
        open_ += kill_and_recover(round_, moment, *(("plan", "--adopt") if number % 2 else ("status",)))
        assert round_.end_state() == end
        round_.clean()
    assert open_ > 0, "not one run was under way when it was killed"


def _remove_id(record: dict[str, Any]) -> dict[str, Any]:
    """Every round has topics of its own."""
    return {name: value for name, value in record.items() if name != "topicId"}


def measure_run(project: Project) -> tuple[Ran, float]:
    """A whole run, and the time from its first line in the journal to its end."""
    process = project.start("apply", "--adopt", "--yes", "--format", "json")
    wait_for_first_request(project, process)
    began = time.monotonic()
    ran = wait_for_exit(process)
    return ran, time.monotonic() - began


def kill_and_recover(round_: Round, moment: float, *look: str) -> bool:
    """Kill a run, look, and apply again. Whether there was anything unfinished."""
    project = round_.project
    process = project.start("apply", "--adopt", "--yes")
    wait_for_first_request(project, process)
    time.sleep(moment)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    cut = '"finish"' not in project.journal()
    print("unfinished" if cut else "it had ended")
    assert (process.returncode == -signal.SIGKILL) or not cut
    seen = project.done(*look)
    assert ("did not finish" in seen.err) == cut, seen
    again = project("apply", "--adopt", "--yes")
    assert again.code is ExitCode.OK, again
    assert project.in_order()
    return cut
