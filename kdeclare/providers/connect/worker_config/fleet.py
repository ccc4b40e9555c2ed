"""The overrides of Connect workers in fleet snapshots and audits: one object per group of workers.

Snapshots store hashes instead of secrets. Each live secret is hashed with the same salts as the declared and
the owned secret, so that an audit can compare the hashes. If a secret is neither declared nor owned, only its
key is stored.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from kdeclare.core.jsontypes import JsonObject, JsonValue, as_object, as_text, as_texts
from kdeclare.core.live.collector import Collector
from kdeclare.core.live.faults import Fault
from kdeclare.core.live.known_resources import KnownResource
from kdeclare.core.live.live_codec import LiveKey, LiveListing, LiveObject
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.resources.audit_rules import AuditRules, UnmanagedField
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import narrow_optional
from kdeclare.core.resources.owned_record import narrow_record
from kdeclare.core.secrets.secret_hashes import hash_like, mark_hash
from kdeclare.core.secrets.secret_refs import SENSITIVE_MASK, Secret, SecretRef
from kdeclare.providers.connect.client.port import UNREACHABLE
from kdeclare.providers.connect.connection import ENVIRONMENT_FIELD
from kdeclare.providers.connect.worker_config.collector import (
    WorkerSelection,
    WorkerState,
    collect_workers,
    list_worker_endpoints,
)
from kdeclare.providers.connect.worker_config.diff import WorkerConfigRecord, resolve_group
from kdeclare.providers.connect.worker_config.hashed_override import HashedOverride
from kdeclare.providers.connect.worker_config.spec import WorkerConfigBody
from kdeclare.providers.connect.worker_health import find_refusing, find_silent
from kdeclare.providers.connect.worker_state import (
    GroupSnapshot,
    PluginStatus,
    Refusal,
    WorkerGroup,
    WorkerSnapshot,
    redact_value,
)

WORKER_CONFIG = "ConnectWorkerConfig"
"""The type of live objects, which is also the name of the kind."""

_ENDPOINT_PREFIX = f"{ENVIRONMENT_FIELD}/"
_CONFIGS, _REFUSALS = "configs", "refusals"
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
"""A placeholder for the time of live state that comes from a snapshot.

