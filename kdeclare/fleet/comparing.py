"""What is found about one row: the diff that every plan uses, and what its answer means in an audit."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NoReturn

from kdeclare.core.adoption import ADOPTION
from kdeclare.core.capabilities import decode_body
from kdeclare.core.changes import Action, FieldChange, Reason
from kdeclare.core.diagnostics import Place
from kdeclare.core.ids import ResourceId
from kdeclare.core.jsontypes import Json, canonical_json
from kdeclare.core.kind import Desired, Difference
from kdeclare.core.parts import LiveState, PlanContext
from kdeclare.core.registry import KINDS
from kdeclare.fleet.bodies import entity_of, snapshot_of
from kdeclare.fleet.finding import FindingKind, Found
from kdeclare.fleet.rows import CLUSTER
from kdeclare.providers.kafka.config.catalog import catalog
from kdeclare.providers.kafka.config.config_diff import ConfigSide, override
from kdeclare.providers.kafka.config.scope import find_config_scope
from kdeclare.providers.kafka.ids import ConfigScope, is_topic
from kdeclare.providers.kafka.live import Broker, KafkaState
from kdeclare.providers.kafka.operations.alter_configs import own_source
from kdeclare.providers.kafka.reassignment.placing import Placement, Replicas, Wish
from kdeclare.providers.kafka.topic.diff import INVALID_PARTITIONS, TOPIC_ID, is_recreated

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
_RECREATED = (
    "It was deleted and created again outside kdeclare since it was last applied: it is another topic, and "
    "earlier records are gone."
)
_RECREATED_ORPHAN = (
    "The topic that was applied is gone and no longer declared. Another one has its name and is kept."
)
_UNHEARD_OF = "Neither kdeclare nor this audit knows the key: see kdeclare plan."
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

    desired: the declared body. owned: the record of what was last applied. live: the live body, None where
    the resource is not there, or could not be read. error: why it could not. cluster_body: None where the
    cluster, or what is declared for it, is not known; then nothing is found about its resources.
    labels, source: of the manifest, for messages about what its owner has to change.
    """
    if kind == CLUSTER:
        reason = error or (_NOT_READ if live is None else None)
        return () if reason is None else (_whole(FindingKind.UNREACHABLE, None, reason),)
    known = desired is not None or owned is not None
    if error is not None:
        return (_whole(FindingKind.UNREACHABLE, None, error),) if known else ()
    if cluster_body is None or kind not in KINDS:
        return ()
    if not known:
        return _unknown(kind, live)
    resource = ResourceId(kind, name)
    declared = None
    if desired is not None:
        declared = Desired(resource, _body(kind, desired), dict(labels or ()), parse_source(source))
    record = None if owned is None else json.loads(owned)
    snapshot = snapshot_of(kind, name, live, cluster_body)
    difference = KINDS[kind].diff(resource, declared, LiveState(snapshot), record, _CONTEXT)
    return found_in(resource, difference, declared, record, snapshot)


def parse_source(source: str | None) -> Place | None:
    """The position of a manifest as `rows.DECLARED` has it: file:line:column."""
    if source is None:
        return None
    file, line, column = source.rsplit(":", 2)
    return Place(file, int(line), int(column))


def other_cluster(planned: str, live: str) -> str:
    """Why nothing is compared where a state is about another cluster: all that it owns would be missing."""
    return f"The state is about cluster {planned}, and this is cluster {live}."


def found_in(
    resource: ResourceId, difference: Difference, desired: Desired | None, owned: Json, live: KafkaState
) -> tuple[Found, ...]:
    """What a diff of a declared or owned resource has found; ``live`` and ``owned`` are what it was given."""
    if is_topic(resource) and is_recreated(owned, live.topics.get(resource.name)):
        first = _recreated(resource, desired, owned, live)
        if desired is None:
            return (first,)
        changes = _differing(resource, difference, desired, None, live)
        return (first, *changes, *_unmanaged(resource, difference, live))
    if desired is None:
        return (_orphaned(resource, difference, live),)
    return (*_differing(resource, difference, desired, owned, live), *_unmanaged(resource, difference, live))


def _recreated(resource: ResourceId, desired: Desired | None, owned: Json, live: KafkaState) -> Found:
    """It is told also where the new topic is as declared: the records of the old one are gone."""
    before, after = owned[TOPIC_ID], live.topics[resource.name].topic_id
    message = _RECREATED if desired is not None else _RECREATED_ORPHAN
    return Found(FindingKind.CHANGED, TOPIC_ID, None, canonical_json(before), canonical_json(after), message)


def _unknown(kind: str, live: str | None) -> tuple[Found, ...]:
    """Of what is neither declared nor owned, only topics that are people's own are worth a word."""
    if live is None or find_config_scope(kind) is not ConfigScope.TOPIC or json.loads(live).get("internal"):
        return ()
    return (_whole(FindingKind.UNMANAGED, None, _UNMANAGED),)


