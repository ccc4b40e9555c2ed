"""From live topics and configs to lines of manifests: what imports write, and edits of what is declared."""

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
from kdeclare.core.resources.capabilities import (
    DeclaredFields,
    Export,
    ExportRequest,
    LeftOut,
    ManifestEdits,
    SettingEdit,
    ValueEdit,
)
from kdeclare.core.resources.changes import Change, FieldChange, FieldOp
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import NAME, Path, Problem
from kdeclare.core.resources.manifest_text import flow_map, manifest, scalar
from kdeclare.core.secrets.secret_refs import SHOWN, is_secret
from kdeclare.providers.kafka.collector import KafkaSelection, observe
from kdeclare.providers.kafka.config.catalog import Catalog, catalog
from kdeclare.providers.kafka.config.config_diff import NEVER_RESET, ConfigSide, override
from kdeclare.providers.kafka.config.config_ops import PREFIX as CONFIG
from kdeclare.providers.kafka.config.config_ops import config_fields, key_of
from kdeclare.providers.kafka.config.wishes import Wish
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import ConfigSource, KafkaState, Topic
from kdeclare.providers.kafka.operations.alter_configs import own_source
from kdeclare.providers.kafka.port import Cluster, ConfigQuery
from kdeclare.providers.kafka.topic.diff import true_replicas


def config_lines(side: ConfigSide, keys: Sequence[str]) -> list[str]:
    """``configs:`` with the overrides of ``keys``; a sensitive one becomes a comment."""
    return value_lines({key: value for key in keys if (value := override(side, key)) is not None})


def value_lines(values: Mapping[str, JsonValue]) -> list[str]:
    """``configs:`` with values as plans write them; none at all without any."""
    lines: list[str] = []
    for key, value in values.items():
        if value == SHOWN:
            lines.append(f"  # {key} is set, and Kafka shows it to nobody: ${{env.NAME}} would declare it")
        elif isinstance(value, list):
            lines.append(f"  {key}: [{', '.join(map(scalar, as_texts(value)))}]")
        else:
            lines.append(f"  {key}: {scalar(as_text(value))}")
    if not lines:
        return []
    declares = any(not line.lstrip().startswith("#") for line in lines)
    return ["configs:" if declares else "configs: {}", *lines]


def count_configs_left_out(live: KafkaState, held: Collection[str] = ()) -> tuple[LeftOut, ...]:
    """Count the overrides that are in no manifest.

    held: keys that the cluster itself holds, where they are cluster-wide.
    """
    counts: Counter[str] = Counter()
    for entity, entries in live.configs.items():
        for key, entry in entries.items():
            if entry.source is not own_source(entity):
                continue
            if key in NEVER_RESET:
                counts["throttle"] += 1
            elif key in held and not entity.name:
                counts["held"] += 1
            elif entry.sensitive or entry.value is None:
                counts["hidden"] += 1
    return (
        LeftOut(counts["throttle"], "throttle", "throttles", "which moves bring with them"),
        LeftOut(counts["hidden"], "secret", "secrets", "which Kafka shows to nobody; comments say which"),
        LeftOut(
            counts["held"], "cluster-wide config", "cluster-wide configs", "which the cluster itself holds"
        ),
    )


def export_topics(cluster: Cluster, request: ExportRequest) -> Export:
    """Return a manifest of each topic that is asked for and not internal. Raises Fault."""
    topics = [topic for topic in cluster.topics().values() if request.matches(topic.name)]
    own = [topic.name for topic in topics if not topic.internal]
    names = [name for name in own if request.permits(ResourceId("Topic", name))]
    entities = [ConfigResource(ConfigScope.TOPIC, name) for name in names]
    queries = {entity: ConfigQuery(entity, overrides=True) for entity in entities}
    live = observe(cluster, KafkaSelection(frozenset(names), queries))
    internal = LeftOut(len(topics) - len(own), "internal topic", "internal topics", "Kafka's own")
    foreign = LeftOut(len(own) - len(names), "topic", "topics", "outside the scope of the project")
    texts = {name: _manifest(live, topic) for name, topic in live.topics.items()}
    return Export(texts, (internal, foreign, *count_configs_left_out(live)))


