"""Kinds whose resources are objects: they have fields, and are created and deleted as a whole.

Many systems have nothing else. Their provider says what an object is (`ObjectKind`), and gets the three-way
diff, adoption, deletion, rollback, import, and what audits of fleets need. What is more than an object is a
`core.kind.Kind` of its own.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from kdeclare.core.adoption import adoption_of
from kdeclare.core.arguments import Arguments
from kdeclare.core.capabilities import PREVENT_DESTROY, Export, ExportRequest, LeftOut
from kdeclare.core.changes import Action, Change, FieldChange, FieldOp, Reason, Risk
from kdeclare.core.collector import Selections
from kdeclare.core.completion import Completion
from kdeclare.core.diagnostics import LITERAL_SECRET, Diagnostic, denied, warning
from kdeclare.core.faults import Explanation, Fault, Outcome
from kdeclare.core.footprint import Access, Footprint, Touch
from kdeclare.core.ids import ResourceId
from kdeclare.core.jsontypes import Json
from kdeclare.core.kind import Desired, Difference, Problem
from kdeclare.core.live_codec import LiveKey
from kdeclare.core.manifest_text import manifest
from kdeclare.core.operation_arguments import EMPTY_UNSTATED, get_arguments
from kdeclare.core.operation_type import OperationType, View, with_inverse
from kdeclare.core.operations import Operation
from kdeclare.core.parts import Connections, LiveState, PlanContext
from kdeclare.core.policy_subjects import PolicyWords, read_annotation
from kdeclare.core.run import Status
from kdeclare.core.secret_hashes import is_mark, mark_hash, mark_value, matches
from kdeclare.core.secrets import (
    SHOWN,
    UNTOLD,
    Secret,
    SecretRef,
    SecretSource,
    Steps,
    is_secret,
    read_secret_ref,
)
from kdeclare.core.state import PendingCleanup
from kdeclare.core.undoing import Undo

Fields = Mapping[str, Json]
"""The fields of an object. A secret is a `Secret` in live states and bodies, and its record elsewhere."""

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
    fields: Fields | None
    is_new: bool = False


ObjectValue = Annotated[SecretRef | JsonValue, Field(union_mode="left_to_right")]
"""The value of a field in arguments."""


@dataclass(frozen=True, slots=True)
class ObjectArgs(Arguments):
    """The arguments of `ObjectOperation`.

    set: the fields to write; of a deletion, those that it takes away. was: the secrets that are replaced or
    deleted, for the way back.
    """

    set: Mapping[str, ObjectValue]
    was: Annotated[Mapping[str, SecretRef], EMPTY_UNSTATED] = field(default_factory=dict)


class ObjectKind:
    """A kind of objects. A provider says `select`, `read` and `write`.

    references: the fields that name other objects, one or a list of them, each with the kind of these.
    completion: how the work is followed that goes on in the system once an object was created or updated.
    """

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
                field: read_annotation(known.annotation)
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

    def plan_cleanup(self, name: str, fields: Fields, live: LiveState) -> Operation:
        """Return the operation that writes fields to clean up what runs have left; `find_cleanup` asks so."""
        return self._plan(self.tidy, ResourceId(self.name, name), fields, {}, live)

    def select(self, name: str, body: ObjectBody | None, owned: Json) -> Selections:
        """See `core.kind.Kind`."""
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
        """See `core.operation_type.OperationType`."""
        return Explanation()

    def update_cleanup(self, op: Operation, status: Status, before: PendingCleanup) -> PendingCleanup:
        """See `core.operation_type.OperationType`."""
        return before

    def parse(self, name: str, spec: ObjectSpec) -> tuple[ObjectBody, tuple[Problem, ...]]:
        """See `core.kind.Kind`."""
        stated = {field: getattr(spec, field) for field in type(spec).model_fields if field != "lifecycle"}
        secrets = {field: value for field, value in stated.items() if isinstance(value, Secret)}
        plain = spec.model_dump(mode="json", exclude={"lifecycle", *secrets}, exclude_none=True)
        fields = {field: secrets.get(field, plain.get(field)) for field in stated}
        fields = {field: value for field, value in fields.items() if value is not None}
        literal = (name for name, secret in secrets.items() if secret.reference is None)
        problems = tuple(warn_literal_secret(f"{self.name}/{name}", stated) for stated in literal)
        return ObjectBody(fields, spec.lifecycle.preventDestroy, spec.lifecycle.adopt), problems

    def diff(
        self,
        resource: ResourceId,
        desired: Desired | None,
        live: LiveState,
        owned: Json,
        context: PlanContext,
    ) -> Difference:
        """See `core.kind.Kind`."""
        there = self.read(live).get(resource.name)
        if desired is None:
            return _diff_undeclared(resource, there, owned)
        body: ObjectBody = desired.body
        applied: Fields = (owned or {}).get("fields", {})
        wanted = dict(sorted({**dict.fromkeys(applied), **body.fields}.items()))
        changing = [name for name, value in wanted.items() if not _is_same(value, (there or {}).get(name))]
        fields = tuple(
            FieldChange(name, FieldOp.CHANGE, _show((there or {}).get(name)), _show(wanted[name]))
            for name in changing
        )
        record = {
            "fields": {name: _record_of(value) for name, value in body.fields.items()},
            "preventDestroy": body.prevent_destroy,
        }
        if there is None:
            reason = Reason.DECLARED if owned is None else Reason.MISSING
            change = Change(resource, Action.CREATE, reason, Risk.SAFE, fields, desired.source)
            return Difference(change, record)
        drifted = tuple(name for name, value in applied.items() if not _is_same(value, there.get(name)))
        if not fields:
            return Difference(None, record, drifted=drifted)
        adoption = (adoption_of(desired, fields),) if owned is None else ()
        reason = Reason.ADOPT if adoption else Reason.DRIFTED if drifted else Reason.CHANGED
        blocked = next((d.code for d in adoption if d.blocks), None)
        change = Change(resource, Action.UPDATE, reason, Risk.SAFE, fields, desired.source, blocked)
        return Difference(change, record, diagnostics=adoption, drifted=drifted)

    def plan_operations(
        self, change: Change, desired: Desired | None, live: LiveState, owned: Json, context: PlanContext
    ) -> tuple[Operation, ...]:
        """See `core.kind.Kind`."""
        by_action = {Action.CREATE: self.create, Action.UPDATE: self.update, Action.DELETE: self.delete}
        there = self.read(live).get(change.id.name, {})
        wanted: Fields = desired.body.fields if desired is not None else {}
        names = (
            (field.path for field in change.fields) if desired is not None else filter(self._states, there)
        )
        fields = {name: _argument_of(wanted.get(name)) for name in names}
        applied: Fields = (owned or {}).get("fields", {})
        return (self._plan(by_action[change.action], change.id, fields, applied, live),)

    def merge_ownership(self, before: Json, after: Json, done: tuple[Operation, ...], all_done: bool) -> Json:
        """See `core.kind.Kind`. An object has one operation; in a rollback it may undo some fields only."""
        if all_done or not (before and after and done):
            return after if all_done or done else before
        undone = {name for op in done for name in _args(op).set}
        fields = {name: value for name, value in before["fields"].items() if name not in undone}
        back = {name: value for name, value in after["fields"].items() if name in undone}
        return {**after, "fields": {**fields, **back}}

    def select_every(self) -> Selections:
        """Return what must be read to see all objects; by default what is read for one of no name."""
        return self.select("", None, None)

    def export(self, connections: Connections, request: ExportRequest) -> Export:
        """See `core.capabilities.Exportable`. Secrets become references to variables."""
        objects = self.read(request.read(self.select_every()))
        found = {name: fields for name, fields in objects.items() if request.matches(name)}
        mine = [name for name in found if request.permits(ResourceId(self.name, name))]
        why = "outside the scope of the project"
        foreign = LeftOut(len(found) - len(mine), self.name, f"{self.name}s", why)
        return Export({name: self._manifest(name, found[name]) for name in mine}, (foreign,))

    def to_json(self, name: str, body: ObjectBody) -> Json:
        """See `core.capabilities.BodyCodec`."""
        stated = {key: v.stated if isinstance(v, Secret) else v for key, v in body.fields.items()}
        return {"fields": stated, "preventDestroy": body.prevent_destroy, "adopt": body.adopt}

    def from_json(self, json: Json) -> ObjectBody:
        """See `core.capabilities.BodyCodec`."""
        fields = {
            key: Secret("", value["reference"], value["secret"]) if is_secret(value) else value
            for key, value in json["fields"].items()
        }
        return ObjectBody(fields, json["preventDestroy"], json["adopt"])

    def is_self_contained(self, name: str, body: ObjectBody) -> bool:
        """See `core.capabilities.FleetComparable`."""
        return True

    def find_live_key(self, name: str, body: ObjectBody | None, owned: Json) -> LiveKey:
        """See `core.capabilities.FleetComparable`."""
        return LiveKey(self.name, name)

    def describe_declared(self, desired: Desired) -> Mapping[str, object]:
        """See `core.policy_subjects.PolicySubject`."""
        body: ObjectBody = desired.body
        return {name: _show(value) for name, value in body.fields.items()}

    def describe_live(
        self, resource: ResourceId, desired: Desired | None, live: LiveState, owned: Json
    ) -> Mapping[str, object] | None:
        """See `core.policy_subjects.PolicySubject`."""
        there = self.read(live).get(resource.name)
        return None if there is None else {name: _show(value) for name, value in there.items()}

    def list_live(self, live: LiveState) -> Collection[str]:
        """See `core.policy_subjects.ListedForPolicies`."""
        return self.read(live).keys()

    def _manifest(self, name: str, fields: Fields) -> str:
        lines = [
            f"{key}: {_variable(name, key) if isinstance(value, Secret) else _yaml(value)}"
            for key, value in fields.items()
            if value is not None and self._states(key)
        ]
        return manifest(self.name, name, lines)

    def _states(self, field: str) -> bool:
        """Whether a manifest can state a field; others are the system's own."""
        return field in self.spec.model_fields

    def _plan(
        self, verb: "ObjectOperation", id_: ResourceId, fields: Fields, applied: Fields, live: LiveState
    ) -> Operation:
        earlier = {name: read_secret_ref(applied[name]) for name in fields if is_secret(applied.get(name))}
        bare = Operation(f"{verb.name}:{id_}", verb.name, id_, ObjectArgs(dict(fields), earlier), {})
        return with_inverse(verb, replace(bare, expect=verb.view(bare, live)))


