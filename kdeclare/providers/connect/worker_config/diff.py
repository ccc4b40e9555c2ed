"""The three-way diff of worker overrides, and what is to be said of the workers themselves."""

from collections.abc import Iterator, Mapping

from kdeclare.core.diagnostics import Diagnostic, error
from kdeclare.core.frozen import dataclass
from kdeclare.core.jsontypes import (
    JsonObject,
    JsonValue,
    as_bool,
    as_number,
    as_object,
    as_text,
    as_text_or_none,
)
from kdeclare.core.operations.operation import Arguments
from kdeclare.core.resources.adoption import adopt_settings
from kdeclare.core.resources.changes import Action, Change, FieldChange, FieldOp, Reason, Risk, highest_risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import Desired, Difference
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.core.secrets.secret_hashes import matches
from kdeclare.core.secrets.secret_refs import SHOWN, Secret, SecretRef
from kdeclare.providers.connect.connection import WorkerState
from kdeclare.providers.connect.operations import WORKERS
from kdeclare.providers.connect.worker_config.spec import WorkerConfigBody
from kdeclare.providers.connect.worker_health import IN_STEP, findings, refusing, silent
from kdeclare.providers.connect.worker_state import (
    WorkerGroup,
    WorkersSeen,
    read_group,
    show_value,
    write_group,
)
from kdeclare.providers.kafka.config.wishes import Unset, Whole, Wish
from kdeclare.providers.kafka.risks import assess_worker_field


@dataclass(frozen=True, slots=True)
class AppliedValue(Arguments):
    """What was applied to a key that is no secret; None is "no override"."""

    value: str | None


Applied = SecretRef | AppliedValue


@dataclass(frozen=True, slots=True)
class WorkerConfigRecord(OwnedRecord):
    """The overrides that are kdeclare's, and the workers that they were applied to."""

    workers: WorkerGroup
    configs: Mapping[str, Applied]


@dataclass(frozen=True, slots=True)
class _Side:
    """resource: the one that is compared. live: raw overrides. owned: records by key."""

    resource: ResourceId
    live: Mapping[str, str]
    owned: Mapping[str, Applied]


def group_for(desired: WorkerConfigBody | None, owned: WorkerConfigRecord | None) -> WorkerGroup:
    """The declared workers; of what is declared no longer, those that it was applied to."""
    if desired is not None:
        return desired.group
    if owned is None:
        raise LookupError("neither declared nor owned")
    return owned.workers


def diff_worker_config(
    resource: ResourceId, desired: Desired | None, live: WorkerState, owned: WorkerConfigRecord | None
) -> Difference:
    """See `Kind.diff`."""
    body = desired.get_body(WorkerConfigBody) if desired is not None else None
    seen = live.groups[group_for(body, owned)]
    records: Mapping[str, Applied] = owned.configs if owned is not None else {}
    if seen.overrides is None:
        gone = None if desired else Change(resource, Action.UPDATE, Reason.ORPHANED, Risk.DISRUPTIVE)
        return Difference(gone, owned, (), (_unreadable(resource, desired, seen),))
    side = _Side(resource, seen.overrides, records)
    if body is None or desired is None:
        gone_fields = (field for key in sorted(records) for field in _undeclared(side, key))
        fields = tuple(map(assess_worker_field, gone_fields))
        return Difference(Change(resource, Action.UPDATE, Reason.ORPHANED, Risk.DISRUPTIVE, fields))
    return _declared(side, body, desired, seen)


def _declared(side: _Side, body: WorkerConfigBody, desired: Desired, seen: WorkersSeen) -> Difference:
    wishes = body.configs
    fields = [field for key in sorted(wishes) for field in _wished(side, key, wishes[key])]
    changing = {field.path.removeprefix("configs.") for field in fields}
    adopted = [f"configs.{key}" for key in sorted((changing & side.live.keys()) - side.owned.keys())]
    fields += [field for key in sorted(side.owned.keys() - wishes) for field in _undeclared(side, key)]
    drifted = tuple(f"configs.{key}" for key in sorted(side.owned) if _has_drifted(side, key))
    if not fields and any(not isinstance(wish, Unset) for wish in wishes.values()):
        late = [FieldChange(f"{WORKERS}{s.url}", FieldOp.CHANGE, s.why, IN_STEP) for s in refusing(seen)]
        fields, drifted = late, (*drifted, *(field.path for field in late))
    change = None
    known = list(findings(seen, body.warn_before_s, str(side.resource), desired.source))
    if fields:
        otherwise = Reason.CHANGED if side.owned else Reason.DECLARED
        reason = Reason.DRIFTED if drifted else otherwise
        rated = tuple(map(assess_worker_field, fields))
        change = Change(side.resource, Action.UPDATE, reason, highest_risk(rated), rated, desired.source)
        if adopted:
            change, found = adopt_settings(change, desired, adopted, drifted, otherwise)
            known.append(found)
    owned = WorkerConfigRecord(body.group, {key: _applied(wish) for key, wish in wishes.items()})
    return Difference(
        change,
        owned,
        tuple(sorted(side.live.keys() - wishes.keys() - side.owned.keys())),
        tuple(known),
        drifted=drifted,
    )


