"""Kinds of objects: resources that have fields, and that are created and deleted as a whole.

In many systems, all resources are objects. A provider of such a system uses `ObjectKind`, which implements
the three-way diff, adoption, deletion, rollback, import, and fleet audits.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from pydantic import BaseModel

from kdeclare.core.diagnostics import Diagnostic, denied
from kdeclare.core.jsontypes import JsonObject, JsonValue, as_bool, as_object, as_texts
from kdeclare.core.live.collector import Selections
from kdeclare.core.live.faults import Explanation, Fault, Outcome
from kdeclare.core.live.live_codec import LiveKey
from kdeclare.core.operations.completion import Completion
from kdeclare.core.operations.operation import Operation
from kdeclare.core.operations.operation_type import OperationType, with_inverse
from kdeclare.core.parts import Connections, LiveState, PlanContext
from kdeclare.core.plans.run import Status
from kdeclare.core.plans.state import PendingCleanup
from kdeclare.core.policies.policy_fields import PolicyWords, build_policy_field
from kdeclare.core.provider.provider import ListedParts
from kdeclare.core.resources.adoption import report_adoption
from kdeclare.core.resources.changes import Action, Change, FieldChange, FieldOp, Reason, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.ignored_changes import check_ignored_paths
from kdeclare.core.resources.kind import (
    DesiredResource,
    Difference,
    SpecPath,
    SpecProblem,
    narrow,
    narrow_optional,
)
from kdeclare.core.resources.manifest_capabilities import (
    DeclaredFields,
    Export,
    ExportRequest,
    FieldEdit,
    ManifestEdits,
    OmittedObjects,
    SettingEdit,
    ValueEdit,
)
from kdeclare.core.resources.manifest_text import render_manifest
from kdeclare.core.resources.objects.manifest_text import (
    format_variable,
    format_yaml,
    report_unwritable_field,
    warn_literal_secret,
)
from kdeclare.core.resources.objects.operation import ObjectOperation
from kdeclare.core.resources.objects.values import (
    Fields,
    ObjectArgs,
    ObjectBody,
    ObjectRecord,
    ObjectSpec,
    ObjectValue,
    ObjectWrite,
    decode_secret,
    get_object_args,
    is_same,
    mask_secret,
    to_argument,
)
from kdeclare.core.resources.owned_record import OwnedRecord, is_protected, merge_fields, narrow_record
from kdeclare.core.resources.plan_capabilities import PREVENT_DESTROY
from kdeclare.core.secrets.secret_refs import (
    SENSITIVE_MASK,
    Secret,
    SecretRef,
    find_nested_secrets,
    is_secret,
)
from kdeclare.core.suggestions import format_suggestion


class ObjectKind:
    """A kind of objects. A provider implements `select`, `read` and `write`.

    references: the fields that contain the names of other objects, each with the kind of these objects.
    completion: detects when the system has finished the work that follows the creation or update of an
        object.
    """

    record: type[OwnedRecord] = ObjectRecord

    def __init__(
        self,
        name: str,
        spec: type[ObjectSpec],
        references: Mapping[str, str] | None = None,
        completion: Completion | None = None,
    ) -> None:
        """Create the kind and its operation types. The provider must register the kind and these types."""
        self.name = name
        self.spec: type[BaseModel] = spec
        self.policy_words = PolicyWords(
            {
                field: build_policy_field(known.annotation)
                for field, known in spec.model_fields.items()
                if field != "lifecycle"
            }
        )
        self.references = references or {}
        self.completion = completion
        self.create = ObjectOperation(self, Action.CREATE)
        self.update = ObjectOperation(self, Action.UPDATE)
        self.delete = ObjectOperation(self, Action.DELETE)
        self.tidy = ObjectOperation(self, Action.UPDATE, is_cleanup=True)

    @property
    def operation_types(self) -> tuple[OperationType, ...]:
        """The operation types of this kind."""
        return self.create, self.update, self.delete, self.tidy

    def find_mistakes(self, listed: ListedParts) -> Iterator[str]:
        """See `ChecksItsProvider`."""
        names = {operation_type.name for operation_type in listed.operation_types}
        unlisted = [own_type.name for own_type in self.operation_types if own_type.name not in names]
        if unlisted:
            yield f"the provider does not list its operation types {', '.join(unlisted)} in operation_types"
        if not any(collector.reads(self.select_every()) for collector in listed.collectors):
            yield "no collector in the provider's collectors reads this kind"
        fields = [name for name in self.spec.model_fields if name != "lifecycle"]
        spec = self.spec.__name__
        for name in find_nested_secrets(self.spec):
            yield f"field '{name}' of {spec} contains a nested secret; declare the secret as a separate field"
        for name, kind in self.references.items():
            if name not in fields:
                yield (
                    f"'references' contains '{name}', which is not a field of "
                    f"{spec}{_format_suggestion_suffix(name, fields)}"
                )
            if kind not in listed.kinds:
                yield (
                    f"'references' contains an unknown kind, "
                    f"'{kind}'{_format_suggestion_suffix(kind, listed.kinds)}"
                )

    def plan_cleanup(self, name: str, fields: Mapping[str, ObjectValue], live: LiveState) -> Operation:
        """Return a cleanup operation, which writes ``fields`` to remove what earlier runs left behind."""
        return self._plan_operation(self.tidy, ResourceId(self.name, name), fields, {}, live)

    def select(self, name: str, body: object | None, owned: OwnedRecord | None) -> Selections:
        """See `Kind`."""
        raise NotImplementedError

    def read(self, live: LiveState) -> Mapping[str, Fields]:
        """Return the fields of live objects of this kind, by object name. Secrets are wrapped by `hide`."""
        raise NotImplementedError

    def write(
        self, connections: Connections, writes: Sequence[ObjectWrite], *, validate_only: bool
    ) -> Sequence[Outcome]:
        """Execute or validate each write independently. Return an outcome for each write. Raises Fault."""
        raise NotImplementedError

    def explain(self, op: Operation, fault: Fault) -> Explanation:
        """See `OperationType`."""
        return Explanation()

    def update_cleanup(self, op: Operation, status: Status, before: PendingCleanup) -> PendingCleanup:
        """See `OperationType`."""
        return before

    def parse(self, name: str, spec: BaseModel) -> tuple[ObjectBody, tuple[SpecProblem, ...]]:
        """See `Kind`."""
        spec = narrow(spec, ObjectSpec)
        spec_values = {
            field: getattr(spec, field) for field in type(spec).model_fields if field != "lifecycle"
        }
        secrets = {field: value for field, value in spec_values.items() if isinstance(value, Secret)}
        plain = spec.model_dump(mode="json", exclude={"lifecycle", *secrets}, exclude_none=True)
        all_fields: Fields = {field: secrets.get(field, plain.get(field)) for field in spec_values}
        fields = {field: value for field, value in all_fields.items() if value is not None}
        literal_names = (name for name, secret in secrets.items() if secret.reference is None)
        problems = tuple(warn_literal_secret(f"{self.name}/{name}", stated) for stated in literal_names)
        ignored = spec.lifecycle.ignoreChanges
        problems += check_ignored_paths(f"{self.name}/{name}", ignored, spec_values)
        body = ObjectBody(fields, spec.lifecycle.preventDestroy, spec.lifecycle.adopt, tuple(ignored))
        return body, problems

    def ignore_fields(
        self, desired: DesiredResource, live: LiveState, owned: OwnedRecord | None
    ) -> ObjectBody:
        """See `IgnoresChanges`."""
        body = desired.get_body(ObjectBody)
        if not body.ignored:
            return body
        if desired.id.name not in self.read(live):
            return replace(body, ignored=())
        return replace(body, fields={k: v for k, v in body.fields.items() if k not in body.ignored})

    def diff(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> Difference:
        """See `Kind`."""
        live_fields = self.read(live).get(resource.name)
        if desired is None:
            return _diff_undeclared(resource, live_fields, owned)
        body = self.ignore_fields(desired, live, owned)
        all_applied_fields = _find_applied(owned)
        applied_fields = {k: v for k, v in all_applied_fields.items() if k not in body.ignored}
        desired_fields = dict(sorted({**dict.fromkeys(applied_fields), **body.fields}.items()))
        changed_names = [
            name
            for name, value in desired_fields.items()
            if not is_same(value, (live_fields or {}).get(name))
        ]
        fields = tuple(
            FieldChange(
                name,
                FieldOp.CHANGE,
                mask_secret((live_fields or {}).get(name)),
                mask_secret(desired_fields[name]),
            )
            for name in changed_names
        )
        declared_values = {name: to_argument(value) for name, value in body.fields.items()}
        declared_values |= {k: v for k, v in all_applied_fields.items() if k in body.ignored}
        record = ObjectRecord(declared_values, body.prevent_destroy)
        if live_fields is None:
            reason = Reason.DECLARED if owned is None else Reason.MISSING
            change = Change(resource, Action.CREATE, reason, Risk.SAFE, fields, desired.source)
            return Difference(change, record)
        drifted = tuple(
            name for name, value in applied_fields.items() if not is_same(value, live_fields.get(name))
        )
        if not fields:
            return Difference(None, record, drifted=drifted)
        adoption = (report_adoption(desired, fields),) if owned is None else ()
        reason = Reason.ADOPT if adoption else Reason.DRIFTED if drifted else Reason.CHANGED
        blocked = next((d.code for d in adoption if d.is_blocking), None)
        change = Change(resource, Action.UPDATE, reason, Risk.SAFE, fields, desired.source, blocked)
        return Difference(change, record, diagnostics=adoption, drifted=drifted)

    def plan_operations(
        self,
        change: Change,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> tuple[Operation, ...]:
        """See `Kind`."""
        by_action = {Action.CREATE: self.create, Action.UPDATE: self.update, Action.DELETE: self.delete}
        live_fields = self.read(live).get(change.id.name, {})
        desired_fields: Fields = desired.get_body(ObjectBody).fields if desired is not None else {}
        names = (
            (field.path for field in change.fields)
            if desired is not None
            else filter(self._can_state, live_fields)
        )
        fields = {name: to_argument(desired_fields.get(name)) for name in names}
        return (
            self._plan_operation(by_action[change.action], change.id, fields, _find_applied(owned), live),
        )

    def merge_ownership(
        self,
        before: OwnedRecord | None,
        after: OwnedRecord | None,
        done: tuple[Operation, ...],
        all_done: bool,
    ) -> OwnedRecord | None:
        """See `Kind`.

        If only some operations succeeded, the record changes only in the fields that they set.
        """
        old_record, new_record = narrow_record(before, ObjectRecord), narrow_record(after, ObjectRecord)
        if all_done or old_record is None or new_record is None or not done:
            return new_record if all_done or done else old_record
        undone_names = {name for op in done for name in get_object_args(op).set}
        return replace(new_record, fields=merge_fields(old_record.fields, new_record.fields, undone_names))

    def select_every(self) -> Selections:
        """Return the selections that read all objects.

        By default, these are the selections that `select` returns for an empty name.
        """
        return self.select("", None, None)

    def export(self, connections: Connections, request: ExportRequest) -> Export:
        """See `Exportable`. Manifests contain references to environment variables instead of secrets."""
        objects = self.read(request.read(self.select_every()))
        matching_objects = {name: fields for name, fields in objects.items() if request.matches(name)}
        permitted_names = [name for name in matching_objects if request.permits(ResourceId(self.name, name))]
        reason = "outside the scope of the project"
        out_of_scope = OmittedObjects(
            len(matching_objects) - len(permitted_names), self.name, f"{self.name}s", reason
        )
        return Export(
            {name: self._render_manifest(name, matching_objects[name]) for name in permitted_names},
            (out_of_scope,),
        )

    def to_json(self, name: str, body: object) -> JsonObject:
        """See `BodyCodec`."""
        body = narrow(body, ObjectBody)
        values = {key: v.stated if isinstance(v, Secret) else v for key, v in body.fields.items()}
        document: JsonObject = {"fields": values, "preventDestroy": body.prevent_destroy, "adopt": body.adopt}
        return {**document, "ignoreChanges": list(body.ignored)} if body.ignored else document

    def from_json(self, json: JsonObject) -> ObjectBody:
        """See `BodyCodec`."""
        fields: Fields = {
            key: decode_secret(value) if is_secret(value) else value
            for key, value in as_object(json["fields"]).items()
        }
        ignored = as_texts(json.get("ignoreChanges", ()))
        return ObjectBody(fields, as_bool(json["preventDestroy"]), as_bool(json["adopt"]), ignored)

    def is_self_contained(self, name: str, body: object) -> bool:
        """See `FleetComparable`."""
        return True

    def find_live_key(self, name: str, body: object | None, owned: OwnedRecord | None) -> LiveKey:
        """See `FleetComparable`."""
        return LiveKey(self.name, name)

    def describe_declared(self, desired: DesiredResource) -> Mapping[str, object]:
        """See `PolicySubject`."""
        body = desired.get_body(ObjectBody)
        return {name: mask_secret(value) for name, value in body.fields.items()}

    def describe_live(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
    ) -> Mapping[str, object] | None:
        """See `PolicySubject`."""
        live_fields = self.read(live).get(resource.name)
        return (
            None if live_fields is None else {name: mask_secret(value) for name, value in live_fields.items()}
        )

    def list_live(self, live: LiveState) -> Collection[str]:
        """See `ListedForPolicies`."""
        return self.read(live).keys()

    def find_edits(self, change: Change, declared: DeclaredFields) -> ManifestEdits:
        """See `Editable`. The edits include changed secrets, which the caller refuses to write."""
        edits: list[FieldEdit] = []
        problems: list[SpecProblem] = []
        for changed in change.fields:
            path, after = (changed.path,), changed.after
            if after == SENSITIVE_MASK:
                edits.append(SettingEdit(path, (changed,)))
            elif after is None or isinstance(after, str | int):
                edits.append(ValueEdit(path, after))
            elif isinstance(after, list):
                edits.append(ValueEdit(path, [item for item in after if isinstance(item, str | int)]))
            else:
                problems.append(report_unwritable_field(change.id, changed.path))
        return ManifestEdits(tuple(edits), tuple(problems))

    def is_field_claimed(self, field: FieldChange, stated: JsonObject) -> bool:
        """See `ClaimsFields`."""
        return field.path in as_object(stated["fields"])

    def locate_secret(self, path: SpecPath) -> SpecPath | None:
        """See `LocatesSecrets`."""
        return path[1:]  # without the first step, "fields" (`ObjectBody.fields`)

    def render_spec_lines(self, change: Change) -> Sequence[str]:
        """See `Editable`."""
        return [
            f"{field.path}: {format_yaml(field.after)}" for field in change.fields if field.after is not None
        ]

    def is_same_value(self, path: SpecPath, text: str, value: JsonValue) -> bool:
        """See `Editable`."""
        return text == str(value)

    def is_as_changed(self, name: str, before: object | None, after: object, change: Change) -> bool:
        """See `Editable`."""
        body = narrow_optional(before, ObjectBody) or ObjectBody({})
        merged_fields: Fields = {**body.fields, **{field.path: field.after for field in change.fields}}
        fields = {name: value for name, value in merged_fields.items() if value is not None}
        return replace(body, fields=fields) == after

    def _render_manifest(self, name: str, fields: Fields) -> str:
        lines = [
            f"{key}: {format_variable(name, key) if isinstance(value, Secret) else format_yaml(value)}"
            for key, value in fields.items()
            if value is not None and self._can_state(key)
        ]
        return render_manifest(self.name, name, lines)

    def _can_state(self, field: str) -> bool:
        """Whether a manifest can declare a field.

        Fields that manifests cannot declare are set only by the system.
        """
        return field in self.spec.model_fields

    def _plan_operation(
        self,
        operation_type: ObjectOperation,
        id_: ResourceId,
        fields: Mapping[str, ObjectValue],
        applied: Mapping[str, ObjectValue],
        live: LiveState,
    ) -> Operation:
        applied_values = ((name, applied.get(name)) for name in fields)
        earlier_secrets = {name: value for name, value in applied_values if isinstance(value, SecretRef)}
        draft = Operation(
            f"{operation_type.name}:{id_}",
            operation_type.name,
            id_,
            ObjectArgs(dict(fields), earlier_secrets),
            {},
        )
        return with_inverse(operation_type, replace(draft, expect=operation_type.compute_view(draft, live)))


def _format_suggestion_suffix(word: str, candidates: Iterable[str]) -> str:
    question = format_suggestion(word, candidates)
    return f" ({question[0].lower()}{question[1:]})" if question else ""


def _diff_undeclared(
    resource: ResourceId, live_fields: Fields | None, owned: OwnedRecord | None
) -> Difference:
    if live_fields is None:
        return Difference(None)
    diagnostics: tuple[Diagnostic, ...] = ()
    if is_protected(owned):
        diagnostics = (
            denied(
                PREVENT_DESTROY,
                "Deletion prevented",
                f"{resource} must not be deleted: lifecycle.preventDestroy was true when the resource was "
                "last applied.",
                hint=f"Declare the resource again, or release it with kdeclare apply --forget {resource}.",
                resource=str(resource),
            ),
        )
    change = Change(resource, Action.DELETE, Reason.ORPHANED, Risk.DESTRUCTIVE)
    return Difference(change, None, diagnostics=diagnostics)


def _find_applied(owned: OwnedRecord | None) -> Mapping[str, ObjectValue]:
    record = narrow_record(owned, ObjectRecord)
    return record.fields if record is not None else {}
