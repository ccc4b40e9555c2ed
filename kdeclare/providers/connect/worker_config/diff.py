"""Diff worker overrides (declared, live and owned), and create diagnostics about workers."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from kdeclare.core.diagnostics import ENDPOINT_UNREACHABLE, Diagnostic, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import (
    JsonObject,
    JsonValue,
    as_bool,
    as_number,
    as_object,
    as_text,
    as_text_or_none,
    as_texts,
)
from kdeclare.core.operations.operation import Arguments
from kdeclare.core.resources.adoption import adopt_settings
from kdeclare.core.resources.changes import (
    Action,
    Change,
    FieldChange,
    FieldOp,
    Reason,
    Risk,
    find_highest_risk,
)
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, Difference
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.core.secrets.secret_refs import SENSITIVE_MASK, Secret, SecretRef
from kdeclare.providers.connect.operations import WORKER_PATH_PREFIX
from kdeclare.providers.connect.worker_config.collector import WorkerState
from kdeclare.providers.connect.worker_config.hashed_override import HashedOverride, is_same_value
from kdeclare.providers.connect.worker_config.spec import WorkerConfigBody
from kdeclare.providers.connect.worker_health import IN_STEP, check_worker_health, find_refusing, find_silent
from kdeclare.providers.connect.worker_state import (
    GroupSnapshot,
    WorkerGroup,
    bind_group,
    dump_group,
    redact_value,
)
from kdeclare.providers.kafka.config.config_value import ConfigValue, Unset, Value
from kdeclare.providers.kafka.risks import assess_worker_field


@dataclass(frozen=True, slots=True)
class AppliedValue(Arguments):
    """The value that kdeclare last applied for a key, if the value is not secret. None means no override."""

    value: str | None


AppliedRecord = SecretRef | AppliedValue


@dataclass(frozen=True, slots=True)
class WorkerConfigRecord(OwnedRecord):
    """The owned overrides, and the workers to which the overrides were applied."""

    workers: WorkerGroup
    configs: Mapping[str, AppliedRecord]


@dataclass(frozen=True, slots=True)
class _DiffInput:
    """The overrides that a diff compares.

    resource: the id of the compared resource.
    live: the raw live overrides by key.
    owned: the owned overrides by key, with the values that kdeclare applied last.
    """

    resource: ResourceId
    live: Mapping[str, str]
    owned: Mapping[str, AppliedRecord]


def resolve_group(desired: WorkerConfigBody | None, owned: WorkerConfigRecord | None) -> WorkerGroup:
    """Return the declared workers. If none are declared, return the workers in the ownership record."""
    if desired is not None:
        return desired.group
    if owned is None:
        raise LookupError("neither declared nor owned")
    return owned.workers


def ignore_overrides(
    body: WorkerConfigBody, live: WorkerState, owned: WorkerConfigRecord | None
) -> WorkerConfigBody:
    """Return the body without the ignored overrides that are already set or that kdeclare has applied before.

    kdeclare never creates workers, so it sets an ignored override once, if the override is not set yet.
    Ignored configs of brokers are handled in the same way.
    """
    if not body.ignored:
        return body
    overrides = live.get_snapshot(body.group).overrides or {}
    settled = body.ignored_keys & {*overrides, *(owned.configs if owned is not None else ())}
    return replace(body, configs={key: value for key, value in body.configs.items() if key not in settled})


def diff_worker_config(
    resource: ResourceId, desired: DesiredResource | None, live: WorkerState, owned: WorkerConfigRecord | None
) -> Difference:
    """See `Kind.diff`."""
    body = desired.get_body(WorkerConfigBody) if desired is not None else None
    snapshot = live.get_snapshot(resolve_group(body, owned))
    records: Mapping[str, AppliedRecord] = owned.configs if owned is not None else {}
    if snapshot.overrides is None:
        orphan_change = None if desired else Change(resource, Action.UPDATE, Reason.ORPHANED, Risk.DISRUPTIVE)
        return Difference(orphan_change, owned, (), (_build_unreadable_error(resource, desired, snapshot),))
    diff_input = _DiffInput(resource, snapshot.overrides, records)
    if body is None or desired is None:
        removed_fields = (field for key in sorted(records) for field in _diff_undeclared(diff_input, key))
        fields = tuple(map(assess_worker_field, removed_fields))
        return Difference(Change(resource, Action.UPDATE, Reason.ORPHANED, Risk.DISRUPTIVE, fields))
    body = ignore_overrides(body, live, owned)
    # The overrides that stay as they are. Their ownership does not change either.
    kept_keys = body.ignored_keys - body.configs.keys()
    kept_records = {key: record for key, record in records.items() if key in kept_keys}
    diff_input = _DiffInput(
        resource,
        {key: raw for key, raw in snapshot.overrides.items() if key not in kept_keys},
        {key: record for key, record in records.items() if key not in kept_keys},
    )
    difference = _diff_declared(diff_input, body, desired, snapshot)
    if not kept_records:
        return difference
    record = WorkerConfigRecord(body.group, _build_records(body) | kept_records)
    return replace(difference, owned=record)


def _diff_declared(
    diff_input: _DiffInput, body: WorkerConfigBody, desired: DesiredResource, snapshot: GroupSnapshot
) -> Difference:
    config_values = body.configs
    fields = [
        field for key in sorted(config_values) for field in _diff_key(diff_input, key, config_values[key])
    ]
    changed_keys = {field.path.removeprefix("configs.") for field in fields}
    adopted_paths = [
        f"configs.{key}" for key in sorted((changed_keys & diff_input.live.keys()) - diff_input.owned.keys())
    ]
    fields += [
        field
        for key in sorted(diff_input.owned.keys() - config_values)
        for field in _diff_undeclared(diff_input, key)
    ]
    drifted_paths = tuple(
        f"configs.{key}" for key in sorted(diff_input.owned) if _has_drifted(diff_input, key)
    )
    if not fields and any(not isinstance(wish, Unset) for wish in config_values.values()):
        refused_fields = [
            FieldChange(f"{WORKER_PATH_PREFIX}{s.url}", FieldOp.CHANGE, s.why, IN_STEP)
            for s in find_refusing(snapshot)
        ]
        fields, drifted_paths = refused_fields, (*drifted_paths, *(field.path for field in refused_fields))
    change = None
    diagnostics = list(
        check_worker_health(snapshot, body.warn_before_s, str(diff_input.resource), desired.source)
    )
    if fields:
        default_reason = Reason.CHANGED if diff_input.owned else Reason.DECLARED
        reason = Reason.DRIFTED if drifted_paths else default_reason
        assessed_fields = tuple(map(assess_worker_field, fields))
        change = Change(
            diff_input.resource,
            Action.UPDATE,
            reason,
            find_highest_risk(assessed_fields),
            assessed_fields,
            desired.source,
        )
        if adopted_paths:
            change, adoption_diagnostic = adopt_settings(
                change, desired, adopted_paths, drifted_paths, default_reason
            )
            diagnostics.append(adoption_diagnostic)
    owned = WorkerConfigRecord(body.group, _build_records(body))
    return Difference(
        change,
        owned,
        tuple(sorted(diff_input.live.keys() - config_values.keys() - diff_input.owned.keys())),
        tuple(diagnostics),
        drifted=drifted_paths,
    )


def _build_records(body: WorkerConfigBody) -> dict[str, AppliedRecord]:
    return {key: _build_applied_record(value) for key, value in body.configs.items()}


def _diff_key(diff_input: _DiffInput, key: str, config_value: ConfigValue) -> Iterator[FieldChange]:
    raw = diff_input.live.get(key)
    before = redact_value(key, raw)
    if isinstance(config_value, Secret):
        if raw is None or not _is_same_secret(config_value, raw):
            yield FieldChange(f"configs.{key}", FieldOp.SET, before, SENSITIVE_MASK, config_value.as_json())
        return
    expected_value = str(config_value.value) if isinstance(config_value, Value) else None
    if expected_value == raw:
        return
    op = FieldOp.DELETE if expected_value is None else FieldOp.SET
    yield FieldChange(f"configs.{key}", op, before, redact_value(key, expected_value))


def _is_same_secret(secret: Secret, raw: str) -> bool:
    """Whether ``raw`` is the value of the secret. If either value is known only as a hash, compare hashes."""
    if isinstance(raw, HashedOverride) or not secret.value:
        return is_same_value(secret.digest, raw)
    return raw == secret.value


def _diff_undeclared(diff_input: _DiffInput, key: str) -> Iterator[FieldChange]:
    """Yield the deletion of an owned override that is no longer declared, if the override still exists."""
    record, raw = diff_input.owned[key], diff_input.live.get(key)
    if raw is not None and (isinstance(record, SecretRef) or record.value is not None):
        yield FieldChange(f"configs.{key}", FieldOp.DELETE, redact_value(key, raw), None)


def _has_drifted(diff_input: _DiffInput, key: str) -> bool:
    record, raw = diff_input.owned[key], diff_input.live.get(key)
    if isinstance(record, SecretRef):
        return raw is None or not is_same_value(record.secret, raw)
    return raw != record.value


def _build_applied_record(config_value: ConfigValue) -> AppliedRecord:
    """Return the ownership record of an applied config value."""
    if isinstance(config_value, Secret):
        return config_value.ref
    return AppliedValue(str(config_value.value) if isinstance(config_value, Value) else None)


def _build_unreadable_error(
    resource: ResourceId, desired: DesiredResource | None, snapshot: GroupSnapshot
) -> Diagnostic:
    """Return the error for a group of workers that cannot be read. The error blocks only this group."""
    reasons = "\n".join(f"{standing.url}: {standing.why}." for standing in find_silent(snapshot))
    return error(
        ENDPOINT_UNREACHABLE,
        "No Connect worker reports its configuration",
        f"{resource} cannot be compared.\n{reasons}".rstrip(),
        hint="Check 'workers', 'tls' and 'headers' in the manifest, and install kdeclare's plug-in on the "
        "workers if it is missing.",
        place=desired.source if desired else None,
        resource=str(resource),
    )


def dump_config_value(config_value: ConfigValue) -> JsonObject:
    """Convert a config value to plain data: ``{value}``, or the reference and the hash of a secret."""
    if isinstance(config_value, Secret):
        return config_value.as_json()
    return {"value": config_value.value if isinstance(config_value, Value) else None}


def dump_body(body: WorkerConfigBody) -> JsonObject:
    """Convert a declared body to plain data."""
    document: dict[str, JsonValue] = {
        "workers": dump_group(body.group),
        "configs": {key: _dump_stated_value(wish) for key, wish in body.configs.items()},
        "warnBefore": body.warn_before_s,
    }
    document |= {"ignoreChanges": list(body.ignored)} if body.ignored else {}
    return document | ({"adopt": True} if body.adopt else {})


def bind_body(document: JsonObject) -> WorkerConfigBody:
    """Restore a body from the result of `dump_body`. The secrets in the body have no values."""
    config_entries = as_object(document["configs"]).items()
    return WorkerConfigBody(
        bind_group(as_object(document["workers"])),
        {key: _bind_config_value(as_object(record)) for key, record in config_entries},
        as_number(document["warnBefore"]),
        as_bool(document.get("adopt", False)),
        as_texts(document.get("ignoreChanges", ())),
    )


def _dump_stated_value(config_value: ConfigValue) -> JsonObject:
    return config_value.stated if isinstance(config_value, Secret) else dump_config_value(config_value)


def _bind_config_value(record: JsonObject) -> ConfigValue:
    if "secret" in record:
        return Secret("", as_text_or_none(record["reference"]), as_text(record["secret"]))
    value = as_text_or_none(record["value"])
    return Unset() if value is None else Value(value)