def _manifest(live: KafkaState, topic: Topic) -> str:
    replicas = true_replicas(live, topic)
    sizes = {len(r) for r in replicas}
    comments = [f"Imported from cluster {live.cluster.id}; topic id {topic.topic_id}."]
    spec = [f"partitions: {len(replicas)}"]
    if len(sizes) == 1:
        spec.append(f"replicationFactor: {sizes.pop()}")
    else:
        comments.append("Its partitions have different numbers of replicas, so none is declared:")
        comments += [line.strip() for line in flow_map(dict(enumerate(replicas)))]
    resource = ConfigResource(ConfigScope.TOPIC, topic.name)
    entries = live.configs.get(resource, {})
    side = ConfigSide(f"Topic/{topic.name}", entries, ConfigSource.TOPIC, catalog(ConfigScope.TOPIC))
    keys = [key for key in sorted(entries) if key not in NEVER_RESET]
    throttled = [key for key in sorted(entries) if key in NEVER_RESET]
    comments += [f"{key} belongs to a move and is left out." for key in throttled]
    return manifest("Topic", topic.name, spec + config_lines(side, keys), comments)


_ASSIGNMENTS = "assignments"
_COUNTS = ("partitions", "replicationFactor")


def find_config_edits(change: Change) -> Iterator[SettingEdit]:
    """Yield one edit for each config key of a change."""
    configs = sorted(config_fields(change.fields), key=lambda field: field.path)
    for path, group in groupby(configs, key=lambda field: field.path):
        yield SettingEdit(("configs", path.removeprefix(CONFIG)), tuple(group))


def find_topic_edits(change: Change, declared: DeclaredFields) -> ManifestEdits:
    """Return the edits of a topic: its counts, or its assignments where those are declared."""
    shape = [field for field in change.fields if not field.path.startswith(CONFIG)]
    replicas, configs = _replicas_in(shape), tuple(find_config_edits(change))
    if declared.declares((_ASSIGNMENTS,)):
        problems = (_unknown_replicas(change, shape[0]),) if shape and not replicas else ()
        assigned = (ValueEdit((_ASSIGNMENTS, number), [*to]) for number, to in replicas.items())
        return ManifestEdits((*assigned, *configs), problems)
    counts = [f for f in shape if f.path in _COUNTS and f.after is not None]
    notices = (_not_written(change, declared),) if replicas else ()
    return ManifestEdits((*(ValueEdit((f.path,), as_int(f.after)) for f in counts), *configs), notices)


def lay_out_topic(change: Change) -> Sequence[str]:
    """Return the spec of a new topic.

    Where it has both counts and assignments, those were only found for it, and the counts are what was asked.
    """
    fields = [field for field in change.fields if field.after is not None]
    spec = [f"{field.path}: {field.after}" for field in fields if field.path in _COUNTS]
    if not spec and (replicas := _replicas_in(fields)):
        spec = ["assignments:", *flow_map(replicas)]
    return [*spec, *lay_out_configs(fields)]


def lay_out_configs(fields: Iterable[FieldChange]) -> list[str]:
    """Return the configs of a new manifest."""
    stated = [field for field in config_fields(fields) if field.after is not None]
    return value_lines({key_of(field): field.after for field in stated})


class _HasConfigs(Protocol):
    @property
    def configs(self) -> Mapping[str, Wish]: ...


_Body = TypeVar("_Body", bound=_HasConfigs)


def is_as_changed(
    encode: Callable[[_Body], JsonObject], before: _Body | None, after: _Body, change: Change, keys: Catalog
) -> bool:
    """Whether a body says what a change says, and otherwise what it said before (None: nothing).

    encode: the body as plain data, which does not tell the values of secrets.
    """
    now = encode(after)
    if not all(_says(now, field, keys) for field in change.fields):
        return False
    if before is None:
        return True
    was = encode(before)
    if _find_secrets_left_alone(was, before, change) != _find_secrets_left_alone(now, after, change):
        return False
    return _without(was, change) == _without(now, change)


def _find_secrets_left_alone(stated: JsonObject, body: _HasConfigs, change: Change) -> Mapping[str, Wish]:
    changed = {field.path for field in change.fields}
    secret = [key for key, value in as_object(stated["configs"]).items() if is_secret(value)]
    return {key: body.configs[key] for key in secret if f"{CONFIG}{key}" not in changed}


def claims_setting(field: FieldChange, stated: JsonObject) -> bool:
    """Return whether a body or record determines a setting ``SECTION.KEY``; see `ClaimsFields`.

    One that removes what is unmanaged determines every setting.
    """
    section, _, key = field.path.partition(".")
    settings = stated.get(section)
    return (isinstance(settings, Mapping) and key in settings) or bool(stated.get("removeUnmanaged"))


