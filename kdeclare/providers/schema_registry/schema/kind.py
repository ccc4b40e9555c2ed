"""The kind `Schema`."""

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import replace

from pydantic import BaseModel

from kdeclare.core.jsontypes import JsonObject, JsonValue
from kdeclare.core.live.collector import Selections
from kdeclare.core.live.live_codec import LiveKey
from kdeclare.core.operations.footprint import Access, Footprint, FootprintEntry
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections, LiveState, PlanContext
from kdeclare.core.policies.policy_fields import PolicyField, PolicyWords
from kdeclare.core.resources.audit_rules import AuditRules
from kdeclare.core.resources.changes import Action, Change, FieldChange
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, Difference, SpecPath, SpecProblem, narrow
from kdeclare.core.resources.manifest_capabilities import (
    DeclaredFields,
    Export,
    ExportRequest,
    ManifestEdits,
)
from kdeclare.core.resources.owned_record import OwnedRecord, narrow_record
from kdeclare.core.resources.plan_capabilities import Evidence
from kdeclare.providers.schema_registry.client.port import SchemaType
from kdeclare.providers.schema_registry.schema.arguments import LevelArgs, RegisterArgs, SchemaRecord
from kdeclare.providers.schema_registry.schema.checks import TOPIC, find_topic
from kdeclare.providers.schema_registry.schema.content import list_undocumented
from kdeclare.providers.schema_registry.schema.diff import build_absent_record, diff_schema, ignore_fields
from kdeclare.providers.schema_registry.schema.fields import (
    LEVEL,
    REFERENCES,
    REGISTRY,
    SUBJECT,
    TEXT,
    TYPE,
    assess_schema_field,
    find_proven_schema_fields,
    is_schema_path,
)
from kdeclare.providers.schema_registry.schema.fleet import SchemaAuditRules
from kdeclare.providers.schema_registry.schema.live import (
    LiveSubject,
    RegistrySnapshot,
    SchemaSelection,
    SchemaState,
    SubjectQuery,
    identify_content,
    list_subjects,
)
from kdeclare.providers.schema_registry.schema.manifests import (
    complete_schema_change,
    export_subjects,
    find_schema_edits,
    is_same_schema,
    is_schema_as_changed,
    render_schema_spec,
)
from kdeclare.providers.schema_registry.schema.operation_plan import plan_declared, plan_undeclared
from kdeclare.providers.schema_registry.schema.resolution import PlannedSchemas
from kdeclare.providers.schema_registry.schema.spec import (
    SCHEMA,
    SchemaBody,
    SchemaSpec,
    bind_schema_body,
    dump_schema_body,
    parse_schema_spec,
)


def _read_undocumented(state: object) -> object:
    """Return the parts of the schema that have no documentation."""
    assert isinstance(state, Mapping)
    return list_undocumented(SchemaType(state[TYPE]), state[TEXT])


SCHEMA_WORDS = PolicyWords(
    {
        REGISTRY: PolicyField(str),
        SUBJECT: PolicyField(str),
        TYPE: PolicyField(str),
        TEXT: PolicyField(str),
        REFERENCES: PolicyField(list[str]),
        LEVEL: PolicyField(str, nullable=True),
        "undocumented": PolicyField(list[str], read=_read_undocumented),
    },
    subject="schema",
)

_NO_PLAN = PlannedSchemas()


def describe_subject(registry: str, name: str, subject: LiveSubject) -> Mapping[str, object] | None:
    """Return the fields of a live subject for policies; None if the subject does not exist."""
    latest = subject.latest
    if latest is None:
        return None
    own = subject.level.own
    return {
        REGISTRY: registry,
        SUBJECT: name,
        TYPE: latest.content.type.value,
        TEXT: latest.content.text,
        REFERENCES: list(latest.references),
        LEVEL: None if own is None else own.value,
    }


