"""The points of the pipeline at which a provider takes part in planning."""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

import pytest

from kdeclare.core.diagnostics import Diagnostic, denied, error, info
from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.operation import Operation
from kdeclare.core.plans.observation import Observation, ObservationLevel
from kdeclare.core.plans.plan import Verdict, VerdictOutcome
from kdeclare.core.plans.plan_hooks import PlanHooks, PlanInputs, PlanStep
from kdeclare.core.provider.provider_queries import start_plan
from kdeclare.core.resources.changes import Action, Change
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, Difference, ResourceComparison
from kdeclare.core.resources.name_scope import NameScope
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.engine.planning import compared_request
from kdeclare.engine.planning.build import build_plan
from kdeclare.engine.planning.request import PlanScope
from tests.connections import connections_to
from tests.engine.world import World, nothing, topic

A, B = ResourceId("Topic", "a"), ResourceId("Topic", "b")


@dataclass
class Recorder(PlanHooks):
    """Records the calls; ``steps``, ``findings`` and ``guard_verdicts`` determine the results."""

    calls: list[str] = field(default_factory=list)
    seen: dict[str, list[str]] = field(default_factory=dict)
    steps: dict[str, Callable[[tuple[Operation, ...]], PlanStep]] = field(default_factory=dict)
    findings: tuple[Diagnostic, ...] = ()
    guard_verdicts: tuple[Verdict, ...] = ()
    inputs: PlanInputs | None = None

    def _record_call(self, name: str, operations: Sequence[Operation] = ()) -> None:
        if name not in self.calls:
            self.calls.append(name)
        self.seen[name] = [op.id for op in operations]

    def _run_step(self, name: str, operations: tuple[Operation, ...]) -> PlanStep:
        self._record_call(name, operations)
        return self.steps.get(name, PlanStep)(operations)

    def prepare(self) -> None:
        self._record_call("prepare")

    def review_diagnostics(self, diagnostics: tuple[Diagnostic, ...]) -> tuple[Diagnostic, ...]:
        self._record_call("review_diagnostics")
        return diagnostics

    def withhold(
        self, resource: ResourceId, desired: DesiredResource | None, owned: OwnedRecord | None
    ) -> Difference | None:
        self._record_call("withhold")
        return None

    def review_difference(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        owned: OwnedRecord | None,
        difference: Difference,
    ) -> Difference:
        self._record_call("review_difference")
        return difference

    def refine(self, operations: tuple[Operation, ...], compared: Sequence[ResourceComparison]) -> PlanStep:
        return self._run_step("refine", operations)

    def guard(self, operations: tuple[Operation, ...]) -> tuple[Verdict, ...]:
        self._record_call("guard", operations)
        return self.guard_verdicts

    def settle(self, operations: tuple[Operation, ...], compared: Sequence[ResourceComparison]) -> PlanStep:
        return self._run_step("settle", operations)

    def preflight(self, operations: tuple[Operation, ...]) -> tuple[Diagnostic, ...]:
        self._record_call("preflight", operations)
        return self.findings

    def finalize(self, operations: tuple[Operation, ...]) -> PlanStep:
        return self._run_step("finalize", operations)

    def locate_members(self, operations: Sequence[Operation]) -> Mapping[int, str]:
        self._record_call("locate_members", operations)
        return {7: "cellar"}

    def count_unmanaged(self, known: Set[str]) -> int:
        self._record_call("count_unmanaged")
        return 40

    def observe_impact(
        self, operations: tuple[Operation, ...], changes: Sequence[Change]
    ) -> Iterable[Observation]:
        self._record_call("observe_impact", operations)
        return [Observation("Topic/a", "x", ObservationLevel.INFO, "An effect.")]


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """A second provider besides Kafka's."""
    recorder = Recorder()

    def start(inputs: PlanInputs) -> tuple[PlanHooks, ...]:
        recorder.inputs = inputs
        return (*start_plan(inputs), recorder)

    monkeypatch.setattr(compared_request, "start_plan", start)
    return recorder


