"""Thirty nightly audits of fifty clusters, with drift, repairs, outages and a crash, compared with a model.

With the quick profile, there are only fifteen clusters.

Fifty real brokers need more memory than a test machine has. The clusters are therefore in memory, and served
on ports: kdeclare connects, sends requests and meets broken connections as usual.
"""

import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine

from kdeclare.cli.main import main
from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.core.resources.changes import FieldOp
from kdeclare.fleet.local.tables import read_rows
from kdeclare.fleet.tables.rows import CLUSTER, FINDINGS
from kdeclare.fleet.tables.storage import LocalStorage
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.request_values import ConfigAlteration, ConfigOp, NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.ports import reserve_ports
from tests.served import Outage, ServedCluster
from tests.thoroughness import pick

CLUSTERS = tuple(f"c-{number:02}" for number in range(pick(15, 50)))
TOPICS = {f"t{number}": "ab"[number % 2] for number in range(6)}
"""The declared topics and their teams."""
NIGHTS = 30
START = datetime(2026, 11, 1, 3, tzinfo=UTC)
RETENTION = "configs.retention.ms"
CRASHED_NIGHT = 9
"""In this night, the disk is full when the audit writes its reports."""
CHANGED_NIGHT, ROLLOUT_NIGHT = 14, 17
"""A manifest changes in the first of these nights, and is applied everywhere in the second."""
ACCEPTED_FROM, ACCEPTED_UNTIL = 5, 12
"""The nights in which the drift of t0 in half of the clusters is accepted."""

REFUSED_CLUSTER, REFUSED_CONFIGS = "cluster", "configs"
"""The brokers respond with error codes: to requests about the cluster, or to requests about configs only."""
Problem = Outage | str
REASONS: dict[Problem, str] = {
    Outage.REFUSED: "connection refused",
    Outage.SILENT: "connected, but no response in time",
    Outage.STALLED: "REQUEST_TIMED_OUT",
    Outage.CUT: "NETWORK_EXCEPTION",
    REFUSED_CLUSTER: "UNKNOWN_SERVER_ERROR",
    REFUSED_CONFIGS: "UNKNOWN_SERVER_ERROR",
}
"""What can be wrong with a cluster, and what the audit must say about it."""
BROKEN = Fault("UNKNOWN_SERVER_ERROR", "The disk is broken.", FaultKind.RETRIABLE)
ONLY_CONFIGS = (Outage.STALLED, Outage.CUT, REFUSED_CONFIGS)
"""The problems in spite of which audits see which topics exist."""
SLOW_NIGHTS: dict[int, Problem] = {7: Outage.SILENT, 15: Outage.STALLED, 23: Outage.SILENT}
"""The nights in which the audit waits for a cluster until a timeout."""
METHODS = {REFUSED_CLUSTER: "describe", REFUSED_CONFIGS: "configs"}
TIMEOUT_S = 5
"""How long an audit waits for a connection."""
REQUEST_TIMEOUT_MS = 3000
DESCRIBE_CONFIGS = 32

Identity = tuple[str, str, str, str, str | None]
"""The cluster, kind and name of a finding, its type and its path."""


@dataclass
class ClusterModel:
    """What a cluster and the state of its project contain: the retention of each topic."""

    live: dict[str, str] = field(default_factory=dict)
    owned: dict[str, str] = field(default_factory=dict)
    unmanaged: set[str] = field(default_factory=set)

    def list_findings(
        self, name: str, declared: Mapping[str, str], problem: Problem | None
    ) -> Iterator[Identity]:
        if problem is not None and problem not in ONLY_CONFIGS:
            yield name, CLUSTER, name, "unreachable", None
            return
        for topic, retention in declared.items():
            if topic not in self.live:
                yield name, "Topic", topic, "missing", None
            elif problem in ONLY_CONFIGS:
                yield name, "Topic", topic, "unreachable", None
            elif self.live[topic] != retention:
                finding = "pending" if self.live[topic] == self.owned[topic] else "changed"
                yield name, "Topic", topic, finding, RETENTION
        if problem is None:
            for topic in self.unmanaged:
                yield name, "Topic", topic, "unmanaged", None

    def list_unread(self, name: str, problem: Problem | None) -> Iterator[tuple[str, str, str]]:
        """The cluster or the topics that exist and cannot be read."""
        if problem in ONLY_CONFIGS:
            yield from ((name, "Topic", topic) for topic in (*self.live, *self.unmanaged))
        elif problem is not None:
            yield name, CLUSTER, name


