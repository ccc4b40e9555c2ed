"""One broker and three workers for all tests of the plug-in."""

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kdeclare import sandbox as kafka_sandbox
from kdeclare.sandbox import SandboxSettings, broker_properties
from kdeclare.sandbox.connect_jars import install, resolve_connect_jars
from tests.conftest import free_port
from tests.kafka.connect import certificates
from tests.kafka.connect.asking import HOST
from tests.kafka.connect.workers import PLAIN, Crew, Workshop, run_workers
from tests.ports import reserve_port


@pytest.fixture(scope="package")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    """A broker that creates topics on request, the default; its TLS listener requires a password and ACLs."""
    folder = tmp_path_factory.mktemp("connect")
    plugins = folder / "plugins"
    settings = SandboxSettings(folder / "sandbox", brokers=1, racks=1, port=free_port(2))
    login = f"{HOST}:{settings.get_broker_port(2)}"
    with ThreadPoolExecutor(2) as pool:
        building = pool.submit(install, plugins)
        making = pool.submit(certificates.make, _create_folder(folder / "certificates"))
        jars = resolve_connect_jars()
        made, _ = making.result(), building.result()
    (plugins / "file").mkdir()
    shutil.copy(jars.file_connectors, plugins / "file")
    ports = iter(reserve_port, None)
    try:
        with pytest.MonkeyPatch.context() as patch:
            _configure_brokers(patch, login, made)
            broker = kafka_sandbox.start(settings, print)
        shop = Workshop(broker.bootstrap, login, folder / "workers", made, jars, plugins, ports)
        try:
            yield shop
        finally:
            shop.close()
    finally:
        kafka_sandbox.reset(settings.folder)


@pytest.fixture(scope="package")
def three_workers(workshop: Workshop) -> Iterator[Crew]:
    """Three workers of one group; the third has an admin listener with its own certificate."""
    admin = next(workshop.ports)
    own = {
        f"admin.listeners.https.ssl.{key}": value
        for key, value in (
            ("keystore.location", str(workshop.certificates.store("static"))),
            ("keystore.password", certificates.PASSWORD),
            ("keystore.type", "PKCS12"),
            ("key.password", certificates.PASSWORD),
        )
    }
    group = "three"
    workers = [
        workshop.worker("one", group),
        workshop.worker("two", group),
        workshop.worker("three", group, {"admin.listeners": f"https://127.0.0.1:{admin}", **own}),
    ]
    with run_workers(workers):
        yield Crew(workers, workshop.certificates)


@pytest.fixture
def crew(three_workers: Crew) -> Iterator[Crew]:
    """The three workers without overrides, before and after the test."""
    yield three_workers
    three_workers.clean()


def _configure_brokers(patch: pytest.MonkeyPatch, login: str, made: certificates.Certificates) -> None:
    usual = broker_properties.broker_properties

    def more(given: SandboxSettings, broker_id: int, *log_dirs: Path) -> dict[str, str]:
        found = usual(given, broker_id, *log_dirs)
        protocols = found["listener.security.protocol.map"]
        return found | {
            "auto.create.topics.enable": "true",
            "listeners": f"{found['listeners']},LOGIN://{login}",
            "listener.security.protocol.map": f"{protocols},LOGIN:SASL_SSL",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "listener.name.login.ssl.keystore.location": str(made.store("static")),
            "listener.name.login.ssl.keystore.password": certificates.PASSWORD,
            "listener.name.login.ssl.key.password": certificates.PASSWORD,
            "listener.name.login.ssl.keystore.type": "PKCS12",
            "listener.name.login.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.login.plain.sasl.jaas.config": f'{PLAIN} required user_alice="wonder";',
        }

    patch.setattr(broker_properties, "broker_properties", more)


def _create_folder(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder
