"""What is found about one row: the diff that every plan uses, and what its answer means in an audit."""

from collections.abc import Iterable, Iterator
from functools import lru_cache

from kdeclare.core.diagnostics import Place
from kdeclare.core.jsontypes import JsonValue, as_object, canonical_json, parse_json
from kdeclare.core.live.live_codec import LiveKey
from kdeclare.core.parts import LiveState
from kdeclare.core.provider.registry import CODECS, KINDS
from kdeclare.core.resources.adoption import ADOPTION
from kdeclare.core.resources.audit_rules import ImpossibleField
from kdeclare.core.resources.capabilities import (
    decode_body,
    find_audit_rules,
    find_live_key,
    is_fleet_comparable,
    is_set_like,
)
from kdeclare.core.resources.changes import Action, FieldChange, Reason
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import Desired, Difference
from kdeclare.core.resources.owned_record import OwnedRecord, read_field
from kdeclare.core.resources.record_binding import bind_record
from kdeclare.fleet.findings import FindingKind, Found
from kdeclare.fleet.live_state import NotReadError, decode_object, find_context
from kdeclare.fleet.rows import CLUSTER

_TEAM = "team"
"""The label that says whose a resource is; audits count findings by it."""

_NOT_READ = "Nothing was read of this cluster."
_CHANGED = "It was changed outside kdeclare since it was last applied."
_PENDING = "It is declared and not applied yet."
_NOT_ADOPTED = (
    "It exists and was never applied by this project, so it may belong to someone else. It is taken over and "
    "changed only where its adoption is allowed (--adopt)."
)
_ADOPTED = "It exists and was never applied by this project. Its adoption is allowed: apply takes it over."
_GONE = "It was applied before, and is gone from the cluster."
_GONE_FOR_GOOD = "It is gone from the cluster, and declared no longer."
_ORPHANED = "It is declared no longer, and still there."
_UNMANAGED = "It is neither declared nor owned by kdeclare."
_UNMANAGED_KEY = "It is set on the resource, and neither declared nor owned by kdeclare."


def found(
    kind: str,
    name: str,
    desired: str | None,
    owned: str | None,
    live: str | None,
    error: str | None,
    cluster_body: str | None,
    labels: Iterable[tuple[str, str]] | None = None,
    source: str | None = None,
) -> tuple[Found, ...]:
    """What is found about one row that is `alone`; bodies and the record of ownership are JSON texts.

    kind, name: of the resource; of what is neither declared nor owned, sort and key of the live object.
    desired: the declared body. owned: the record of what was last applied. live: the live body, None where
    the object is not there, or could not be read. error: why it could not. cluster_body: None where the
    cluster, or what is declared for it, is not known; then nothing is found about its resources.
    labels, source: of the manifest, for messages about what its owner has to change.
    """
    if kind == CLUSTER:
        reason = error or (_NOT_READ if live is None else None)
        return () if reason is None else (_whole(FindingKind.UNREACHABLE, None, reason),)
    known = desired is not None or owned is not None
    if error is not None:
        return (_whole(FindingKind.UNREACHABLE, None, error),) if known else ()
    if cluster_body is None:
        return ()
    if not known:
        return _unknown(LiveKey(kind, name), live)
    if not is_fleet_comparable(kind):
        return ()
    resource = ResourceId(kind, name)
    declared = None
    if desired is not None:
        declared = Desired(resource, _body(kind, desired), dict(labels or ()), parse_source(source))
    record = None if owned is None else bind_record(kind, parse_json(owned))
    key = find_live_key(resource, None if declared is None else declared.body, record)
    if key is None:
        return ()
    try:
        state = decode_object(key, live, cluster_body)
    except NotReadError as reason:
        return (_whole(FindingKind.UNREACHABLE, None, str(reason)),)
    difference = KINDS[kind].diff(resource, declared, state, record, find_context(CODECS[key.sort]))
    return found_in(resource, difference, declared, record, state)


