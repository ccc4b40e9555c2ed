"""Compare a resource with its live object, as a plan does, and create audit findings."""

from collections.abc import Iterable, Iterator
from functools import lru_cache

from kdeclare.core.diagnostics import ENDPOINT_UNREACHABLE, SourcePosition
from kdeclare.core.jsontypes import JsonValue, as_object, dump_canonical_json, parse_json
from kdeclare.core.live.faults import Fault
from kdeclare.core.live.live_codec import LiveKey
from kdeclare.core.parts import LiveState
from kdeclare.core.provider.registry import CODECS, KINDS
from kdeclare.core.resources.adoption import ADOPTION
from kdeclare.core.resources.audit_rules import ImpossibleField
from kdeclare.core.resources.changes import Action, FieldChange, FieldOp, Reason
from kdeclare.core.resources.fleet_capabilities import (
    decode_body,
    find_audit_rules,
    find_live_key,
    find_replaced_identity,
    is_fleet_comparable,
    is_present,
    is_set_like,
)
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, Difference
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.core.resources.record_binding import bind_record
from kdeclare.fleet.findings import Finding, FindingKind, FindingSeverity
from kdeclare.fleet.live_state import NotReadError, decode_object, get_plan_context
from kdeclare.fleet.severity import rate_change
from kdeclare.fleet.tables.rows import CLUSTER

_TEAM = "team"
"""The key of the label that contains the team of a resource. Audits count findings by team."""

_UNREAD_CLUSTER = "This cluster was not read."
_CHANGED = "Changed outside kdeclare since the last apply."
_PENDING = "Declared, but not applied yet."
_NOT_ADOPTED = (
    "Exists, but has never been applied by this project and may have a different owner. Apply changes it "
    "only if adoption is allowed (--adopt)."
)
_ADOPTED = (
    "Exists, but has never been applied by this project. Apply will adopt it, because adoption is allowed."
)
_MISSING = "Applied before, but missing from the cluster."
_MISSING_ORPHAN = "Missing from the cluster, and no longer declared."
_ORPHANED = "No longer declared, but still exists in the cluster."
_UNMANAGED = "Neither declared nor owned by kdeclare."
_UNMANAGED_KEY = "Set on the resource, but neither declared nor owned by kdeclare."


def find_drift(
    kind: str,
    name: str,
    desired_json: str | None,
    owned_json: str | None,
    live_json: str | None,
    error: str | None,
    cluster_body: str | None,
    labels: Iterable[tuple[str, str]] | None = None,
    source: str | None = None,
    removed_key: str | None = None,
) -> tuple[Finding, ...]:
    """Compare one resource or undeclared live object independently of others, and return the findings.

    kind, name: the kind and name of the resource. For a live object that is neither declared nor owned, the
        type and key of the object.
    desired_json: the declared body as JSON; None if the resource is not declared.
    owned_json: the ownership record as JSON; None if the resource is not owned.
    live_json: the live object as JSON; None if the object does not exist or could not be read.
    error: the reason why the object could not be read; otherwise None.
    cluster_body: the cluster-level live state as JSON (see `fleet.live_state`). None if the cluster or its
        project could not be read; the result is then empty.
    labels, source: the labels and the position of the manifest. Messages about required changes contain them.
    removed_key: the key of the live object, if it is an unmanaged object that applying the resource would
        delete. The type of the object is ``kind``.
    """
    if kind == CLUSTER:
        reason = error or (_UNREAD_CLUSTER if live_json is None else None)
        return () if reason is None else (build_unreachable_finding(reason, of_cluster=True),)
    is_known = desired_json is not None or owned_json is not None
    if error is not None:
        return (build_unreachable_finding(error, source),) if is_known else ()
    if cluster_body is None:
        return ()
    if not is_known:
        return _find_unmanaged_object(LiveKey(kind, name), live_json)
    if not is_fleet_comparable(kind):
        return ()
    resource = ResourceId(kind, name)
    desired_resource = None
    if desired_json is not None:
        desired_resource = DesiredResource(
            resource, _decode_desired_body(kind, desired_json), dict(labels or ()), parse_source(source)
        )
    owned_record = None if owned_json is None else bind_record(kind, parse_json(owned_json))
    key = (
        LiveKey(kind, removed_key)
        if removed_key is not None
        else find_live_key(
            resource, None if desired_resource is None else desired_resource.body, owned_record
        )
    )
    if key is None:
        return ()
    try:
        live_state = decode_object(key, live_json, cluster_body)
    except NotReadError as reason:
        return (build_unreachable_finding(str(reason), source),)
    difference = KINDS[kind].diff(
        resource, desired_resource, live_state, owned_record, get_plan_context(CODECS[key.sort])
    )
    return collect_findings(resource, difference, desired_resource, owned_record, live_state)


