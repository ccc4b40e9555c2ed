"""Write ad hoc changes to limits back into the manifests that declare the entities."""

from collections.abc import Mapping

from kdeclare.core.diagnostics import Diagnostic, error
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.resources.changes import Change, FieldChange, FieldOp
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import SpecPath
from kdeclare.core.resources.manifest_capabilities import ManifestEdits, SettingEdit
from kdeclare.providers.kafka.client_quota.entity import LIMITS, parse_limit
from kdeclare.providers.kafka.client_quota.spec import LIMIT_FIELD_PREFIX, ClientQuotaBody

_Limits = Mapping[str, int | float | None]


def find_quota_edits(change: Change) -> ManifestEdits:
    """Return one edit for each limit that a change sets or removes."""
    return ManifestEdits(tuple(map(_edit_limit, change.fields)))


def _edit_limit(field: FieldChange) -> SettingEdit:
    after = field.after
    value: JsonValue = str(after) if isinstance(after, float) else after
    op = FieldOp.DELETE if after is None else FieldOp.SET
    return SettingEdit(("limits", _get_key(field)), (FieldChange(field.path, op, field.before, value),))


def report_unknown_entity(resource: ResourceId) -> Diagnostic:
    """Return the error for a change that cannot be written, because no manifest declares the quota."""
    return error(
        "not-declared",
        "Resource not declared",
        f"No manifest of the project declares {resource}, so the change cannot be written to a manifest.",
        hint="Run 'kdeclare import' to write manifests of existing quotas (--match NAME for one user).",
        resource=str(resource),
    )


def is_same_limit(path: SpecPath, text: str, value: JsonValue) -> bool:
    """Return whether a limit in a manifest is the same as ``value``. ``10MiB`` is the same as 10485760."""
    key = str(path[-1])
    try:
        return key in LIMITS and value is not None and parse_limit(key, text) == parse_limit(key, str(value))
    except ValueError:
        return False


def convert_limit(path: SpecPath, text: str) -> str | None:
    """Convert a limit such as ``10MiB`` to the number for Kafka; None if the limit has no unit."""
    root, key = path[0], str(path[-1])
    if root != "limits" or key not in LIMITS or not text.strip().endswith(("B", "s")):
        return None
    try:
        return str(parse_limit(key, text))
    except ValueError:
        return None


def is_quota_as_changed(before: ClientQuotaBody | None, after: ClientQuotaBody, change: Change) -> bool:
    """Return whether the given change is the only difference between ``before`` and ``after``."""
    changed = {_get_key(field): field.after for field in change.fields}
    if before is None or any(after.limits.get(key) != limit for key, limit in changed.items()):
        return False
    rest_before, rest_after = (_drop_limits(body.limits, changed) for body in (before, after))
    return rest_before == rest_after and (before.entity, before.remove_unmanaged, before.adopt) == (
        after.entity,
        after.remove_unmanaged,
        after.adopt,
    )


def _drop_limits(limits: _Limits, keys: Mapping[str, JsonValue]) -> _Limits:
    return {key: limit for key, limit in limits.items() if key not in keys}


def _get_key(field: FieldChange) -> str:
    return field.path.removeprefix(LIMIT_FIELD_PREFIX)
