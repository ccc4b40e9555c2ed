"""ACLs by property: any change ends as declared, and no right is missing or too many on the way."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdeclare.core.operations.argument_binding import get_arguments
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.engine.planning.request import DeletionLimit, PlanScope
from kdeclare.providers.kafka.acl.authorization import AccessRequest, decide_access
from kdeclare.providers.kafka.acl.binding import Binding, parse_binding
from kdeclare.providers.kafka.acl.operations import AclArgs
from kdeclare.providers.kafka.acl.spec import AclBody
from tests.engine.world import World, desired

USERS = ("User:alice", "User:bob")
NAMES = ("a", "ab", "a*", "*")
EVERYTHING = PlanScope(allow_deletes=True, max_deletes=DeletionLimit.parse("100%"))
REQUESTS = [
    AccessRequest(user, operation, "topic", name, "10.0.0.1")
    for user in USERS
    for operation in ("READ", "WRITE", "DESCRIBE")
    for name in ("a", "ab", "b")
]
operations = st.sampled_from(["READ", "WRITE", "ALL"])
rights = st.tuples(st.sampled_from(NAMES), operations, st.booleans())
manifests = st.lists(
    st.tuples(st.sampled_from(USERS), st.lists(rights, max_size=4, unique_by=lambda r: r[:2])), max_size=3
)


def declare_all(specs: list[tuple[str, list[tuple[str, str, bool]]]], **more: Any) -> list[DesiredResource]:
    """Return resources whose rights do not contradict each other: the first of two counts."""
    seen: dict[tuple[str, str, str], bool] = {}
    found = []
    for number, (user, given_rights) in enumerate(specs):
        entries = [
            {"topic": name, ("allow" if allowed else "deny"): [operation]}
            for name, operation, allowed in given_rights
            if seen.setdefault((user, name, operation), allowed) is allowed
        ]
        found.append(desired("Acl", f"acl-{number}", principal=user, bindings=entries, **more))
    return found


def list_declared(resources: list[DesiredResource]) -> set[Binding]:
    return {binding for item in resources for binding in item.get_body(AclBody).bindings}


@pytest.mark.slow
@settings(max_examples=settings().max_examples * 5)
@given(manifests, manifests, st.sets(st.sampled_from(NAMES)))
def test_any_change_ends_as_declared_and_keeps_order(first: Any, second: Any, foreign: set[str]) -> None:
    world = World()
    others = {Binding("group", name, "literal", USERS[0], "*", "READ", "ALLOW") for name in foreign}
    world.cluster.create_acls(sorted(others))
    assert world.apply(*declare_all(first)).complete
    assert set(world.cluster.acls()) == list_declared(declare_all(first)) | others
    wanted = declare_all(second)
    plan = world.plan(*wanted, scope=EVERYTHING)
    before = set(world.cluster.acls())
    after = list_declared(wanted) | others
    current = set(before)
    for op in plan.operations:
        changed = {parse_binding(text) for text in get_arguments(op, AclArgs).bindings}
        current = current | changed if op.verb == "acls.create" else current - changed
        for request in REQUESTS:
            at_first, at_last = (decide_access(found, request).is_allowed for found in (before, after))
            if at_first is at_last:
                assert decide_access(current, request).is_allowed is at_first, (op.id, request)
    assert current == after
    run = world.run(plan)
    assert run.complete
    assert set(world.cluster.acls()) == after
    again = world.apply(*wanted, scope=EVERYTHING)  # adopts bindings that another resource created
    assert again.complete
    assert not world.plan(*wanted, scope=EVERYTHING).has_changes
    assert not world.plan(*wanted, scope=EVERYTHING).ownership


@given(manifests, manifests)
def test_rollback_restores_bindings(first: Any, second: Any) -> None:
    world = World()
    world.apply(*declare_all(first))
    world.apply(*declare_all(first))
    before = set(world.cluster.acls())
    run = world.apply(*declare_all(second), scope=EVERYTHING)
    assert run.complete
    if run.run_id is not None and run.plan.operations:
        assert world.rollback(run.run_id).complete
        assert set(world.cluster.acls()) == before
