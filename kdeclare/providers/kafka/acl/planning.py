"""Planning hooks for ACLs: shared bindings, the order of operations, and permissions on missing topics."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from itertools import pairwise

from kdeclare.core.diagnostics import Diagnostic, denied, error, info, warning
from kdeclare.core.operations.operation import Operation
from kdeclare.core.operations.operation_type import with_inverse
from kdeclare.core.plans.plan import Verdict
from kdeclare.core.plans.plan_hooks import PlanHooks, PlanInputs, PlanStep
from kdeclare.core.resources.changes import Action, Change, FieldOp, Reason, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, Difference, ResourceComparison
from kdeclare.core.resources.owned_record import OwnedRecord, narrow_record
from kdeclare.providers.kafka.acl.binding import ANY_NAME, ANY_PRINCIPAL, LITERAL, TOPIC, Binding
from kdeclare.providers.kafka.acl.collector import AclState, Visibility, read_acls
from kdeclare.providers.kafka.acl.diff import Claims, Phase, diff_acl, find_phase, parse_field
from kdeclare.providers.kafka.acl.first_acls import FirstAclReview
from kdeclare.providers.kafka.acl.lockout import check_lockout, select_relevant
from kdeclare.providers.kafka.acl.operations import (
    DELETE,
    KIND,
    is_acl_creation,
    is_acl_operation,
    list_bindings,
)
from kdeclare.providers.kafka.acl.own_access import read_own_access
from kdeclare.providers.kafka.acl.record import AclRecord, get_owned_bindings
from kdeclare.providers.kafka.acl.spec import AclBody
from kdeclare.providers.kafka.collector import report_unsupported
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.operations.arguments import DeleteTopicArgs
from kdeclare.providers.kafka.plan_options import get_kafka_options

_MAX_NAMED = 5
_ORDER_REASON = "the principal must not temporarily have too few or too many permissions"
_ADMIN_REASON = "kdeclare may need the permission to change ACLs while it makes the other changes"


class AclPlanning(PlanHooks):
    """The planning hooks for ACLs. They record which resources declare and own each binding."""

    def __init__(self, inputs: PlanInputs) -> None:
        """Count the resources that declare each binding, and the orphans that own each binding."""
        self._inputs = inputs
        self._live = inputs.live.find(AclState)
        self._is_without_authorizer_reported = False
        self._first_acls = FirstAclReview(inputs.connections)
        self._declared = Counter(
            binding
            for item in inputs.desired
            if item.id.kind == KIND
            for binding in item.get_body(AclBody).bindings
        )
        declared_ids = {str(item.id) for item in inputs.desired}
        records = inputs.state.resources if inputs.state is not None else {}
        self._owned: Counter[Binding] = Counter()
        self._owned_by_orphans: Counter[Binding] = Counter()
        for text, record in records.items():
            if isinstance(record, AclRecord):
                self._owned.update(record.bindings)
                if text not in declared_ids:
                    self._owned_by_orphans.update(record.bindings)
        self._created: dict[Binding, ResourceId] = {}
        self._deleted: dict[Binding, ResourceId] = {}

    def withhold(
        self, resource: ResourceId, desired: DesiredResource | None, owned: OwnedRecord | None
    ) -> Difference | None:
        """Leave an Acl unchanged if its bindings cannot be read. Report a missing authorizer only once."""
        if resource.kind != KIND or self._live is None or self._live.visibility is Visibility.VISIBLE:
            return None
        if self._live.visibility is Visibility.HIDDEN:
            return Difference(None, owned, diagnostics=(_report_hidden(resource, desired),))
        if self._live.visibility is Visibility.UNSUPPORTED:
            return Difference(None, owned, diagnostics=(report_unsupported(resource, desired, "ACLs"),))
        if self._is_without_authorizer_reported:
            return Difference(None, owned)
        self._is_without_authorizer_reported = True
        return Difference(None, owned, diagnostics=(_report_no_authorizer(resource, desired),))

    def review_difference(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        owned: OwnedRecord | None,
        difference: Difference,
    ) -> Difference:
        """Compute the diff again, taking into account the bindings that other resources declare and own.

        The engine calls this method for one resource after another, in the order of their ids.
        """
        if resource.kind != KIND or self._live is None:
            return difference
        if not self._inputs.by_hand:
            difference = self._review_claims(resource, desired, owned, difference)
        return self._first_acls.review(resource, desired.source if desired else None, difference)

    def _review_claims(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        owned: OwnedRecord | None,
        difference: Difference,
    ) -> Difference:
        assert self._live is not None
        change = difference.change
        if change is not None and change.action in (Action.FORGET, Action.NO_OP) and desired is None:
            return self._review_orphan(resource, owned, difference)
        claims = self._build_claims(resource, desired)
        reviewed = diff_acl(resource, desired, self._live, narrow_record(owned, AclRecord), claims)
        self._remember_changes(resource, reviewed)
        if desired is None and change is not None and reviewed.change is not None:
            # The engine decided why the bindings are deleted, and whether this is allowed.
            return replace(difference, change=replace(change, fields=reviewed.change.fields))
        return reviewed

    def refine(self, operations: tuple[Operation, ...], compared: Sequence[ResourceComparison]) -> PlanStep:
        """Order the operations of each principal. Check permissions on missing topics."""
        problems = tuple(self._check_dangling(operations, compared))
        return PlanStep(self._order_operations(operations), problems)

    def guard(self, operations: tuple[Operation, ...]) -> tuple[Verdict, ...]:
        """Deny changes that take away kdeclare's own permissions on ACLs."""
        relevant = select_relevant(operations)
        if not relevant:
            return ()
        connections = self._inputs.connections
        live = read_acls(connections)
        access = read_own_access(connections.get(KafkaConnection).cluster)
        is_permitted = get_kafka_options(self._inputs.options).allow_acl_lockout
        return tuple(check_lockout(relevant, live.bindings, access, is_permitted=is_permitted))

    def _order_operations(self, operations: Sequence[Operation]) -> tuple[Operation, ...]:
        """Order the operations on the same principal, and the operations on admin grants.

        An admin grant allows a principal to change ACLs. kdeclare may depend on any admin grant, so admin
        grants are created first and deleted last. If an operation fails, the operations of other resources
        still run.
        """
        own_operations = [op for op in operations if is_acl_operation(op)]
        if len({op.resource for op in own_operations}) < 2:
            return tuple(operations)
        phases: dict[str, dict[Phase, list[Operation]]] = defaultdict(lambda: defaultdict(list))
        principals_by_id = {op.id: _list_principals(op) for op in own_operations}
        every_principal = {p for principals in principals_by_id.values() for p in principals}
        for op in own_operations:
            # A binding for all principals applies to every principal.
            principals = principals_by_id[op.id]
            for principal in every_principal if ANY_PRINCIPAL in principals else principals:
                phases[principal][_find_phase(op)].append(op)
        follows: dict[str, dict[str, str]] = defaultdict(dict)
        for by_phase in phases.values():
            in_order = [by_phase[phase] for phase in Phase if phase in by_phase]
            for earlier, later in pairwise(in_order):
                for op in later:
                    follows[op.id] |= {
                        before.id: _ORDER_REASON for before in earlier if before.resource != op.resource
                    }
        for op, earlier in _order_admin_grants(own_operations):
            follows[op.id] |= {
                before.id: _ADMIN_REASON for before in earlier if before.resource != op.resource
            }
        return tuple(
            replace(op, follows={**follows[op.id], **op.follows}) if follows.get(op.id) else op
            for op in operations
        )

    def _check_dangling(
        self, operations: Sequence[Operation], compared: Sequence[ResourceComparison]
    ) -> Iterator[Diagnostic]:
        """Warn about permissions on topics that do not exist.

        If such a topic is created later, the permissions apply to it.
        """
        live = self._inputs.live.find(KafkaState)
        if live is None or self._live is None or self._inputs.by_hand:
            return
        deleted = {op.args.topic for op in operations if isinstance(op.args, DeleteTopicArgs)}
        declared = {item.id.name for item in self._inputs.desired if item.id.kind == "Topic"}
        existing = (live.topics.keys() | live.hidden | declared) - deleted
        for item in compared:
            if item.id.kind != KIND or item.desired is None:
                continue
            missing = {
                binding.name
                for binding in item.desired.get_body(AclBody).bindings
                if binding.is_allow
                and binding.resource_type == TOPIC
                and binding.pattern == LITERAL
                and binding.name != ANY_NAME
                and binding.name not in existing
            }
            for topics, is_deleted in ((missing & deleted, True), (missing - deleted, False)):
                if topics:
                    yield _warn_dangling(item.desired, sorted(topics), is_deleted=is_deleted)

    def finalize(self, operations: tuple[Operation, ...]) -> PlanStep:
        """In a rollback, do not delete bindings that other resources also own."""
        kept: list[Operation] = []
        problems: list[Diagnostic] = []
        for op in operations:
            shared = (
                self._find_shared_bindings(op) if _is_undo(op) and op.verb == DELETE.name else frozenset()
            )
            if not shared:
                kept.append(op)
                continue
            problems.append(_report_shared(op, sorted(shared)))
            rest = DELETE.without_elements(replace(op, inverse=None, irreversible=None), shared)
            if rest is not None:
                kept.append(with_inverse(DELETE, rest))
        return PlanStep(tuple(kept), tuple(problems))

    def _find_shared_bindings(self, op: Operation) -> frozenset[str]:
        records = self._inputs.state.resources if self._inputs.state is not None else {}
        own = frozenset(get_owned_bindings(records.get(str(op.resource))))
        bindings = list_bindings(op)
        return frozenset(str(b) for b in bindings if self._owned[b] > (b in own))

    def count_unmanaged(self, known: Set[str]) -> int:
        """Count the live bindings that are neither declared nor owned."""
        if self._live is None:
            return 0
        return sum(b not in self._declared and b not in self._owned for b in self._live.bindings)

    def _build_claims(self, resource: ResourceId, desired: DesiredResource | None) -> Claims:
        declared, orphaned = self._declared, self._owned_by_orphans
        if desired is None:
            # An orphan does not keep a binding that another orphan may delete.
            return Claims(lambda b: b in declared or self._deleted.get(b, resource) != resource)
        return Claims(
            is_held=lambda b: b in declared or b in orphaned or self._deleted.get(b, resource) != resource,
            is_known=lambda b: b in declared or b in self._owned,
            is_created=lambda b: self._created.get(b, resource) != resource,
        )

    def _review_orphan(
        self, resource: ResourceId, owned: OwnedRecord | None, difference: Difference
    ) -> Difference:
        """End the ownership of an orphan if other resources declare its bindings, as after a rename."""
        record = narrow_record(owned, AclRecord)
        if difference.change is None or difference.change.action is not Action.NO_OP or record is None:
            return difference
        assert self._live is not None
        if all(b in self._declared for b in record.bindings if self._live.has(b)):
            return Difference(Change(resource, Action.FORGET, Reason.FORGOTTEN, Risk.SAFE))
        return difference

    def _remember_changes(self, resource: ResourceId, difference: Difference) -> None:
        for field in difference.change.fields if difference.change is not None else ():
            changed = self._created if field.op is FieldOp.APPEND else self._deleted
            for binding in parse_field(field):
                changed.setdefault(binding, resource)