@dataclass
class Nights:
    """The fleet, and the model of what audits must find.

    down: the clusters that cannot be read, or whose topic configs cannot be read, and why. memory: the open
        findings, each with the night in which an audit first found it.
    """

    folder: Path
    chance: random.Random
    served: dict[str, ServedCluster]
    models: dict[str, ClusterModel]
    declared: dict[str, str] = field(default_factory=lambda: dict.fromkeys(TOPICS, "1000"))
    down: dict[str, Problem] = field(default_factory=dict)
    memory: dict[Identity, datetime] = field(default_factory=dict)
    remembered: list[dict[str, int]] = field(default_factory=list)
    names: int = 0

    @property
    def audits(self) -> Path:
        return self.folder / "audits"

    def write_files(self) -> None:
        environments = "".join(
            f"    {name}: {{bootstrapServers: '{served.bootstrap}', clientConfig: "
            f"{{request.timeout.ms: '{REQUEST_TIMEOUT_MS}'}}}}\n"
            for name, served in self.served.items()
        )
        entries = "".join(
            f"    - {{name: {name}, project: kdeclare.yaml, env: {name}}}\n" for name in CLUSTERS
        )
        head = "apiVersion: kdeclare/v1\nkind: {}\nmetadata: {{name: shop}}\nspec:\n"
        self.write("kdeclare.yaml", head.format("Project") + f"  environments:\n{environments}")
        self.write("fleet.yaml", head.format("Fleet") + f"  clusters:\n{entries}")
        self.write_manifests()

    def write_manifests(self) -> None:
        for topic, retention in self.declared.items():
            self.write(
                f"manifests/{topic}.yaml",
                "apiVersion: kdeclare/v1\nkind: Topic\n"
                f"metadata: {{name: {topic}, labels: {{team: {TOPICS[topic]}}}}}\n"
                f"spec: {{partitions: 1, replicationFactor: 1, configs: {{retention.ms: {retention}}}}}\n",
            )

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def accept_drift(self, until: datetime) -> None:
        halves = ", ".join(f"'{name}'" for name in CLUSTERS if int(name[2:]) % 2)
        self.write(
            "accepted/sale.yaml",
            "apiVersion: kdeclare/v1\nkind: AcceptedDrift\nmetadata: {name: sale}\nspec:\n"
            f"  reason: Until the sale is over.\n  expires: '{until:%Y-%m-%d}'\n  clusters: [{halves}]\n"
            "  resources: [{kind: Topic, names: [t0]}]\n  findings: [changed]\n",
        )
        text = (self.folder / "fleet.yaml").read_text()
        self.write("fleet.yaml", text.replace("spec:\n", "spec:\n  acceptedDrift: [accepted]\n", 1))

    def roll_out(self) -> None:
        """Apply the manifests in all clusters."""
        for command in ("plan", "apply"):
            more = ["--yes"] if command == "apply" else []
            line = ["fleet", command, str(self.folder / "fleet.yaml"), "--out", str(self.folder / "plans")]
            assert main([*line, *more]) == 0
        for model in self.models.values():
            model.live.update(self.declared)
            model.owned = dict(self.declared)

    def apply(self, name: str) -> None:
        """Apply the manifests in one cluster, which repairs its drift."""
        project = str(self.folder / "kdeclare.yaml")
        assert main(["apply", "--yes", "--project", project, "--env", name]) == 0
        model = self.models[name]
        model.live.update(self.declared)
        model.owned = dict(self.declared)

    def change_something(self) -> None:
        """Let another client change, delete or create a topic somewhere, or repair a cluster."""
        name = self.chance.choice(CLUSTERS)
        model, other = self.models[name], self.served[name].memory.elsewhere()
        topic = self.chance.choice(list(TOPICS))
        match self.chance.choice(("change", "change", "delete", "create", "undo", "remove", "apply")):
            case "change" if topic in model.live:
                self.set_retention(name, topic, self.chance.choice(("5", "2000")))
            case "delete" if topic in model.live:
                other.delete_topics({topic: None})
                del model.live[topic]
            case "create":
                self.names += 1
                other.create_topics([NewTopic(f"x{self.names}", 1, 1, None, {})])
                model.unmanaged.add(f"x{self.names}")
            case "undo" if topic in model.live:
                self.set_retention(name, topic, model.owned[topic])
            case "remove" if model.unmanaged:
                unmanaged = self.chance.choice(sorted(model.unmanaged))
                other.delete_topics({unmanaged: None})
                model.unmanaged.remove(unmanaged)
            case "apply":
                self.apply(name)

    def set_retention(self, name: str, topic: str, value: str) -> None:
        operation = ConfigOp("retention.ms", FieldOp.SET, value)
        resource = ConfigResource(ConfigScope.TOPIC, topic)
        other = self.served[name].memory.elsewhere()
        other.alter_configs([ConfigAlteration(resource, (operation,))])
        self.models[name].live[topic] = value

    def audit(self) -> int:
        line = ["fleet", "audit", str(self.folder / "fleet.yaml"), "--out", str(self.audits)]
        return main([*line, "--engine", "local", "--timeout", str(TIMEOUT_S)])

    def break_clusters(self, night: int) -> None:
        """Choose the clusters that are down in this night."""
        quick = [problem for problem in REASONS if problem not in SLOW_NIGHTS.values()]
        names = self.chance.sample(CLUSTERS, self.chance.choice((0, 0, 1, 4)))
        self.down = {name: self.chance.choice(quick) for name in names}
        if night in SLOW_NIGHTS:
            self.down[self.chance.choice(CLUSTERS)] = SLOW_NIGHTS[night]

    @contextmanager
    def disturb(self) -> Iterator[None]:
        """Disturb the clusters that are down, on the wire, for the duration of a with block."""
        with ExitStack() as stack:
            for name, problem in self.down.items():
                served = self.served[name]
                if isinstance(problem, Outage):
                    stack.enter_context(served.outage(problem))
                else:
                    served.memory.faults.fail(BROKEN, nth=None, method=METHODS[problem])
                    stack.callback(served.memory.faults.clear)
            yield

    def expect_night(self, night: int, now: datetime) -> None:
        """Compare the audit of this night with the model, and remember its findings."""
        summary = json.loads((self.audits / "summary.json").read_text())
        found: dict[Identity, datetime] = {}
        for name, model in self.models.items():
            identities = model.list_findings(name, self.declared, self.down.get(name))
            found |= {identity: self.memory.get(identity, now) for identity in identities}
        unread = {
            item
            for name, model in self.models.items()
            for item in model.list_unread(name, self.down.get(name))
        }
        unseen = {
            identity: first
            for identity, first in self.memory.items()
            if identity not in found
            and (identity[:3] in unread or (identity[0], CLUSTER, identity[0]) in unread)
        }
        fixed = self.memory.keys() - found.keys() - unseen.keys()
        accepted = {identity for identity in found if self.is_accepted(identity, night)}
        rows = {_identify(row): row for row in self.read("findings", summary)}
        assert rows.keys() == found.keys()
        assert {_identify(row) for row in self.read("unseen", summary)} == unseen.keys()
        for row in rows.values():
            if row["finding"] == "unreachable":
                assert REASONS[self.down[row["cluster"]]] in row["message"]
        for identity, row in rows.items():
            is_known = identity in self.memory
            assert abs(row["first_seen"] - found[identity]) < timedelta(minutes=5), identity
            assert row["status"] == ("known" if is_known else "new"), identity
            assert row["accepted"] == ("sale" if identity in accepted else None), identity
        shown = [identity for identity in found if identity not in accepted]
        assert summary["found"] == _count(shown)
        assert summary["unseen"] == _count(i for i in unseen if not self.is_accepted(i, night))
        if self.remembered:
            known = sum(identity in self.memory for identity in shown)
            comparison = {key: summary["since"][key] for key in ("new", "known", "mended")}
            assert comparison == {"new": len(shown) - known, "known": known, "mended": len(fixed)}
        assert [point["found"] for point in summary["trend"]] == self.remembered
        self.expect_ages(summary, rows, now)
        self.remembered.append(_add(summary["found"], summary["unseen"]))
        self.memory = {**found, **unseen}

    def expect_ages(self, summary: Mapping[str, Any], rows: Mapping[Identity, Any], now: datetime) -> None:
        """Compare the oldest finding of each group, and the age of the oldest finding in the report."""
        open_rows = [row for row in rows.values() if row["accepted"] is None]
        oldest: dict[tuple[str, str], datetime] = {}
        for row in open_rows:
            key = row["finding"], row["severity"]
            oldest[key] = min(oldest.get(key, row["first_seen"]), row["first_seen"])
        groups = {
            (group["finding"], group["severity"]): datetime.fromisoformat(group["oldest"])
            for group in summary["groups"]
        }
        assert groups == oldest
        oldest_seen = min((row["first_seen"] for row in open_rows if row["status"] == "known"), default=now)
        days = round((now - oldest_seen) / timedelta(days=1))
        if days:
            assert f"open for {days} day" in (self.audits / "report.md").read_text()

    def is_accepted(self, identity: Identity, night: int) -> bool:
        cluster, _, topic, finding, _ = identity
        is_in_scope = int(cluster[2:]) % 2 == 1 and topic == "t0" and finding == "changed"
        return is_in_scope and ACCEPTED_FROM <= night <= ACCEPTED_UNTIL

    def read(self, table: str, summary: Mapping[str, Any]) -> list[dict[str, Any]]:
        return read_rows(LocalStorage(self.audits), f"{table}/audit_id={summary['audit_id']}", FINDINGS)