def test_hooks_are_called_in_definition_order(hooks: Recorder) -> None:
    plan = World().plan(topic("a", partitions=1), scope=PlanScope(impact=True))
    documented = [name for name in vars(PlanHooks) if not name.startswith("_")]
    # They describe the finished plan, in any order.
    assert hooks.calls[:9] == documented[:9]
    assert sorted(hooks.calls[9:11]) == sorted(documented[9:11]) == ["count_unmanaged", "locate_members"]
    assert hooks.calls[11:] == documented[11:] == ["observe_impact"]
    assert [item.text for item in plan.observations] == ["An effect."]
    assert plan.racks[7] == "cellar"
    assert plan.summary.unmanaged == 40


def test_hooks_receive_plan_inputs(hooks: Recorder) -> None:
    wanted = topic("a", partitions=1)
    World().plan(wanted, scope=PlanScope(preflight=False))
    inputs = hooks.inputs
    assert inputs is not None
    assert [d.id for d in inputs.desired] == [wanted.id]
    assert (inputs.by_hand, inputs.has_preflight, inputs.pending) == (False, False, frozenset())


def test_refine_denial_excludes_resource_and_dependents(hooks: Recorder) -> None:
    def refuse_a(operations: tuple[Operation, ...]) -> PlanStep:
        (first,) = (op for op in operations if op.resource == A)
        needing = tuple(
            replace(op, needs={first.id: "comes second"}) if op.resource == B else op for op in operations
        )
        return PlanStep(needing, (denied("not-today", "Not today", "a has to wait", resource=str(A)),))

    hooks.steps["refine"] = refuse_a
    plan = World().plan(topic("a", partitions=1), topic("b", partitions=1), topic("c", partitions=1))
    assert [op.resource.name for op in plan.operations] == ["c"]
    assert {str(change.id): change.blocked for change in plan.changes} == {
        "Topic/a": "not-today",
        "Topic/b": "not-today",
        "Topic/c": None,
    }
    assert (plan.summary.create, plan.summary.blocked) == (1, 2)
    assert hooks.seen["settle"] == ["topic.create:Topic/c"]


def test_refine_edges_order_operations(hooks: Recorder) -> None:
    def put_a_after_b(operations: tuple[Operation, ...]) -> PlanStep:
        ids = {op.resource: op.id for op in operations}
        return PlanStep(
            tuple(replace(op, needs={ids[B]: "b first"}) if op.resource == A else op for op in operations)
        )

    hooks.steps["refine"] = put_a_after_b
    plan = World().plan(topic("a", partitions=1), topic("b", partitions=1))
    assert [op.resource.name for op in plan.operations] == ["b", "a"]


def test_guard_denial_excludes_resource_and_dependents(hooks: Recorder) -> None:
    def put_b_after_a(operations: tuple[Operation, ...]) -> PlanStep:
        ids = {op.resource: op.id for op in operations}
        return PlanStep(
            tuple(replace(op, needs={ids[A]: "a first"}) if op.resource == B else op for op in operations)
        )

    hooks.steps["refine"] = put_b_after_a
    hooks.guard_verdicts = (Verdict("own-branch", str(A), VerdictOutcome.DENY, "no"),)
    plan = World().plan(topic("a", partitions=1), topic("b", partitions=1), topic("c", partitions=1))
    assert plan.verdicts == hooks.guard_verdicts
    assert [op.resource.name for op in plan.operations] == ["c"]
    assert [change.blocked for change in plan.changes] == ["policy-violation", "policy-violation", None]
    assert hooks.seen["settle"] == ["topic.create:Topic/c"]


def test_permitted_guard_verdict_changes_nothing(hooks: Recorder) -> None:
    hooks.guard_verdicts = (Verdict("own-branch", str(A), VerdictOutcome.WARN, "no", override="--permit"),)
    plan = World().plan(topic("a", partitions=1))
    assert plan.verdicts == hooks.guard_verdicts
    assert len(plan.operations) == 1


