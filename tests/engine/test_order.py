"""The order of operations, for plans of thousands of operations."""

import random
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.core.operations.operation import Arguments, Operation
from kdeclare.core.resources.ids import ResourceId
from kdeclare.engine.planning.operation_graph import exclude_operations, find_claims_made_before
from kdeclare.engine.planning.request import PlanScope
from tests.engine.world import World, topic

CLAIMS = "abcde"


def make_op(number: int, after: set[int]) -> Operation:
    """Return an operation that comes after others."""
    needs = {f"op{n}": "" for n in sorted(after)}
    return Operation(f"op{number}", "verb", ResourceId("Topic", "t"), Arguments(), {}, needs)


@st.composite
def graphs(draw: st.DrawFn) -> list[Operation]:
    """Return operations in order."""
    size = draw(st.integers(1, 12))
    return [make_op(n, draw(st.sets(st.integers(0, n - 1))) if n else set()) for n in range(size)]


def compute_predecessors(operations: list[Operation]) -> dict[str, frozenset[str]]:
    """Return all predecessors of each operation, computed in the simplest way."""
    found: dict[str, frozenset[str]] = {}
    for item in operations:
        found[item.id] = frozenset(item.after).union(*(found[id_] for id_ in item.after))
    return found


@given(graphs(), st.integers())
def test_claims_made_before_are_those_of_all_predecessors(operations: list[Operation], seed: int) -> None:
    chance = random.Random(seed)
    produced = {o.id: frozenset(c for c in CLAIMS if chance.random() < 0.3) for o in operations}
    asked = {o.id: frozenset(c for c in CLAIMS if chance.random() < 0.5) for o in operations}
    before = compute_predecessors(operations)
    expected = {
        o.id: asked[o.id] & frozenset[str]().union(*(produced[id_] for id_ in before[o.id]))
        for o in operations
    }
    assert find_claims_made_before(operations, produced, asked) == {k: v for k, v in expected.items() if v}


@given(graphs(), st.sets(st.integers(0, 11)))
def test_exclude_operations_removes_all_dependents(operations: list[Operation], refused: set[int]) -> None:
    before = compute_predecessors(operations)
    gone = {f"op{n}" for n in refused}
    left = [o.id for o in operations if o.id not in gone and not before[o.id] & gone]
    assert [o.id for o in exclude_operations(operations, gone)] == left


def test_deletions_over_limit_are_not_compared_pairwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comparing all pairs would take minutes if a project with 20,000 resources has lost its files."""
    world = World()
    world.apply(*(topic(f"t{n:02}", partitions=1, replicationFactor=1) for n in range(40)))
    compared: list[object] = []

    def compare(one: Operation, other: object) -> bool:
        compared.append(one)
        return one is other

    monkeypatch.setattr(Operation, "__eq__", compare)
    plan = world.plan(scope=PlanScope(allow_deletes=True, allow_empty=True))
    assert (plan.summary.blocked, plan.operations, compared) == (40, (), [])


def test_memory_for_operation_chain_is_linear() -> None:
    """Each operation changes something that the next one reads.

    Sets of predecessors took 1.1 GiB for 6,036 operations.
    """

    def measure_peak(size: int) -> int:
        chain = [make_op(n, {n - 1} if n else set()) for n in range(size)]
        claims = {o.id: frozenset({f"claim{n}"}) for n, o in enumerate(chain)}
        asked = {o.id: frozenset({f"claim{n - 1}"}) for n, o in enumerate(chain)}
        tracemalloc.start()
        found = find_claims_made_before(chain, claims, asked)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(found) == size - 1
        return most

    small, large = measure_peak(1_000), measure_peak(8_000)
    assert large < 12 * small
    assert large < 30 * 2**20
