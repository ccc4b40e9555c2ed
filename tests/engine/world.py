"""One cluster, one store and the engine between them, without files or a command line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Any

from kdeclare.app.scope import Scope
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.ids import ResourceId
from kdeclare.core.jsontypes import Json
from kdeclare.core.kind import Desired
from kdeclare.core.parts import Connections, PlanOptions
from kdeclare.core.plan import Plan
from kdeclare.core.registry import KINDS
from kdeclare.core.run import MoveProgress, RunResult
from kdeclare.core.secret_hashes import SecretHasher, matches
from kdeclare.core.secrets import SecretRef
from kdeclare.core.state import State
from kdeclare.core.visibility import Patience
from kdeclare.engine.cleanup import Tidied, tidy
from kdeclare.engine.executor.apply import Applier
from kdeclare.engine.executor.entries import fold
from kdeclare.engine.executor.lookout import RunOptions
from kdeclare.engine.executor.propagation import await_visibility
from kdeclare.engine.executor.recovery import recover
from kdeclare.engine.executor.rollback import rollback_plan
from kdeclare.engine.planning.build import build_plan
from kdeclare.engine.planning.plan_integrity import find_inconsistencies
from kdeclare.engine.planning.planfile import read_plan
from kdeclare.engine.planning.request import PlanRequest
from kdeclare.engine.planning.sealing import seal
from kdeclare.engine.state.memory import MemoryStore
from kdeclare.policy.configured import ConfiguredPolicy
from kdeclare.policy.judge import PolicyJudge
from kdeclare.providers.connect.client.port import ConnectWorkers
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.plan_options import KafkaPlanOptions, with_pace
from kdeclare.providers.kafka.reassignment.pace import Pace
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.connections import connections_to


class TestClock:
    """Time that passes only when somebody waits for it."""

    __test__ = False

    def __init__(self) -> None:
        self._passed = 0.0

    def now(self) -> datetime:
        self._passed += 0.001
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self._passed)

    def monotonic(self) -> float:
        return self._passed

    def sleep(self, seconds: float) -> None:
        self._passed += seconds


@dataclass
class Secrets:
    """References that stand for values."""

    values: dict[str, str] = field(default_factory=dict)

    def reveal(self, secret: SecretRef) -> str:
        value = self.values.get(secret.reference or "")
        if value is None or not matches(secret.secret, value):
            raise KdeclareError(error("secret-changed", "A secret has changed", str(secret.reference)))
        return value


def nothing(what: str, done: int, total: int, moves: MoveProgress | None = None) -> None:
    """No progress to show."""


def desired(kind: str, name: str, labels: Mapping[str, str] | None = None, **spec: Any) -> Desired:
    """A declared resource as the loader would make it; the spec must be a good one."""
    model = KINDS[kind].spec.model_validate(spec)
    body, problems = KINDS[kind].parse(name, model)
    assert not [p for p in problems if p.diagnostic.is_error], problems
    return Desired(ResourceId(kind, name), body, labels or {})


def topic(name: str, **spec: Any) -> Desired:
    """A declared topic."""
    return desired("Topic", name, **spec)


def sealed(
    declared: Sequence[Desired], state: State | None = None, key_id: str | None = None
) -> tuple[Desired, ...]:
    """The same with hashes of secrets, as a plan takes them."""
    return seal(declared, state.resources if state else {}, SecretHasher("test", key_id), nothing)


def consistent(plan: Plan) -> Plan:
    """The plan, which shows what it does: otherwise its file would be refused."""
    assert not list(find_inconsistencies(plan)), list(find_inconsistencies(plan))
    return plan


@dataclass
class World:
    """A project's engine at work.

    adopts: whether plans adopt what exists, as with ``--adopt``; off for tests about adoption itself.
    key_id: of the key that hashes of secrets are made with. workers: Connect workers by their URLs.
    """

    cluster: MemoryCluster = field(default_factory=MemoryCluster)
    store: MemoryStore = field(default_factory=MemoryStore)
    secrets: Secrets = field(default_factory=Secrets)
    clock: TestClock = field(default_factory=TestClock)
    stop: Event = field(default_factory=Event)
    pace: Pace = field(default_factory=Pace)
    policies: tuple[ConfiguredPolicy, ...] = ()
    adopts: bool = True
    key_id: str | None = None
    workers: dict[tuple[str, ...], ConnectWorkers] = field(default_factory=dict)

    @property
    def connections(self) -> Connections:
        """The connections to them."""
        return connections_to(self.cluster, self.workers)

    def plan(self, *declared: Desired, scope: Scope | None = None) -> Plan:
        """What the manifests would change."""
        request = self._request(declared, scope or Scope())
        plan = build_plan(request, self.connections, self.secrets, nothing)
        return consistent(plan)

    def apply(self, *declared: Desired, scope: Scope | None = None, **options: Any) -> RunResult:
        """Settle what was left open, plan and apply, as the command does."""
        self.recover()
        return self.run(self.plan(*declared, scope=scope), **options)

    def recover(self) -> Tidied:
        """What every command does first: settle what was left open, tidy up what is over."""
        with self.store.lock("test"):
            return self._recovered()

    def _recovered(self) -> Tidied:
        found = recover(self.store, self.connections, self.clock)
        await_visibility(self.store, self.connections, self.clock)
        if not all(item.is_certain for item in found):
            return Tidied(None, ())
        tidied = tidy(self._applier(), "test", "default", "memory")
        await_visibility(self.store, self.connections, self.clock)
        return tidied

    def _applier(self) -> Applier:
        return Applier(
            self.store,
            self.connections,
            self.secrets,
            nothing,
            "me@here",
            "test",
            PolicyJudge(self.policies),
            self.clock,
            self.stop,
        )

    def run(
        self, plan: Plan, *, skip_stale: bool = False, identity: str | None = None, **options: Any
    ) -> RunResult:
        """Apply a plan under the lock, after settling what was left open."""
        with self.store.lock("test"):
            self._recovered()
            return self._applier().apply(
                plan, RunOptions(workers=1, **options), skip_stale=skip_stale, identity=identity
            )

    def rollback_plan(
        self,
        run_id: str | None = None,
        *,
        allow_data_loss: bool = False,
        delete_by_name: bool = False,
        patience_s: float = 120.0,
    ) -> Plan:
        """What undoes a run (default: the last)."""
        run_id = run_id or self.store.runs()[-1]
        run = read_plan(self.store.plan_text(run_id), run_id)
        record = fold(run_id, self.store.entries(run_id))
        plan = rollback_plan(
            run,
            record,
            self.store.read(),
            self.connections,
            self.secrets,
            options=PlanOptions(KafkaPlanOptions(delete_by_name=delete_by_name, pace=self.pace)),
            allow_data_loss=allow_data_loss,
            patience=Patience(patience_s, monotonic=self.clock.monotonic, sleep=self.clock.sleep),
        )
        return consistent(plan)

    def rollback(self, run_id: str | None = None, **options: Any) -> RunResult:
        """Undo a run (default: the last)."""
        return self.run(self.rollback_plan(run_id, **options))

    def owned(self) -> Mapping[str, Json]:
        """What is owned."""
        state = self.store.read()
        return state.resources if state else {}

    def overrides(self, name: str) -> dict[str, str]:
        """What is set on a topic."""
        found: dict[str, str] = self.cluster.overrides(ConfigResource(ConfigScope.TOPIC, name))
        return found

    def set(self, name: str, **values: str) -> None:
        """Somebody else sets configs on a topic; underscores stand for dots."""
        resource = ConfigResource(ConfigScope.TOPIC, name)
        given = {key.replace("_", "."): value for key, value in values.items()}
        self.cluster.set_overrides(resource, {**self.overrides(name), **given})

    def _request(self, declared: Sequence[Desired], scope: Scope) -> PlanRequest:
        state = self.store.read()
        # most tests delete the last resource that they made
        options = with_pace(scope.options, self.pace)
        scope = replace(scope, adopt=scope.adopt or self.adopts, allow_empty=True, options=options)
        desired = sealed(declared, state, self.key_id)
        return PlanRequest("test", "default", "memory", desired, state, scope, (), PolicyJudge(self.policies))
