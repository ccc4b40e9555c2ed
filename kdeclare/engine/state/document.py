"""Encode the state as a JSON document, decode it, and migrate it from earlier formats."""

import json
import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from kdeclare.core.jsontypes import JsonObject, JsonValue, as_int, as_object, as_text, parse_json
from kdeclare.core.live.endpoints import Endpoints
from kdeclare.core.plans.state import State
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.owned_record import OwnedRecord, UnboundRecord
from kdeclare.core.resources.record_binding import bind_record, dump_record
from kdeclare.engine.state.checksum import compute_checksum
from kdeclare.engine.state.problems import (
    build_corruption_error,
    build_lost_update_error,
    build_version_error,
)

CURRENT_VERSION = 3
"""The format version that kdeclare writes.

Older versions of kdeclare refuse a state in this format, because they would drop fields.
"""

StateDocument = Mapping[str, JsonValue]


def migrate_state(document: StateDocument, version: int) -> StateDocument:
    """Migrate a state document to the current format. Raises KeyError for an unknown version."""
    while version != CURRENT_VERSION:
        document = MIGRATIONS[version](document)
        version += 1
    return {**document, "version": version}


def mark_unproven_parts(record: JsonValue) -> JsonValue:
    """Complete an ownership record of kdeclare 0.1, which does not say which list elements kdeclare added.

    Up to state version 2, a record of ``{append, subtract}`` contained all elements that the manifest
    declared, including those that were already in the list before. kdeclare must later remove only elements
    that it added. Because the record does not show which ones these are, no element counts as added.
    """
    configs = record.get("configs") if isinstance(record, Mapping) else None
    if not isinstance(record, Mapping) or not isinstance(configs, Mapping):
        return record
    return {**record, "configs": {key: _mark_unproven(value) for key, value in configs.items()}}


def _mark_unproven(value: JsonValue) -> JsonValue:
    if isinstance(value, Mapping) and "append" in value and "added" not in value:
        return {**value, "added": []}
    return value


def _migrate_to_2(document: StateDocument) -> StateDocument:
    """Migrate a state to version 2, which has the optional field ``leftovers``."""
    return document


def _migrate_to_3(document: StateDocument) -> StateDocument:
    """Migrate a state to version 3, which records the elements that kdeclare added to lists."""
    resources = document.get("resources")
    if not isinstance(resources, Mapping):
        return document  # decoding reports the problem
    return {**document, "resources": {name: mark_unproven_parts(r) for name, r in resources.items()}}


MIGRATIONS: Mapping[int, Callable[[StateDocument], StateDocument]] = {1: _migrate_to_2, 2: _migrate_to_3}


_HINT = (
    "Restore the previous state (state.json.backup), or a copy from version control or a backup, with "
    "`kdeclare state push FILE --force`."
)
_EDIT_HINT = f"{_HINT} If you edited the state on purpose, remove the line with the checksum."
_CHECKSUM_LINE = re.compile(rb'^  "checksum": "([0-9a-f]{16})",\n', re.MULTILINE)
_Field = TypeVar("_Field")
_encode_json = json.JSONEncoder(ensure_ascii=False, sort_keys=True).encode


def encode_state(state: State) -> str:
    """Encode a state as sorted JSON with one line per resource, so that two states can be diffed."""
    header_lines = [
        f'  "{name}": {_encode_json(value)},'
        for name, value in (
            ("version", CURRENT_VERSION),
            ("lineage", state.lineage),
            ("serial", state.serial),
            ("cluster_id", state.cluster_id),
        )
    ]
    lines = [
        f"    {_encode_json(name)}: {_encode_json(dump_record(state.resources[name]))}"
        for name in sorted(state.resources)
    ]
    if state.endpoints:
        header_lines.append(f'  "endpoints": {_encode_json(dict(state.endpoints))},')
    if state.pending_cleanup:
        header_lines.append(f'  "leftovers": {_encode_json(dict(state.pending_cleanup))},')
    body = '  "resources": {\n' + ",\n".join(lines) + "\n  }" if lines else '  "resources": {}'
    return "\n".join(["{", *header_lines, body, "}"]) + "\n"