def _orphaned(resource: ResourceId, difference: Difference, live: KafkaState) -> Found:
    if not _is_there(resource, live):
        return _whole(FindingKind.MISSING, "forget", _GONE_FOR_GOOD)
    return _whole(FindingKind.ORPHANED, str(Action.DELETE), _blocking(difference, None) or _ORPHANED)


def _differing(
    resource: ResourceId, difference: Difference, desired: Desired, owned: Json, live: KafkaState
) -> Iterator[Found]:
    change, blocking = difference.change, _blocking(difference, desired)
    if change is not None and change.action is Action.CREATE:
        gone = owned is not None
        finding = FindingKind.MISSING if gone else FindingKind.PENDING
        message = _GONE if gone else _pending(resource, *change.fields)
        after = canonical_json({field.path: field.after for field in change.fields})
        yield Found(finding, None, str(Action.CREATE), None, after, blocking or message)
        return
    fewer = next((d for d in difference.diagnostics if d.code == INVALID_PARTITIONS), None)
    if fewer is not None:
        before, after = len(live.topics[resource.name].partitions), desired.body.partitions
        finding = _kind_of("partitions", difference)
        yield Found(finding, "partitions", None, canonical_json(before), canonical_json(after), blocking)
    fields = change.fields if change is not None else ()
    for field in fields:
        finding = _kind_of(field.path, difference)
        if owned is not None and _is_somebody_elses(field.path, desired, owned):
            finding = FindingKind.CHANGED
        message = _CHANGED if finding is FindingKind.CHANGED else _pending(resource, field)
        if change is not None and (field.reason or change.reason) in (Reason.ADOPT, Reason.RECREATED):
            message = message.replace(_PENDING, _NOT_ADOPTED if change.blocked else _ADOPTED)
        message = blocking or message
        yield Found(finding, field.path, str(field.op), _text(field.before), _text(field.after), message)
    if blocking and fewer is None and not fields:
        gone = owned is not None and not _is_there(resource, live)
        yield _whole(FindingKind.MISSING if gone else FindingKind.PENDING, None, blocking)


def _pending(resource: ResourceId, *fields: FieldChange) -> str:
    """It may not even exist, where neither the catalogue has a key nor the resource a value of it."""
    unset = (f.path for f in fields if f.before is None and f.path.startswith("configs."))
    scope = find_config_scope(resource.kind)
    if scope is None or all(catalog(scope).get(path.removeprefix("configs.")) for path in unset):
        return _PENDING
    return f"{_PENDING} {_UNHEARD_OF}"


def _kind_of(path: str, difference: Difference) -> FindingKind:
    return FindingKind.CHANGED if path in difference.drifted else FindingKind.PENDING


def _is_somebody_elses(path: str, desired: Desired, owned: Json) -> bool:
    """Whether it is a key that was set since, where all that is not declared is to be reset."""
    key = path.removeprefix("configs.")
    return key != path and key not in desired.body.configs and key not in owned.get("configs", {})


def _unmanaged(resource: ResourceId, difference: Difference, live: KafkaState) -> Iterator[Found]:
    if not difference.unmanaged:
        return
    entity = entity_of(resource.kind, resource.name)
    side = ConfigSide(str(resource), live.configs[entity], own_source(entity), catalog(entity.scope))
    for key in difference.unmanaged:
        before = _text(override(side, key))
        yield Found(FindingKind.UNMANAGED, f"configs.{key}", None, before, None, _UNMANAGED_KEY)


def _is_there(resource: ResourceId, live: KafkaState) -> bool:
    """Whether the topic exists or the broker is registered; nothing else can be gone."""
    scope = find_config_scope(resource.kind)
    if scope is None:
        return True
    entity = entity_of(resource.kind, resource.name)
    if scope is ConfigScope.TOPIC:
        return entity.name in live.topics
    return not entity.name or entity.name in {str(broker.id) for broker in live.cluster.brokers}


def _blocking(difference: Difference, desired: Desired | None) -> str:
    """What keeps a resource from being applied, if something does, and who has to change what.

    Adoptions have words of their own, field by field.
    """
    blocking = [d for d in difference.diagnostics if d.blocks and d.code != ADOPTION]
    details = " ".join(d.detail for d in blocking)
    impossible = [d for d in blocking if d.is_error or d.code == INVALID_PARTITIONS]
    if desired is None or not impossible:
        return details
    must_change = any(d.code == INVALID_PARTITIONS for d in impossible)
    verdict = "has to change" if must_change else "cannot be applied like this"
    hints = [d.hint[:1].lower() + d.hint[1:] for d in impossible if d.hint]
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


def _text(value: Json) -> str | None:
    return None if value is None else canonical_json(value)


@lru_cache(maxsize=4096)
def _body(kind: str, desired: str) -> Json:
    """A declared body; many topics say the same."""
    return decode_body(kind, json.loads(desired))


def _never_asked(
    brokers: Sequence[Broker], current: Mapping[str, Sequence[Replicas]], wish: Wish
) -> NoReturn:
    raise AssertionError("a resource whose replicas kdeclare places is not compared alone")


_CONTEXT = PlanContext(Placement(_never_asked))
