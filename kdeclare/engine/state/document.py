"""The state as text (``state.json``), and the rule that keeps a write from losing another one."""

import json

from kdeclare.core.jsontypes import Json
from kdeclare.core.state import State
from kdeclare.engine.state.migrations import CURRENT, STEPS, migrate_state
from kdeclare.engine.state.problems import corrupt, other_version, overtaken

_HINT = "Put the previous state (state.json.backup) in its place, or the file as it was committed or saved."
_record = json.JSONEncoder(ensure_ascii=False, sort_keys=True).encode


def encode(state: State) -> str:
    """The text of a state: sorted, and one line a resource, so that two states compare line by line."""
    head = [
        f'  "{name}": {_record(value)},'
        for name, value in (
            ("version", CURRENT),
            ("lineage", state.lineage),
            ("serial", state.serial),
            ("cluster_id", state.cluster_id),
        )
    ]
    lines = [f"    {_record(name)}: {_record(state.resources[name])}" for name in sorted(state.resources)]
    if state.pending_cleanup:
        head.append(f'  "leftovers": {_record(dict(state.pending_cleanup))},')
    body = '  "resources": {\n' + ",\n".join(lines) + "\n  }" if lines else '  "resources": {}'
    return "\n".join(["{", *head, body, "}"]) + "\n"


def decode(text: str | bytes, where: str) -> State:
    """The state in a text, migrated from an earlier version where needed; ``where`` names it in errors.

    Raises KdeclareError when the text is not JSON, of an unknown version, or lacks what a state has.
    """
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError) as cause:
        raise corrupt(where, f"it is not JSON ({cause})", _HINT) from cause
    if not isinstance(value, dict):
        raise corrupt(where, "it is not a JSON object", _HINT)
    version = value.get("version")
    if type(version) is not int:
        raise corrupt(where, "it has no format version", _HINT)
    if version not in (*STEPS, CURRENT):
        raise other_version(where, version, CURRENT)
    value = dict(migrate_state(value, version))
    return State(
        lineage=_field(value, "lineage", str, where),
        serial=_field(value, "serial", int, where),
        cluster_id=_field(value, "cluster_id", str, where),
        resources=_field(value, "resources", dict, where),
        pending_cleanup=_field({"leftovers": {}, **value}, "leftovers", dict, where),
    )


def refuse_lost_update(stored: State | None, new: State) -> None:
    """Raise KdeclareError unless ``new`` is the one state that can follow ``stored``."""
    if stored is None:
        if new.serial != 1:
            raise overtaken(f"serial {new.serial} was to follow {new.serial - 1}, but nothing is stored")
    elif stored.lineage != new.lineage:
        raise overtaken(f"the stored state has lineage {stored.lineage}, not {new.lineage}")
    elif stored.serial != new.serial - 1:
        raise overtaken(f"serial {new.serial} was to follow {new.serial - 1}, but {stored.serial} is stored")


def _field(value: dict[str, Json], name: str, kind: type, where: str) -> Json:
    found = value.get(name)
    if type(found) is not kind:
        raise corrupt(where, f"'{name}' is missing or not of its type", _HINT)
    return found