def _wished(side: _Side, key: str, wish: Wish) -> Iterator[FieldChange]:
    raw = side.live.get(key)
    before = show_value(key, raw)
    if isinstance(wish, Secret):
        if raw is None or not _is_value(wish, raw):
            yield FieldChange(f"configs.{key}", FieldOp.SET, before, SHOWN, wish.as_json())
        return
    wanted = str(wish.value) if isinstance(wish, Whole) else None
    if wanted == raw:
        return
    op = FieldOp.DELETE if wanted is None else FieldOp.SET
    yield FieldChange(f"configs.{key}", op, before, show_value(key, wanted))


def _is_value(wish: Secret, raw: str) -> bool:
    """Whether workers hold the value of a secret; of one that was decoded, its hash is all that is known."""
    return raw == wish.value if wish.value else matches(wish.digest, raw)


def _undeclared(side: _Side, key: str) -> Iterator[FieldChange]:
    """What was owned and is declared no longer goes; "no override" was nothing to take away."""
    record, raw = side.owned[key], side.live.get(key)
    if raw is not None and (isinstance(record, SecretRef) or record.value is not None):
        yield FieldChange(f"configs.{key}", FieldOp.DELETE, show_value(key, raw), None)


def _has_drifted(side: _Side, key: str) -> bool:
    record, raw = side.owned[key], side.live.get(key)
    if isinstance(record, SecretRef):
        return raw is None or not matches(record.secret, raw)
    return raw != record.value


def _applied(wish: Wish) -> Applied:
    """What of a wish is owned once it has been applied."""
    if isinstance(wish, Secret):
        return wish.ref
    return AppliedValue(str(wish.value) if isinstance(wish, Whole) else None)


def _unreadable(resource: ResourceId, desired: Desired | None, seen: WorkersSeen) -> Diagnostic:
    reasons = "\n".join(f"{standing.url}: {standing.why}." for standing in silent(seen))
    return error(
        "workers-unreachable",
        "No Connect worker tells its configuration",
        f"{resource} cannot be compared.\n{reasons}".rstrip(),
        hint="Check 'workers', 'tls' and 'headers', and that kdeclare's plug-in is installed on the workers.",
        place=desired.source if desired else None,
        resource=str(resource),
    )


def record_of(wish: Wish) -> JsonObject:
    """A wish as plain data: ``{value}``, or a secret's reference and hash."""
    if isinstance(wish, Secret):
        return wish.as_json()
    return {"value": wish.value if isinstance(wish, Whole) else None}


def body_json(body: WorkerConfigBody) -> JsonObject:
    """All of a declared body."""
    stated: dict[str, JsonValue] = {
        "workers": write_group(body.group),
        "configs": {key: _stated(wish) for key, wish in body.configs.items()},
        "warnBefore": body.warn_before_s,
    }
    return stated | ({"adopt": True} if body.adopt else {})


def body_from(said: JsonObject) -> WorkerConfigBody:
    """The body again; secrets without their values."""
    stated = as_object(said["configs"]).items()
    return WorkerConfigBody(
        read_group(as_object(said["workers"])),
        {key: _read_wish(as_object(record)) for key, record in stated},
        as_number(said["warnBefore"]),
        as_bool(said.get("adopt", False)),
    )


def _stated(wish: Wish) -> JsonObject:
    return wish.stated if isinstance(wish, Secret) else record_of(wish)


def _read_wish(record: JsonObject) -> Wish:
    if "secret" in record:
        return Secret("", as_text_or_none(record["reference"]), as_text(record["secret"]))
    value = as_text_or_none(record["value"])
    return Unset() if value is None else Whole(value)
