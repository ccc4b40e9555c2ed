"""Subjects in fleet snapshots and audits: one object per subject name, for all registries."""

import json
from collections.abc import Iterable, Iterator, Mapping

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import (
    JsonObject,
    JsonValue,
    as_bool,
    as_int,
    as_list,
    as_object,
    as_text,
    as_text_or_none,
    as_texts,
)
from kdeclare.core.live.collector import Collector
from kdeclare.core.live.faults import Fault
from kdeclare.core.live.live_codec import LiveKey, LiveListing, LiveObject, UnreadPart
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.resources.audit_rules import AuditRules
from kdeclare.core.resources.changes import FieldChange
from kdeclare.core.resources.endpoint_choice import (
    EndpointChoice,
    choose_endpoint,
    explain_unreachable_endpoint,
)
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.providers.schema_registry.client.port import (
    UNREACHABLE,
    CompatibilityLevel,
    RegisteredSchema,
    RegistryInfo,
    SchemaContent,
    SchemaReference,
    SchemaType,
    SubjectLevel,
)
from kdeclare.providers.schema_registry.connection import ENVIRONMENT_FIELD
from kdeclare.providers.schema_registry.schema.content import normalize_text
from kdeclare.providers.schema_registry.schema.diff import OLDER_VERSION
from kdeclare.providers.schema_registry.schema.fields import describe_shown_fields, is_schema_path
from kdeclare.providers.schema_registry.schema.live import (
    Endpoint,
    LiveSubject,
    LiveVersion,
    RegistrySnapshot,
    SchemaSelection,
    SchemaState,
    collect_expected_subjects,
    collect_subjects,
    find_endpoints,
    list_subjects,
    read_schemas,
)
from kdeclare.providers.schema_registry.schema.spec import SCHEMA, SchemaBody

_REGISTRIES = "registries"
"""The key under which a snapshot stores the data about all registries."""
_MAX_WORDS = 300
"""The maximum length of the description of one difference in a finding, in characters."""


class SchemaCodec:
    """The codec of subjects for snapshots and audits. See `LiveCodec`.

    It reads the latest version and the level of every subject in all registries.
    """

    name = "schema-registry-subjects"
    sorts = frozenset({SCHEMA})
    identifies_system = False
    groups = False
    context: tuple[object, ...] = ()
    nouns: Mapping[str, tuple[str, str]] = {SCHEMA: ("schema", "schemas")}
    internal_marker: str | None = None
    has_own_paths = True  # plans show the differences between schemas, not texts by registry

    def list_objects(self, connections: Connections) -> LiveListing:
        """Read all subjects. A registry that cannot be read becomes an `UnreadPart`.

        The `UnreadPart` concerns all subjects, because the key of a subject does not name its registry.
        """
        state = read_schemas(connections, SchemaSelection(has_all=True))
        names = list_subjects(snapshot for snapshot in state.registries.values() if snapshot.problem is None)
        unread = [UnreadPart(SCHEMA, "", reason) for reason in _list_problems(LiveState(state))]
        return LiveListing(_dump_registries(state), _list_objects(state, names), unread=unread)

    def decode(self, system: str, objects: Iterable[tuple[LiveKey, str]]) -> SchemaState:
        """Return the live state from the JSON of subjects."""
        infos = as_object(as_object(json.loads(system))[_REGISTRIES])
        subjects: dict[str, dict[str, LiveSubject]] = {name: {} for name in infos}
        for key, text in objects:
            for registry, body in as_object(json.loads(text)).items():
                subjects[registry][key.key] = _bind_subject(key.key, as_object(body))
        registries: dict[Endpoint, RegistrySnapshot] = {
            name: _bind_registry(name, as_object(info), subjects[name]) for name, info in infos.items()
        }
        choice = choose_endpoint(None, list(infos), ENVIRONMENT_FIELD)
        only = registries.get(choice.name) if choice.name is not None else None
        return SchemaState({**registries, None: only or RegistrySnapshot(choice)})

    def has_object(self, key: LiveKey, live: LiveState) -> bool:
        """Return whether any registry has the subject.

        Raises Fault if a registry was not read and no other registry has the subject.
        """
        for snapshot in live.get(SchemaState).registries.values():
            subject = snapshot.find(key.key)
            if subject is not None and subject.latest is not None:
                return True
        for reason in _list_problems(live):
            raise Fault(UNREACHABLE, reason)
        return False

    def find_identity(self, key: LiveKey, live: LiveState) -> str | None:
        """Return None: a subject has no id, and its version numbers continue if it is created again."""
        return None

    def is_reported(self, key: LiveKey, body: str) -> bool:
        """Return True, because registries create no subjects by themselves."""
        return True

    def flatten_body(self, sort: str, body: JsonObject) -> Mapping[str, JsonValue]:
        """See `DescribesFields`."""
        return {
            f"{registry}.{name}": value
            for registry, item in body.items()
            for name, value in as_object(item).items()
            if name in ("version", "type", "schema", "compatibility")
        }

    def format_field_name(self, sort: str, path: str) -> str | None:
        """Return None, so that reports show the path of a field."""
        return None