def parse_source(source: str | None) -> SourcePosition | None:
    """Parse the position of a manifest, in the form ``file:line:column``."""
    if source is None:
        return None
    file, line, column = source.rsplit(":", 2)
    return SourcePosition(file, int(line), int(column))


def explain_other_cluster(planned_id: str, live_id: str) -> str:
    """Return the error message for a state that belongs to a different cluster."""
    return f"The state belongs to cluster {planned_id}, but this is cluster {live_id}."


def explain_unmanaged_group(count: str, group: str) -> str:
    """Return the message about a group of unmanaged objects that are counted instead of listed."""
    return f"{count} objects of '{group}' are neither declared nor owned by kdeclare."


def collect_findings(
    resource: ResourceId,
    difference: Difference,
    desired: DesiredResource | None,
    owned: OwnedRecord | None,
    live: LiveState,
) -> tuple[Finding, ...]:
    """Convert the difference between a resource and its live object to findings.

    desired, owned, live: the states that were compared.
    """
    unread_reasons = [d.detail for d in difference.diagnostics if d.code == ENDPOINT_UNREACHABLE]
    if unread_reasons:
        findings: tuple[Finding, ...] = (build_unreachable_finding(" ".join(unread_reasons)),)
    else:
        try:
            findings = _find_compared(resource, difference, desired, owned, live)
        except Fault as fault:  # whether the live object exists is unknown
            findings = (build_unreachable_finding(fault.message or fault.error),)
    if not findings or desired is None or desired.source is None:
        return findings
    source = str(desired.source)
    return tuple(finding.with_source(source) for finding in findings)


def _find_compared(
    resource: ResourceId,
    difference: Difference,
    desired: DesiredResource | None,
    owned: OwnedRecord | None,
    live: LiveState,
) -> tuple[Finding, ...]:
    """Return the findings about a resource whose endpoint could be read. Raises Fault."""
    replacement = _find_replacement(resource, desired, owned, live)
    if desired is None:
        return (replacement or _build_orphan_finding(resource, difference, owned, live),)
    findings = [replacement] if replacement is not None else []
    if difference.change is not None or difference.diagnostics:
        own_record = owned if replacement is None else None
        findings += _find_differences(resource, difference, desired, own_record, live)
    if difference.unmanaged:
        findings += _find_unmanaged_fields(resource, difference, live)
    return tuple(findings)


def _find_replacement(
    resource: ResourceId, desired: DesiredResource | None, owned: OwnedRecord | None, live: LiveState
) -> Finding | None:
    """Return a finding if the live object was deleted and recreated after the last apply; otherwise None.

    A recreated object is reported even if it matches the manifest, because the data of the deleted object is
    lost.
    """
    ids = find_replaced_identity(resource, None if desired is None else desired.body, owned, live)
    if ids is None:
        return None
    rules = find_audit_rules(resource.kind)
    message = rules.replaced if desired is not None else rules.orphan_replaced
    return Finding(
        FindingKind.CHANGED,
        rules.identity_field,
        None,
        dump_canonical_json(ids[0]),
        dump_canonical_json(ids[1]),
        message,
        FindingSeverity.HIGH,
    )


