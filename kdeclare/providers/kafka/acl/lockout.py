"""Guard against plans that take away the rights with which kdeclare reads and changes ACLs.

The guard evaluates kdeclare's rights on the cluster as they would be after the plan, for every explanation of
its current rights: the principal and the host that it might connect as, and the config
``allow.everyone.if.no.acl.found``. Controllers authorize changes of ACLs with their own value of this config,
and only brokers can be asked. If the cluster has no ACLs, the value can therefore be the reason for
kdeclare's rights, whatever the brokers report. If the cluster has ACLs that do not explain the current
rights, kdeclare is a super user, and ACLs cannot take its rights away.

The result holds for `StandardAuthorizer` and without concurrent changes by other clients.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from itertools import product
from typing import NamedTuple

from kdeclare.core.diagnostics import Diagnostic, denied, warning
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.operation import Operation
from kdeclare.core.provider.registry import get_operation_type
from kdeclare.core.resources.ids import ResourceId
from kdeclare.providers.kafka.acl.authorization import AccessRequest, decide_on_resource
from kdeclare.providers.kafka.acl.binding import ANY_HOST, ANY_PRINCIPAL, CLUSTER, CLUSTER_NAME, Binding
from kdeclare.providers.kafka.acl.operations import CreateAcls, DeleteAcls, list_bindings
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import ClusterInfo
from kdeclare.providers.kafka.port import Cluster, ConfigQuery

ACL_LOCKOUT = "acl-lockout"
NEEDED = ("ALTER", "DESCRIBE")
"""The operations on the cluster with which kdeclare changes and reads ACLs."""
ALLOW_EVERYONE = "allow.everyone.if.no.acl.found"
_OTHER_HOST, _OTHER_PRINCIPAL = "(another host)", "User:(another principal)"
_ANONYMOUS = "User:ANONYMOUS"


@dataclass(frozen=True, slots=True)
class OwnAccess:
    """What kdeclare knows of its own access to a cluster.

    principal: the principal that kdeclare connects as; None if unknown.
    rights: the operations on the cluster that the brokers allow it; None if unknown.
    allows_everyone: the possible values of ``allow.everyone.if.no.acl.found``.
    """

    principal: str | None
    rights: frozenset[str] | None
    allows_everyone: frozenset[bool]


class _Explanation(NamedTuple):
    """One possible explanation of kdeclare's current rights."""

    principal: str
    host: str
    allows_everyone: bool


def read_own_access(cluster: Cluster) -> OwnAccess:
    """Read what kdeclare knows of its own access. Raises Fault if the cluster does not respond."""
    info = cluster.describe()
    return OwnAccess(info.principal, cluster.find_cluster_rights(), read_allows_everyone(cluster, info))


def read_allows_everyone(cluster: Cluster, info: ClusterInfo) -> frozenset[bool]:
    """Read the possible values of ``allow.everyone.if.no.acl.found``: both if a broker does not tell.

    Raises Fault if the cluster does not respond.
    """
    resources = [ConfigResource(ConfigScope.BROKER, str(b.id)) for b in info.brokers if not b.fenced]
    queries = [ConfigQuery(resource, frozenset({ALLOW_EVERYONE})) for resource in resources]
    possible: set[bool] = set()
    for described in cluster.describe_configs_partially(queries).values():
        if isinstance(described, Fault):
            possible |= {True, False}
        else:
            # Brokers describe the key only if it is set, and then without its value, because KafkaConfig does
            # not know it: keys of authorizers count as sensitive.
            entry = described.get(ALLOW_EVERYONE)
            possible |= {False} if entry is None else _parse_flag(entry.value)
    return frozenset(possible or {True, False})


def _parse_flag(value: str | None) -> frozenset[bool]:
    return frozenset({True, False} if value is None else {value.strip().lower() == "true"})


def find_lockouts(
    operations: Sequence[Operation], live: Iterable[Binding], access: OwnAccess
) -> Iterator[tuple[ResourceId, str, bool]]:
    """Yield each resource whose changes can lock kdeclare out, with the operation that kdeclare would lose.

    The last element is whether kdeclare certainly loses the operation.
    """
    before = _select_about_cluster(live)
    changes = [(op, _select_about_cluster(list_bindings(op))) for op in operations]
    for resource in sorted({op.resource for op, bindings in changes if bindings}):
        after = _compute_worst_case(resource, changes, before)
        for operation in NEEDED:
            if access.rights is not None and operation not in access.rights:
                continue  # nothing to lose
            known_rights = {operation, *(right for right in NEEDED if right in (access.rights or ()))}
            explanations = [
                e
                for e in _explain(before, after, access)
                if all(_is_allowed(before, right, e) for right in known_rights)
            ]
            losing = [e for e in explanations if not _is_allowed(after, operation, e)]
            if losing:
                yield resource, operation, bool(before) and len(losing) == len(explanations)
                break


