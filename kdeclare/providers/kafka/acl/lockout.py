"""Deny changes that would take away kdeclare's own rights to read and change ACLs.

With these rights, kdeclare can restore all its other rights, so the guard does not protect other rights.

The guard computes the rights that kdeclare would have on the cluster after the plan. It does this for every
possible explanation of the current rights: each principal that kdeclare might connect as, each host that it
might connect from, and each value of the broker config ``allow.everyone.if.no.acl.found``.

If the guard allows a change, the change takes neither right away from kdeclare, provided that the brokers
evaluate ACLs as `StandardAuthorizer` does and that no other client changes ACLs at the same time. If kdeclare
cannot determine whether it would lose a right, the change is *unverified*, and the user must permit the
change. ACLs do not restrict super users. kdeclare concludes that it is a super user only if there are ACLs on
the cluster itself (bindings of type Cluster), and these ACLs do not explain its rights. kdeclare has no other
way to find out, because brokers do not return the value of ``super.users``. If there are no ACLs on the
cluster itself, the value of ``allow.everyone.if.no.acl.found`` on the controllers, which kdeclare cannot
read, can explain the rights.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import product
from typing import NamedTuple

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.operations.operation import Operation
from kdeclare.core.plans.plan import Verdict, VerdictOutcome
from kdeclare.core.resources.ids import ResourceId
from kdeclare.providers.kafka.acl.authorization import AccessRequest, decide_on_resource, is_concerned
from kdeclare.providers.kafka.acl.binding import ANY_HOST, ANY_PRINCIPAL, CLUSTER, CLUSTER_NAME, Binding
from kdeclare.providers.kafka.acl.operations import is_acl_creation, is_acl_operation, list_bindings
from kdeclare.providers.kafka.acl.own_access import ALLOW_EVERYONE, Authorizer, OwnAccess
from kdeclare.providers.kafka.plan_options import ACL_LOCKOUT

NEEDED = ("ALTER", "DESCRIBE")
"""The cluster operations that kdeclare must be allowed to perform to change and to read ACLs."""

_OVERRIDE = "--allow-acl-lockout"
_OTHER_HOST, _OTHER_PRINCIPAL = "(another host)", "User:(another principal)"
_ANONYMOUS = "User:ANONYMOUS"


class Lockout(NamedTuple):
    """A resource whose changes would, or might, take away kdeclare's right to an operation on the cluster.

    doubt: a sentence that explains why it is uncertain whether kdeclare loses this right; empty if kdeclare
    certainly loses it.
    """

    resource: ResourceId
    operation: str
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class _Changes:
    """The bindings of type Cluster that the operations of one declared resource create and delete."""

    created: frozenset[Binding]
    deleted: frozenset[Binding]


class _Explanation(NamedTuple):
    """One possible explanation of kdeclare's current permissions."""

    principal: str
    host: str
    allows_everyone: bool

    def request(self, operation: str) -> AccessRequest:
        return AccessRequest(self.principal, operation, CLUSTER, CLUSTER_NAME, self.host)


def find_lockouts(
    operations: Sequence[Operation], live: Iterable[Binding], access: OwnAccess
) -> Iterator[Lockout]:
    """Yield each resource whose changes could lock kdeclare out.

    Resources are evaluated one after another, each together with the earlier resources that were allowed.
    """
    before = frozenset(binding for binding in live if binding.resource_type == CLUSTER)
    accepted: list[_Changes] = []
    for resource, own in sorted(_collect_changes(operations).items()):
        lockout = _find_lockout(resource, own, accepted, before, access)
        if lockout is not None:
            yield lockout
        else:
            accepted.append(own)


def select_relevant(operations: Iterable[Operation]) -> list[Operation]:
    """Return the operations on bindings, or no operations if no binding applies to the cluster itself."""
    own = [op for op in operations if is_acl_operation(op)]
    is_relevant = any(b.resource_type == CLUSTER for op in own for b in list_bindings(op))
    return own if is_relevant else []


def check_lockout(
    operations: Sequence[Operation], live: Iterable[Binding], access: OwnAccess, *, is_permitted: bool
) -> Iterator[Verdict]:
    """Yield a denial for each resource whose changes could lock kdeclare out.

    If the user permits these changes, yield a warning instead.
    """
    for resource, operation, doubt in find_lockouts(operations, live, access):
        who = f"{access.principal}, which kdeclare connects as" if access.principal else "kdeclare"
        use = "change or restore" if operation == "ALTER" else "read"
        takes = "Unverified: the change may take" if doubt else "The change takes"
        message = (
            f"{takes} {operation} on the cluster "
            f"away from {who}. kdeclare could then no longer {use} ACLs.{f' {doubt}' if doubt else ''}"
        )
        yield (
            Verdict(ACL_LOCKOUT, str(resource), VerdictOutcome.WARN, message, override=_OVERRIDE)
            if is_permitted
            else Verdict(ACL_LOCKOUT, str(resource), VerdictOutcome.DENY, message)
        )