def _find_unmanaged_object(key: LiveKey, live: str | None) -> tuple[Finding, ...]:
    """Return a finding for an unmanaged object, unless it is an internal object of the system."""
    codec = CODECS.get(key.sort)
    if live is None or codec is None or not codec.is_reported(key, live):
        return ()
    return (_build_resource_finding(FindingKind.UNMANAGED, None, _UNMANAGED),)


def _build_orphan_finding(
    resource: ResourceId, difference: Difference, owned: OwnedRecord | None, live: LiveState
) -> Finding:
    if not is_present(find_live_key(resource, None, owned), live):
        return _build_resource_finding(FindingKind.MISSING, "forget", _MISSING_ORPHAN)
    return _build_resource_finding(
        FindingKind.ORPHANED, str(Action.DELETE), _explain_blocking(difference, None, None) or _ORPHANED
    )


def _find_differences(
    resource: ResourceId,
    difference: Difference,
    desired: DesiredResource,
    owned: OwnedRecord | None,
    live: LiveState,
) -> Iterator[Finding]:
    change, impossible_field = difference.change, _find_impossible(difference, desired, live)
    blocking_reason = _explain_blocking(difference, desired, impossible_field)
    is_creation = change is not None and change.action is Action.CREATE
    if change is not None and (is_creation or _is_missing(resource, difference, desired, owned, live)):
        # A resource that was applied without any settings is not missing.
        is_missing = owned is not None and change.reason is not Reason.CHANGED
        kind = FindingKind.MISSING if is_missing else FindingKind.PENDING
        message = _MISSING if is_missing else _explain_pending(resource, *change.fields)
        after = dump_canonical_json({field.path: field.after for field in change.fields})
        severity = FindingSeverity.HIGH if is_missing else FindingSeverity.LOW
        yield Finding(kind, None, str(change.action), None, after, blocking_reason or message, severity)
        return
    if impossible_field is not None:
        before, after = (
            dump_canonical_json(impossible_field.before),
            dump_canonical_json(impossible_field.after),
        )
        kind = _classify_field(impossible_field.path, difference)
        impossible_change = FieldChange(
            impossible_field.path, FieldOp.CHANGE, impossible_field.before, impossible_field.after
        )
        severity = rate_change(resource.kind, impossible_change, kind)
        yield Finding(kind, impossible_field.path, None, before, after, blocking_reason, severity)
    rules = find_audit_rules(resource.kind)
    fields = change.fields if change is not None else ()
    for field in fields:
        kind = _classify_field(field.path, difference)
        if owned is not None and rules.is_set_by_others(field.path, desired, owned):
            kind = FindingKind.CHANGED
        message = _CHANGED if kind is FindingKind.CHANGED else _explain_pending(resource, field)
        if change is not None and (field.reason or change.reason) in (Reason.ADOPT, Reason.RECREATED):
            message = message.replace(_PENDING, _NOT_ADOPTED if change.blocked else _ADOPTED)
        note = rules.describe_difference(desired, live, field)
        message = " ".join(part for part in (blocking_reason or message, note) if part)
        yield Finding(
            kind,
            field.path,
            str(field.op),
            _dump_optional(field.before),
            _dump_optional(field.after),
            message,
            rate_change(resource.kind, field, kind),
        )
    if blocking_reason and impossible_field is None and not fields:
        is_missing = owned is not None and not is_present(find_live_key(resource, desired.body, owned), live)
        kind = FindingKind.MISSING if is_missing else FindingKind.PENDING
        severity = FindingSeverity.HIGH if is_missing else FindingSeverity.LOW
        yield _build_resource_finding(kind, None, blocking_reason, severity)


def _is_missing(
    resource: ResourceId,
    difference: Difference,
    desired: DesiredResource,
    owned: OwnedRecord | None,
    live: LiveState,
) -> bool:
    """Whether the live object of an applied resource no longer exists.

    If the resource is a set of live objects, the result is False, because audits report a missing element as
    a changed field.
    """
    if not difference.drifted or is_set_like(resource.kind):
        return False
    return not is_present(find_live_key(resource, desired.body, owned), live)


