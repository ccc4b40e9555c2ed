"""The guard against plans that take kdeclare's own rights away."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.core.operations.operation import Operation
from kdeclare.core.resources.ids import ResourceId
from kdeclare.providers.kafka.acl.authorization import AccessRequest, decide_access
from kdeclare.providers.kafka.acl.binding import CLUSTER, CLUSTER_NAME, Binding, parse_binding
from kdeclare.providers.kafka.acl.lockout import NEEDED, OwnAccess, find_lockouts
from kdeclare.providers.kafka.acl.operations import AclArgs
from tests.unit.acl.acl_strategies import HOSTS, PRINCIPALS, bindings

ALTER = "ALLOW User:ops ALTER cluster:kafka-cluster from *"
ALL = "ALLOW User:ops ALL cluster:kafka-cluster from *"
OTHER = "ALLOW User:x DESCRIBE cluster:kafka-cluster from *"
DENY = "DENY User:ops ALTER cluster:kafka-cluster from *"
NEVER, UNKNOWN = frozenset({False}), frozenset({True, False})


def make_op(verb: str, resource: str, texts: Sequence[str]) -> Operation:
    return Operation(f"{verb}:{resource}", verb, ResourceId("Acl", resource), AclArgs(tuple(texts)), {})


def find(
    live: Sequence[str],
    *,
    create: Sequence[str] = (),
    delete: Sequence[str] = (),
    principal: str | None = "User:ops",
    rights: Sequence[str] = NEEDED,
    everyone: frozenset[bool] = NEVER,
    create_elsewhere: Sequence[str] = (),
) -> list[tuple[str, bool]]:
    ops = [make_op("acls.create", "a", create)] if create else []
    ops += [make_op("acls.create", "b", create_elsewhere)] if create_elsewhere else []
    ops += [make_op("acls.delete", "a", delete)] if delete else []
    access = OwnAccess(principal, frozenset(rights), everyone)
    found = find_lockouts(ops, map(parse_binding, live), access)
    return [(operation, is_certain) for resource, operation, is_certain in found if resource.name == "a"]


def test_deletion_of_own_right_is_certain_lockout() -> None:
    assert find([ALTER], delete=[ALTER]) == [("ALTER", True)]


def test_denial_of_own_right_is_certain_lockout() -> None:
    assert find([ALTER], create=[DENY]) == [("ALTER", True)]
    assert find([ALTER], create=["DENY User:* ALL cluster:kafka-cluster from *"]) == [("ALTER", True)]
    assert find([ALTER], create=["DENY User:x ALTER cluster:kafka-cluster from *"]) == []


def test_replacement_of_own_right_is_allowed() -> None:
    assert find([ALTER], create=[ALL], delete=[ALTER]) == []
    assert find([ALTER, ALL], delete=[ALTER]) == []


def test_replacement_by_another_manifest_can_fail() -> None:
    assert find([ALTER], delete=[ALTER], create_elsewhere=[ALL]) == [("ALTER", True)]


def test_super_user_cannot_be_locked_out() -> None:
    assert find([OTHER], create=[DENY]) == []
    assert find([OTHER], delete=[OTHER], everyone=UNKNOWN) == []


def test_first_binding_of_cluster_takes_rights_of_everyone() -> None:
    assert find([], create=[OTHER], everyone=frozenset({True})) == [("ALTER", False)]
    assert find([], create=[OTHER], everyone=UNKNOWN) == [("ALTER", False)]
    assert find([], create=[ALL], everyone=UNKNOWN) == []


def test_brokers_do_not_prove_what_controllers_allow_without_acls() -> None:
    """Only ACLs that do not explain a right prove that kdeclare is a super user."""
    assert find([], create=[OTHER], everyone=NEVER) == [("ALTER", False)]
    assert find([], create=[ALL], everyone=NEVER) == []


def test_right_that_kdeclare_does_not_have_cannot_be_lost() -> None:
    assert find([OTHER], create=[DENY], rights=["DESCRIBE"]) == []


def test_unknown_principal_and_host_are_considered() -> None:
    assert find([ALTER, OTHER], delete=[ALTER], principal=None) == [("ALTER", True)]
    elsewhere = "ALLOW User:y ALTER cluster:kafka-cluster from *"
    assert find([ALTER, elsewhere], delete=[ALTER], principal=None) == [("ALTER", False)]
    here, there = (f"ALLOW User:ops ALTER cluster:kafka-cluster from 10.0.0.{n}" for n in (1, 2))
    assert find([here, there], delete=[here]) == [("ALTER", False)]


def test_bindings_of_other_resources_do_not_matter() -> None:
    topic = "DENY User:ops ALL topic:* from *"
    assert find([ALTER], create=[topic]) == []


cluster_bindings = bindings(types=(CLUSTER,))


@pytest.mark.parametrize("allows_everyone", [True, False])
@given(
    live=st.lists(cluster_bindings, max_size=5),
    created=st.lists(cluster_bindings, max_size=3),
    deleted=st.lists(cluster_bindings, max_size=3),
    principal=st.sampled_from([p for p in PRINCIPALS if p != "User:*"]),
    host=st.sampled_from(HOSTS[1:]),
)
def test_plan_that_passes_keeps_own_rights(
    allows_everyone: bool,
    live: list[Binding],
    created: list[Binding],
    deleted: list[Binding],
    principal: str,
    host: str,
) -> None:
    def list_rights(found: set[Binding]) -> set[str]:
        requests = [AccessRequest(principal, o, CLUSTER, CLUSTER_NAME, host) for o in NEEDED]
        return {
            r.operation
            for r in requests
            if decide_access(found, r, allow_if_no_acl=allows_everyone).is_allowed
        }

    before = set(live)
    after = (before - set(deleted)) | (set(created) - set(deleted))
    creations = [str(b) for b in created if b not in deleted]
    deletions = [str(b) for b in deleted if b in before]
    for known in (principal, None):
        for everyone in (frozenset({allows_everyone}), UNKNOWN):
            found = find(
                [str(b) for b in live],
                create=creations,
                delete=deletions,
                principal=known,
                rights=sorted(list_rights(before)),
                everyone=everyone,
            )
            lost = list_rights(before) - list_rights(after)
            assert found or not lost
            if known is not None and everyone != UNKNOWN and all(b.host == "*" for b in (*live, *created)):
                assert bool(found) is bool(lost & {operation for operation, _ in found})
