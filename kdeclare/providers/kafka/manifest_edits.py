"""What manifests of topics and brokers are to say once a change is made, and whether they say it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Protocol, TypeVar

from kdeclare.core.changes import Change, FieldChange, FieldOp
from kdeclare.core.diagnostics import error, info
from kdeclare.core.jsontypes import Json
from kdeclare.core.kind import NAME, Path, Problem
from kdeclare.core.manifest_edits import DeclaredFields, ManifestEdits, SettingEdit, ValueEdit
from kdeclare.core.manifest_text import flow_map
from kdeclare.core.secrets import is_secret
from kdeclare.providers.kafka.config.catalog import Catalog
from kdeclare.providers.kafka.config.config_ops import PREFIX as CONFIG
from kdeclare.providers.kafka.config.config_ops import config_fields, key_of
from kdeclare.providers.kafka.config.wishes import Wish
from kdeclare.providers.kafka.export import value_lines

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
        assigned = (ValueEdit((_ASSIGNMENTS, number), to) for number, to in replicas.items())
        return ManifestEdits((*assigned, *configs), problems)
    counts = [f for f in shape if f.path in _COUNTS and f.after is not None]
    notices = (_not_written(change, declared),) if replicas else ()
    return ManifestEdits((*(ValueEdit((f.path,), f.after) for f in counts), *configs), notices)


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
    encode: Callable[[_Body], Json], before: _Body | None, after: _Body, change: Change, keys: Catalog
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
    return bool(_without(was, change) == _without(now, change))


def _find_secrets_left_alone(stated: Json, body: _HasConfigs, change: Change) -> Mapping[str, Wish]:
    changed = {field.path for field in change.fields}
    secret = [key for key, value in stated["configs"].items() if is_secret(value)]
    return {key: body.configs[key] for key in secret if f"{CONFIG}{key}" not in changed}


def locate_topic_field(path: str) -> Sequence[Path]:
    """Return where a manifest can declare a field; counts follow from declared assignments."""
    name, _, rest = path.partition(".")
    exact: Path = (name, rest) if rest else (name,)
    return (exact,) if name == "configs" else (exact, (_ASSIGNMENTS,))


def _replicas_in(fields: Iterable[FieldChange]) -> Mapping[int, list[int]]:
    """The replicas of partitions, by partition."""
    prefix = f"{_ASSIGNMENTS}."
    found = {int(f.path.removeprefix(prefix)): f.after for f in fields if f.path.startswith(prefix)}
    return {partition: found[partition] for partition in sorted(found) if found[partition] is not None}


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


def _says(stated: Json, item: FieldChange, keys: Catalog) -> bool:
    """Whether a body says what a field is to be; what it leaves open it need not say."""
    name, _, rest = item.path.partition(".")
    if name == "configs":
        return _says_config(stated["configs"].get(rest), rest, item, keys)
    assignments = stated.get(_ASSIGNMENTS)
    if name == _ASSIGNMENTS:
        if assignments is None:  # declared by numbers: these have to hold for it
            return stated.get("replicationFactor") in (None, len(item.after))
        return bool(assignments.get(rest) == item.after)
    if name == "replicationFactor" and assignments is not None:
        return all(len(brokers) == item.after for brokers in assignments.values())
    return item.after is None or stated.get(name) == item.after


def _says_config(said: Json, key: str, item: FieldChange, keys: Catalog) -> bool:
    if item.op is FieldOp.DELETE or is_secret(said):
        return said is None or item.op is not FieldOp.DELETE
    if isinstance(said, Mapping):
        part = said["append" if item.op is FieldOp.APPEND else "subtract"]
        return item.value is not None and {element.strip() for element in item.value} <= set(part)
    if isinstance(said, list) and item.op in (FieldOp.APPEND, FieldOp.SUBTRACT):
        has = {element.strip() for element in item.value} & set(said)
        return has == {e.strip() for e in item.value} if item.op is FieldOp.APPEND else not has
    if isinstance(item.after, list):
        return isinstance(said, list) and set(said) == {element.strip() for element in item.after}
    return isinstance(said, str) and keys.same(key, said, item.after)


def _without(stated: Json, change: Change) -> Json:
    """A body without the fields of a change, and without what follows from those."""
    rest = {**stated, "configs": dict(stated.get("configs", {}))}
    assignments = dict(rest.get(_ASSIGNMENTS, {}))
    for item in change.fields:
        name, _, key = item.path.partition(".")
        if name == "configs":
            rest["configs"].pop(key, None)
        elif name == _ASSIGNMENTS:
            assignments.pop(key, None)
            rest.pop("partitions", None)
        else:
            rest.pop(name, None)
    return rest | {_ASSIGNMENTS: assignments}
