"""Compute the three-way diff of the bindings of one Acl.

A binding either exists or does not exist, so an existing binding is adopted without a request. Changes are
made in the following order: create denials, create grants, delete grants, delete denials. With this order, a
principal never temporarily loses a right that it has before and after the run. It also never temporarily gets
a right that it has neither before nor after the run. Grants of the right to change ACLs are created before
all other grants, and deleted after them: kdeclare may need this right for the rest of the run.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from enum import IntEnum
from itertools import groupby

from kdeclare.core.diagnostics import Diagnostic, denied
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import as_texts
from kdeclare.core.resources.changes import (
    Action,
    Change,
    FieldChange,
    FieldOp,
    Reason,
    Risk,
    find_highest_risk,
)
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, Difference
from kdeclare.core.resources.plan_capabilities import PREVENT_DESTROY
from kdeclare.providers.kafka.acl.binding import (
    ALL,
    ALTER,
    CLUSTER,
    DENY,
    Binding,
    join_binding,
    sort_bindings,
)
from kdeclare.providers.kafka.acl.collector import AclState
from kdeclare.providers.kafka.acl.record import AclRecord
from kdeclare.providers.kafka.acl.spec import AclBody

BINDINGS_FIELD_PREFIX = "bindings."
MAX_CREATED, MAX_DELETED = 500, 100
"""The maximum numbers of bindings in one creation and in one deletion. Brokers delete more slowly."""

_MAX_UNMANAGED = 20
"""The maximum number of unmanaged bindings that a plan lists for each Acl."""


class Phase(IntEnum):
    """The phases of a change, in order. An admin grant allows a principal to change ACLs."""

    CREATE_DENIALS = 0
    CREATE_ADMIN_GRANTS = 1
    CREATE_GRANTS = 2
    DELETE_GRANTS = 3
    DELETE_ADMIN_GRANTS = 4
    DELETE_DENIALS = 5

    @property
    def creates(self) -> bool:
        """Whether the phase creates bindings."""
        return self <= Phase.CREATE_GRANTS

    @property
    def limit(self) -> int:
        """The maximum number of bindings of one operation."""
        return MAX_CREATED if self.creates else MAX_DELETED


def find_phase(binding: Binding, *, creates: bool) -> Phase:
    """Return the phase in which a binding is created or deleted."""
    if not binding.is_allow:
        return Phase.CREATE_DENIALS if creates else Phase.DELETE_DENIALS
    if binding.resource_type == CLUSTER and binding.operation in (ALL, ALTER):
        return Phase.CREATE_ADMIN_GRANTS if creates else Phase.DELETE_ADMIN_GRANTS
    return Phase.CREATE_GRANTS if creates else Phase.DELETE_GRANTS


def _never(_: Binding) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Claims:
    """How other resources of the project use a binding.

    is_held: returns whether another resource declares a binding. Such a binding must not be deleted.
    is_known: returns whether another resource declares or owns a binding. Such a binding is not unmanaged.
    is_created: returns whether the plan creates a binding for another resource.
    """

    is_held: Callable[[Binding], bool] = _never
    is_known: Callable[[Binding], bool] = _never
    is_created: Callable[[Binding], bool] = _never


NO_CLAIMS = Claims()


def diff_acl(
    resource: ResourceId,
    desired: DesiredResource | None,
    live: AclState,
    owned: AclRecord | None,
    claims: Claims = NO_CLAIMS,
) -> Difference:
    """Compare the desired, live and owned bindings of one Acl."""
    applied = owned.bindings if owned is not None else ()
    if desired is None:
        return _diff_undeclared(resource, live, owned, claims)
    body = desired.get_body(AclBody)
    declared = body.bindings.keys()
    missing = [binding for binding in declared if not live.has(binding)]
    created = [binding for binding in missing if not claims.is_created(binding)]
    deleted = {b for b in (*applied, *body.absent) if b not in declared and live.has(b)}
    others = {b for principal in body.principals for b in live.of(principal)}.difference(declared, applied)
    if body.remove_unmanaged:
        deleted |= others
    deleted = {b for b in deleted if not claims.is_held(b)}
    fields = build_fields(created, deleted)
    drifted = frozenset(applied).intersection(missing)
    change = None
    if fields:
        reason = Reason.DRIFTED if drifted else Reason.DECLARED if owned is None else Reason.CHANGED
        is_new = owned is None and not body.is_partial and 0 < len(created) == len(declared)
        action = Action.CREATE if is_new else Action.UPDATE
        change = Change(resource, action, reason, find_highest_risk(fields), fields, desired.source)
    unmanaged = () if body.remove_unmanaged else _list_unmanaged(others, claims)
    kept = sort_bindings(b for b in declared if live.has(b) or not claims.is_created(b))
    return Difference(
        change,
        AclRecord(
            kept,
            dict(desired.labels),
            body.prevent_destroy,
            {b: role for b in kept if (role := body.bindings[b])},
        ),
        unmanaged,
        drifted=tuple(sorted({BINDINGS_FIELD_PREFIX + binding.resource for binding in drifted})),
    )


def build_absent_record(body: AclBody, live: AclState, owned: AclRecord | None) -> AclRecord | None:
    """Return a record of everything to delete; see `DeletesByRecord`.

    An Acl can have any name, so only its bindings determine what to delete.
    """
    if owned is not None and not body.adopt:
        return owned
    declared = {b: role for b, role in body.bindings.items() if live.has(b)}
    if owned is None:
        roles = {b: role for b, role in declared.items() if role}
        return AclRecord(tuple(declared), roles=roles) if declared else None
    roles = {b: role for b, role in {**declared, **owned.roles}.items() if role}
    return replace(owned, bindings=sort_bindings({*owned.bindings, *declared}), roles=roles)


def _diff_undeclared(
    resource: ResourceId, live: AclState, owned: AclRecord | None, claims: Claims
) -> Difference:
    """Return the difference for an orphan: the deletion of the owned bindings that still exist."""
    applied = owned.bindings if owned is not None else ()
    fields = build_fields((), (b for b in applied if live.has(b) and not claims.is_held(b)))
    if not fields:
        return Difference(None)
    change = Change(resource, Action.DELETE, Reason.ORPHANED, Risk.DISRUPTIVE, fields)
    is_protected = owned is not None and owned.preventDestroy
    return Difference(change, None, (), (_report_protected(resource),) if is_protected else ())


def build_fields(created: Iterable[Binding], deleted: Iterable[Binding]) -> tuple[FieldChange, ...]:
    """Return the field changes, in the order in which they are applied.

    There is one field change for each phase and resource. If one operation cannot change all bindings of the
    resource, the field change is split.
    """
    phases = [
        *((find_phase(b, creates=True), b) for b in created),
        *((find_phase(b, creates=False), b) for b in deleted),
    ]
    return tuple(
        field
        for phase, bindings in groupby(sorted(phases), key=lambda item: item[0])
        for field in build_phase_fields(phase.creates, [binding for _, binding in bindings], phase.limit)
    )


def build_phase_fields(is_creation: bool, bindings: Sequence[Binding], limit: int) -> Iterator[FieldChange]:
    """Yield the field changes that create or delete these bindings, in the order of the bindings."""
    for resource, group in groupby(bindings, key=lambda binding: binding.resource):
        elements = [binding.element for binding in group]
        for start in range(0, len(elements), limit):
            part = elements[start : start + limit]
            field = (
                FieldChange(BINDINGS_FIELD_PREFIX + resource, FieldOp.APPEND, None, part, part)
                if is_creation
                else FieldChange(BINDINGS_FIELD_PREFIX + resource, FieldOp.SUBTRACT, part, None, part)
            )
            yield assess_bindings(field)


def parse_field(field: FieldChange) -> tuple[Binding, ...]:
    """Return the bindings that a field change creates or deletes. Raises ValueError or TypeError."""
    resource = field.path.removeprefix(BINDINGS_FIELD_PREFIX)
    return tuple(join_binding(resource, element) for element in as_texts(field.value))


def assess_bindings(field: FieldChange) -> FieldChange:
    """Return the field change with its risk. New denials and deleted grants take permissions away."""
    elements = as_texts(field.value) if field.value is not None else ()
    has_denials = any(element.startswith(DENY) for element in elements)
    has_grants = any(not element.startswith(DENY) for element in elements)
    if has_denials if field.op is FieldOp.APPEND else has_grants:
        return replace(field, risk=Risk.DISRUPTIVE, cause="Clients of these principals lose access.")
    return replace(field, risk=Risk.SAFE, cause="")


def _list_unmanaged(others: Iterable[Binding], claims: Claims) -> tuple[str, ...]:
    """Return the unmanaged bindings as text. If there are many, return only their number by principal."""
    unmanaged = sort_bindings(binding for binding in others if not claims.is_known(binding))
    if len(unmanaged) <= _MAX_UNMANAGED:
        return tuple(map(str, unmanaged))
    by_principal = groupby(sorted(unmanaged, key=_get_principal), key=_get_principal)
    return tuple(f"{len(list(group)):,} bindings of {principal}" for principal, group in by_principal)


def _get_principal(binding: Binding) -> str:
    return binding.principal


def _report_protected(resource: ResourceId) -> Diagnostic:
    return denied(
        PREVENT_DESTROY,
        "Deletion prevented",
        f"The bindings of {resource} cannot be deleted: lifecycle.preventDestroy was true when the Acl was "
        "last applied.",
        hint=f"Declare the Acl again, or release it with 'kdeclare apply --forget {resource}'.",
        resource=str(resource),
    )
