"""Tests of a provider's promises about crashes, timeouts, refused operations and batches."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal

import pytest

from kdeclare.core.jsontypes import JsonValue, dump_canonical_json
from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.argument_binding import dump_arguments
from kdeclare.core.operations.operation import Operation
from kdeclare.core.plans.plan import Plan
from kdeclare.core.provider.registry import get_operation_type
from kdeclare.engine.state import memory_store
from kdeclare.testing.faults import Crash
from kdeclare.testing.provider_contract.bench import ALLOW_ALL_DELETES, Bench, ContractBase, Declared

CrashMoment = Literal["before", "after"]
CRASH_MOMENTS: tuple[CrashMoment, ...] = ("before", "after")


class FaultPromises(ContractBase):
    """Runs survive crashes and timeouts, and a refused operation stops only operations that depend on it."""

    def test_killed_at_every_position_of_the_journal(self, make_bench: Callable[[], Bench]) -> None:
        """If kdeclare crashes at any time, the next command recovers and reaches the same final state."""
        final_state = self._compute_final_state(make_bench)
        step, crashes = 0, [True]
        while any(crashes):
            step += 1
            crashes = [self._crash_at(step, when, make_bench, final_state) for when in CRASH_MOMENTS]
        assert step > 1

    def _crash_at(
        self,
        step: int,
        moment: CrashMoment,
        make_bench: Callable[[], Bench],
        final_state: tuple[JsonValue, JsonValue],
    ) -> bool:
        """Kill a run at the given step, and recover the run. Return False if the run has fewer steps."""
        bench = self._apply_before(make_bench)
        bench.world.store.restart()
        bench.world.store.crash = memory_store.StoreCrash(step, moment, Crash())
        try:
            bench.apply(self._declare(self.after), batch=1)
        except Crash:
            self._check_recovery(bench, final_state)
            return True
        assert len(bench.world.store.steps) < step
        bench.world.store.restart()
        assert self._read_state(bench) == final_state
        return False

    def _count_requests(self, make_bench: Callable[[], Bench]) -> int:
        bench = self._apply_before(make_bench)
        with self._intercept_operations(bench):
            bench.apply(self._declare(self.after), batch=1)
        return len(bench.requests.writes)

    def test_killed_before_and_after_every_request(self, make_bench: Callable[[], Bench]) -> None:
        """After a crash, kdeclare reads the live state to determine whether the last request took effect."""
        final_state = self._compute_final_state(make_bench)
        for request_number in range(1, self._count_requests(make_bench) + 1):
            for after_effect in (False, True):
                bench = self._apply_before(make_bench)
                with self._intercept_operations(bench):
                    bench.requests.faults.crash(nth=request_number, after_effect=after_effect)
                    with pytest.raises(Crash):
                        bench.apply(self._declare(self.after), batch=1)
                    self._check_recovery(bench, final_state)

    def test_a_time_out_is_settled_by_looking(self, make_bench: Callable[[], Bench]) -> None:
        """If a request times out, its outcome is unknown until kdeclare reads the live state."""
        final_state = self._compute_final_state(make_bench)
        for request_number in range(1, self._count_requests(make_bench) + 1):
            for after_effect in (False, True):
                bench = self._apply_before(make_bench)
                with self._intercept_operations(bench):
                    bench.requests.faults.time_out(nth=request_number, after_effect=after_effect)
                    result = bench.apply(self._declare(self.after), batch=1)
                assert result.complete, (request_number, after_effect, result.results)
                assert self._read_state(bench) == final_state

    def test_one_refusal_stops_only_what_needs_it(self, make_bench: Callable[[], Bench]) -> None:
        """If an operation is refused, only operations that depend on this operation are skipped."""
        bench = self._apply_before(make_bench)
        for victim in bench.plan(self._declare(self.after)).operations:
            bench = self._apply_before(make_bench)
            with self._intercept_operations(bench):
                plan = bench.plan(self._declare(self.after))
                bench.requests.faults.fail(
                    Fault("REFUSED", "Not today."), nth=None, method=victim.verb, item=str(victim.resource)
                )
                result = bench.world.run(plan)
            failed_ids = {id_ for id_, r in result.results.items() if not r.is_good}
            assert failed_ids == find_dependent(plan, victim), victim.id

    # Batches.

    def test_batches_are_small_enough_and_name_nothing_twice(self, make_bench: Callable[[], Bench]) -> None:
        """The batch size limits each request, but does not affect the final state.

        No request names an object twice.
        """
        final_state = self._compute_final_state(make_bench)
        for size in (1, 2, 1000):
            bench = self._apply_before(make_bench)
            with self._intercept_operations(bench):
                assert bench.apply(self._declare(self.after), batch=size).complete
            assert self._read_state(bench) == final_state
            for call in bench.requests.writes:
                assert len(call.items) <= size
                assert len(set(call.items)) == len(call.items), "a request names an object twice"
        plan = self._apply_before(make_bench).plan(self._declare(self.after))
        items = [_identify(op) for op in plan.operations]
        assert len(set(items)) == len(items), "two operations of the same type act on the same object"

    def test_a_refused_item_does_not_stop_its_batch(self, make_bench: Callable[[], Bench]) -> None:
        """If another client has just created or deleted an object of a batch, all other items succeed."""
        for declared in (self.before, ()):
            for method, items in self._find_batches(make_bench, declared).items():
                bench, plan = self._plan_from_start(make_bench, declared)
                refused_operation = next(
                    op for op in plan.operations if (op.verb, str(op.resource)) == (method, items[0])
                )
                with self._intercept_operations(bench):
                    bench.requests.faults.run_before(
                        partial(_execute_elsewhere, bench, refused_operation), item=items[0]
                    )
                    result = bench.world.run(plan)
                failed_ids = {id_ for id_, r in result.results.items() if not r.is_good}
                assert failed_ids <= find_dependent(plan, refused_operation), (
                    f"{refused_operation.id} was refused in a request with {items}"
                )

    def _find_batches(
        self, make_bench: Callable[[], Bench], declared: Sequence[Declared]
    ) -> Mapping[str, Sequence[str]]:
        """Return the items of one batched request for each operation type that creates or deletes objects.

        Operation types without a request that has several items are omitted.
        """
        bench, plan = self._plan_from_start(make_bench, declared)
        batched_types = {
            op.verb
            for op in plan.operations
            if get_operation_type(op).creates or get_operation_type(op).deletes
        }
        with self._intercept_operations(bench):
            bench.world.run(plan)
        return {
            c.method: c.items for c in bench.requests.writes if c.method in batched_types and len(c.items) > 1
        }

    def _plan_from_start(
        self, make_bench: Callable[[], Bench], declared: Sequence[Declared]
    ) -> tuple[Bench, Plan]:
        """Plan to create the declared resources. If none are declared, plan to delete ``before``."""
        bench = make_bench() if declared else self._apply_before(make_bench)
        return bench, bench.world.plan(*self._declare(declared), scope=ALLOW_ALL_DELETES)


def find_dependent(plan: Plan, refused: Operation) -> set[str]:
    """Return the ids of the refused operations and of all operations that depend on them.

    All operations with the same type and resource as ``refused`` are refused.

    A cleanup operation is included only if none of its predecessors began.
    """
    victims = {op.id for op in plan.operations if (op.verb, op.resource) == (refused.verb, refused.resource)}
    not_begun: set[str] = set()
    for op in plan.operations:  # in execution order
        if get_operation_type(op).is_cleanup:
            is_left_out = bool(op.after) and not_begun >= op.after.keys()
        else:
            is_left_out = not op.needs.keys().isdisjoint(victims | not_begun)
        if is_left_out:
            not_begun.add(op.id)
    return victims | not_begun


def _execute_elsewhere(bench: Bench, op: Operation, _: None) -> None:
    """Execute an operation in the role of another client."""
    get_operation_type(op).execute(bench.world.connect(), [op], bench.world.secrets, validate_only=False)


def _identify(op: Operation) -> tuple[str, ...]:
    """Return a key that identifies an operation in a plan.

    For auxiliary operations, the key contains the arguments.
    """
    if get_operation_type(op).is_auxiliary:
        return (op.verb, str(op.resource), dump_canonical_json(dump_arguments(op.args)))
    operation_type = get_operation_type(op)
    return (op.verb, operation_type.get_batch_key(op), *sorted(operation_type.claims(op).values()))