def parse_source(source: str | None) -> Place | None:
    """The position of a manifest as `rows.DECLARED` has it: file:line:column."""
    if source is None:
        return None
    file, line, column = source.rsplit(":", 2)
    return Place(file, int(line), int(column))


def other_cluster(planned: str, live: str) -> str:
    """Why nothing is compared where a state is about another cluster: all that it owns would be missing."""
    return f"The state is about cluster {planned}, and this is cluster {live}."


def unmanaged_group(count: str, group: str) -> str:
    """What is said of many objects that nobody declared, counted by their group."""
    return f"{count} objects of '{group}' are neither declared nor owned by kdeclare."


def found_in(
    resource: ResourceId,
    difference: Difference,
    desired: Desired | None,
    owned: OwnedRecord | None,
    live: LiveState,
) -> tuple[Found, ...]:
    """What a diff of a declared or owned resource has found; ``live`` and ``owned`` are what it was given."""
    replaced = _replaced(resource, desired, owned, live)
    if replaced is not None:
        if desired is None:
            return (replaced,)
        changes = _differing(resource, difference, desired, None, live)
        return (replaced, *changes, *_unmanaged(resource, difference, live))
    if desired is None:
        return (_orphaned(resource, difference, owned, live),)
    return (*_differing(resource, difference, desired, owned, live), *_unmanaged(resource, difference, live))


def _replaced(
    resource: ResourceId, desired: Desired | None, owned: OwnedRecord | None, live: LiveState
) -> Found | None:
    """It is told also where the new object is as declared: what the old one held is gone."""
    rules = find_audit_rules(resource.kind)
    path = rules.identity_field
    before = read_field(owned, path) if path is not None else None
    if path is None or not before:  # nothing proves it
        return None
    key = find_live_key(resource, None if desired is None else desired.body, owned)
    after = CODECS[key.sort].find_identity(key, live) if key is not None else None
    if after is None or after == before:
        return None
    message = rules.replaced if desired is not None else rules.orphan_replaced
    return Found(FindingKind.CHANGED, path, None, canonical_json(before), canonical_json(after), message)


def _unknown(key: LiveKey, live: str | None) -> tuple[Found, ...]:
    """Of what is neither declared nor owned, only what is people's own is worth a word."""
    codec = CODECS.get(key.sort)
    if live is None or codec is None or not codec.is_reported(key, live):
        return ()
    return (_whole(FindingKind.UNMANAGED, None, _UNMANAGED),)


def _orphaned(
    resource: ResourceId, difference: Difference, owned: OwnedRecord | None, live: LiveState
) -> Found:
    if not _is_there(find_live_key(resource, None, owned), live):
        return _whole(FindingKind.MISSING, "forget", _GONE_FOR_GOOD)
    return _whole(FindingKind.ORPHANED, str(Action.DELETE), _blocking(difference, None, None) or _ORPHANED)


def _differing(
    resource: ResourceId, difference: Difference, desired: Desired, owned: OwnedRecord | None, live: LiveState
) -> Iterator[Found]:
    change, impossible = difference.change, _find_impossible(difference, desired, live)
    blocking = _blocking(difference, desired, impossible)
    creates = change is not None and change.action is Action.CREATE
    if change is not None and (creates or _is_gone(resource, difference, desired, owned, live)):
        gone = owned is not None
        finding = FindingKind.MISSING if gone else FindingKind.PENDING
        message = _GONE if gone else _pending(resource, *change.fields)
        after = canonical_json({field.path: field.after for field in change.fields})
        yield Found(finding, None, str(change.action), None, after, blocking or message)
        return
    if impossible is not None:
        before, after = canonical_json(impossible.before), canonical_json(impossible.after)
        finding = _kind_of(impossible.path, difference)
        yield Found(finding, impossible.path, None, before, after, blocking)
    rules = find_audit_rules(resource.kind)
    fields = change.fields if change is not None else ()
    for field in fields:
        finding = _kind_of(field.path, difference)
        if owned is not None and rules.was_set_by_others(field.path, desired, owned):
            finding = FindingKind.CHANGED
        message = _CHANGED if finding is FindingKind.CHANGED else _pending(resource, field)
        if change is not None and (field.reason or change.reason) in (Reason.ADOPT, Reason.RECREATED):
            message = message.replace(_PENDING, _NOT_ADOPTED if change.blocked else _ADOPTED)
        message = blocking or message
        yield Found(finding, field.path, str(field.op), _text(field.before), _text(field.after), message)
    if blocking and impossible is None and not fields:
        gone = owned is not None and not _is_there(find_live_key(resource, desired.body, owned), live)
        yield _whole(FindingKind.MISSING if gone else FindingKind.PENDING, None, blocking)


