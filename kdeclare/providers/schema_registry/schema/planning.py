"""The planning hooks for schemas: references between schemas, renamed manifests, and preflight checks."""

from collections.abc import Iterable, Iterator, Sequence, Set

from kdeclare.core.diagnostics import Diagnostic, denied, info
from kdeclare.core.operations.operation import Operation
from kdeclare.core.plans.live_references import find_deleted_names
from kdeclare.core.plans.observation import Observation
from kdeclare.core.plans.plan_hooks import PlanHooks, PlanInputs, PlanStep
from kdeclare.core.resources.changes import Action, Change, Reason, Risk
from kdeclare.core.resources.endpoint_choice import withhold_resource
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, Difference, ResourceComparison
from kdeclare.core.resources.owned_record import OwnedRecord, narrow_record
from kdeclare.providers.schema_registry.schema.arguments import RegisterArgs, SchemaRecord
from kdeclare.providers.schema_registry.schema.checks import TOPIC
from kdeclare.providers.schema_registry.schema.diff import diff_schema, find_registry_problem
from kdeclare.providers.schema_registry.schema.live import SchemaState
from kdeclare.providers.schema_registry.schema.preflight import check_operations
from kdeclare.providers.schema_registry.schema.resolution import PlannedSchemas, collect_planned
from kdeclare.providers.schema_registry.schema.spec import SCHEMA, SchemaBody
from kdeclare.providers.schema_registry.subject_references import observe_topic_references