def test_settle_or_finalize_denial_excludes_operations(hooks: Recorder) -> None:
    problem = denied("not-today", "Not today", "a has to wait", resource=str(A))
    for name in ("settle", "finalize"):
        hooks.steps = {name: lambda operations: PlanStep(operations, (problem,))}
        plan = World().plan(topic("a", partitions=1), topic("b", partitions=1))
        assert [op.resource.name for op in plan.operations] == ["b"], name
        assert plan.changes[0].blocked == "not-today"


def test_preflight_denial_blocks_resource(hooks: Recorder) -> None:
    hooks.findings = (denied("full", "Full", "no room for a", resource=str(A)),)
    plan = World().plan(topic("a", partitions=1), topic("b", partitions=1))
    assert [op.resource.name for op in plan.operations] == ["b"]
    assert hooks.seen["finalize"] == ["topic.create:Topic/b"]


def test_system_refusal_takes_precedence_over_preflight_hook(hooks: Recorder) -> None:
    hooks.findings = (denied("full", "Full", "no room for a", resource=str(A)),)
    world = World()
    world.cluster.faults.fail(Fault("INVALID_CONFIG", "No."), method="create_topics", item="a")
    plan = world.plan(topic("a", partitions=1))
    assert {"full", "refused-by-cluster"} <= {d.code for d in plan.diagnostics}
    assert plan.changes[0].blocked == "refused-by-cluster"


def test_refine_denial_takes_precedence_over_generic_denial(hooks: Recorder) -> None:
    problem = denied("not-today", "Not today", "a has to wait", resource=str(A))
    hooks.steps["refine"] = lambda operations: PlanStep(operations, (problem,))
    world = World()
    limited = replace(
        world._build_request((topic("a", partitions=1),), PlanScope()), names=NameScope({"Topic": ("b",)})
    )
    plan = build_plan(limited, connections_to(world.cluster), world.secrets, nothing)
    assert {"out-of-scope", "not-today"} <= {d.code for d in plan.diagnostics}
    assert plan.changes[0].blocked == "not-today"


def test_preflight_hook_is_skipped_without_preflight(hooks: Recorder) -> None:
    World().plan(topic("a", partitions=1), scope=PlanScope(preflight=False))
    assert "preflight" not in hooks.calls
    assert "finalize" in hooks.calls


def test_plan_with_errors_skips_preflight_and_finalize(hooks: Recorder) -> None:
    hooks.steps["settle"] = lambda operations: PlanStep(operations, (error("broken", "Broken", "all of it"),))
    plan = World().plan(topic("a", partitions=1))
    assert plan.has_errors
    assert not {"preflight", "finalize"} & {*hooks.calls}


def test_finalize_edges_order_operations(hooks: Recorder) -> None:
    def reverse(operations: tuple[Operation, ...]) -> PlanStep:
        a, b = operations
        return PlanStep(
            (replace(a, follows={b.id: "b first"}), b), (info("turned", "Turned", "b goes first"),)
        )

    hooks.steps["finalize"] = reverse
    plan = World().plan(topic("a", partitions=1), topic("b", partitions=1))
    assert [op.resource.name for op in plan.operations] == ["b", "a"]
    assert "turned" in {d.code for d in plan.diagnostics}


def test_withheld_resource_is_not_planned(hooks: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    def withhold(
        resource: ResourceId, desired: DesiredResource | None, owned: OwnedRecord | None
    ) -> Difference | None:
        problem = denied("unseen", "Unseen", "it is dark", resource=str(resource))
        return Difference(None, owned, diagnostics=(problem,)) if resource == A else None

    monkeypatch.setattr(hooks, "withhold", withhold)
    plan = World().plan(topic("a", partitions=1), topic("b", partitions=1))
    assert [(change.id, change.action) for change in plan.changes] == [(B, Action.CREATE)]
    assert [d.code for d in plan.diagnostics if d.is_blocking] == ["unseen"]


def test_default_hooks_change_nothing() -> None:
    step = PlanHooks().refine((), ())
    assert step == PlanStep(())
    assert PlanHooks().settle((), ()) == step
    assert PlanHooks().finalize(()) == step
    assert PlanHooks().preflight(()) == ()
    assert PlanHooks().withhold(A, None, None) is None
    assert PlanHooks().prepare() is None