Audits do not need the time, because they do not check when certificates expire.
"""


def make_live_key(group: WorkerGroup) -> LiveKey:
    """Return the key of a group of workers: its URLs, or the full name of its Connect cluster."""
    return LiveKey(WORKER_CONFIG, str(group))


class WorkerConfigCodec:
    """See `LiveCodec` and `ListsKnownObjects`. Reads the workers of the declared and owned resources."""

    name = "connect-workers"
    sorts = frozenset({WORKER_CONFIG})
    identifies_system = False
    groups = False
    context: tuple[object, ...] = ()
    nouns: Mapping[str, tuple[str, str]] = {}
    """The nouns for counts in reports. The mapping is empty, because reports do not count workers."""
    internal_marker: str | None = None

    def list_objects(self, connections: Connections) -> LiveListing:
        """Return no objects, because kdeclare knows workers only from manifests and states."""
        return self.list_known_objects(connections, ())

    def list_known_objects(self, connections: Connections, resources: Sequence[KnownResource]) -> LiveListing:
        """Read the workers of all resources, each group once."""
        groups = {_get_group(item): item for item in reversed(resources)}
        state = collect_workers(connections, WorkerSelection(frozenset(groups)))
        # Two resources can name the same workers with different settings for the connection.
        snapshots = {make_live_key(group): state.groups[group] for group in sorted(groups, key=str)}
        hashes = _collect_hashes(resources)
        return LiveListing(None, (_build_object(key, snapshots[key], hashes) for key in sorted(snapshots)))

    def decode(self, system: str, objects: Iterable[tuple[LiveKey, str]]) -> WorkerState:
        """Convert groups of workers from the JSON in a snapshot to live state."""
        return WorkerState({_parse_group(key): _decode_snapshot(json.loads(text)) for key, text in objects})

    def has_object(self, key: LiveKey, live: LiveState) -> bool:
        """Return True, because workers always exist. Raises Fault if the workers could not be read."""
        if live.get(WorkerState).get_snapshot(_parse_group(key)).overrides is None:
            raise Fault(UNREACHABLE, f"kdeclare could not read the overrides of the workers {key.key}.")
        return True

    def find_identity(self, key: LiveKey, live: LiveState) -> str | None:
        """Return None, because workers have no ids."""
        return None

    def is_reported(self, key: LiveKey, body: str) -> bool:
        """Return False, because audits read only the workers that manifests and states name."""
        return False

    def flatten_body(self, sort: str, body: JsonObject) -> Mapping[str, JsonValue]:
        """See `DescribesFields`."""
        configs = {
            f"configs.{key}": _describe_value(value) for key, value in as_object(body[_CONFIGS]).items()
        }
        return configs | {f"refusals.{url}": text for url, text in as_object(body[_REFUSALS]).items()}

    def format_field_name(self, sort: str, path: str) -> str | None:
        """Return None: reports show the path of an override, which is also its path in manifests."""
        return None


class WorkerConfigRules(AuditRules):
    """Audit rules for the overrides of a group of workers."""

    def list_unmanaged(
        self, resource: ResourceId, names: Sequence[str], live: LiveState
    ) -> Iterator[UnmanagedField]:
        """Return the overrides that are neither declared nor owned. Secrets are masked."""
        for snapshot in live.get(WorkerState).groups.values():  # an audit decodes one group at a time
            overrides = snapshot.overrides or {}
            for name in names:
                yield UnmanagedField(f"configs.{name}", redact_value(name, overrides[name]))


def _get_group(item: KnownResource) -> WorkerGroup:
    return resolve_group(
        narrow_optional(item.body, WorkerConfigBody), narrow_record(item.owned, WorkerConfigRecord)
    )


def _collect_hashes(resources: Iterable[KnownResource]) -> Mapping[tuple[LiveKey, str], frozenset[str]]:
    """Return the hashes of the declared and owned secrets, by group of workers and key."""
    hashes: dict[tuple[LiveKey, str], set[str]] = {}
    for item in resources:
        key = make_live_key(_get_group(item))
        body, record = (
            narrow_optional(item.body, WorkerConfigBody),
            narrow_record(item.owned, WorkerConfigRecord),
        )
        for name, value in (body.configs if body is not None else {}).items():
            if isinstance(value, Secret) and value.digest:
                hashes.setdefault((key, name), set()).add(value.digest)
        for name, applied in (record.configs if record is not None else {}).items():
            if isinstance(applied, SecretRef):
                hashes.setdefault((key, name), set()).add(applied.secret)
    return {location: frozenset(found) for location, found in hashes.items()}


def _build_object(
    key: LiveKey, snapshot: GroupSnapshot, hashes: Mapping[tuple[LiveKey, str], frozenset[str]]
) -> LiveObject:
    if snapshot.overrides is None:
        reasons = [f"{issue.url}: {issue.why}." for issue in find_silent(snapshot)]
        return LiveObject(key, error=" ".join(reasons) or "No worker reports its overrides.")
    configs: JsonObject = {
        name: _encode_value(name, raw, hashes.get((key, name), frozenset()))
        for name, raw in sorted(snapshot.overrides.items())
    }
    refusals: JsonObject = {issue.url: issue.why for issue in find_refusing(snapshot)}
    return LiveObject(key, {_CONFIGS: configs, _REFUSALS: refusals})


def _encode_value(name: str, raw: str, known_hashes: Iterable[str]) -> JsonValue:
    if redact_value(name, raw) != SENSITIVE_MASK:
        return raw
    hashes = {hash_like(known, raw) for known in known_hashes} - {None}
    return {"hashes": sorted(text for text in hashes if text is not None)}


def _decode_snapshot(body: JsonObject) -> GroupSnapshot:
    overrides = {key: _decode_value(value) for key, value in as_object(body[_CONFIGS]).items()}
    refusing = (
        WorkerSnapshot(url, PluginStatus("", None, "", "", error=Refusal(0, "", as_text(reason))))
        for url, reason in as_object(body[_REFUSALS]).items()
    )
    return GroupSnapshot(_NEVER, overrides, tuple(refusing))


def _decode_value(value: JsonValue) -> str:
    return value if isinstance(value, str) else HashedOverride(as_texts(as_object(value)["hashes"]))


def _describe_value(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return value
    hashes = as_texts(as_object(value)["hashes"])
    return mark_hash(hashes[0]) if hashes else SENSITIVE_MASK


def _parse_group(key: LiveKey) -> WorkerGroup:
    if key.key.startswith(_ENDPOINT_PREFIX):
        return WorkerGroup(endpoint=key.key.removeprefix(_ENDPOINT_PREFIX))
    return WorkerGroup(tuple(key.key.split(",")))


WORKERS = Collector(
    WorkerSelection, collect_workers, find_endpoints=list_worker_endpoints, codec=WorkerConfigCodec()
)
"""The collector of the overrides and certificates of workers."""
