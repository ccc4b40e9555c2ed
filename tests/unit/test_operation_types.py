"""The defaults of operation types."""

from kdeclare.core.operations.operation import Operation
from kdeclare.core.provider.registry import UnknownOperationType
from kdeclare.core.resources.ids import ResourceId
from kdeclare.engine.planning.prune_denied import prune_operations
from tests.unit.policy.kettles import KettleArgs

TEA, KETTLE = ResourceId("Tea", "green"), ResourceId("Kettle", "kitchen")


class Boil(UnknownOperationType):
    """Making tea changes a kettle."""

    def find_changed_resources(self, op: Operation) -> frozenset[ResourceId]:
        return frozenset({KETTLE})


class Accompany(UnknownOperationType):
    is_auxiliary = True


OPERATION = Operation("boil", "boil", TEA, KettleArgs({}), {})


def test_operation_that_changes_denied_resource_is_dropped() -> None:
    boil = Boil("boil")
    assert boil.less(OPERATION, {KETTLE}) is None
    assert boil.less(OPERATION, {TEA}) is None
    assert boil.less(OPERATION, {ResourceId("Other", TEA.name)}) is OPERATION
    assert Accompany("with").less(OPERATION, {TEA}) is OPERATION


def test_prune_drops_operations_of_denied_resource() -> None:
    assert prune_operations([OPERATION], {TEA: frozenset({TEA})}) == ((), frozenset({TEA}))
    assert prune_operations([OPERATION], {TEA: frozenset({KETTLE})}) == ((OPERATION,), frozenset())
    assert prune_operations([OPERATION], {KETTLE: frozenset({KETTLE})}) == ((OPERATION,), frozenset())
