"""An engine for tests. It applies the resources of one project without files or a command line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Any

from kdeclare.core.clock import Clock
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.jsontypes import JsonValue, as_object, dump_canonical_json, parse_json
from kdeclare.core.live.collector import WaitPolicy
from kdeclare.core.parts import Connections, PlanOptions
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.policy_gate import NO_POLICIES, PolicyGate
from kdeclare.core.plans.run import ApplyResult, MoveProgress
from kdeclare.core.plans.state import State
from kdeclare.core.progress import Progress
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.declared_absence import is_declared_absent
from kdeclare.core.resources.fleet_capabilities import (
    BodyCodec,
    decode_body,
    encode_body,
)
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.record_binding import dump_record
from kdeclare.core.secrets.secret_hashes import SecretHasher, is_hash_of
from kdeclare.core.secrets.secret_refs import SecretRef
from kdeclare.engine.cleanup import CleanupResult, run_cleanup
from kdeclare.engine.executor.apply import Applier
from kdeclare.engine.executor.entries import fold_journal
from kdeclare.engine.executor.progress_tracker import RunOptions
from kdeclare.engine.executor.propagation import await_visibility
from kdeclare.engine.executor.recovery import recover_runs
from kdeclare.engine.executor.rollback import build_rollback_plan
from kdeclare.engine.planning.build import build_plan
from kdeclare.engine.planning.plan_integrity import find_inconsistencies
from kdeclare.engine.planning.planfile import parse_plan
from kdeclare.engine.planning.request import PlanRequest, PlanScope
from kdeclare.engine.planning.secret_digests import hash_secrets
from kdeclare.engine.state.memory_store import MemoryStore

NO_OPTIONS = PlanOptions()


class TestClock:
    """A clock that advances only when it is used: `now` adds 1 ms, and `sleep` adds the given time."""

    __test__ = False

    def __init__(self) -> None:
        self._elapsed_s = 0.0

    def now(self) -> datetime:
        """See `core.clock.Clock`."""
        self._elapsed_s += 0.001
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self._elapsed_s)

    def monotonic(self) -> float:
        """See `core.clock.Clock`."""
        return self._elapsed_s

    def sleep(self, seconds: float) -> None:
        """See `core.clock.Clock`."""
        self._elapsed_s += seconds


@dataclass
class Secrets:
    """The values of secrets, by the references to the secrets."""

    values: dict[str, str] = field(default_factory=dict)

    def reveal(self, secret: SecretRef) -> str:
        """See `SecretSource`."""
        value = self.values.get(secret.reference or "")
        if value is None or not is_hash_of(secret.secret, value):
            detail = (
                f"The secret '{secret.reference}' is not in 'secrets' of the test, or has a different value."
            )
            raise KdeclareError(
                error(
                    "secret-changed",
                    "Secret has changed",
                    detail,
                    hint="Set the value of this secret in the field 'secrets' of the test.",
                )
            )
        return value


def report_nothing(what: str, done: int, total: int, moves: MoveProgress | None = None) -> None:
    """Discard progress reports."""


def declare(
    kind: str, name: str, spec: Mapping[str, JsonValue], labels: Mapping[str, str] | None = None
) -> DesiredResource:
    """Return a declared resource in the form that the manifest loader creates. The spec must be valid."""
    model = KINDS[kind].spec.model_validate(spec)
    body, problems = KINDS[kind].parse(name, model)
    assert not [p for p in problems if p.diagnostic.is_error], problems
    is_absent = is_declared_absent(model)
    return DesiredResource(ResourceId(kind, name), body, labels or {}, is_absent=is_absent)


def seal_desired(
    declared: Sequence[DesiredResource], state: State | None = None, key_id: str | None = None
) -> tuple[DesiredResource, ...]:
    """Return the resources with hashes of their secrets. Planning requires these hashes."""
    return hash_secrets(
        declared, state.resources if state else {}, SecretHasher("test", key_id), report_nothing
    )


def require_consistent(plan: Plan) -> Plan:
    """Assert that the plan shows exactly the changes that its operations make. Return the plan."""
    assert not list(find_inconsistencies(plan)), list(find_inconsistencies(plan))
    return plan


def _read_back(desired: DesiredResource) -> object:
    """Convert the body of a resource to plain data and back, if the kind of the resource has a codec."""
    if not isinstance(KINDS[desired.id.kind], BodyCodec):
        return desired.body
    return decode_body(desired.id.kind, as_object(parse_json(dump_canonical_json(encode_body(desired)))))


@dataclass(kw_only=True)
class World:
    """The engine of one project.

    connections: the connections to the systems of the project.
    adopts: whether plans adopt existing resources, as with ``--adopt``. Set it to False to test adoption.
    key_id: the id of the key for hashes of secrets.
    """

    connections: Connections = field(default_factory=Connections)
    store: MemoryStore = field(default_factory=MemoryStore)
    secrets: Secrets = field(default_factory=Secrets)
    clock: Clock = field(default_factory=TestClock)
    stop: Event = field(default_factory=Event)
    judge: PolicyGate = NO_POLICIES
    progress: Progress = report_nothing
    adopts: bool = True
    key_id: str | None = None

    def connect(self) -> Connections:
        """Return the connections to the systems."""
        return self.connections

    def find_policy_gate(self) -> PolicyGate:
        """Return the policies that apply to the project."""
        return self.judge

    def plan(self, *declared: DesiredResource, scope: PlanScope | None = None) -> Plan:
        """Return the plan for these declared resources."""
        request = self._build_request(declared, scope or PlanScope())
        return require_consistent(build_plan(request, self.connect(), self.secrets, self.progress))

    def seal(self, declared: Sequence[DesiredResource]) -> tuple[DesiredResource, ...]:
        """Return the declared resources with hashes of their secrets."""
        return seal_desired(declared, self.store.read(), self.key_id)

    def plan_as_read_back(self, *declared: DesiredResource, scope: PlanScope | None = None) -> Plan:
        """Return a plan for bodies that were converted to plain data and back, as in fleet audits."""
        request = self._build_request(declared, scope or PlanScope())
        read_back = (replace(d, body=_read_back(d)) for d in request.desired)
        request = replace(request, desired=tuple(read_back))
        return build_plan(request, self.connect(), self.secrets, self.progress)

    def apply(
        self, *declared: DesiredResource, scope: PlanScope | None = None, **options: Any
    ) -> ApplyResult:
        """Hold the lock, recover unfinished runs, then plan and apply, like ``kdeclare apply``."""
        with self.store.lock("test"):
            self._run_recovery()
            return self._run(self.plan(*declared, scope=scope), **options)

    def recover(self) -> CleanupResult:
        """Recover unfinished runs and clean up after finished work. Every command starts with these steps."""
        with self.store.lock("test"):
            return self._run_recovery()

    def _run_recovery(self) -> CleanupResult:
        recovered_runs = recover_runs(self.store, self.connect(), self.clock)
        await_visibility(self.store, self.connect(), self.clock)
        if not all(item.is_certain for item in recovered_runs):
            return CleanupResult(None, ())
        cleanup_result = run_cleanup(self._make_applier(), "test", "default", "memory")
        await_visibility(self.store, self.connect(), self.clock)
        return cleanup_result

    def _make_applier(self) -> Applier:
        return Applier(
            self.store,
            self.connect(),
            self.secrets,
            self.progress,
            "me@here",
            "test",
            self.find_policy_gate(),
            self.clock,
            self.stop,
        )

    def run(
        self, plan: Plan, *, skip_stale: bool = False, identity: str | None = None, **options: Any
    ) -> ApplyResult:
        """Hold the lock, recover unfinished runs, and apply a plan. options: fields of `RunOptions`."""
        with self.store.lock("test"):
            self._run_recovery()
            return self._run(plan, skip_stale=skip_stale, identity=identity, **options)

    def _run(
        self, plan: Plan, *, skip_stale: bool = False, identity: str | None = None, **options: Any
    ) -> ApplyResult:
        run_options = RunOptions(workers=1, **options)
        return self._make_applier().apply(plan, run_options, skip_stale=skip_stale, identity=identity)

    def plan_rollback(
        self,
        run_id: str | None = None,
        *,
        allow_data_loss: bool = False,
        recreates_deleted: bool = False,
        options: PlanOptions = NO_OPTIONS,
        patience_s: float = 120.0,
    ) -> Plan:
        """Return the plan that undoes a run; by default, the last run."""
        run_id = run_id or self.store.runs()[-1]
        rollback = build_rollback_plan(
            parse_plan(self.store.read_plan_text(run_id), run_id),
            fold_journal(run_id, self.store.entries(run_id)),
            self.store.read(),
            self.connect(),
            self.secrets,
            options=options,
            allow_data_loss=allow_data_loss,
            recreates_deleted=recreates_deleted,
            patience=WaitPolicy(patience_s, monotonic=self.clock.monotonic, sleep=self.clock.sleep),
        )
        return require_consistent(rollback.plan)

    def rollback(self, run_id: str | None = None, **options: Any) -> ApplyResult:
        """Undo a run; by default, the last run."""
        return self.run(self.plan_rollback(run_id, **options))

    def owned(self) -> Mapping[str, Any]:
        """Return the ownership records in JSON form, so that tests can index them."""
        state = self.store.read()
        return {name: dump_record(record) for name, record in state.resources.items()} if state else {}

    def _build_request(self, declared: Sequence[DesiredResource], scope: PlanScope) -> PlanRequest:
        state = self.store.read()
        # Most tests delete the last resource that they created.
        scope = replace(scope, adopt=scope.adopt or self.adopts, allow_empty=True)
        desired = self.seal([item for item in declared if not item.is_absent])
        absent = tuple(item for item in declared if item.is_absent)
        return PlanRequest(
            "test",
            "default",
            "memory",
            desired,
            state,
            scope,
            (),
            self.find_policy_gate(),
            absent=absent,
        )
