"""The provider contract, for the kind of the Connect provider with in-memory workers."""

from datetime import UTC, datetime
from pathlib import Path

from kdeclare.core.parts import Connections
from kdeclare.core.resources.changes import Action
from kdeclare.providers.connect.provider import PROVIDER
from kdeclare.providers.connect.testing import MemoryWorkers
from kdeclare.providers.connect.testing.workers import LOCATION, PASSWORD, WHITELIST, Keystore
from kdeclare.providers.connect.worker_state import Certificate
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.testing.provider_contract import Declared, ProviderContract
from tests.connections import connections_to
from tests.jsontypes import Json

PLACEHOLDER = "${file:/etc/connect/secrets.properties:keystore}"
TRUSTSTORE = next(key for key in WHITELIST if key.endswith("truststore.location"))
TYPE = next(key for key in WHITELIST if key.endswith("keystore.type"))
GROUPS = {name: (f"https://{name}-1:8083", f"https://{name}-2:8083") for name in ("changed", "gone", "new")}


def make_certificate(name: str) -> Certificate:
    until = datetime(2099, 1, 1, tzinfo=UTC)
    return Certificate(
        name.encode().hex().ljust(64, "0"), f"CN={name}", "CN=ca", datetime(2026, 1, 1, tzinfo=UTC), until
    )


def declare_config(name: str, location: str, **more: Json) -> Declared:
    stated = {LOCATION: location, PASSWORD: PLACEHOLDER, **more}
    return Declared(
        "ConnectWorkerConfig", name, {"workers": list(GROUPS[name]), "config": stated}, {"team": name}
    )


class TestConnectWorkerConfig(ProviderContract):
    """Overrides of groups of workers. Workers always exist, so all changes are updates.

    Values are never secret: workers return them, so manifests hold placeholders. Nothing can be imported.
    """

    provider = PROVIDER
    actions = frozenset({Action.UPDATE})
    before = (declare_config("changed", "/old", **{TRUSTSTORE: "/trust"}), declare_config("gone", "/old"))
    after = (declare_config("changed", "/new", **{TYPE: "JKS"}), declare_config("new", "/old"))
    elsewhere = (declare_config("changed", "/other"),)

    def make_system(self, folder: Path) -> object:
        made: dict[tuple[str, ...], MemoryWorkers] = {}
        for urls in GROUPS.values():
            made[urls] = MemoryWorkers(urls)
            made[urls].files = {
                path: Keystore(make_certificate(path), "pw") for path in ("/old", "/new", "/other")
            }
            made[urls].placeholders = {PLACEHOLDER: "pw"}
        return made

    def connect(self, system: object) -> Connections:
        assert isinstance(system, dict)
        return connections_to(MemoryCluster(), system)

    def dump(self, system: object) -> Json:
        assert isinstance(system, dict)
        return {urls[0]: {url: dict(found.overrides(url)) for url in urls} for urls, found in system.items()}
