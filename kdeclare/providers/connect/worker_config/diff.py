"""The three-way diff of worker overrides, and what is to be said of the workers themselves."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kdeclare.core.adoption import adopt_settings
from kdeclare.core.changes import Action, Change, FieldChange, FieldOp, Reason, Risk, highest_risk
from kdeclare.core.diagnostics import Diagnostic, error
from kdeclare.core.ids import ResourceId
from kdeclare.core.jsontypes import Json
from kdeclare.core.kind import Desired, Difference
from kdeclare.core.secret_hashes import matches
from kdeclare.core.secrets import SHOWN, Secret
from kdeclare.providers.connect.collector import WorkerState
from kdeclare.providers.connect.operations import WORKERS
from kdeclare.providers.connect.worker_config.body_json import record_of
from kdeclare.providers.connect.worker_config.spec import WorkerConfigBody
from kdeclare.providers.connect.worker_state import WorkerGroup, WorkersSeen
from kdeclare.providers.connect.workers.findings import findings
from kdeclare.providers.connect.workers.group_json import group_from, group_json
from kdeclare.providers.connect.workers.standing import IN_STEP, refusing, silent
from kdeclare.providers.connect.workers.values import shown
from kdeclare.providers.kafka.config.wishes import Unset, Whole, Wish
from kdeclare.providers.kafka.risks import assess_worker_field


@dataclass(frozen=True, slots=True)
class _Side:
    """resource: the one that is compared. live: raw overrides. owned: records by key."""

    resource: ResourceId
    live: Mapping[str, str]
    owned: Mapping[str, Json]


def group_for(desired: WorkerConfigBody | None, owned: Json) -> WorkerGroup:
    """The declared workers; of what is declared no longer, those that it was applied to."""
    return desired.group if desired is not None else group_from(owned["workers"])


def diff_worker_config(
    resource: ResourceId, desired: Desired | None, live: WorkerState, owned: Json
) -> Difference:
    """See `core.kind.Kind.diff`."""
    body: WorkerConfigBody | None = desired.body if desired is not None else None
    seen = live.groups[group_for(body, owned)]
    records: Mapping[str, Json] = (owned or {}).get("configs", {})
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
    owned = {
        "workers": group_json(body.group),
        "configs": {key: record_of(wish) for key, wish in wishes.items()},
    }
    return Difference(
        change,
        owned,
        tuple(sorted(side.live.keys() - wishes.keys() - side.owned.keys())),
        tuple(known),
        drifted=drifted,
    )


def _wished(side: _Side, key: str, wish: Wish) -> Iterator[FieldChange]:
    raw = side.live.get(key)
    before = shown(key, raw)
    if isinstance(wish, Secret):
        if raw is None or not _is_value(wish, raw):
            yield FieldChange(f"configs.{key}", FieldOp.SET, before, SHOWN, wish.as_json())
        return
    wanted = str(wish.value) if isinstance(wish, Whole) else None
    if wanted == raw:
        return
    op = FieldOp.DELETE if wanted is None else FieldOp.SET
    yield FieldChange(f"configs.{key}", op, before, shown(key, wanted))


def _is_value(wish: Secret, raw: str) -> bool:
    """Whether workers hold the value of a secret; of one that was decoded, its hash is all that is known."""
    return raw == wish.value if wish.value else matches(wish.digest, raw)


def _undeclared(side: _Side, key: str) -> Iterator[FieldChange]:
    """What was owned and is declared no longer goes; "no override" was nothing to take away."""
    record, raw = side.owned[key], side.live.get(key)
    if raw is not None and ("secret" in record or record["value"] is not None):
        yield FieldChange(f"configs.{key}", FieldOp.DELETE, shown(key, raw), None)


def _has_drifted(side: _Side, key: str) -> bool:
    record, raw = side.owned[key], side.live.get(key)
    if "secret" in record:
        return raw is None or not matches(record["secret"], raw)
    return bool(raw != record["value"])


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
