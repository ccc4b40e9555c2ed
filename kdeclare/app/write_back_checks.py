"""That edited manifests, loaded again, say what was wanted, and of everything else what they said before."""

from collections.abc import Iterable, Mapping

from kdeclare.core.capabilities import encode_body
from kdeclare.core.changes import Action, Change, FieldChange, FieldOp
from kdeclare.core.diagnostics import UNKNOWN_SETTING, Diagnostic, KdeclareError, Place, error, gist
from kdeclare.core.ids import ResourceId
from kdeclare.core.jsontypes import Json
from kdeclare.core.kind import Desired
from kdeclare.core.secrets import is_secret
from kdeclare.manifests.load import Loaded
from kdeclare.providers.kafka.config.catalog import Catalog, catalog
from kdeclare.providers.kafka.config.scope import find_config_scope
from kdeclare.providers.kafka.config.wishes import Wish

_CONFIGS = "configs"


def check_outcome(before: Loaded, after: Loaded, changes: Iterable[Change]) -> None:
    """Raises KdeclareError (``not-as-wanted``) unless the edits do what ``changes`` say and no more."""
    known = {_key(problem) for problem in before.diagnostics}
    # whether there is a key that the catalogue does not know is for the cluster to say, and it took it
    new = [d for d in after.diagnostics if d.is_error and d.code != UNKNOWN_SETTING and _key(d) not in known]
    if new:
        raise KdeclareError(_refused(f"The manifests would be wrong: {gist(new)}", new[0]))
    were, are = ({item.id: item for item in loaded.desired} for loaded in (before, after))
    by_id = {change.id: change for change in changes}
    for resource in {**were, **are, **by_id}:
        if not _is_as_wanted(were.get(resource), are.get(resource), by_id.get(resource)):
            detail = f"{resource} would not be declared as wanted if the manifests were edited."
            raise KdeclareError(_refused(detail, None, resource))


def _is_as_wanted(was: Desired | None, now: Desired | None, change: Change | None) -> bool:
    if change is None:
        return was is not None and now is not None and (was.body, was.labels) == (now.body, now.labels)
    if change.action is Action.DELETE:
        return now is None
    if now is None or (was is not None and was.labels != now.labels):
        return False
    stated = _stated(now)
    scope = find_config_scope(now.id.kind)
    keys = catalog(scope) if scope is not None else None
    if not all(_says(stated, item, keys) for item in change.fields):
        return False
    if was is None:
        return True
    if _secrets_left_alone(was, change) != _secrets_left_alone(now, change):
        return False
    return bool(_without(_stated(was), change) == _without(stated, change))


def _secrets_left_alone(item: Desired, change: Change) -> Mapping[str, Wish]:
    """Config wishes whose values a stated body does not tell, without those that a change is about."""
    changed = {field.path for field in change.fields}
    stated = _stated(item).get(_CONFIGS, {})
    secret = [key for key, value in stated.items() if is_secret(value) and f"{_CONFIGS}.{key}" not in changed]
    return {key: item.body.configs[key] for key in secret}


def _stated(item: Desired) -> Json:
    return encode_body(item)


def _says(stated: Json, item: FieldChange, keys: Catalog | None) -> bool:
    """Whether a body says what a field is to be; what it leaves open it need not say."""
    name, _, rest = item.path.partition(".")
    if name == _CONFIGS:
        return _says_config(stated[_CONFIGS].get(rest), rest, item, keys)
    assignments = stated.get("assignments")
    if name == "assignments":
        if assignments is None:  # declared by numbers: these have to hold for it
            return stated.get("replicationFactor") in (None, len(item.after))
        return bool(assignments.get(rest) == item.after)
    if name == "replicationFactor" and assignments is not None:
        return all(len(brokers) == item.after for brokers in assignments.values())
    return item.after is None or stated.get(name) == item.after


def _says_config(said: Json, key: str, item: FieldChange, keys: Catalog | None) -> bool:
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
    return isinstance(said, str) and keys is not None and keys.same(key, said, item.after)


def _without(stated: Json, change: Change) -> Json:
    """A body without the fields of a change, and without what follows from those."""
    rest = {**stated, _CONFIGS: dict(stated.get(_CONFIGS, {}))}
    assignments = dict(rest.get("assignments", {}))
    for item in change.fields:
        name, _, key = item.path.partition(".")
        if name == _CONFIGS:
            rest[_CONFIGS].pop(key, None)
        elif name == "assignments":
            assignments.pop(key, None)
            rest.pop("partitions", None)
        else:
            rest.pop(name, None)
    return rest | {"assignments": assignments}


def _key(problem: Diagnostic) -> tuple[str, str | None, str | None]:
    return problem.code, problem.resource, problem.subject


def _refused(detail: str, found: Diagnostic | None, resource: ResourceId | None = None) -> Diagnostic:
    place: Place | None = found.place if found is not None else None
    return error(
        "not-as-wanted",
        "Manifests not written",
        detail,
        hint="Change them by hand; kdeclare plan shows what is left to do.",
        place=place,
        resource=str(resource) if resource is not None else found.resource if found is not None else None,
    )