def encode_stored_state(state: State) -> bytes:
    """Encode a state for a store: with a checksum in a line of its own, which shows damage to any value.

    `kdeclare state pull` shows a state without the checksum, so that users can edit the state and push it.
    """
    data = encode_state(state).encode()
    return data.replace(b"\n", b'\n  "checksum": "%s",\n' % compute_checksum(data), 1)


def decode_state(text: str | bytes, location: str) -> State:
    """Decode a state, and migrate it from earlier versions. ``location`` identifies the state in errors.

    Raises KdeclareError if the text is not JSON, has an unknown version, lacks required fields, or differs
    from its checksum. A state without a checksum is accepted: it comes from a user, or from an earlier
    version of kdeclare.
    """
    try:
        value = parse_json(text)
    except (ValueError, RecursionError) as cause:
        raise build_corruption_error(location, f"it is not JSON ({cause})", _HINT) from cause
    if not isinstance(value, dict):
        raise build_corruption_error(location, "it is not a JSON object", _HINT)
    version = value.get("version")
    if type(version) is not int:
        raise build_corruption_error(location, "it has no format version", _HINT)
    if version not in (*MIGRATIONS, CURRENT_VERSION):
        raise build_version_error(location, version, CURRENT_VERSION)
    if "checksum" in value and not _has_matching_checksum(text):
        raise build_corruption_error(location, "its content differs from its checksum", _EDIT_HINT)
    value = migrate_state(value, version)
    return State(
        lineage=_get_field(value, "lineage", as_text, location),
        serial=_get_field(value, "serial", as_int, location),
        cluster_id=_get_field(value, "cluster_id", as_text, location),
        resources=_bind_records(_get_field(value, "resources", as_object, location), location),
        pending_cleanup=_get_field({"leftovers": {}, **value}, "leftovers", as_object, location),
        endpoints=_get_field({"endpoints": {}, **value}, "endpoints", _as_endpoints, location),
    )


def _has_matching_checksum(text: str | bytes) -> bool:
    data = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    data = data.replace(b"\r\n", b"\n")  # version control can change the ends of lines
    stated = _CHECKSUM_LINE.search(data)
    return stated is not None and stated[1] == compute_checksum(data[: stated.start()] + data[stated.end() :])


def _as_endpoints(value: JsonValue) -> Endpoints:
    return {name: as_text(id_) for name, id_ in as_object(value).items()}


def _bind_records(records: JsonObject, location: str) -> Mapping[str, OwnedRecord]:
    """Convert ownership records to the classes that their kinds define.

    A record can have an unknown structure only if its kind is not installed.
    """
    bound: dict[str, OwnedRecord] = {}
    for name, stored in records.items():
        kind = name.partition("/")[0]
        record = bind_record(kind, stored)
        if record is None:
            raise build_corruption_error(location, f"the record of {name} is null", _HINT)
        bound[name] = record
        if isinstance(record, UnboundRecord) and kind in KINDS:
            raise build_corruption_error(
                location, f"the record of {name} cannot be read ({record.problem})", _HINT
            )
    return bound


def validate_next_state(stored: State | None, new: State) -> None:
    """Raise KdeclareError unless ``new`` is the direct successor of ``stored``."""
    if stored is None:
        if new.serial != 1:
            raise build_lost_update_error(
                f"serial {new.serial} should follow {new.serial - 1}, but no state is stored"
            )
    elif stored.lineage != new.lineage:
        raise build_lost_update_error(f"the stored state has lineage {stored.lineage}, not {new.lineage}")
    elif stored.serial != new.serial - 1:
        raise build_lost_update_error(
            f"serial {new.serial} should follow {new.serial - 1}, but serial {stored.serial} is stored"
        )


def _get_field(value: JsonObject, name: str, read: Callable[[JsonValue], _Field], location: str) -> _Field:
    try:
        return read(value.get(name))
    except TypeError as cause:
        raise build_corruption_error(location, f"'{name}' is missing or has the wrong type", _HINT) from cause
