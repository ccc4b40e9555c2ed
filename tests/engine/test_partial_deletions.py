"""Operation types that remove parts of resources, and sometimes a resource as a whole."""

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from kdeclare.core.operations.argument_binding import get_arguments
from kdeclare.core.operations.operation import Arguments, Operation
from kdeclare.core.operations.operation_type import OperationType
from kdeclare.core.provider import registry
from kdeclare.core.provider.registry import OPERATION_TYPES, UnknownOperationType
from kdeclare.core.resources.changes import Action
from kdeclare.core.resources.ids import ResourceId
from kdeclare.engine.planning.prune_denied import find_resource_action
from kdeclare.engine.planning.request import check_deletion_limit, filter_deletions


@dataclass(frozen=True)
class Petals(Arguments):
    """last: whether the flower has no other petals."""

    last: bool


class Pluck(UnknownOperationType):
    def find_deleted_resource(self, op: Operation) -> ResourceId | None:
        return op.resource if get_arguments(op, Petals).last else None


@pytest.fixture(autouse=True)
def flowers(monkeypatch: pytest.MonkeyPatch) -> None:
    known: Mapping[str, OperationType] = {**OPERATION_TYPES, "pluck": Pluck("pluck")}
    monkeypatch.setattr(registry, "OPERATION_TYPES", known)


def pluck(flower: str, number: int, *, last: bool) -> Operation:
    return Operation(f"pluck:{flower}#{number}", "pluck", ResourceId("Flower", flower), Petals(last), {})


def test_removal_of_all_parts_is_a_deletion() -> None:
    assert find_resource_action([pluck("rose", 1, last=False)]) is Action.UPDATE
    assert find_resource_action([pluck("rose", 1, last=True), pluck("rose", 2, last=True)]) is Action.DELETE


def test_deletion_limit_counts_resources_once() -> None:
    owned = [f"Flower/{n}" for n in range(9)]
    parts = [pluck("rose", number, last=False) for number in range(9)]
    deletions = [pluck(str(n), number, last=True) for n in range(3) for number in range(4)]
    assert check_deletion_limit([*parts, *deletions], frozenset(), owned, None) == []
    assert filter_deletions([*parts, *deletions], frozenset(), {"Flower"}) == deletions
    (problem,) = check_deletion_limit([*deletions, pluck("8", 1, last=True)], frozenset(), owned, None)
    assert "4 of 9 owned resources of kind Flower" in problem.detail
