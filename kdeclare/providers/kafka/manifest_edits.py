"""Render live topics and configs as manifests for imports, and compute edits to existing manifests."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Protocol, TypeVar

from kdeclare.core.diagnostics import error, info
from kdeclare.core.jsontypes import (
    JsonObject,
    JsonValue,
    as_int,
    as_ints,
    as_list,
    as_object,
    as_text,
    as_texts,
)
from kdeclare.core.resources.changes import Change, FieldChange, FieldOp
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import NAME, SpecPath, SpecProblem
from kdeclare.core.resources.manifest_capabilities import (
    DeclaredFields,
    Export,
    ExportRequest,
    ManifestEdits,
    OmittedObjects,
    SettingEdit,
    ValueEdit,
    has_value_at,
)
from kdeclare.core.resources.manifest_text import render_flow_map, render_manifest, scalar
from kdeclare.core.secrets.secret_refs import SENSITIVE_MASK, is_secret
from kdeclare.providers.kafka.collector import KafkaSelection, explain_refusal, observe
from kdeclare.providers.kafka.config.catalog import Catalog, load_catalog
from kdeclare.providers.kafka.config.config_diff import NEVER_RESET, LiveConfigs, find_override
from kdeclare.providers.kafka.config.config_ops import CONFIG_FIELD_PREFIX as CONFIG
from kdeclare.providers.kafka.config.config_ops import filter_config_fields, get_config_key
from kdeclare.providers.kafka.config.config_value import ConfigValue
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import ConfigSource, KafkaState, Topic, get_own_source
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.request_values import ConfigQuery
from kdeclare.providers.kafka.topic.diff import list_target_replicas


def render_config_lines(live_configs: LiveConfigs, keys: Sequence[str]) -> list[str]:
    """Return the ``configs:`` lines of a manifest for the overrides of ``keys``.

    Kafka hides the values of secrets, so the line for a secret is a comment without the value.
    """
    return render_value_lines(
        {key: value for key in keys if (value := find_override(live_configs, key)) is not None}
    )


def render_value_lines(values: Mapping[str, JsonValue]) -> list[str]:
    """Return the ``configs:`` lines of a manifest, or no lines if ``values`` is empty."""
    lines: list[str] = []
    for key, value in values.items():
        if value == SENSITIVE_MASK:
            lines.append(f"  # {key} is set, but Kafka hides its value; declare it as ${{env.NAME}}")
        elif isinstance(value, list):
            lines.append(f"  {key}: [{', '.join(map(scalar, as_texts(value)))}]")
        else:
            lines.append(f"  {key}: {scalar(as_text(value))}")
    if not lines:
        return []
    has_values = any(not line.lstrip().startswith("#") for line in lines)
    return ["configs:" if has_values else "configs: {}", *lines]


def count_omitted_configs(live: KafkaState, kept_keys: Collection[str] = ()) -> tuple[OmittedObjects, ...]:
    """Count the overrides that an import omits.

    kept_keys: the keys whose cluster-wide value the cluster refuses to delete.
    """
    counts: Counter[str] = Counter()
    for config_resource, entries in live.configs.items():
        for key, entry in entries.items():
            if entry.source is not get_own_source(config_resource):
                continue
            if key in NEVER_RESET:
                counts["throttle"] += 1
            elif key in kept_keys and not config_resource.name:
                counts["held"] += 1
            elif entry.sensitive or entry.value is None:
                counts["hidden"] += 1
    return (
        OmittedObjects(counts["throttle"], "throttle", "throttles", "set by reassignments"),
        OmittedObjects(
            counts["hidden"], "secret", "secrets", "Kafka hides the values; comments contain the keys"
        ),
        OmittedObjects(counts["held"], "cluster-wide config", "cluster-wide configs", "kept by the cluster"),
    )


def count_unreadable(live: KafkaState, noun: str) -> tuple[OmittedObjects, ...]:
    """Count the resources whose configs the cluster does not describe.

    noun: the singular noun for the type of resource.
    """
    fault = next(iter(live.unreadable.values()), None)
    if fault is None:
        return ()
    reason = f"the brokers do not describe the configs: {explain_refusal(fault)}"
    count = len(live.unreadable)
    return (OmittedObjects(count, f"set of {noun} configs", f"sets of {noun} configs", reason),)


def export_topics(cluster: Cluster, request: ExportRequest) -> Export:
    """Return a manifest for each requested topic that is not internal. Raises Fault."""
    topics = [topic for topic in cluster.topics().values() if request.matches(topic.name)]
    user_topics = [topic.name for topic in topics if not topic.internal]
    names = [name for name in user_topics if request.permits(ResourceId("Topic", name))]
    config_resources = [ConfigResource(ConfigScope.TOPIC, name) for name in names]
    queries = {entity: ConfigQuery(entity, overrides=True) for entity in config_resources}
    live = observe(cluster, KafkaSelection(frozenset(names), queries), permits_unreadable=True)
    internal = OmittedObjects(
        len(topics) - len(user_topics), "internal topic", "internal topics", "Kafka's own"
    )
    out_of_scope = OmittedObjects(
        len(user_topics) - len(names), "topic", "topics", "outside the scope of the project"
    )
    manifests = {name: _render_manifest(live, topic) for name, topic in live.topics.items()}
    unreadable = count_unreadable(live, "topic")
    return Export(manifests, (internal, out_of_scope, *count_omitted_configs(live), *unreadable))


def _render_manifest(live: KafkaState, topic: Topic) -> str:
    replicas = list_target_replicas(live, topic)
    replica_counts = {len(r) for r in replicas}
    comments = [f"Imported from cluster {live.cluster.id}; topic id {topic.topic_id}."]
    if ConfigResource(ConfigScope.TOPIC, topic.name) in live.unreadable:
        comments.append("The brokers do not describe the configs, so the manifest contains none.")
    spec_lines = [f"partitions: {len(replicas)}"]
    if len(replica_counts) == 1:
        spec_lines.append(f"replicationFactor: {replica_counts.pop()}")
    else:
        comments.append(
            "The partitions have different numbers of replicas, so replicationFactor is not declared:"
        )
        comments += [line.strip() for line in render_flow_map(dict(enumerate(replicas)))]
    resource = ConfigResource(ConfigScope.TOPIC, topic.name)
    entries = live.configs.get(resource, {})
    live_configs = LiveConfigs(
        f"Topic/{topic.name}", entries, ConfigSource.TOPIC, load_catalog(ConfigScope.TOPIC)
    )
    keys = [key for key in sorted(entries) if key not in NEVER_RESET]
    throttle_keys = [key for key in sorted(entries) if key in NEVER_RESET]
    comments += [f"{key} is part of a reassignment throttle and is omitted." for key in throttle_keys]
    return render_manifest(
        "Topic", topic.name, spec_lines + render_config_lines(live_configs, keys), comments
    )


_ASSIGNMENTS = "assignments"
_COUNTS = ("partitions", "replicationFactor")


def find_config_edits(change: Change) -> Iterator[SettingEdit]:
    """Yield one edit for each config key of a change."""
    configs = sorted(filter_config_fields(change.fields), key=lambda field: field.path)
    for path, group in groupby(configs, key=lambda field: field.path):
        yield SettingEdit(("configs", path.removeprefix(CONFIG)), tuple(group))


def find_topic_edits(change: Change, declared: DeclaredFields) -> ManifestEdits:
    """Return edits to the declared assignments, or to the declared counts if there are no assignments.

    The counts are the partition count and the replication factor.
    """
    shape_fields = [field for field in change.fields if not field.path.startswith(CONFIG)]
    replicas, configs = _collect_replicas(shape_fields), tuple(find_config_edits(change))
    if declared.is_declared((_ASSIGNMENTS,)):
        problems = (
            (_report_unknown_replicas(change, shape_fields[0]),) if shape_fields and not replicas else ()
        )
        assignment_edits = (ValueEdit((_ASSIGNMENTS, number), [*to]) for number, to in replicas.items())
        return ManifestEdits((*assignment_edits, *configs), problems)
    count_fields = [f for f in shape_fields if f.path in _COUNTS and f.after is not None]
    notices = (_report_not_written(change, declared),) if replicas else ()
    return ManifestEdits((*(ValueEdit((f.path,), as_int(f.after)) for f in count_fields), *configs), notices)


def render_topic_spec(change: Change) -> Sequence[str]:
    """Return the spec lines of a new topic.

    If the change contains both counts and assignments, kdeclare computed the assignments from the counts, so
    the manifest declares only the counts.
    """
    fields = [field for field in change.fields if field.after is not None]
    spec_lines = [f"{field.path}: {field.after}" for field in fields if field.path in _COUNTS]
    if not spec_lines and (replicas := _collect_replicas(fields)):
        spec_lines = ["assignments:", *render_flow_map(replicas)]
    return [*spec_lines, *render_declared_configs(fields)]


def render_declared_configs(fields: Iterable[FieldChange]) -> list[str]:
    """Return the ``configs:`` lines of a new manifest."""
    set_fields = [field for field in filter_config_fields(fields) if field.after is not None]
    return render_value_lines({get_config_key(field): field.after for field in set_fields})


class _HasConfigs(Protocol):
    @property
    def configs(self) -> Mapping[str, ConfigValue]: ...


_Body = TypeVar("_Body", bound=_HasConfigs)


def is_as_changed(
    dump: Callable[[_Body], JsonObject], before: _Body | None, after: _Body, change: Change, keys: Catalog
) -> bool:
    """Return whether the edit of a manifest makes exactly this change.

    The body ``after`` must contain the new values, and must otherwise be equal to ``before``.

    before: the body before the edit, or None for a new manifest.
    dump: a function that converts a body to plain data without the values of secrets.
    """
    json_after = dump(after)
    if not all(_is_stated(json_after, field, keys) for field in change.fields):
        return False
    if before is None:
        return True
    json_before = dump(before)
    if _find_unchanged_secrets(json_before, before, change) != _find_unchanged_secrets(
        json_after, after, change
    ):
        return False
    return _drop_changed_fields(json_before, change) == _drop_changed_fields(json_after, change)


def _find_unchanged_secrets(
    document: JsonObject, body: _HasConfigs, change: Change
) -> Mapping[str, ConfigValue]:
    changed_paths = {field.path for field in change.fields}
    secret_keys = [key for key, value in as_object(document["configs"]).items() if is_secret(value)]
    return {key: body.configs[key] for key in secret_keys if f"{CONFIG}{key}" not in changed_paths}


def is_setting_claimed(field: FieldChange, document: JsonObject) -> bool:
    """Return whether a body or an ownership record specifies a setting ``SECTION.KEY`` (see `ClaimsFields`).

    With ``removeUnmanaged``, the body or record specifies all settings.
    """
    return has_value_at(field.path, document) or bool(document.get("removeUnmanaged"))


def is_topic_field_claimed(field: FieldChange, document: JsonObject) -> bool:
    """Return whether a body or an ownership record specifies a field of a topic (see `ClaimsFields`).

    Declared assignments also specify the partition count and the replication factor. Declared counts also
    specify how many partitions and replicas the assignments must have.
    """
    section = field.path.partition(".")[0]
    if section == "configs":
        return is_setting_claimed(field, document)
    assignments = document.get("assignments")
    if section != "assignments":
        return document.get(section) is not None or assignments is not None
    if assignments is not None or document.get("strategy") is not None:
        return True
    factor, is_new = document.get("replicationFactor"), field.before is None
    is_resized = factor is not None and len(as_list(field.after or ())) != factor
    return is_resized or (is_new and document.get("partitions") is not None)


def locate_topic_field(path: str) -> Sequence[SpecPath]:
    """Return the paths in a manifest that can declare a field of a topic.

    Assignments can declare every field except configs.
    """
    name, _, key = path.partition(".")
    exact: SpecPath = (name, key) if key else (name,)
    return (exact,) if name == "configs" else (exact, (_ASSIGNMENTS,))


def _collect_replicas(fields: Iterable[FieldChange]) -> Mapping[int, list[int]]:
    """Return the new replicas of each partition in the ``assignments`` fields of a change."""
    prefix = f"{_ASSIGNMENTS}."
    lists_by_partition = {
        int(f.path.removeprefix(prefix)): f.after for f in fields if f.path.startswith(prefix)
    }
    return {
        number: list(as_ints(after))
        for number, after in sorted(lists_by_partition.items())
        if after is not None
    }


def _report_not_written(change: Change, declared: DeclaredFields) -> SpecProblem:
    has_placement = declared.is_declared(("placement",))
    diagnostic = info(
        "assignments-not-declared",
        "Assignments not written",
        f"The manifest of {change.id} declares no assignments, so kdeclare does not write the new replicas "
        "to the manifest."
        + (" The next apply follows the placement that the manifest declares." if has_placement else ""),
        resource=str(change.id),
    )
    return SpecProblem(NAME, diagnostic)


def _report_unknown_replicas(change: Change, field: FieldChange) -> SpecProblem:
    diagnostic = error(
        "assignments-unknown",
        "Assignments missing from the change",
        f"The manifest of {change.id} declares assignments, but the requested change to {field.path} does "
        "not specify the brokers of each partition.",
        hint="Specify the brokers of each partition in the command, or edit the manifest manually.",
        resource=str(change.id),
        subject=field.path,
    )
    return SpecProblem((_ASSIGNMENTS,), diagnostic)


def _is_stated(document: JsonObject, field: FieldChange, keys: Catalog) -> bool:
    """Return whether a body contains the new value of a field."""
    name, _, key = field.path.partition(".")
    if name == "configs":
        return _is_config_stated(as_object(document["configs"]).get(key), key, field, keys)
    assignments = document.get(_ASSIGNMENTS)
    if name == _ASSIGNMENTS:
        if assignments is None:  # declared counts must match the replicas
            return document.get("replicationFactor") in (None, len(as_list(field.after)))
        return as_object(assignments).get(key) == field.after
    if name == "replicationFactor" and assignments is not None:
        return all(len(as_list(brokers)) == field.after for brokers in as_object(assignments).values())
    return field.after is None or document.get(name) == field.after


def _is_config_stated(stated_value: JsonValue, key: str, field: FieldChange, keys: Catalog) -> bool:
    if field.op is FieldOp.DELETE or is_secret(stated_value):
        return stated_value is None or field.op is not FieldOp.DELETE
    if isinstance(stated_value, Mapping):
        elements = as_texts(stated_value["append" if field.op is FieldOp.APPEND else "subtract"])
        return field.value is not None and _strip_elements(field.value) <= set(elements)
    if isinstance(stated_value, list) and field.op in (FieldOp.APPEND, FieldOp.SUBTRACT):
        common = _strip_elements(field.value) & set(stated_value)
        return common == _strip_elements(field.value) if field.op is FieldOp.APPEND else not common
    if isinstance(field.after, list):
        return isinstance(stated_value, list) and set(stated_value) == _strip_elements(field.after)
    return (
        isinstance(stated_value, str)
        and isinstance(field.after, str)
        and keys.is_same_value(key, stated_value, field.after)
    )


def _strip_elements(elements: JsonValue) -> set[str]:
    return {element.strip() for element in as_texts(elements)}


def _drop_changed_fields(document: JsonObject, change: Change) -> JsonObject:
    """Return a body without the fields of a change and the fields that are derived from them."""
    remaining = dict(document)
    configs = dict(as_object(document.get("configs", {})))
    assignments = dict(as_object(document.get(_ASSIGNMENTS, {})))
    for field in change.fields:
        name, _, key = field.path.partition(".")
        if name == "configs":
            configs.pop(key, None)
        elif name == _ASSIGNMENTS:
            assignments.pop(key, None)
            remaining.pop("partitions", None)
        else:
            remaining.pop(name, None)
    return {**remaining, "configs": configs, _ASSIGNMENTS: assignments}
