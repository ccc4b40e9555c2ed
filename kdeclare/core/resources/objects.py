"""Kinds whose resources are objects: they have fields, and are created and deleted as a whole.

Many systems have nothing else. Their provider says what an object is (`ObjectKind`), and gets the three-way
diff, adoption, deletion, rollback, import, and what audits of fleets need. What is more than an object is a
`Kind` of its own.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import field, replace
from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from kdeclare.core.diagnostics import LITERAL_SECRET, Diagnostic, denied, error, warning
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonObject, JsonValue, as_bool, as_object, as_texts
from kdeclare.core.live.collector import Selections
from kdeclare.core.live.faults import Explanation, Fault, Outcome
from kdeclare.core.live.live_codec import LiveKey
from kdeclare.core.operations.argument_binding import OMIT_EMPTY, get_arguments
from kdeclare.core.operations.operation import Arguments, Operation, UndoResult
from kdeclare.core.operations.operation_type import (
    Access,
    Completion,
    Footprint,
    FootprintEntry,
    OperationType,
    View,
    with_inverse,
)
from kdeclare.core.parts import Connections, LiveState, PlanContext
from kdeclare.core.plans.run import Status
from kdeclare.core.plans.state import PendingCleanup
from kdeclare.core.provider.provider import ListedParts
from kdeclare.core.resources.adoption import report_adoption
from kdeclare.core.resources.capabilities import (
    PREVENT_DESTROY,
    DeclaredFields,
    Export,
    ExportRequest,
    FieldEdit,
    ManifestEdits,
    OmittedObjects,
    SettingEdit,
    ValueEdit,
)
from kdeclare.core.resources.changes import Action, Change, FieldChange, FieldOp, Reason, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import (
    DesiredResource,
    Difference,
    SpecPath,
    SpecProblem,
    narrow,
    narrow_optional,
)
from kdeclare.core.resources.manifest_text import render_manifest
from kdeclare.core.resources.owned_record import OwnedRecord, is_protected, merge_fields, narrow_record
from kdeclare.core.resources.policy_subjects import PolicyWords, build_policy_field
from kdeclare.core.secrets.secret_hashes import is_hash_of, is_mark, mark_hash, mark_value
from kdeclare.core.secrets.secret_refs import (
    SENSITIVE_MASK,
    UNKNOWN_HASH,
    Secret,
    SecretRef,
    SecretSource,
    ValuePath,
    bind_secret_ref,
    find_nested_secrets,
    is_secret,
)
from kdeclare.core.suggestions import format_suggestion

FieldValue: TypeAlias = Secret | JsonValue
"""The value of a field in live states and bodies."""

Fields = Mapping[str, FieldValue]
"""The fields of an object."""

EXISTS = "exists"
"""The element of a view that says whether the object is there."""


class Lifecycle(BaseModel):
    """What must never happen to an object, and what may."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    preventDestroy: bool = False  # noqa: N815
    adopt: bool = False


class ObjectSpec(BaseModel):
    """``spec`` of an object: its fields, named as in the live state. None leaves a field alone."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    lifecycle: Lifecycle = Lifecycle()


@dataclass(frozen=True, slots=True)
class ObjectBody:
    """A declared object. Fields that are not stated are not in it."""

    fields: Fields
    prevent_destroy: bool = False
    adopt: bool = False


@dataclass(frozen=True, slots=True)
class ObjectWrite:
    """What a system is asked to do: to create an object, to change some fields of it, or to delete it.

    fields: as plain values, secrets too; a field that is None is reset. None deletes the object.
    """

    id: ResourceId
    fields: JsonObject | None
    is_new: bool = False


ObjectValue: TypeAlias = Annotated[SecretRef | JsonValue, Field(union_mode="left_to_right")]
"""The value of a field in arguments."""


@dataclass(frozen=True, slots=True)
class ObjectArgs(Arguments):
    """The arguments of `ObjectOperation`.

    set: the fields to write; of a deletion, those that it takes away. was: the secrets that are replaced or
    deleted, for the way back.
    """

    set: Mapping[str, ObjectValue]
    was: Annotated[Mapping[str, SecretRef], OMIT_EMPTY] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ObjectRecord(OwnedRecord):
    """The fields that are kdeclare's, as they were last applied."""

    fields: Mapping[str, ObjectValue] = field(default_factory=dict)
    preventDestroy: bool = False  # noqa: N815