@dataclass(frozen=True, slots=True)
class SchemaAuditRules(AuditRules):
    """Audit rules for schemas: audits describe in words how a live schema differs from the declared one."""

    impossible: frozenset[str] = frozenset({OLDER_VERSION})

    def describe_difference(self, desired: DesiredResource, live: LiveState, field: FieldChange) -> str:
        """Describe the differences that a field shows, from the live to the declared schema, in words."""
        body = desired.get_body(SchemaBody)
        latest = live.get(SchemaState).get(body.registry).get(body.subject).latest
        if latest is None or latest.content.type is not body.type or not is_schema_path(field.path):
            return ""
        words = describe_shown_fields(body.type, latest.content.text, body.text).get(field.path, "")
        if len(words) > _MAX_WORDS:
            words = f"{words[:_MAX_WORDS]}…"
        return f"Changes from the registry's schema to the manifest's: {words}." if words else ""


def _list_problems(live: LiveState) -> list[str]:
    """Return why registries were not read, one sentence for each registry."""
    return [
        explain_unreachable_endpoint(name, status.problem)
        for name, status in find_endpoints(live).items()
        if status.problem
    ]


def _list_objects(state: SchemaState, names: Iterable[str]) -> Iterator[LiveObject]:
    for name in names:
        body: JsonValue = {
            snapshot.name: _dump_subject(subject, subject.latest)
            for snapshot in state.registries.values()
            if (subject := snapshot.find(name)) is not None and subject.latest is not None
        }
        yield LiveObject(LiveKey(SCHEMA, name), body)


def _dump_registries(state: SchemaState) -> JsonValue:
    infos: dict[str, JsonValue] = {}
    for snapshot in state.registries.values():
        if snapshot.problem is not None:
            infos[snapshot.name] = {"problem": snapshot.problem.message or snapshot.problem.error}
            continue
        info = snapshot.require_info()
        infos[snapshot.name] = {
            "level": info.level.value,
            "distinguishesOwnLevels": info.distinguishes_own_levels,
        }
    return {_REGISTRIES: infos}


def _bind_registry(name: str, info: JsonObject, subjects: Mapping[str, LiveSubject]) -> RegistrySnapshot:
    choice = EndpointChoice(name)
    if "problem" in info:
        return RegistrySnapshot(choice, problem=Fault(UNREACHABLE, as_text(info["problem"])))
    level = CompatibilityLevel(as_text(info["level"]))
    registry = RegistryInfo(None, "", level, None, as_bool(info["distinguishesOwnLevels"]))
    return RegistrySnapshot(choice, registry, subjects, is_whole=True)


def _dump_subject(subject: LiveSubject, latest: LiveVersion) -> JsonObject:
    content, level = latest.content, subject.level
    return {
        "version": latest.number,
        "type": content.type.value,
        "schema": content.text,
        "references": [
            {"name": item.name, "subject": item.subject, "version": item.version}
            for item in content.references
        ],
        "targets": list(latest.targets),
        "fingerprint": latest.fingerprint,
        "compatibility": None if level.own is None else level.own.value,
        "effective": level.effective.value,
        "isOwnKnown": level.is_own_known,
    }


def _bind_subject(name: str, body: JsonObject) -> LiveSubject:
    references = tuple(
        SchemaReference(as_text(item["name"]), as_text(item["subject"]), as_int(item["version"]))
        for item in map(as_object, as_list(body["references"]))
    )
    content = SchemaContent(SchemaType(as_text(body["type"])), as_text(body["schema"]), references)
    own = as_text_or_none(body["compatibility"])
    level = SubjectLevel(
        CompatibilityLevel(as_text(body["effective"])),
        None if own is None else CompatibilityLevel(own),
        as_bool(body["isOwnKnown"]),
    )
    version = LiveVersion(
        RegisteredSchema(name, as_int(body["version"]), 0, content),
        normalize_text(content.type, content.text),
        as_texts(body["targets"]),
        as_text(body["fingerprint"]),
    )
    return LiveSubject(level, (version,), is_complete=version.number == 1)


SUBJECTS = Collector(
    SchemaSelection,
    collect_subjects,
    read_expected=collect_expected_subjects,
    find_endpoints=find_endpoints,
    codec=SchemaCodec(),
)
"""The collector of subjects. A plan without schemas sends no request to a registry."""
