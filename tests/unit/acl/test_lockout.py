"""The guard against plans that take kdeclare's own permissions away."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.core.operations.operation import Operation
from kdeclare.core.resources.ids import ResourceId
from kdeclare.providers.kafka.acl.authorization import AccessRequest, decide_access
from kdeclare.providers.kafka.acl.binding import CLUSTER, CLUSTER_NAME, Binding, parse_binding
from kdeclare.providers.kafka.acl.lockout import NEEDED, find_lockouts
from kdeclare.providers.kafka.acl.operations import AclArgs
from kdeclare.providers.kafka.acl.own_access import Authorizer, OwnAccess
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
    rights: Sequence[str] | None = NEEDED,
    everyone: frozenset[bool] = NEVER,
    create_elsewhere: Sequence[str] = (),
    delete_elsewhere: Sequence[str] = (),
    authorizer: Authorizer = Authorizer.STANDARD,
) -> list[tuple[str, bool]]:
    ops = [make_op("acls.create", "a", create)] if create else []
    ops += [make_op("acls.create", "b", create_elsewhere)] if create_elsewhere else []
    ops += [make_op("acls.delete", "a", delete)] if delete else []
    ops += [make_op("acls.delete", "b", delete_elsewhere)] if delete_elsewhere else []
    access = OwnAccess(principal, None if rights is None else frozenset(rights), everyone, authorizer)
    found = find_lockouts(ops, map(parse_binding, live), access)
    return [(operation, not doubt) for resource, operation, doubt in found if resource.name == "a"]


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


def test_super_user_is_inferred_only_where_acls_do_not_explain_the_right() -> None:
    """Without an ACL on the cluster, allow.everyone.if.no.acl.found of controllers can explain the right."""
    for everyone in (NEVER, UNKNOWN, frozenset({True})):
        assert find([], create=[OTHER], everyone=everyone) == [("ALTER", False)]
        assert find([], create=[ALL], everyone=everyone) == []
        assert find([], create=[ALL, OTHER], everyone=everyone) == []
        assert find([OTHER], create=[DENY], everyone=everyone) == []


def test_grant_of_another_manifest_does_not_replace_everyone() -> None:
    assert find([], create=[OTHER], create_elsewhere=[ALL]) == [("ALTER", False)]


def test_custom_authorizer_is_unverified() -> None:
    for live, create, delete in (([ALTER], [], [ALTER]), ([OTHER], [DENY], []), ([ALTER, ALL], [], [ALL])):
        assert find(live, create=create, delete=delete, authorizer=Authorizer.CUSTOM) == [("ALTER", False)]
    assert find([ALTER], create=[OTHER], authorizer=Authorizer.CUSTOM) == []
    assert find([ALTER, OTHER], delete=[OTHER], authorizer=Authorizer.CUSTOM) == []


def test_unknown_authorizer_proves_no_super_user() -> None:
    """A super user can read the class of the authorizer."""
    assert find([OTHER], create=[DENY], authorizer=Authorizer.UNKNOWN) == [("ALTER", False)]
    assert find([OTHER], delete=[OTHER], authorizer=Authorizer.UNKNOWN) == []
    assert find([ALTER, ALL], delete=[ALL], authorizer=Authorizer.UNKNOWN) == []


def test_unknown_rights_are_unverified() -> None:
    assert find([OTHER], create=[DENY], rights=None) == [("ALTER", False)]
    assert find([ALTER], delete=[ALTER], rights=None) == [("ALTER", False)]
    assert find([ALTER, ALL], delete=[ALL], rights=None) == []


def test_only_manifest_that_takes_the_right_is_named() -> None:
    assert find([ALTER, OTHER], delete=[OTHER], delete_elsewhere=[ALTER]) == []
    assert find([ALTER, OTHER], delete=[ALTER], delete_elsewhere=[OTHER]) == [("ALTER", True)]


def test_two_manifests_may_not_take_both_grants_together() -> None:
    assert find([ALTER, ALL], delete=[ALTER]) == []
    assert find([ALTER, ALL], delete=[ALTER], delete_elsewhere=[ALL]) == []  # the other one is denied
    ops = [make_op("acls.delete", "a", [ALTER]), make_op("acls.delete", "b", [ALL])]
    access = OwnAccess("User:ops", frozenset(NEEDED), NEVER)
    denied = find_lockouts(ops, map(parse_binding, [ALTER, ALL]), access)
    assert [(item.resource.name, item.operation) for item in denied] == [("b", "ALTER")]


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
