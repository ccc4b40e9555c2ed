"""Tests of a provider's promises about plans, rollbacks, cleanup and stale plans."""

import json
from collections.abc import Callable, Sequence

import pytest

from kdeclare.core.diagnostics import KdeclareError, Severity
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.jsontypes import dump_canonical_json
from kdeclare.core.operations.argument_binding import bind_arguments, dump_arguments
from kdeclare.core.operations.operation import Inverse, Operation
from kdeclare.core.plans.run import Status
from kdeclare.core.plans.state import PendingCleanup
from kdeclare.core.provider.deferred_provider import list_kind_names
from kdeclare.core.provider.registry import get_operation_type
from kdeclare.core.resources.changes import Action
from kdeclare.engine.observation import observe, select_all
from kdeclare.engine.planning.request import PlanScope
from kdeclare.testing.provider_contract.bench import (
    Bench,
    ContractBase,
    Declared,
)

_COMMAND_COUNT, _BETWEEN_COMMANDS_S = 3, 60.0
"""The maximum number of commands until all cleanup is done, and the seconds between two commands."""
_LEFT_OUT_STATUSES = (Status.STALE, Status.SKIPPED)


class RunPromises(ContractBase):
    """Tests of the promises about second plans, rollbacks, cleanups and stale plans."""

    def test_a_second_plan_is_empty(self, make_bench: Callable[[], Bench]) -> None:
        """A plan right after an apply has no changes and does not change ownership records."""
        bench = self._apply_before(make_bench)
        for declared in (self.before, self.after):
            assert bench.apply(self._declare(declared)).complete
            second_plan = bench.plan(self._declare(declared))
            assert not second_plan.has_changes
            assert not second_plan.ownership

    def test_operations_can_be_stored(self, make_bench: Callable[[], Bench]) -> None:
        """Converting the arguments of operations and inverses to JSON and back does not change them."""
        bench = self._apply_before(make_bench)
        operations = bench.plan(self._declare(self.after)).operations
        assert operations, "'after' must change something"
        for op in operations:
            for stored in (Inverse(op.verb, op.args), op.inverse):
                if stored is not None:
                    text = dump_canonical_json(dump_arguments(stored.args))
                    assert bind_arguments(stored.verb, json.loads(text)) == stored.args, (op.id, text)

    def test_the_example_creates_updates_and_deletes(self, make_bench: Callable[[], Bench]) -> None:
        """The declared resources cover every kind and action, so that the suite tests all of them."""
        bench = self._apply_before(make_bench)
        plan = bench.plan(self._declare(self.after))
        actions = {change.action for change in plan.changes} - {Action.NO_OP}
        assert actions, "'after' must change something"
        assert actions == self.actions, "the attribute 'actions' must list the actions of all changes"
        kinds = {change.id.kind for change in plan.changes}
        assert kinds == set(list_kind_names(self.provider))

    def test_a_rollback_restores_everything(self, make_bench: Callable[[], Bench]) -> None:
        """A rollback restores the content of the system and the ownership records."""
        bench = self._apply_before(make_bench)
        before = self._read_state(bench)
        run = bench.apply(self._declare(self.after))
        assert run.complete
        assert self._read_state(bench) != before
        rollback_result = bench.world.rollback(run.run_id)
        assert rollback_result.complete, (rollback_result.results, rollback_result.plan.diagnostics)
        irreversible_resources = {op.resource for op in run.plan.operations if op.irreversible}
        problems = [d for d in rollback_result.plan.diagnostics if d.severity is not Severity.INFO]
        assert {d.resource for d in problems} <= set(map(str, irreversible_resources)), (
            "a rollback must report only changes that cannot be undone"
        )
        if not irreversible_resources:
            assert self._read_state(bench) == before
            return
        restorable = (item for item in self.before if item.id not in irreversible_resources)
        assert all(self._is_as_declared(bench, item) for item in restorable), (
            "a change that cannot be undone must not prevent the rollback of other resources"
        )

    def test_a_rollback_takes_away_what_a_run_created(self, make_bench: Callable[[], Bench]) -> None:
        """Rolling back the first run leaves the system empty again."""
        bench = make_bench()
        before = self._read_state(bench)
        assert bench.apply(self._declare(self.before)).complete
        assert bench.world.rollback().complete
        assert self._read_state(bench) == before

    def test_a_rollback_leaves_alone_what_others_have_changed(self, make_bench: Callable[[], Bench]) -> None:
        """If another client changed a resource after the run, a rollback reports and keeps the change."""
        bench = self._apply_before(make_bench)
        run = bench.apply(self._declare(self.after))
        changed = self._change_elsewhere(bench, self.elsewhere)
        states = {item.id: self._is_as_declared(bench, item) for item in changed}
        rollback_result = bench.world.rollback(run.run_id)
        assert {d.resource for d in rollback_result.plan.diagnostics} >= {str(item.id) for item in changed}
        assert {item.id: self._is_as_declared(bench, item) for item in changed} == states

    def _is_as_declared(self, bench: Bench, item: Declared) -> bool:
        """Whether the live resource matches its declaration."""
        scope = PlanScope(targets=frozenset({item.id}))
        other_world = self._make_world(bench.system)
        return not other_world.plan(*self._declare([item]), scope=scope).operations

    def _change_elsewhere(self, bench: Bench, resources: Sequence[Declared]) -> Sequence[Declared]:
        """Change resources in the role of another client, by applying them from another project."""
        result = self._make_world(bench.system).apply(*self._declare(resources))
        assert result.complete, result.results
        return resources

    # Cleanup.

    def test_what_a_run_left_is_cleaned_up(self, make_bench: Callable[[], Bench]) -> None:
        """Later commands clean up after a run until the state contains no pending cleanup."""
        bench = self._apply_before(make_bench)
        assert bench.apply(self._declare(self.after)).complete
        for _ in range(_COMMAND_COUNT):
            bench.world.recover()
            if not self._read_pending_cleanup(bench):
                break
            bench.world.clock.sleep(_BETWEEN_COMMANDS_S)
        assert not self._read_pending_cleanup(bench), "'update_cleanup' must remove finished cleanup"
        assert not bench.plan(self._declare(self.after)).has_changes

    def _read_pending_cleanup(self, bench: Bench) -> PendingCleanup:
        state = bench.world.store.read()
        assert state is not None
        return state.pending_cleanup

    # Staleness.

    def test_a_plan_is_stale_where_others_have_changed_what_it_is_about(
        self, make_bench: Callable[[], Bench]
    ) -> None:
        """A stale plan is not applied.

        With ``skip_stale``, only stale operations and the operations that depend on them are left out.
        """
        for item in self.elsewhere:
            bench = self._apply_before(make_bench)
            plan = bench.plan(self._declare(self.after))
            affected_operations = [op for op in plan.operations if op.resource == item.id]
            assert affected_operations, f"'after' must change {item.id}, which is in 'elsewhere'"
            self._change_elsewhere(bench, [item])
            changed_ids = self._find_changed(bench, affected_operations)
            state_before = self.dump(bench.system)
            with pytest.raises(KdeclareError) as refused:
                bench.world.run(plan)
            assert refused.value.exit_code is ExitCode.STALE
            assert {d.resource for d in refused.value.diagnostics} == {str(item.id)}
            expected = {element for op in affected_operations for element in op.expect}
            assert {d.subject for d in refused.value.diagnostics} <= expected
            assert self.dump(bench.system) == state_before, "no operation must be executed"
            result = bench.world.run(plan, skip_stale=True)
            assert self._is_as_declared(bench, item), "changes by other clients must be kept"
            stale_ids = {id_ for id_, r in result.results.items() if r.status is Status.STALE}
            assert stale_ids
            assert stale_ids == changed_ids, "only operations whose view has changed must be stale"
            assert all(r.is_good for r in result.results.values() if r.status not in _LEFT_OUT_STATUSES)

    def _find_changed(self, bench: Bench, operations: Sequence[Operation]) -> set[str]:
        """Return the ids of operations whose view has changed."""
        live = observe(bench.world.connect(), select_all(operations))
        primary_operations = (op for op in operations if not get_operation_type(op).is_auxiliary)
        return {
            op.id for op in primary_operations if get_operation_type(op).compute_view(op, live) != op.expect
        }