def select_relevant(operations: Iterable[Operation]) -> list[Operation]:
    """Return the operations that change bindings, if any of them is about the cluster; otherwise nothing."""
    own = [op for op in operations if isinstance(get_operation_type(op), CreateAcls | DeleteAcls)]
    is_relevant = any(b.resource_type == CLUSTER for op in own for b in list_bindings(op))
    return own if is_relevant else []


def check_lockout(
    operations: Sequence[Operation], live: Collection[Binding], access: OwnAccess, *, is_permitted: bool
) -> Iterator[Diagnostic]:
    """Yield a denial for each resource that can lock kdeclare out, or a warning if the user permits it."""
    for resource, operation, is_certain in find_lockouts(operations, live, access):
        make_diagnostic = warning if is_permitted else denied
        verb = "takes" if is_certain else "may take"
        who = f"{access.principal}, which kdeclare connects as" if access.principal else "kdeclare"
        has_acls = any(binding.resource_type == CLUSTER for binding in live)
        reason = "" if is_certain else f" {_explain_doubt(access, has_acls=has_acls)}"
        yield make_diagnostic(
            ACL_LOCKOUT,
            "Change locks kdeclare out",
            f"{resource} {verb} {operation} on the cluster away from {who}. kdeclare could then no longer "
            f"{'change or restore' if operation == 'ALTER' else 'read'} ACLs.{reason}",
            hint="A super user can restore the right."
            if is_permitted
            else f"Keep a binding that allows {operation} on the cluster, apply as a different principal, or "
            "pass --allow-acl-lockout.",
            resource=str(resource),
        )


def _select_about_cluster(bindings: Iterable[Binding]) -> frozenset[Binding]:
    return frozenset(binding for binding in bindings if binding.resource_type == CLUSTER)


def _explain_doubt(access: OwnAccess, *, has_acls: bool) -> str:
    if not has_acls:
        return (
            f"The cluster has no ACLs yet. If {ALLOW_EVERYONE} is true on the controllers, which kdeclare "
            "cannot ask, every principal has all rights until the first ACL exists."
        )
    if access.principal is None:
        return "kdeclare does not know the principal that it connects as."
    if len(access.allows_everyone) > 1:
        return f"kdeclare cannot read the broker config {ALLOW_EVERYONE}."
    return "This depends on the host that kdeclare connects from."


def _compute_worst_case(
    resource: ResourceId, changes: Collection[tuple[Operation, Set[Binding]]], before: Set[Binding]
) -> frozenset[Binding]:
    """Return the bindings of the cluster if all other resources create no grants, because they can fail.

    A resource deletes its grants only after it has created its new grants.
    """
    created: set[Binding] = set()
    deleted: set[Binding] = set()
    for op, bindings in changes:
        if isinstance(get_operation_type(op), DeleteAcls):
            deleted |= {b for b in bindings if b.is_allow}
        else:
            created |= {b for b in bindings if op.resource == resource or not b.is_allow}
    return frozenset((before - deleted) | created)


def _explain(before: Set[Binding], after: Set[Binding], access: OwnAccess) -> Iterator[_Explanation]:
    """Yield what kdeclare might connect as. Its rights may or may not follow from it."""
    named = {*before, *after}
    principals = {access.principal} if access.principal is not None else _list_principals(named)
    hosts = {_OTHER_HOST, *(b.host for b in named if b.host != ANY_HOST)}
    possible_values = access.allows_everyone if before else {True, *access.allows_everyone}
    for principal, host, allows_everyone in product(principals, hosts, possible_values):
        yield _Explanation(principal, host, allows_everyone)


def _list_principals(bindings: Iterable[Binding]) -> set[str]:
    return {_ANONYMOUS, _OTHER_PRINCIPAL, *(b.principal for b in bindings if b.principal != ANY_PRINCIPAL)}


def _is_allowed(bindings: Set[Binding], operation: str, explanation: _Explanation) -> bool:
    request = AccessRequest(explanation.principal, operation, CLUSTER, CLUSTER_NAME, explanation.host)
    decision = decide_on_resource(sorted(bindings), request, allow_if_no_acl=explanation.allows_everyone)
    return decision.is_allowed