class SchemaKind:
    """The kind `Schema`: the latest version of a subject."""

    name = SCHEMA
    spec: type[BaseModel] = SchemaSpec
    record: type[OwnedRecord] = SchemaRecord
    policy_words: PolicyWords = SCHEMA_WORDS
    individual_fields: frozenset[str] = frozenset({"registry", "subject"})
    audit_rules: AuditRules = SchemaAuditRules()
    exclusive_fields: Mapping[str, frozenset[str]] = {
        "file": frozenset({"schema"}),
        "schema": frozenset({"file"}),
    }

    def parse(self, name: str, spec: BaseModel) -> tuple[SchemaBody, tuple[SpecProblem, ...]]:
        """See `Kind`."""
        return parse_schema_spec(name, narrow(spec, SchemaSpec))

    def select(self, name: str, body: object | None, owned: OwnedRecord | None) -> Selections:
        """Select the subject, and the subjects that it refers to."""
        record = narrow_record(owned, SchemaRecord)
        queries: set[SubjectQuery] = set()
        if body is not None:
            body = narrow(body, SchemaBody)
            if body.is_absent:
                has_deleted = body.on_delete == "hard"
                key = (body.registry, body.subject) if record is None else (record.registry, record.subject)
                return (
                    SchemaSelection(
                        frozenset({SubjectQuery(*key, has_history=True, has_deleted=has_deleted)})
                    ),
                )
            wanted = frozenset({identify_content(body.type, body.text)})
            queries = {SubjectQuery(body.registry, body.subject, wanted)}
            queries |= {
                SubjectQuery(
                    body.registry,
                    item.subject,
                    versions=frozenset() if item.version is None else frozenset({item.version}),
                )
                for item in body.references
            }
        elif record is not None and record.onDelete != "keep":
            has_deleted = record.onDelete == "hard"
            queries = {
                SubjectQuery(record.registry, record.subject, has_history=True, has_deleted=has_deleted)
            }
        return (SchemaSelection(frozenset(queries)),)

    def diff(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> Difference:
        """See `Kind`."""
        planned = context.find(PlannedSchemas) or _NO_PLAN
        record = narrow_record(owned, SchemaRecord)
        return diff_schema(resource, desired, live.get(SchemaState), record, planned)

    def ignore_fields(
        self, desired: DesiredResource, live: LiveState, owned: OwnedRecord | None
    ) -> SchemaBody:
        """See `IgnoresChanges`."""
        return ignore_fields(desired.get_body(SchemaBody), live.get(SchemaState))

    def build_absent_record(
        self, desired: DesiredResource, live: LiveState, owned: OwnedRecord | None
    ) -> OwnedRecord | None:
        """See `DeletesByRecord`."""
        return build_absent_record(desired, live.get(SchemaState), narrow_record(owned, SchemaRecord))

    def plan_operations(
        self,
        change: Change,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> tuple[Operation, ...]:
        """See `Kind`."""
        state, record = live.get(SchemaState), narrow_record(owned, SchemaRecord)
        if desired is not None:
            planned = context.find(PlannedSchemas) or _NO_PLAN
            return plan_declared(change, desired, state, record, planned)
        assert record is not None
        return plan_undeclared(change, state, record)

    def plan_blocked(
        self,
        change: Change,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> tuple[Operation, ...]:
        """Return the registration of a new version, which reviewers want to see even if it is blocked."""
        if desired is None or change.action is not Action.UPDATE:
            return ()
        operations = self.plan_operations(change, desired, live, owned, context)
        return tuple(op for op in operations if isinstance(op.args, RegisterArgs))

    def merge_ownership(
        self,
        before: OwnedRecord | None,
        after: OwnedRecord | None,
        done: tuple[Operation, ...],
        all_done: bool,
    ) -> OwnedRecord | None:
        """Return the ownership record after a run that may have made only some of the changes. See `Kind`.

        The content and the level are owned separately.
        """
        if all_done:
            return after
        old, new = narrow_record(before, SchemaRecord), narrow_record(after, SchemaRecord)
        registered = any(isinstance(op.args, RegisterArgs) for op in done)
        leveled = any(isinstance(op.args, LevelArgs) for op in done)
        if old is None or new is None:
            return _merge_with_absent(old, new, is_content_done=registered, is_level_done=leveled)
        content = new if registered else old
        level = new if leveled else old
        return replace(content, compatibility=level.compatibility)

    def record_identity(
        self, record: OwnedRecord | None, done: tuple[Operation, ...], created_ids: Mapping[str, str | None]
    ) -> OwnedRecord | None:
        """Add to the record the number of the version that a run registered."""
        owned = narrow_record(record, SchemaRecord)
        registered = [op for op in done if isinstance(op.args, RegisterArgs)]
        if owned is None or not registered:
            return owned
        created_id = created_ids.get(registered[-1].id)
        return replace(owned, version=int(created_id) if created_id else None)

    def forget_identity(self, record: OwnedRecord | None) -> OwnedRecord | None:
        """Return the record without the number of the version."""
        owned = narrow_record(record, SchemaRecord)
        return None if owned is None else replace(owned, version=None)

    def assess_field(self, action: Action, field: FieldChange) -> FieldChange:
        """See `AssessesRisks`."""
        return assess_schema_field(action, field)

    def normalize_field(self, resource: ResourceId, field: FieldChange) -> FieldChange:
        """Return the field unchanged, because diffs and operations can be compared without a conversion."""
        return field

    def find_proven_fields(self, change: Change, evidence: Evidence) -> Set[str]:
        """Return the paths of the schema fields if they show exactly the changes that the operations make."""
        return find_proven_schema_fields(evidence.shown, evidence.done)

    def list_exclusive_settings(self, name: str, body: object) -> JsonObject:
        """Return the subject as an exclusive setting: only one manifest can declare it."""
        body = narrow(body, SchemaBody)
        registry = f" in registry {body.registry}" if body.registry is not None else ""
        return {f"the manifest that declares subject {body.subject}{registry}": f"{SCHEMA}/{name}"}

    def list_mentions(self, body: object) -> Footprint:
        """See `MentionsObjects`. The TopicNameStrategy, the serializers' default, determines the topic."""
        topic = find_topic(narrow(body, SchemaBody).subject)
        return () if topic is None else (FootprintEntry(TOPIC, topic, Access.MENTIONS),)

    def find_affected(self, body: object) -> Collection[ResourceId]:
        """Return the id ``Schema/SUBJECT``, so that the project's scope also restricts the subject names."""
        return [ResourceId(SCHEMA, narrow(body, SchemaBody).subject)]

    def locate_field(self, path: str) -> Sequence[SpecPath]:
        """Return the paths in the spec that can declare a field."""
        if is_schema_path(path):
            return (("schema",), ("file",))
        return ((path,),)

    def is_field_claimed(self, field: FieldChange, stated: JsonObject) -> bool:
        """Return whether a body or an ownership record specifies a field. See `ClaimsFields`.

        Both always specify the schema, but not always the level.
        """
        return field.path != LEVEL or stated.get(LEVEL) is not None

    def complete_change(self, change: Change, operations: Sequence[Operation]) -> Change:
        """See `CompletesChanges`."""
        return complete_schema_change(change, operations)

    def find_edits(self, change: Change, declared: DeclaredFields) -> ManifestEdits:
        """See `Editable`."""
        return find_schema_edits(change, declared)

    def render_spec_lines(self, change: Change) -> Sequence[str]:
        """See `Editable`."""
        return list(render_schema_spec(change))

    def is_same_value(self, path: SpecPath, text: str, value: JsonValue) -> bool:
        """Whether two texts are the same schema."""
        return is_same_schema(path, text, value)

    def is_as_changed(self, name: str, before: object | None, after: object, change: Change) -> bool:
        """See `Editable`."""
        old_body = None if before is None else narrow(before, SchemaBody)
        return is_schema_as_changed(old_body, narrow(after, SchemaBody), change)

    def describe_declared(self, desired: DesiredResource) -> Mapping[str, object]:
        """Return the declared fields for policies. They do not include the references."""
        body = desired.get_body(SchemaBody)
        level = body.compatibility.level if body.compatibility is not None else None
        fields: dict[str, object] = {
            SUBJECT: body.subject,
            TYPE: body.type.value,
            TEXT: body.text,
            LEVEL: None if level is None else level.value,
        }
        return fields | ({REGISTRY: body.registry} if body.registry is not None else {})

    def describe_live(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
    ) -> Mapping[str, object] | None:
        """Return the live fields of a subject for policies.

        An undeclared resource has the name of its subject. If several registries have the subject, return the
        subject of the first registry.
        """
        state, record = live.get(SchemaState), narrow_record(owned, SchemaRecord)
        if desired is not None:
            body = desired.get_body(SchemaBody)
            return _describe_in(state.get(body.registry), body.subject)
        if record is not None:
            return _describe_in(state.get(record.registry), record.subject)
        described = (_describe_in(snapshot, resource.name) for snapshot in state.registries.values())
        return next(filter(None, described), None)

    def select_every(self) -> Selections:
        """Select the latest version of every subject."""
        return (SchemaSelection(has_all=True),)

    def list_live(self, live: LiveState) -> Collection[str]:
        """Return the names of all subjects. Raises Fault."""
        return list_subjects(live.get(SchemaState).registries.values())

    def is_self_contained(self, name: str, body: object) -> bool:
        """Whether the schema has no references, so that the diff needs no other subject."""
        return not narrow(body, SchemaBody).references

    def find_live_key(self, name: str, body: object | None, owned: OwnedRecord | None) -> LiveKey | None:
        """Return the key of the live subject.

        One live object contains the subjects of the same name in all registries.
        """
        record = narrow_record(owned, SchemaRecord)
        if record is not None:
            return LiveKey(SCHEMA, record.subject)
        return None if body is None else LiveKey(SCHEMA, narrow(body, SchemaBody).subject)

    def to_json(self, name: str, body: object) -> JsonObject:
        """See `BodyCodec`."""
        return dump_schema_body(narrow(body, SchemaBody))

    def from_json(self, json: JsonObject) -> SchemaBody:
        """See `BodyCodec`."""
        return bind_schema_body(json)

    def export(self, connections: Connections, request: ExportRequest) -> Export:
        """See `Exportable`."""
        return export_subjects(request)

    def list_names(self, connections: Connections) -> Sequence[str]:
        """Return the names of all subjects."""
        from kdeclare.providers.schema_registry.connection import RegistryClients

        clients = connections.get(RegistryClients)
        return sorted(set().union(*(clients.open(name).list_subjects() for name in clients.names)))


def _describe_in(snapshot: RegistrySnapshot, subject: str) -> Mapping[str, object] | None:
    found = snapshot.find(subject) if snapshot.choice.name is not None else None
    return None if found is None else describe_subject(snapshot.name, subject, found)


def _merge_with_absent(
    old: SchemaRecord | None, new: SchemaRecord | None, *, is_content_done: bool, is_level_done: bool
) -> SchemaRecord | None:
    """Merge the ownership records of a subject if the old record or the new record is None.

    kdeclare never owns a level without the content, so the content decides whether the subject is owned.
    """
    if new is None:
        return replace(old, compatibility=None) if old is not None and is_level_done else old
    if not is_content_done:
        return None
    return new if is_level_done else replace(new, compatibility=None)