def claims_topic_field(field: FieldChange, stated: JsonObject) -> bool:
    """Return whether a body or record determines a field of a topic; see `ClaimsFields`.

    Assignments follow from a replication factor and a count of partitions, and the other way around.
    """
    first = field.path.partition(".")[0]
    if first == "configs":
        return claims_setting(field, stated)
    assignments = stated.get("assignments")
    if first != "assignments":
        return stated.get(first) is not None or assignments is not None
    if assignments is not None or stated.get("strategy") is not None:
        return True
    factor, is_new = stated.get("replicationFactor"), field.before is None
    is_resized = factor is not None and len(as_list(field.after or ())) != factor
    return is_resized or (is_new and stated.get("partitions") is not None)


def locate_topic_field(path: str) -> Sequence[Path]:
    """Return where a manifest can declare a field; counts follow from declared assignments."""
    name, _, rest = path.partition(".")
    exact: Path = (name, rest) if rest else (name,)
    return (exact,) if name == "configs" else (exact, (_ASSIGNMENTS,))


def _replicas_in(fields: Iterable[FieldChange]) -> Mapping[int, list[int]]:
    """The replicas of partitions, by partition."""
    prefix = f"{_ASSIGNMENTS}."
    found = {int(f.path.removeprefix(prefix)): f.after for f in fields if f.path.startswith(prefix)}
    return {number: list(as_ints(after)) for number, after in sorted(found.items()) if after is not None}


def _not_written(change: Change, declared: DeclaredFields) -> Problem:
    placed = declared.declares(("placement",))
    found = info(
        "assignments-not-declared",
        "Assignments are not written",
        f"The manifest of {change.id} declares no assignments, so it leaves open where replicas are.",
        hint="Its placement decides where the next apply puts them." if placed else "",
        resource=str(change.id),
    )
    return Problem(NAME, found)


def _unknown_replicas(change: Change, field: FieldChange) -> Problem:
    found = error(
        "assignments-unknown",
        "Assignments would have to be written",
        f"The manifest of {change.id} declares assignments, and the change of its {field.path} does not say "
        "which brokers they are to name.",
        hint="Say them in the change, or change the manifest by hand.",
        resource=str(change.id),
        subject=field.path,
    )
    return Problem((_ASSIGNMENTS,), found)


def _says(stated: JsonObject, item: FieldChange, keys: Catalog) -> bool:
    """Whether a body says what a field is to be; what it leaves open it need not say."""
    name, _, rest = item.path.partition(".")
    if name == "configs":
        return _says_config(as_object(stated["configs"]).get(rest), rest, item, keys)
    assignments = stated.get(_ASSIGNMENTS)
    if name == _ASSIGNMENTS:
        if assignments is None:  # declared by numbers: these have to hold for it
            return stated.get("replicationFactor") in (None, len(as_list(item.after)))
        return as_object(assignments).get(rest) == item.after
    if name == "replicationFactor" and assignments is not None:
        return all(len(as_list(brokers)) == item.after for brokers in as_object(assignments).values())
    return item.after is None or stated.get(name) == item.after


def _says_config(said: JsonValue, key: str, item: FieldChange, keys: Catalog) -> bool:
    if item.op is FieldOp.DELETE or is_secret(said):
        return said is None or item.op is not FieldOp.DELETE
    if isinstance(said, Mapping):
        part = as_texts(said["append" if item.op is FieldOp.APPEND else "subtract"])
        return item.value is not None and _strip_all(item.value) <= set(part)
    if isinstance(said, list) and item.op in (FieldOp.APPEND, FieldOp.SUBTRACT):
        has = _strip_all(item.value) & set(said)
        return has == _strip_all(item.value) if item.op is FieldOp.APPEND else not has
    if isinstance(item.after, list):
        return isinstance(said, list) and set(said) == _strip_all(item.after)
    return isinstance(said, str) and isinstance(item.after, str) and keys.same(key, said, item.after)


def _strip_all(elements: JsonValue) -> set[str]:
    return {element.strip() for element in as_texts(elements)}


def _without(stated: JsonObject, change: Change) -> JsonObject:
    """A body without the fields of a change, and without what follows from those."""
    rest = dict(stated)
    configs = dict(as_object(stated.get("configs", {})))
    assignments = dict(as_object(stated.get(_ASSIGNMENTS, {})))
    for item in change.fields:
        name, _, key = item.path.partition(".")
        if name == "configs":
            configs.pop(key, None)
        elif name == _ASSIGNMENTS:
            assignments.pop(key, None)
            rest.pop("partitions", None)
        else:
            rest.pop(name, None)
    return {**rest, "configs": configs, _ASSIGNMENTS: assignments}