class SchemaPlanning(PlanHooks):
    """The planning hooks for schemas."""

    def __init__(self, inputs: PlanInputs) -> None:
        """Collect the schemas that the plan's manifests declare, and the subjects that kdeclare owns."""
        self._inputs = inputs
        self._live = inputs.live.find(SchemaState)
        self._planned = (
            collect_planned(inputs.desired, self._live) if self._live is not None else PlannedSchemas()
        )
        self._registering: set[ResourceId] = set()
        # An undeclared resource can only count as renamed if all manifests were read.
        self._follows_renames = inputs.is_complete and not inputs.by_hand
        self._names = {item.id for item in inputs.desired if item.id.kind == SCHEMA}
        resources = inputs.state.resources if inputs.state is not None else {}
        self._owned = {
            (record.registry, record.subject): (ResourceId.parse(text), record)
            for text, record in resources.items()
            if isinstance(record, SchemaRecord)
        }

    def prepare(self) -> object | None:
        """Return the declared schemas, because references can refer to their new latest versions."""
        return self._planned if self._live is not None else None

    def withhold(
        self, resource: ResourceId, desired: DesiredResource | None, owned: OwnedRecord | None
    ) -> Difference | None:
        """Report a subject whose registry is not configured or did not respond."""
        if resource.kind != SCHEMA or self._live is None:
            return None
        problem = find_registry_problem(resource, desired, self._live, narrow_record(owned, SchemaRecord))
        return None if problem is None else withhold_resource(problem, desired, owned)

    def review_difference(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        owned: OwnedRecord | None,
        difference: Difference,
    ) -> Difference:
        """If a manifest was renamed, transfer the ownership of the subject to the new resource."""
        if resource.kind != SCHEMA or self._live is None or not self._follows_renames:
            return difference
        if desired is not None:
            return self._take_over(resource, desired, owned, difference, self._live)
        record = narrow_record(owned, SchemaRecord)
        successor = self._planned.find(record.registry, record.subject) if record is not None else None
        if successor is None or successor.id == resource:
            return difference
        diagnostics = (_report_renamed(resource, successor),)
        taken = diff_schema(successor.id, successor, self._live, record, self._planned)
        if taken.change is None:
            forget = Change(resource, Action.FORGET, Reason.FORGOTTEN, Risk.SAFE)
            return Difference(forget, diagnostics=diagnostics)
        # The changes of the renamed manifest can be denied or fail. Keep the old record until they succeed.
        orphan = Change(resource, Action.NO_OP, Reason.ORPHANED, Risk.SAFE)
        return Difference(orphan, owned, diagnostics=diagnostics)

    def _take_over(
        self,
        resource: ResourceId,
        desired: DesiredResource,
        owned: OwnedRecord | None,
        difference: Difference,
        live: SchemaState,
    ) -> Difference:
        body = desired.get_body(SchemaBody)
        earlier = self._owned.get((live.get(body.registry).name, body.subject))
        if owned is not None or earlier is None or earlier[0] in self._names:
            return difference
        return diff_schema(resource, desired, live, earlier[1], self._planned)

    def refine(self, operations: tuple[Operation, ...], compared: Sequence[ResourceComparison]) -> PlanStep:
        """Deny registrations with references to a new latest version that this plan does not register."""
        self._registering = {op.resource for op in operations if isinstance(op.args, RegisterArgs)}
        return PlanStep(operations, tuple(self._check_planned_references(operations)))

    def settle(self, operations: tuple[Operation, ...], compared: Sequence[ResourceComparison]) -> PlanStep:
        """Block the other changes of schemas whose registration depends on a denied registration."""
        return PlanStep(operations, tuple(self._find_lost_registrations(operations)))

    def finalize(self, operations: tuple[Operation, ...]) -> PlanStep:
        """Block the other changes of schemas whose registration the registry would refuse; see `settle`."""
        return PlanStep(operations, tuple(self._find_lost_registrations(operations)))

    def _find_lost_registrations(self, operations: Sequence[Operation]) -> Iterator[Diagnostic]:
        """Yield a denial for each schema whose registration was removed but whose other operations remain.

        Without the denial, the compatibility level would be changed for a schema that is not registered.
        """
        registering = {op.resource for op in operations if isinstance(op.args, RegisterArgs)}
        for resource in sorted({op.resource for op in operations} & self._registering - registering):
            desired = next((item for item in self._inputs.desired if item.id == resource), None)
            yield denied(
                "reference-denied",
                "Referenced schema is denied",
                f"{resource} refers to a schema whose new version is denied, so the referring schema is not "
                "registered either, and its compatibility level stays as it is.",
                hint="Correct the referenced schema first.",
                place=desired.source if desired is not None else None,
                resource=str(resource),
            )

    def _check_planned_references(self, operations: Sequence[Operation]) -> Iterator[Diagnostic]:
        """Yield denials of registrations with references to a latest version that the plan does not register.

        If a registration is denied, registrations that refer to its version are denied, too.
        """
        registrations = {op.id: (op, op.args) for op in operations if isinstance(op.args, RegisterArgs)}
        while True:
            planned = {
                (args.endpoint, args.subject, args.content.fingerprint) for _, args in registrations.values()
            }
            missing = {
                op.id: (op, args.endpoint, item.subject)
                for op, args in registrations.values()
                for item in args.content.references
                if item.version is None and (args.endpoint, item.subject, item.content) not in planned
            }
            if not missing:
                return
            for op_id, (op, registry, subject) in missing.items():
                del registrations[op_id]
                yield self._report_unplanned(op, registry, subject)

    def _report_unplanned(self, op: Operation, registry: str, subject: str) -> Diagnostic:
        target = self._planned.find(registry, subject)
        name = str(target.id) if target is not None else subject
        place = next((item.source for item in self._inputs.desired if item.id == op.resource), None)
        return denied(
            "reference-not-planned",
            "Referenced schema is not part of the plan",
            f"{op.resource} refers to the latest version of subject '{subject}'. {name} declares a newer "
            "schema for this subject, but this plan does not register the newer schema.",
            hint=f"Include {name} in the plan, or apply it first.",
            place=place,
            resource=str(op.resource),
            subject=name,
        )

    def preflight(self, operations: tuple[Operation, ...]) -> tuple[Diagnostic, ...]:
        """Have the registry check the compatibility of schemas, and find deletions that it would refuse."""
        if self._live is None:
            return ()
        desired = {item.id: item for item in self._inputs.desired if item.id.kind == SCHEMA}
        return tuple(check_operations(operations, desired, self._live, self._inputs.connections))

    def count_unmanaged(self, known: Set[str]) -> int:
        """Count the subjects that are neither declared nor owned."""
        if self._live is None:
            return 0
        subjects = {
            (snapshot.name, subject)
            for snapshot in self._live.registries.values()
            for subject in snapshot.names or ()
        }
        return len(subjects - self._planned.desired.keys() - self._owned.keys())

    def observe_impact(
        self, operations: tuple[Operation, ...], changes: Sequence[Change]
    ) -> Iterable[Observation]:
        """Return observations about undeclared subjects that are named after deleted topics."""
        topics = find_deleted_names(changes, TOPIC)
        return observe_topic_references(self._inputs, operations, topics) if topics else ()


def _report_renamed(resource: ResourceId, successor: DesiredResource) -> Diagnostic:
    return info(
        "renamed",
        "Manifest renamed",
        f"Subject '{successor.get_body(SchemaBody).subject}' was declared by {resource} and is now declared "
        f"by {successor.id}. The ownership record moves to {successor.id}.",
        place=successor.source,
        resource=str(resource),
    )