def _is_gone(
    resource: ResourceId, difference: Difference, desired: Desired, owned: OwnedRecord | None, live: LiveState
) -> bool:
    """Whether nothing is left of what was applied, where no operation has to create it again.

    Of a set, one element that is gone is a field that was changed.
    """
    if not difference.drifted or is_set_like(resource.kind):
        return False
    return not _is_there(find_live_key(resource, desired.body, owned), live)


def _find_impossible(difference: Difference, desired: Desired, live: LiveState) -> ImpossibleField | None:
    rules = find_audit_rules(desired.id.kind)
    if any(d.code in rules.impossible for d in difference.diagnostics):
        return rules.find_impossible(desired, live)
    return None


def _pending(resource: ResourceId, *fields: FieldChange) -> str:
    unset = [field.path for field in fields if field.before is None]
    more = find_audit_rules(resource.kind).describe_pending(resource, unset)
    return _PENDING if more is None else f"{_PENDING} {more}"


def _kind_of(path: str, difference: Difference) -> FindingKind:
    return FindingKind.CHANGED if path in difference.drifted else FindingKind.PENDING


def _unmanaged(resource: ResourceId, difference: Difference, live: LiveState) -> Iterator[Found]:
    rules = find_audit_rules(resource.kind)
    for field in rules.list_unmanaged(resource, difference.unmanaged, live) if difference.unmanaged else ():
        yield Found(FindingKind.UNMANAGED, field.path, None, _text(field.value), None, _UNMANAGED_KEY)


def _is_there(key: LiveKey | None, live: LiveState) -> bool:
    """Whether the object exists; what is no object of its own cannot be gone."""
    return key is None or CODECS[key.sort].contains(key, live)


def _blocking(difference: Difference, desired: Desired | None, impossible: ImpossibleField | None) -> str:
    """What keeps a resource from being applied, if something does, and who has to change what.

    Adoptions have words of their own, field by field.
    """
    blocking = [d for d in difference.diagnostics if d.blocks and d.code != ADOPTION]
    details = " ".join(d.detail for d in blocking)
    codes = find_audit_rules(desired.id.kind).impossible if desired is not None else ()
    wrong = [d for d in blocking if d.is_error or d.code in codes]
    if desired is None or not wrong:
        return details
    verdict = "has to change" if impossible is not None else "cannot be applied like this"
    hints = [d.hint[:1].lower() + d.hint[1:] for d in wrong if d.hint]
    what = f": {' '.join(hints)}" if hints else "."
    return f"{details} The manifest{_owner(desired)} {verdict}{what}"


def _owner(desired: Desired) -> str:
    """Whose a manifest is, by its labels, and where it is."""
    team = desired.labels.get(_TEAM)
    others = ", ".join(f"{key}={value}" for key, value in sorted(desired.labels.items()))
    whose = f" of team {team}" if team else f" labelled {others}" if others else ""
    return f"{whose} ({desired.source})" if desired.source is not None else whose


def _whole(finding: FindingKind, op: str | None, message: str) -> Found:
    return Found(finding, None, op, None, None, message)


def _text(value: JsonValue) -> str | None:
    return None if value is None else canonical_json(value)


@lru_cache(maxsize=4096)
def _body(kind: str, desired: str) -> object:
    """A declared body; many topics say the same."""
    return decode_body(kind, as_object(parse_json(desired)))