class ObjectOperation(OperationType):
    """Creates, updates or deletes one object."""

    arguments = ObjectArgs
    validates = True

    def __init__(self, kind: ObjectKind, action: Action, *, is_cleanup: bool = False) -> None:
        """Do ``action`` to objects of a kind. is_cleanup: it updates what nobody declares."""
        self._kind = kind
        self.name = f"{_kebab(kind.name)}.{'tidy' if is_cleanup else action}"
        self.creates, self.deletes = action is Action.CREATE, action is Action.DELETE
        self.is_auxiliary = self.is_cleanup = is_cleanup
        self.completion = None if self.deletes or is_cleanup else kind.completion

    def select(self, op: Operation) -> Selections:
        """What its kind reads."""
        return self._kind.select(op.resource.name, None, None)

    def view(self, op: Operation, live: LiveState) -> View:
        """Whether the object is there, and its fields; a secret is a mark."""
        there = self._kind.read(live).get(op.resource.name)
        seen: dict[str, Json] = {EXISTS: there is not None}
        args = _args(op)
        for name in args.set:
            value = (there or {}).get(name)
            if isinstance(value, Secret):
                records = (args.set[name], args.was.get(name))
                known = [record.secret for record in records if isinstance(record, SecretRef)]
                value = mark_value(str(op.resource), name, value.value, known)
            seen[name] = value
        return seen

    def expected_state(self, op: Operation) -> View:
        """As written."""
        fields = {name: _mark_of(value) for name, value in _args(op).set.items()}
        return {EXISTS: not self.deletes, **fields}

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """One per field; an object that goes says it by its action."""
        after = {} if self.deletes else _args(op).set
        sides = ((name, _show(op.expect.get(name)), _show(value)) for name, value in after.items())
        return tuple(FieldChange(name, FieldOp.CHANGE, *both) for name, *both in sides)

    def less(self, op: Operation, subjects: Set[str]) -> Operation | None:
        """All or nothing."""
        return None if op.resource.name in subjects else op

    def element_at(self, op: Operation, at: Steps) -> str:
        """The field."""
        return str(at[1]) if len(at) > 1 else super().element_at(op, at)

    def without(self, op: Operation, elements: Set[str]) -> Operation | None:
        """The other fields of an update."""
        args = _args(op)
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
        return {element: f"{op.resource}/{element}" for element in (EXISTS, *_args(op).set)}

    def footprint(self, op: Operation) -> Footprint:
        """The object, what its fields refer to from now on, and what they referred to before."""
        required = self._find_references(_args(op).set)
        released = self._find_references(op.expect) - required
        own = Access.CREATE if self.creates else Access.DELETE if self.deletes else Access.UPDATE
        return (
            Touch(op.resource.kind, op.resource.name, own),
            *(Touch(id_.kind, id_.name, Access.REQUIRES) for id_ in sorted(required)),
            *(Touch(id_.kind, id_.name, Access.AFTER) for id_ in sorted(released)),
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
            stated = _args(op).set.items()
            fields = {n: secrets.reveal(v) if isinstance(v, SecretRef) else v for n, v in stated}
            writes.append(ObjectWrite(op.resource, None if self.deletes else fields, self.creates))
        outcomes = self._kind.write(connections, writes, validate_only=validate_only)
        return {op.id: outcome for op, outcome in zip(ops, outcomes, strict=True)}

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> Undo:
        """Bring back the earlier value of each field that still is as the operation left it."""
        before, after, args = op.expect, self.expected_state(op), _args(op)
        if now == before:
            return Undo()
        conflicts = tuple(e for e in now if now[e] not in (before.get(e), after.get(e)))
        if self.creates:
            if not now[EXISTS] or conflicts:
                return Undo(conflicts=conflicts)
            secrets = {name: value for name, value in args.set.items() if isinstance(value, SecretRef)}
            return Undo(self._kind.delete.name, ObjectArgs(dict.fromkeys(args.set), secrets))
        names = [name for name in args.set if now[name] == after[name] != before.get(name)]
        known = {name: ref for name, ref in args.was.items() if ref.reference is not None}
        lost = tuple(name for name in names if is_mark(before.get(name)) and name not in known)
        back = {name: known.get(name, before.get(name)) for name in names if name not in lost}
        if self.deletes:
            whole = ObjectArgs({name: value for name, value in back.items() if value is not None})
            return Undo(self._kind.create.name, None if lost or conflicts else whole, conflicts, lost)
        replaced = {name: value for name in back if isinstance(value := args.set[name], SecretRef)}
        return Undo(self.name, ObjectArgs(back, replaced) if back else None, conflicts, lost)

    def update_cleanup(self, op: Operation, status: Status, before: PendingCleanup) -> PendingCleanup:
        """As its kind does."""
        return self._kind.update_cleanup(op, status, before)

    def _find_references(self, fields: Fields) -> frozenset[ResourceId]:
        found: set[ResourceId] = set()
        for stated, kind in self._kind.references.items():
            names = fields.get(stated) or ()
            found |= {ResourceId(kind, name) for name in ([names] if isinstance(names, str) else names)}
        return frozenset(found)


def get_fields(op: Operation) -> Mapping[str, ObjectValue]:
    """Return the fields that an `ObjectOperation` writes. Raises TypeError for another operation."""
    return _args(op).set


def warn_literal_secret(resource: str, field: str) -> Problem:
    """Return what to say of a secret whose value stands in a manifest."""
    problem = warning(
        LITERAL_SECRET,
        "Secret written into a manifest",
        f"'{field}' is sensitive, and its value stands in the manifest.",
        hint="Write ${env.NAME} or ${file.PATH} in its place.",
        resource=resource,
        subject=field,
    )
    return Problem((field,), problem)


def _diff_undeclared(resource: ResourceId, there: Fields | None, owned: Json) -> Difference:
    if there is None:
        return Difference(None)
    found: tuple[Diagnostic, ...] = ()
    if (owned or {}).get("preventDestroy"):
        found = (
            denied(
                PREVENT_DESTROY,
                "Deletion prevented",
                f"{resource} must not be deleted: its lifecycle.preventDestroy was true when last applied.",
                hint=f"Declare it again, or release it with kdeclare apply --forget {resource}.",
                resource=str(resource),
            ),
        )
    change = Change(resource, Action.DELETE, Reason.ORPHANED, Risk.DESTRUCTIVE)
    return Difference(change, None, diagnostics=found)


def _is_same(wanted: Json, live: Json) -> bool:
    """Whether a declared or owned value is what the system has."""
    if not isinstance(live, Secret):
        return bool(wanted == live)
    if live.digest == UNTOLD:
        return True
    if isinstance(wanted, Secret) and wanted.value:
        return wanted.value == live.value
    digest = wanted.digest if isinstance(wanted, Secret) else (wanted or {}).get("secret", "")
    return bool(digest) and matches(digest, live.value)


def _record_of(value: Json) -> Json:
    return value.as_json() if isinstance(value, Secret) else value


def _args(op: Operation) -> ObjectArgs:
    return get_arguments(op, ObjectArgs)


def _argument_of(value: Json) -> ObjectValue:
    return value.ref if isinstance(value, Secret) else value


def _mark_of(value: ObjectValue) -> Json:
    return mark_hash(value.secret) if isinstance(value, SecretRef) else value


def _show(value: Json) -> Json:
    """A field's value for people."""
    return SHOWN if isinstance(value, Secret | SecretRef) or is_mark(value) else value


def _variable(name: str, field: str) -> str:
    variable = re.sub(r"[^A-Z0-9]+", "_", f"{name}_{field}".upper())
    return f"${{env.{variable}}}"


def _yaml(value: Json) -> str:
    """A value in YAML's flow style, of which JSON is a part."""
    return json.dumps(value, ensure_ascii=not _is_printable(value)).replace("${", "$${")


def _is_printable(value: Json) -> bool:
    return json.dumps(value, ensure_ascii=False).isprintable()


def _kebab(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()
