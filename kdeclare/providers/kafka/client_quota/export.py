"""Live quotas as manifests."""

import hashlib
import re
from collections.abc import Iterator, Mapping

from kdeclare.core.capabilities import Export, ExportRequest, LeftOut
from kdeclare.core.ids import ResourceId
from kdeclare.core.jsontypes import Json
from kdeclare.core.manifest_text import manifest, scalar
from kdeclare.providers.kafka.client_quota.collector import QuotaState
from kdeclare.providers.kafka.client_quota.entity import EntityType, QuotaEntity
from kdeclare.providers.kafka.client_quota.limits import LIMITS, describe_limit

_PLAIN = re.compile(r"[A-Za-z0-9._-]{1,80}")
_WORDS = {EntityType.USER: "user", EntityType.CLIENT_ID: "client", EntityType.IP: "ip"}


def export_quotas(live: QuotaState, request: ExportRequest) -> Export:
    """Return a manifest for each entity with limits, by a name that is made from it.

    Where names are asked for, these are the names of users, client ids and addresses.
    """
    if not live.is_visible:
        return Export({}, (LeftOut(1, "kind", "kinds", "ClientQuota: this login may not see quotas"),))
    named: dict[str, QuotaEntity] = {}
    for entity in sorted(live.limits, key=lambda entity: entity.key):
        name = _name(entity)
        named[name if name not in named else f"{name}-{_hash(entity)}"] = entity
    wanted = {name: named[name] for name in sorted(named) if _is_asked(named[name], request)}
    permitted = {name: e for name, e in wanted.items() if request.permits(ResourceId("ClientQuota", name))}
    foreign = len(wanted) - len(permitted)
    odd = sum(not _is_declarable(k, v) for e in permitted.values() for k, v in live.of(e).items())
    return Export(
        {name: _manifest(name, entity, live.of(entity)) for name, entity in permitted.items()},
        (
            LeftOut(foreign, "quota", "quotas", "outside the scope of the project"),
            LeftOut(odd, "limit", "limits", "which no manifest can declare; comments say which"),
        ),
    )


def _is_asked(entity: QuotaEntity, request: ExportRequest) -> bool:
    named = (name for _, name in entity.parts if name is not None)
    return not request.is_selective or any(map(request.matches, named))


def _is_declarable(key: str, value: Json) -> bool:
    return key in LIMITS and not isinstance(value, str) and value > 0


def _manifest(name: str, entity: QuotaEntity, limits: Mapping[str, Json]) -> str:
    lines = [line for key, value in sorted(limits.items()) for line in _limit_lines(key, value)]
    declares = any(not line.lstrip().startswith("#") for line in lines)
    spec = ["entity:", *_entity_lines(entity), "limits:" if declares else "limits: {}", *lines]
    return manifest("ClientQuota", name, spec, [f"Limits of {_escaped(str(entity))}."])


def _entity_lines(entity: QuotaEntity) -> Iterator[str]:
    for field, name in entity.to_json().items():
        yield f"  {field}: {'{default: true}' if name is None else scalar(name, text=True)}"


def _limit_lines(key: str, value: Json) -> Iterator[str]:
    if not _is_declarable(key, value):
        yield f"  # {key} is {value}, which a manifest cannot declare"
        return
    unit = describe_limit(key, value)
    plain = unit == f"{value:,} {LIMITS[key].unit}" or unit.endswith(" bytes/s")
    yield f"  {key}: {value}" + ("" if plain else f"  # {unit}")


def _name(entity: QuotaEntity) -> str:
    """A name that people recognize, and a hash where that could be two entities."""
    words = [word for type_, name in entity.parts for word in (_WORDS[type_], name or "default")]
    plain = all(name is None or (name != "default" and _PLAIN.fullmatch(name)) for _, name in entity.parts)
    if plain:
        return "-".join(words)
    cleaned = (re.sub(r"[^A-Za-z0-9._-]+", "-", word).strip("-")[:40] for word in words)
    return "-".join([*filter(None, cleaned), _hash(entity)])


def _hash(entity: QuotaEntity) -> str:
    return hashlib.sha256(entity.key.encode()).hexdigest()[:8]


def _escaped(text: str) -> str:
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