def _find_impossible(
    difference: Difference, desired: DesiredResource, live: LiveState
) -> ImpossibleField | None:
    rules = find_audit_rules(desired.id.kind)
    if any(d.code in rules.impossible for d in difference.diagnostics):
        return rules.find_impossible(desired, live)
    return None


def _explain_pending(resource: ResourceId, *fields: FieldChange) -> str:
    unset_paths = [field.path for field in fields if field.before is None]
    explanation = find_audit_rules(resource.kind).describe_pending(resource, unset_paths)
    return _PENDING if explanation is None else f"{_PENDING} {explanation}"


def _classify_field(path: str, difference: Difference) -> FindingKind:
    return FindingKind.CHANGED if path in difference.drifted else FindingKind.PENDING


def _find_unmanaged_fields(
    resource: ResourceId, difference: Difference, live: LiveState
) -> Iterator[Finding]:
    rules = find_audit_rules(resource.kind)
    for field in rules.list_unmanaged(resource, difference.unmanaged, live):
        # As if the key were declared as unset: the live value overrides the inherited value.
        removal = FieldChange(field.path, FieldOp.DELETE, field.value, None)
        yield Finding(
            FindingKind.UNMANAGED,
            field.path,
            None,
            _dump_optional(field.value),
            None,
            _UNMANAGED_KEY,
            rate_change(resource.kind, removal, FindingKind.CHANGED),
        )


def _explain_blocking(
    difference: Difference, desired: DesiredResource | None, impossible_field: ImpossibleField | None
) -> str:
    """Return why apply would reject the resource, and how to change the manifest.

    Return an empty string if apply would accept it.

    Reasons that concern adoption are omitted, because each field has its own message about adoption.
    """
    blocking_diagnostics = [d for d in difference.diagnostics if d.is_blocking and d.code != ADOPTION]
    details = " ".join(d.detail for d in blocking_diagnostics)
    impossible_codes = find_audit_rules(desired.id.kind).impossible if desired is not None else ()
    manifest_errors = [d for d in blocking_diagnostics if d.is_error or d.code in impossible_codes]
    if desired is None or not manifest_errors:
        return details
    consequence = "must be changed" if impossible_field is not None else "cannot be applied without changes"
    hints = [d.hint[:1].lower() + d.hint[1:] for d in manifest_errors if d.hint]
    hint_text = f": {' '.join(hints)}" if hints else "."
    return f"{details} The manifest{_format_owner(desired)} {consequence}{hint_text}"


def _format_owner(desired: DesiredResource) -> str:
    """Format the position of a manifest, and its team or labels, for a message."""
    team = desired.labels.get(_TEAM)
    label_text = ", ".join(f"{key}={value}" for key, value in sorted(desired.labels.items()))
    owner = f" of team {team}" if team else f" labeled {label_text}" if label_text else ""
    return f"{owner} ({desired.source})" if desired.source is not None else owner


def build_unreachable_finding(reason: str, source: str | None = None, *, of_cluster: bool = False) -> Finding:
    """Return the finding about a resource, or a whole cluster (``of_cluster``), that could not be read."""
    severity = FindingSeverity.HIGH if of_cluster else FindingSeverity.MEDIUM
    return _build_resource_finding(FindingKind.UNREACHABLE, None, reason, severity, source)


def _build_resource_finding(
    finding: FindingKind,
    op: str | None,
    message: str,
    severity: FindingSeverity = FindingSeverity.LOW,
    source: str | None = None,
) -> Finding:
    return Finding(finding, None, op, None, None, message, severity, source)


def _dump_optional(value: JsonValue) -> str | None:
    return None if value is None else dump_canonical_json(value)


@lru_cache(maxsize=4096)
def _decode_desired_body(kind: str, desired: str) -> object:
    """Decode a declared body. Results are cached, because many topics have the same body."""
    return decode_body(kind, as_object(parse_json(desired)))
