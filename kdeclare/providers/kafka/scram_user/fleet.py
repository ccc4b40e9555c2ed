"""SCRAM users in fleet snapshots and audits: one object per user, with the iterations of each credential.

Snapshots contain no passwords, hashes or salts.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kdeclare.core.jsontypes import JsonObject, JsonValue, as_int
from kdeclare.core.live.live_codec import LiveKey, LiveListing, LiveObject
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.resources.audit_rules import AuditRules, UnmanagedField
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.owned_record import OwnedRecord, narrow_record
from kdeclare.providers.kafka.scram_user.collector import ScramState, read_scram_users, require_visible
from kdeclare.providers.kafka.scram_user.credential import Mechanism, describe_credential
from kdeclare.providers.kafka.scram_user.diff import ScramUserRecord
from kdeclare.providers.kafka.scram_user.spec import MECHANISM_FIELD_PREFIX, ScramUserBody

SCRAM_USER = "ScramUser"
"""The object type of SCRAM users in snapshots, which is also the name of their kind."""


class ScramCodec:
    """The codec of SCRAM users for snapshots and audits. See `LiveCodec`.

    One request reads all credentials of a cluster.
    """

    name = "kafka-scram"
    sorts = frozenset({SCRAM_USER})
    identifies_system = False
    groups = False
    context: tuple[object, ...] = ()
    nouns: Mapping[str, tuple[str, str]] = {}
    """The nouns for counts in reports. The mapping is empty, because reports do not count users."""
    internal_marker: str | None = None

    def list_objects(self, connections: Connections) -> LiveListing:
        """Read all users. Raises Fault, for example if the principal cannot describe credentials."""
        state = require_visible(read_scram_users(connections))
        return LiveListing(None, _list_objects(state))

    def decode(self, system: str, objects: Iterable[tuple[LiveKey, str]]) -> ScramState:
        """Return the live credentials of users from their JSON."""
        users = {key.key: json.loads(text) for key, text in objects}
        return ScramState({user: {Mechanism(m): n for m, n in item.items()} for user, item in users.items()})

    def has_object(self, key: LiveKey, live: LiveState) -> bool:
        """Return whether the user has credentials."""
        return key.key in live.get(ScramState).users

    def find_identity(self, key: LiveKey, live: LiveState) -> str | None:
        """Return None, because the only identifier of a user is its name."""
        return None

    def is_reported(self, key: LiveKey, body: str) -> bool:
        """Return True: Kafka itself creates no credentials, so reports contain all users."""
        return True

    def flatten_body(self, sort: str, body: JsonObject) -> Mapping[str, JsonValue]:
        """See `DescribesFields`."""
        return {
            f"{MECHANISM_FIELD_PREFIX}{mechanism}": describe_credential(as_int(number))
            for mechanism, number in body.items()
        }

    def format_field_name(self, sort: str, path: str) -> str | None:
        """Return None: reports show the path of a credential, so no display name is needed."""
        return None


class ScramRules(AuditRules):
    """Audit rules for the credentials of one user."""

    def list_unmanaged(
        self, resource: ResourceId, names: Sequence[str], live: LiveState
    ) -> Iterator[UnmanagedField]:
        """Return the credentials that are neither declared nor owned."""
        credentials = live.get(ScramState).of(resource.name)
        for name in names:
            text = describe_credential(credentials[Mechanism(name)])
            yield UnmanagedField(f"{MECHANISM_FIELD_PREFIX}{name}", text)

    def is_set_by_others(self, path: str, desired: DesiredResource, owned: OwnedRecord | None) -> bool:
        """Return whether the credential is neither declared nor owned."""
        name = path.removeprefix(MECHANISM_FIELD_PREFIX)
        record = narrow_record(owned, ScramUserRecord)
        declared = {mechanism.value for mechanism in desired.get_body(ScramUserBody).mechanisms}
        return name not in declared and (record is None or name not in record.mechanisms)


def _list_objects(state: ScramState) -> Iterator[LiveObject]:
    for user, credentials in sorted(state.users.items()):
        yield LiveObject(LiveKey(SCRAM_USER, user), {m.value: n for m, n in sorted(credentials.items())})