class ObjectKind:
    """A kind of objects. A provider says `select`, `read` and `write`.

    references: the fields that name other objects, one or a list of them, each with the kind of these.
    completion: how the work is followed that goes on in the system once an object was created or updated.
    """

    record: type[OwnedRecord] = ObjectRecord

    def __init__(
        self,
        name: str,
        spec: type[ObjectSpec],
        references: Mapping[str, str] | None = None,
        completion: Completion | None = None,
    ) -> None:
        """Make the kind and its operation types; a provider lists both."""
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
        """What is done to objects of this kind."""
        return self.create, self.update, self.delete, self.tidy

    def find_mistakes(self, listed: ListedParts) -> Iterator[str]:
        """See `ChecksItsProvider`."""
        names = {operation_type.name for operation_type in listed.operation_types}
        unlisted = [own_type.name for own_type in self.operation_types if own_type.name not in names]
        if unlisted:
            yield f"the provider does not list its operation types {', '.join(unlisted)} in operation_types"
        if not any(collector.reads(self.select_every()) for collector in listed.collectors):
            yield "the provider lists no collector that reads it in collectors"
        fields = [name for name in self.spec.model_fields if name != "lifecycle"]
        spec = self.spec.__name__
        for name in find_nested_secrets(self.spec):
            yield f"field '{name}' of {spec} has a secret inside it; make the secret a field of its own"
        for name, kind in self.references.items():
            if name not in fields:
                yield (
                    f"references name '{name}', which is not a field of "
                    f"{spec}{_format_suggestion_suffix(name, fields)}"
                )
            if kind not in listed.kinds:
                yield (
                    f"references name an unknown kind, "
                    f"'{kind}'{_format_suggestion_suffix(kind, listed.kinds)}"
                )

    def plan_cleanup(self, name: str, fields: Mapping[str, ObjectValue], live: LiveState) -> Operation:
        """Return the operation that writes fields to clean up what runs have left; `find_cleanup` asks so."""
        return self._plan_operation(self.tidy, ResourceId(self.name, name), fields, {}, live)

    def select(self, name: str, body: object | None, owned: OwnedRecord | None) -> Selections:
        """See `Kind`."""
        raise NotImplementedError

    def read(self, live: LiveState) -> Mapping[str, Fields]:
        """Return the objects of this kind that were read, by name; secrets as `secrets.hide` has them."""
        raise NotImplementedError

    def write(
        self, connections: Connections, writes: Sequence[ObjectWrite], *, validate_only: bool
    ) -> Sequence[Outcome]:
        """Make all writes, each for itself, or only check them; return an outcome for each. Raises Fault."""
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
        return ObjectBody(fields, spec.lifecycle.preventDestroy, spec.lifecycle.adopt), problems

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
        body = desired.get_body(ObjectBody)
        applied_fields = _find_applied(owned)
        desired_fields = dict(sorted({**dict.fromkeys(applied_fields), **body.fields}.items()))
        changed_names = [
            name
            for name, value in desired_fields.items()
            if not _is_same(value, (live_fields or {}).get(name))
        ]
        fields = tuple(
            FieldChange(
                name,
                FieldOp.CHANGE,
                _mask_secret((live_fields or {}).get(name)),
                _mask_secret(desired_fields[name]),
            )
            for name in changed_names
        )
        declared_values = {name: _to_argument(value) for name, value in body.fields.items()}
        record = ObjectRecord(declared_values, body.prevent_destroy)
        if live_fields is None:
            reason = Reason.DECLARED if owned is None else Reason.MISSING
            change = Change(resource, Action.CREATE, reason, Risk.SAFE, fields, desired.source)
            return Difference(change, record)
        drifted = tuple(
            name for name, value in applied_fields.items() if not _is_same(value, live_fields.get(name))
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
        fields = {name: _to_argument(desired_fields.get(name)) for name in names}
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
        """See `Kind`. An object has one operation; in a rollback it may undo some fields only."""
        old_record, new_record = narrow_record(before, ObjectRecord), narrow_record(after, ObjectRecord)
        if all_done or old_record is None or new_record is None or not done:
            return new_record if all_done or done else old_record
        undone_names = {name for op in done for name in _get_args(op).set}
        return replace(new_record, fields=merge_fields(old_record.fields, new_record.fields, undone_names))

    def select_every(self) -> Selections:
        """Return what must be read to see all objects; by default what is read for one of no name."""
        return self.select("", None, None)

    def export(self, connections: Connections, request: ExportRequest) -> Export:
        """See `Exportable`. Secrets become references to variables."""
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
        return {"fields": values, "preventDestroy": body.prevent_destroy, "adopt": body.adopt}

    def from_json(self, json: JsonObject) -> ObjectBody:
        """See `BodyCodec`."""
        fields: Fields = {
            key: _decode_secret(value) if is_secret(value) else value
            for key, value in as_object(json["fields"]).items()
        }
        return ObjectBody(fields, as_bool(json["preventDestroy"]), as_bool(json["adopt"]))

    def is_self_contained(self, name: str, body: object) -> bool:
        """See `FleetComparable`."""
        return True

    def find_live_key(self, name: str, body: object | None, owned: OwnedRecord | None) -> LiveKey:
        """See `FleetComparable`."""
        return LiveKey(self.name, name)

    def describe_declared(self, desired: DesiredResource) -> Mapping[str, object]:
        """See `PolicySubject`."""
        body = desired.get_body(ObjectBody)
        return {name: _mask_secret(value) for name, value in body.fields.items()}

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
            None
            if live_fields is None
            else {name: _mask_secret(value) for name, value in live_fields.items()}
        )

    def list_live(self, live: LiveState) -> Collection[str]:
        """See `ListedForPolicies`."""
        return self.read(live).keys()

    def find_edits(self, change: Change, declared: DeclaredFields) -> ManifestEdits:
        """See `Editable`. A secret is refused by whoever makes the edits."""
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
                problems.append(_report_unwritable_field(change.id, changed.path))
        return ManifestEdits(tuple(edits), tuple(problems))

    def is_field_claimed(self, field: FieldChange, stated: JsonObject) -> bool:
        """See `ClaimsFields`."""
        return field.path in as_object(stated["fields"])

    def locate_secret(self, path: SpecPath) -> SpecPath | None:
        """See `LocatesSecrets`."""
        return path[1:]  # below `ObjectBody.fields`

    def render_spec_lines(self, change: Change) -> Sequence[str]:
        """See `Editable`."""
        return [
            f"{field.path}: {_format_yaml(field.after)}" for field in change.fields if field.after is not None
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
            f"{key}: {_format_variable(name, key) if isinstance(value, Secret) else _format_yaml(value)}"
            for key, value in fields.items()
            if value is not None and self._can_state(key)
        ]
        return render_manifest(self.name, name, lines)

    def _can_state(self, field: str) -> bool:
        """Whether a manifest can state a field; others are the system's own."""
        return field in self.spec.model_fields

    def _plan_operation(
        self,
        operation_type: "ObjectOperation",
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


class ObjectOperation(OperationType):
    """Creates, updates or deletes one object."""

    arguments = ObjectArgs
    validates = True

    def __init__(self, kind: ObjectKind, action: Action, *, is_cleanup: bool = False) -> None:
        """Do ``action`` to objects of a kind. is_cleanup: it updates what nobody declares."""
        self._kind = kind
        self.name = f"{_to_kebab_case(kind.name)}.{'tidy' if is_cleanup else action}"
        self.creates, self.deletes = action is Action.CREATE, action is Action.DELETE
        self.is_auxiliary = self.is_cleanup = is_cleanup
        self.completion = None if self.deletes or is_cleanup else kind.completion

    def select(self, op: Operation) -> Selections:
        """What its kind reads."""
        return self._kind.select(op.resource.name, None, None)

    def compute_view(self, op: Operation, live: LiveState) -> View:
        """Whether the object is there, and its fields; a secret is a mark."""
        live_fields = self._kind.read(live).get(op.resource.name)
        elements: dict[str, JsonValue] = {EXISTS: live_fields is not None}
        args = _get_args(op)
        for name in args.set:
            value = (live_fields or {}).get(name)
            if isinstance(value, Secret):
                records = (args.set[name], args.was.get(name))
                known_hashes = [record.secret for record in records if isinstance(record, SecretRef)]
                value = mark_value(str(op.resource), name, value.value, known_hashes)
            elements[name] = value
        return elements

    def expected_state(self, op: Operation) -> View:
        """As written."""
        fields = {name: _to_mark(value) for name, value in _get_args(op).set.items()}
        return {EXISTS: not self.deletes, **fields}

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """One per field; an object that goes says it by its action."""
        after = {} if self.deletes else _get_args(op).set
        return tuple(
            FieldChange(name, FieldOp.CHANGE, _mask_secret(op.expect.get(name)), _mask_secret(value))
            for name, value in after.items()
        )

    def less(self, op: Operation, subjects: Set[ResourceId]) -> Operation | None:
        """All or nothing."""
        return None if op.resource in subjects else op

    def find_element(self, op: Operation, at: ValuePath) -> str:
        """The field."""
        return str(at[1]) if len(at) > 1 else super().find_element(op, at)

    def without_elements(self, op: Operation, elements: Set[str]) -> Operation | None:
        """The other fields of an update."""
        args = _get_args(op)
        left = {name: value for name, value in args.set.items() if name not in elements}
        if self.creates or not left:
            return None
        expect = {name: value for name, value in op.expect.items() if name not in elements}
        return replace(op, args=replace(args, set=left), expect=expect)

    def is_confined(self, op: Operation) -> bool:
        """Its arguments name no other object."""
        return op.resource.kind == self._kind.name

    def claims(self, op: Operation) -> Mapping[str, str]:
        """Its existence and its fields."""
        return {element: f"{op.resource}/{element}" for element in (EXISTS, *_get_args(op).set)}

    def compute_footprint(self, op: Operation) -> Footprint:
        """The object, what its fields refer to from now on, and what they referred to before."""
        required = self._find_references(_get_args(op).set)
        released = self._find_references(op.expect) - required
        own_access = Access.CREATE if self.creates else Access.DELETE if self.deletes else Access.UPDATE
        return (
            FootprintEntry(op.resource.kind, op.resource.name, own_access),
            *(FootprintEntry(id_.kind, id_.name, Access.REQUIRES) for id_ in sorted(required)),
            *(FootprintEntry(id_.kind, id_.name, Access.AFTER) for id_ in sorted(released)),
        )

    def explain(self, op: Operation, fault: Fault) -> Explanation:
        """As its kind does."""
        return self._kind.explain(op, fault)

    def execute(
        self,
        connections: Connections,
        ops: Sequence[Operation],
        secrets: SecretSource,
        *,
        validate_only: bool,
    ) -> Mapping[str, Outcome]:
        """Have the kind write, with the values of secrets."""
        writes = []
        for op in ops:
            field_items = _get_args(op).set.items()
            fields = {n: secrets.reveal(v) if isinstance(v, SecretRef) else v for n, v in field_items}
            writes.append(ObjectWrite(op.resource, None if self.deletes else fields, self.creates))
        outcomes = self._kind.write(connections, writes, validate_only=validate_only)
        return {op.id: outcome for op, outcome in zip(ops, outcomes, strict=True)}

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> UndoResult:
        """Bring back the earlier value of each field that still is as the operation left it."""
        before, after, args = op.expect, self.expected_state(op), _get_args(op)
        if now == before:
            return UndoResult()
        conflicts = tuple(e for e in now if now[e] not in (before.get(e), after.get(e)))
        if self.creates:
            if not now[EXISTS] or conflicts:
                return UndoResult(conflicts=conflicts)
            secrets = {name: value for name, value in args.set.items() if isinstance(value, SecretRef)}
            return UndoResult(self._kind.delete.name, ObjectArgs(dict.fromkeys(args.set), secrets))
        names = [name for name in args.set if now[name] == after[name] != before.get(name)]
        resolvable_refs = {name: ref for name, ref in args.was.items() if ref.reference is not None}
        lost_fields = tuple(
            name for name in names if is_mark(before.get(name)) and name not in resolvable_refs
        )
        restored = {
            name: resolvable_refs.get(name, before.get(name)) for name in names if name not in lost_fields
        }
        if self.deletes:
            recreated_args = ObjectArgs(
                {name: value for name, value in restored.items() if value is not None}
            )
            return UndoResult(
                self._kind.create.name,
                None if lost_fields or conflicts else recreated_args,
                conflicts,
                lost_fields,
            )
        replaced_secrets = {
            name: value for name in restored if isinstance(value := args.set[name], SecretRef)
        }
        return UndoResult(
            self.name, ObjectArgs(restored, replaced_secrets) if restored else None, conflicts, lost_fields
        )

    def update_cleanup(self, op: Operation, status: Status, before: PendingCleanup) -> PendingCleanup:
        """As its kind does."""
        return self._kind.update_cleanup(op, status, before)

    def _find_references(self, fields: Mapping[str, ObjectValue]) -> frozenset[ResourceId]:
        return frozenset(
            ResourceId(kind, name)
            for stated, kind in self._kind.references.items()
            for name in _list_names(fields.get(stated))
        )


def _format_suggestion_suffix(word: str, candidates: Iterable[str]) -> str:
    question = format_suggestion(word, candidates)
    return f" ({question[0].lower()}{question[1:]})" if question else ""


def _list_names(value: ObjectValue) -> Sequence[str]:
    if isinstance(value, SecretRef) or not value:
        return ()
    return (value,) if isinstance(value, str) else as_texts(value)


def get_fields(op: Operation) -> Mapping[str, ObjectValue]:
    """Return the fields that an `ObjectOperation` writes. Raises TypeError for another operation."""
    return _get_args(op).set


def warn_literal_secret(resource: str, field: str) -> SpecProblem:
    """Return what to say of a secret whose value stands in a manifest."""
    problem = warning(
        LITERAL_SECRET,
        "Secret written into a manifest",
        f"'{field}' is sensitive, and its value stands in the manifest.",
        hint="Write ${env.NAME} or ${file.PATH} in its place.",
        resource=resource,
        subject=field,
    )
    return SpecProblem((field,), problem)


def _report_unwritable_field(resource: ResourceId, field: str) -> SpecProblem:
    problem = error(
        "field-not-written",
        "Field cannot be written",
        f"'{field}' of {resource} is neither a text, a whole number, a truth value nor a list of these.",
        hint="Change the manifest by hand.",
        resource=str(resource),
        subject=field,
    )
    return SpecProblem((field,), problem)


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
                f"{resource} must not be deleted: its lifecycle.preventDestroy was true when last applied.",
                hint=f"Declare it again, or release it with kdeclare apply --forget {resource}.",
                resource=str(resource),
            ),
        )
    change = Change(resource, Action.DELETE, Reason.ORPHANED, Risk.DESTRUCTIVE)
    return Difference(change, None, diagnostics=diagnostics)