def _identify(row: Mapping[str, Any]) -> Identity:
    return row["cluster"], row["kind"], row["name"], row["finding"], row["path"]


def _count(identities: Any) -> dict[str, int]:
    return dict(Counter(identity[3] for identity in identities))


def _add(*counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sum(map(Counter, counts), Counter()))


@pytest.fixture
def served_clusters() -> Iterator[dict[str, ServedCluster]]:
    """The clusters of the fleet, each with one broker on a port."""
    first = reserve_ports(lambda first: range(first, first + len(CLUSTERS)))
    with ExitStack() as stack:
        clusters = {}
        for number, name in enumerate(CLUSTERS):
            memory = MemoryCluster({1: "a"}, cluster_id=f"id-{name}")
            clusters[name] = ServedCluster(memory, first + number)
            stack.callback(clusters[name].close)
        yield clusters


@pytest.mark.slow
@pytest.mark.sampled
def test_thirty_nights(
    served_clusters: dict[str, ServedCluster],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    models = {name: ClusterModel() for name in CLUSTERS}
    nights = Nights(tmp_path, random.Random(2026), served_clusters, models)
    problems: Counter[Problem] = Counter()
    nights.write_files()
    with time_machine.travel(START) as clock:
        nights.roll_out()
        for night in range(NIGHTS):
            now = START + timedelta(days=night)
            nights.down = {}
            if night == ACCEPTED_FROM:
                nights.accept_drift(START + timedelta(days=ACCEPTED_UNTIL))
            if night == CHANGED_NIGHT:
                nights.declared["t1"] = "3000"
                nights.write_manifests()
            if night == ROLLOUT_NIGHT:
                nights.roll_out()
            for _ in range(nights.chance.randrange(12)):
                nights.change_something()
            nights.break_clusters(night)
            problems.update(nights.down.values())
            clock.move_to(now)
            with nights.disturb():
                if night == CRASHED_NIGHT:
                    with monkeypatch.context() as patch:
                        patch.setattr(LocalStorage, "write_all", _fail)
                        assert nights.audit() == 1
                    clock.move_to(now + timedelta(minutes=1))  # the job starts the audit again
                assert nights.audit() == (1 if nights.down else 0)
            nights.expect_night(night, now)
        expect_report_of_a_week(nights, capsys)
    assert len(nights.memory) > 40
    assert any(now - first > timedelta(days=10) for first in nights.memory.values())
    assert problems.keys() == REASONS.keys()
    # the plans and almost all audits have read each cluster through its port
    requests = [len(served.list_requests(DESCRIBE_CONFIGS)) for served in served_clusters.values()]
    assert min(requests) > NIGHTS


def _fail(*_: object) -> None:
    raise OSError(28, "No space left on device")


def expect_report_of_a_week(nights: Nights, capsys: pytest.CaptureFixture[str]) -> None:
    """The report must contain what is new and fixed since the audit a week ago."""
    capsys.readouterr()
    line = ["fleet", "report", "--out", str(nights.audits), "--since", "7d", "--format", "json"]
    assert main(line) == 0
    report = json.loads(capsys.readouterr().out)
    assert datetime.fromisoformat(report["since"]["taken_at"]) == START + timedelta(days=NIGHTS - 8)
    new = {_identify(row) for row in report["findings"] if row["status"] == "new"}
    week_ago = {
        _identify(row) for table in ("findings", "unseen") for row in nights.read(table, report["since"])
    }
    latest = {_identify(row) for row in nights.read("findings", report)}
    assert new == latest - week_ago
    assert {_identify(row) for row in report["fixed"]} == week_ago - nights.memory.keys()
