"""Find changes that create the first ACL of a resource, which can take access away from other principals.

If the broker config ``allow.everyone.if.no.acl.found`` is true, all principals have access to a resource
without ACLs (org.apache.kafka.metadata.authorizer.StandardAuthorizerData). As soon as the first ACL exists,
only principals to which an ACL grants access can use the resource.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cached_property

from kdeclare.core.diagnostics import Diagnostic, SourcePosition, warning
from kdeclare.core.parts import Connections
from kdeclare.core.resources.changes import FieldChange, FieldOp, Risk, find_highest_risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import Difference
from kdeclare.core.units import format_names
from kdeclare.providers.kafka.acl.binding import PatternIndex
from kdeclare.providers.kafka.acl.collector import read_acls
from kdeclare.providers.kafka.acl.diff import parse_field
from kdeclare.providers.kafka.acl.own_access import ALLOW_EVERYONE, read_allows_everyone
from kdeclare.providers.kafka.acl.plan_section import format_resource
from kdeclare.providers.kafka.connection import KafkaConnection


class FirstAclReview:
    """Rates the first ACL of a resource as disruptive. Reads the cluster only if a plan creates bindings."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    @cached_property
    def _allows_everyone(self) -> frozenset[bool]:
        cluster = self._connections.get(KafkaConnection).cluster
        return read_allows_everyone(cluster, cluster.describe())

    @cached_property
    def _coverage(self) -> PatternIndex:
        return PatternIndex(read_acls(self._connections).bindings)

    def review(
        self, resource: ResourceId, source: SourcePosition | None, difference: Difference
    ) -> Difference:
        """Add a risk and a warning to the difference if the change creates the first ACL of a resource.

        Raises Fault if brokers do not respond.
        """
        change = difference.change
        created = [f for f in change.fields if f.op is FieldOp.APPEND] if change is not None else []
        if change is None or not created or True not in self._allows_everyone:
            return difference
        first = [b for field in created for b in parse_field(field) if not self._coverage.covers(b)]
        if not first:
            return difference
        names = list(dict.fromkeys(map(format_resource, first)))
        uncovered = frozenset(b.resource for b in first)
        fields = tuple(_rate_field(field, uncovered) for field in change.fields)
        problem = _warn_first_acls(resource, source, names, is_certain=False not in self._allows_everyone)
        return replace(
            difference,
            change=replace(change, fields=fields, risk=find_highest_risk(fields, change.risk)),
            diagnostics=(*difference.diagnostics, problem),
        )


def _rate_field(field: FieldChange, uncovered: Collection[str]) -> FieldChange:
    is_first = field.op is FieldOp.APPEND and any(b.resource in uncovered for b in parse_field(field))
    if not is_first:
        return field
    cause = (
        "The first ACL of a resource can take access away from all principals to which no ACL grants access."
    )
    return replace(field, risk=Risk.DISRUPTIVE, cause=cause)


def _warn_first_acls(
    resource: ResourceId, source: SourcePosition | None, names: Sequence[str], *, is_certain: bool
) -> Diagnostic:
    state = (
        f"{ALLOW_EVERYONE} is true, so all principals have access to a resource without ACLs. The first ACL "
        "takes this access away from all principals to which no ACL grants access."
        if is_certain
        else f"The brokers do not show the value of {ALLOW_EVERYONE}. If it is true, all principals have "
        "access to a resource without ACLs, and the first ACL takes this access away from all "
        "principals to which no ACL grants access."
    )
    return warning(
        "first-acl",
        "First ACL of a resource",
        f"{resource} creates the first ACL on {format_names(names)}. {state}",
        hint="Check that ACLs grant access to every principal that uses these resources.",
        place=source,
        resource=str(resource),
    )
