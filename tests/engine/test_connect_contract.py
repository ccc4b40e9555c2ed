"""The provider contract, for the kinds of the Connect provider with in-memory workers and connectors."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar, NamedTuple

import pytest

from kdeclare.core.parts import Connections
from kdeclare.providers.connect.definition import PROVIDER
from kdeclare.providers.connect.testing import MemoryConnectCluster, MemoryWorkers
from kdeclare.providers.connect.testing.workers import LOCATION, PASSWORD, WHITELIST, Keystore
from kdeclare.providers.connect.worker_state import Certificate
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.testing.provider_contract import Declared, ProviderContract
from tests.connections import connections_to
from tests.jsontypes import Json

pytestmark = pytest.mark.slow

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


def declare_connector(name: str, class_name: str, state: str, **config: Json) -> Declared:
    spec: dict[str, Json] = {
        "connect": "eu",
        "class": class_name,
        "tasksMax": 1,
        "config": config,
        "state": state,
        "needs": ["ConnectWorkerConfig/changed"],
    }
    return Declared("Connector", name, spec, {"team": name})


class ConnectSystem(NamedTuple):
    """Groups of workers, and a Connect cluster."""

    groups: dict[tuple[str, ...], MemoryWorkers]
    cluster: MemoryConnectCluster


class TestConnect(ProviderContract):
    """Overrides of groups of workers, and connectors.

    Workers always exist, so all changes of their overrides are updates. Their values are never secret:
    workers return them, so manifests contain placeholders.
    """

    provider = PROVIDER
    secrets: ClassVar[Mapping[str, str]] = {"${env.OLD}": "old-password-1", "${env.NEW}": "new-password-2"}
    before = (
        declare_config("changed", "/old", **{TRUSTSTORE: "/trust"}),
        declare_config("gone", "/old"),
        declare_connector(
            "changed", "FileStreamSource", "RUNNING", topic="a", file="f", **{"db.password": "${env.OLD}"}
        ),
        declare_connector("paused", "FileStreamSink", "RUNNING", topics="a", file="f"),
        declare_connector(
            "gone", "FileStreamSink", "PAUSED", topics="a", file="f", **{"db.password": "${env.OLD}"}
        ),
    )
    after = (
        declare_config("changed", "/new", **{TYPE: "JKS"}),
        declare_config("new", "/old"),
        declare_connector(
            "changed", "FileStreamSource", "RUNNING", topic="b", **{"db.password": "${env.NEW}"}
        ),
        declare_connector("paused", "FileStreamSink", "STOPPED", topics="a", file="g"),
        declare_connector("new", "FileStreamSource", "RUNNING", topic="a", **{"db.password": "${env.NEW}"}),
    )
    elsewhere = (
        declare_config("changed", "/other"),
        declare_connector("changed", "FileStreamSource", "RUNNING", topic="c", file="g"),
    )

    def make_system(self, folder: Path) -> object:
        groups: dict[tuple[str, ...], MemoryWorkers] = {}
        for urls in GROUPS.values():
            groups[urls] = MemoryWorkers(urls)
            groups[urls].files = {
                path: Keystore(make_certificate(path), "pw") for path in ("/old", "/new", "/other")
            }
            groups[urls].placeholders = {PLACEHOLDER: "pw"}
        return ConnectSystem(groups, MemoryConnectCluster(lag=2))

    def connect(self, system: object) -> Connections:
        assert isinstance(system, ConnectSystem)
        return connections_to(MemoryCluster(), system.groups, {"eu": system.cluster})

    def dump(self, system: object) -> Json:
        assert isinstance(system, ConnectSystem)
        observer = system.cluster.elsewhere()
        observer.settle()
        connectors: Json = {
            name: {"config": dict(found.config), "state": found.state}
            for name, found in observer.list_connectors().items()
        }
        overrides: Json = {
            urls[0]: {url: dict(found.overrides(url)) for url in urls}
            for urls, found in system.groups.items()
        }
        return {"connectors": connectors, "overrides": overrides}
