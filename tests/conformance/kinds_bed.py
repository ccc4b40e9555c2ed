"""The command line for conformance cases of access kinds, in memory and on a broker with an authorizer."""

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from kdeclare.providers.kafka.acl.binding import Binding, parse_binding
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.commands import Ran, run_here
from tests.jsontypes import Json

RECORDED = (
    "create_topics",
    "create_acls",
    "delete_acls",
    "alter_quotas",
    "alter_scram_users",
    "alter_configs",
)
PASSWORD = "correct horse battery"


@dataclass(frozen=True)
class SentRequest:
    """A request that the commands sent. items: the keys of its items."""

    method: str
    items: tuple[Any, ...]
    validate_only: bool


@dataclass
class KindsBed:
    """A project, and an administrator who reads and changes the cluster as another client.

    environment: the fields of the environment in the project file.
    cluster: the connection of the administrator. Its requests are not recorded.
    """

    folder: Path
    environment: Mapping[str, Json]
    cluster: Cluster
    prefix: str = field(default_factory=lambda: f"t{uuid.uuid4().hex[:8]}-")
    requests: list[SentRequest] = field(default_factory=list)

    def __post_init__(self) -> None:
        (self.folder / "manifests").mkdir()
        self._write(
            self.folder / "kdeclare.yaml",
            "Project",
            "conformance",
            {"manifests": ["manifests"], "environments": {"lab": self.environment}},
        )

    def _write(self, file: Path, kind: str, name: str, spec: Json) -> None:
        document = {"apiVersion": "kdeclare/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        file.write_text(yaml.safe_dump(document, sort_keys=False))

    def record(self, patch: pytest.MonkeyPatch, cluster_class: type) -> None:
        """Record the requests of all clients but the administrator."""
        for method in RECORDED:
            patch.setattr(cluster_class, method, self._wrap(method, getattr(cluster_class, method)))

    def _wrap(self, method: str, send: Callable[..., object]) -> Callable[..., object]:
        def send_recorded(cluster: object, items: Sequence[Any], **options: Any) -> object:
            if cluster is self.cluster:
                return send(cluster, items, **options)
            self.requests.append(SentRequest(method, tuple(items), options.get("validate_only", False)))
            return send(cluster, items, **options)

        return send_recorded

    # names, manifests and commands

    def name(self, short: str) -> str:
        """Return a name that no other test uses."""
        return f"{self.prefix}{short}"

    def user(self, short: str) -> str:
        """Return a principal that no other test uses."""
        return f"User:{self.name(short)}"

    def declare(self, *resources: tuple[str, str, Json]) -> None:
        """Replace all manifests. A resource is a kind, a name and a spec."""
        for old in (self.folder / "manifests").iterdir():
            old.unlink()
        for kind, name, spec in resources:
            self._write(self.folder / "manifests" / f"{kind}-{name}.yaml", kind, name, spec)

    def __call__(self, *arguments: str, **environ: str) -> Ran:
        """Run a command."""
        return run_here(self.folder, *arguments, environ=environ)

    def plan(self, *options: str, **environ: str) -> tuple[int, dict[str, Any]]:
        """Make a plan. Return the exit code with --detailed-exitcode, and the plan as JSON."""
        ran = self("plan", "--detailed-exitcode", "--format", "json", *options, **environ)
        return int(ran.code), json.loads(ran.out)

    def apply(self, *options: str, **environ: str) -> dict[str, Any]:
        """Apply the manifests, which must succeed. Return the result as JSON. Forget earlier requests."""
        self.requests.clear()
        ran = self("apply", "--yes", "--format", "json", *options, **environ)
        assert ran.code == 0, ran
        result: dict[str, Any] = json.loads(ran.out)
        return result

    def expect_up_to_date(self, **environ: str) -> None:
        """Check that a plan has no changes."""
        ran = self("plan", "--detailed-exitcode", **environ)
        assert (ran.code, ran.out.startswith("No changes.")) == (0, True), ran

    def owned(self) -> dict[str, Any]:
        """Return the owned parts of all resources, as in the state file."""
        state = json.loads((self.folder / "state" / "conformance" / "lab" / "state.json").read_text())
        resources: dict[str, Any] = state["resources"]
        return resources

    def sent(self, method: str | None = None) -> list[SentRequest]:
        """Return the recorded requests that change something, of one method or of all."""
        return [r for r in self.requests if not r.validate_only and method in (None, r.method)]

    # the cluster, as another client sees and changes it

    def grant(self, *texts: str) -> None:
        """Create bindings."""
        assert set(self.cluster.create_acls(list(map(parse_binding, texts))).values()) == {None}

    def revoke(self, *texts: str) -> None:
        """Delete bindings."""
        assert set(self.cluster.delete_acls(list(map(parse_binding, texts))).values()) == {None}

    def bindings(self, *principals: str) -> set[Binding]:
        """Return the bindings of these principals."""
        return set(self.cluster.acls(principals))

    def acls(self, *shorts: str) -> set[str]:
        """Return the bindings of the users with these short names, as text."""
        return set(map(str, self.bindings(*map(self.user, shorts))))

    def clean(self) -> None:
        """Delete everything whose name has the prefix."""
        principal = f"User:{self.prefix}"
        mine = [binding for binding in self.cluster.acls() if binding.principal.startswith(principal)]
        if mine:
            self.cluster.delete_acls(mine)


def get_only(items: Sequence[Any]) -> Any:
    """Return the only item."""
    (item,) = items
    return item


def pick(document: Mapping[str, Any], *keys: str) -> tuple[Any, ...]:
    """Return the values of some keys."""
    return tuple(document[key] for key in keys)


def make_memory_bed(
    folder: Path, patch: pytest.MonkeyPatch, *, has_authorizer: bool = True, user: str = "admin"
) -> KindsBed:
    """Return a bed on the in-memory cluster.

    user: the user that the commands connect as. Only admin is a super user.
    """
    from kdeclare.providers.kafka import connection

    memory = MemoryCluster({1: "rack-a"})
    memory.principal, memory.has_authorizer = f"User:{user}", has_authorizer
    patch.setattr(connection, "connect_cluster", lambda *_: memory)
    bed = KindsBed(folder, {"bootstrapServers": "lab:9092"}, memory.elsewhere())
    memory.is_super_user = user == "admin"
    bed.record(patch, MemoryCluster)
    return bed


def make_kafka_bed(
    folder: Path, patch: pytest.MonkeyPatch, cluster: Cluster, environment: Mapping[str, Json]
) -> KindsBed:
    """Return a bed on real brokers. cluster: the connection of the administrator."""
    from kdeclare.providers.kafka.client import KafkaCluster

    bed = KindsBed(folder, environment, cluster)
    bed.record(patch, KafkaCluster)
    return bed