def _collect_changes(operations: Iterable[Operation]) -> Mapping[ResourceId, _Changes]:
    created: dict[ResourceId, set[Binding]] = {}
    deleted: dict[ResourceId, set[Binding]] = {}
    for op in operations:
        changed = created if is_acl_creation(op) else deleted
        own = {binding for binding in list_bindings(op) if binding.resource_type == CLUSTER}
        if own:
            changed.setdefault(op.resource, set()).update(own)
    return {
        resource: _Changes(
            frozenset(created.get(resource, ())), frozenset(deleted.get(resource, ()))
        )
        for resource in {*created, *deleted}
    }  # fmt: skip


def _find_lockout(
    resource: ResourceId,
    own: _Changes,
    accepted: Sequence[_Changes],
    before: Set[Binding],
    access: OwnAccess,
) -> Lockout | None:
    """Return how the changes of a resource can lock kdeclare out, or None if they cannot."""
    if access.authorizer is Authorizer.CUSTOM and _can_matter(own, access):
        return Lockout(resource, NEEDED[0], "The brokers use an authorizer that kdeclare does not know.")
    for operation in NEEDED:
        if access.rights is not None and operation not in access.rights:
            continue  # nothing to lose
        known_rights = {operation, *(right for right in NEEDED if right in (access.rights or ()))}
        explanations = [
            e
            for e in _explain({*before, *own.created}, access, has_acls=bool(before))
            if all(_is_allowed(before, right, e) for right in known_rights)
        ]
        losing = [e for e in explanations if not _keeps_right([*accepted, own], before, operation, e)]
        if losing:
            is_certain = bool(before) and access.rights is not None and len(losing) == len(explanations)
            return Lockout(resource, operation, "" if is_certain else _explain_doubt(access, before))
        if not explanations and _can_matter(own, access) and not _is_super_user(access):
            return Lockout(resource, operation, _explain_doubt(access, before))
    return None


def _is_super_user(access: OwnAccess) -> bool:
    """Return whether kdeclare has its rights as a super user.

    Call this only if the ACLs of the cluster do not explain the rights. A super user can read all configs,
    including the class of the authorizer.
    """
    return access.rights is not None and access.authorizer is Authorizer.STANDARD


def _can_matter(changes: _Changes, access: OwnAccess) -> bool:
    """Return whether changes could take rights away from kdeclare, regardless of where the rights come from.

    Changes to the bindings of a different principal take nothing away from kdeclare.
    """
    taking = [
        *(b for b in changes.created if not b.is_allow),
        *(b for b in changes.deleted if b.is_allow),
    ]
    return any(access.principal is None or b.principal in (access.principal, ANY_PRINCIPAL) for b in taking)


def _explain_doubt(access: OwnAccess, before: Set[Binding]) -> str:
    if not before:
        return (
            "No ACL for the cluster exists, so kdeclare cannot determine whether it is a super user or has "
            f"its permissions from {ALLOW_EVERYONE}, which applies only until the first such ACL exists."
        )
    if access.principal is None:
        return "kdeclare does not know the principal that it connects as."
    if access.rights is None:
        return "The brokers do not report which rights kdeclare has."
    if access.authorizer is Authorizer.UNKNOWN:
        return "kdeclare cannot read which authorizer the brokers use."
    return "The result depends on the host that kdeclare connects from."


def _keeps_right(
    changes: Sequence[_Changes], before: Set[Binding], operation: str, explanation: _Explanation
) -> bool:
    """Return whether kdeclare would still be allowed to perform an operation in the worst case.

    In the worst case, kdeclare fails to create the new grants of a resource. It then does not delete the old
    grants of this resource either, because deletions come after creations. All other changes are made.
    """
    request = explanation.request(operation)
    created = [binding for own in changes for binding in own.created]
    if any(not b.is_allow and is_concerned(b, request) for b in created):
        return False
    risky = [own for own in changes if not any(b.is_allow and is_concerned(b, request) for b in own.created)]
    remaining = before - {binding for own in risky for binding in own.deleted}
    if any(b.is_allow and is_concerned(b, request) for b in remaining):
        return True
    has_acls = bool(remaining) or any(own.created for own in risky)
    return explanation.allows_everyone and not has_acls


def _explain(named: Set[Binding], access: OwnAccess, *, has_acls: bool) -> Iterator[_Explanation]:
    """Yield the possible explanations of kdeclare's rights, even those that do not fit its actual rights."""
    principals = {access.principal} if access.principal is not None else _list_principals(named)
    hosts = {_OTHER_HOST, *(b.host for b in named if b.host != ANY_HOST)}
    # The value on controllers can differ from the value on brokers. It matters while the cluster has no ACLs.
    possible = access.allows_everyone if has_acls else frozenset({True, False})
    for principal, host, allows_everyone in product(principals, hosts, possible):
        yield _Explanation(principal, host, allows_everyone)


def _list_principals(bindings: Iterable[Binding]) -> set[str]:
    return {_ANONYMOUS, _OTHER_PRINCIPAL, *(b.principal for b in bindings if b.principal != ANY_PRINCIPAL)}


def _is_allowed(bindings: Set[Binding], operation: str, explanation: _Explanation) -> bool:
    decision = decide_on_resource(
        sorted(bindings), explanation.request(operation), allow_if_no_acl=explanation.allows_everyone
    )
    return decision.is_allowed