def _is_undo(op: Operation) -> bool:
    """Return whether the operation belongs to a rollback."""
    return op.id.startswith("undo:")


def _report_shared(op: Operation, texts: Sequence[str]) -> Diagnostic:
    names = ", ".join(texts[:_MAX_NAMED])
    more_count = len(texts) - _MAX_NAMED
    more_text = f" and {more_count} more" if more_count > 0 else ""
    return info(
        "shared-binding",
        "Binding kept for another resource",
        f"The rollback of {op.resource} does not delete {names}{more_text}, because another resource of the "
        "project also owns these bindings.",
        resource=str(op.resource),
    )


def _find_phase(op: Operation) -> Phase:
    """Return the phase of an operation on bindings. All of its bindings have the same phase."""
    return find_phase(list_bindings(op)[0], creates=is_acl_creation(op))


def _order_admin_grants(operations: Sequence[Operation]) -> Iterator[tuple[Operation, list[Operation]]]:
    """Yield the dependencies that order admin grants: each operation, and the operations that must run first.

    An admin grant allows a principal to change ACLs. The operations that run first are always in an earlier
    phase, so these dependencies cannot form a cycle.
    """
    by_phase: dict[Phase, list[Operation]] = defaultdict(list)
    for op in operations:
        by_phase[_find_phase(op)].append(op)
    if admin_creations := by_phase[Phase.CREATE_ADMIN_GRANTS]:
        for op in by_phase[Phase.CREATE_GRANTS]:
            yield op, admin_creations
    if admin_deletions := by_phase[Phase.DELETE_ADMIN_GRANTS]:
        others = [*by_phase[Phase.CREATE_GRANTS], *by_phase[Phase.DELETE_GRANTS]]
        for op in admin_deletions:
            yield op, [*by_phase[Phase.CREATE_ADMIN_GRANTS], *others]