def _is_same(expected: FieldValue | SecretRef, live: FieldValue) -> bool:
    """Whether a declared or owned value is what the system has."""
    if not isinstance(live, Secret):
        return bool(expected == live)
    if live.digest == UNKNOWN_HASH:
        return True
    if isinstance(expected, Secret) and expected.value:
        return expected.value == live.value
    digest = (
        expected.digest
        if isinstance(expected, Secret)
        else expected.secret
        if isinstance(expected, SecretRef)
        else ""
    )
    return bool(digest) and is_hash_of(digest, live.value)


def _find_applied(owned: OwnedRecord | None) -> Mapping[str, ObjectValue]:
    record = narrow_record(owned, ObjectRecord)
    return record.fields if record is not None else {}


def _decode_secret(record: JsonObject) -> Secret:
    secret_ref = bind_secret_ref(record)
    return Secret("", secret_ref.reference, secret_ref.secret)


def _get_args(op: Operation) -> ObjectArgs:
    return get_arguments(op, ObjectArgs)


def _to_argument(value: FieldValue) -> ObjectValue:
    return value.ref if isinstance(value, Secret) else value


def _to_mark(value: ObjectValue) -> JsonValue:
    return mark_hash(value.secret) if isinstance(value, SecretRef) else value


def _mask_secret(value: FieldValue | SecretRef) -> JsonValue:
    """A field's value for people."""
    return SENSITIVE_MASK if isinstance(value, Secret | SecretRef) or is_mark(value) else value


def _format_variable(name: str, field: str) -> str:
    variable = re.sub(r"[^A-Z0-9]+", "_", f"{name}_{field}".upper())
    return f"${{env.{variable}}}"


def _format_yaml(value: JsonValue) -> str:
    """A value in YAML's flow style, of which JSON is a part."""
    return json.dumps(value, ensure_ascii=not _is_printable(value)).replace("${", "$${")


def _is_printable(value: JsonValue) -> bool:
    return json.dumps(value, ensure_ascii=False).isprintable()


def _to_kebab_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()