def _list_principals(op: Operation) -> frozenset[str]:
    return frozenset(binding.principal for binding in list_bindings(op))


def _report_hidden(resource: ResourceId, desired: DesiredResource | None) -> Diagnostic:
    make_diagnostic, outcome = (
        (denied, "is left unchanged") if desired else (warning, "is left unchanged and stays owned")
    )
    return make_diagnostic(
        "not-visible",
        "ACLs not visible",
        f"{resource} {outcome}: without the Describe permission on the cluster, kdeclare cannot see its "
        "bindings.",
        hint="Grant kdeclare the Describe permission on the cluster.",
        place=desired.source if desired else None,
        resource=str(resource),
    )


def _report_no_authorizer(resource: ResourceId, desired: DesiredResource | None) -> Diagnostic:
    make_diagnostic = error if desired else warning
    return make_diagnostic(
        "no-authorizer",
        "Brokers have no authorizer",
        "The brokers have no authorizer, so they cannot store ACLs, and every client is allowed to do "
        "everything.",
        hint="Set authorizer.class.name in the properties of all brokers and controllers, or remove the Acl "
        "manifests.",
        place=desired.source if desired else None,
        resource=str(resource),
    )


def _warn_dangling(desired: DesiredResource, topics: Sequence[str], *, is_deleted: bool) -> Diagnostic:
    names = ", ".join(topics[:_MAX_NAMED])
    more_count = len(topics) - _MAX_NAMED
    more_text = f" and {more_count} more" if more_count > 0 else ""
    state = "this plan deletes" if is_deleted else "do not exist"
    return warning(
        "acl-dangling",
        "ACLs for topics that do not exist",
        f"{desired.id} allows access to topics that {state}: {names}{more_text}. If a topic with one of "
        "these names is created later, the ACLs apply to it immediately.",
        hint="Remove these names from the manifest, or create the topics.",
        place=desired.source,
        resource=str(desired.id),
    )
