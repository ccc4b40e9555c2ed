"""Fixtures for all tests: real brokers once per session, the two beds of contract tests, and a browser."""

import gc
import logging
import os
import shlex
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from kdeclare.core.secrets.scrubber import SCRUBBER
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.beds import CLUSTER_WIDE, AnyBed, KafkaBed, MemoryBed, ServedBed, broker_resource
from tests.ports import reserve_ports
from tests.shared_servers import SharedServers
from tests.startup_cache import BROKER, WORKER, archive_options
from tests.thoroughness import is_thorough

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from kdeclare.providers.kafka.client import KafkaCluster
    from kdeclare.sandbox import SandboxSettings, SandboxStatus
    from tests.browser.watched import WatchedPage
    from tests.connect_beds import AnyConnectBed


# `make test-thorough` selects the thorough profile. A test that needs more examples uses a multiple.
settings.register_profile(
    "thorough", max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("quick", settings.get_profile("thorough"), max_examples=10)
settings.load_profile("quick")

pytest.register_assert_rewrite("tests.unit.report.golden_files")  # so that a failure shows the difference

os.environ.pop("CI", None)
"""If it is set, kdeclare resolves only references that a project allows. Tests of this behavior set it."""


def pytest_configure(config: pytest.Config) -> None:
    """Stop shared brokers after their last test."""
    config.pluginmanager.register(SharedServers())


gc.set_threshold(200_000)  # like the command: looking for cycles takes time, and there are few


_GROUPS = {
    "kafka": ("tests/kafka/", "tests/contract/", "tests/conformance/"),
    "spark": ("tests/spark/", "tests/provider/test_installed.py"),
    "browser": ("tests/browser/", "tests/kafka/"),
}
"""Where the Makefile looks for tests with a marker."""


@pytest.hookimpl(tryfirst=True)  # before tests are deselected
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Reject tests that no part of `make test` would run. Leave out tests of the thorough profile."""
    if not is_thorough():
        left_out = [item for item in items if item.get_closest_marker("thorough")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("thorough")]
    for item in items:
        for marker, places in _GROUPS.items():
            if item.get_closest_marker(marker) and not item.nodeid.startswith(places):
                raise pytest.UsageError(
                    f"{item.nodeid} has the marker {marker}, but `make test` runs such tests only from "
                    f"{', '.join(places)}. Move the test, or add its folder to the Makefile and to _GROUPS."
                )


def pytest_collection_finish() -> None:
    """All tests stay in memory until the end, so exclude them from garbage collection."""
    gc.freeze()


@pytest.fixture(autouse=True)
def _forget_secrets() -> Iterator[None]:
    """A secret of one test is an ordinary word in the next."""
    yield
    SCRUBBER.clear()


def free_port(brokers: int, workers: int = 0, *, secure: bool = False, registry: bool = False) -> int:
    """Reserve the ports of a sandbox with this many brokers and Connect workers, and return the first port.

    registry: whether the sandbox has a schema registry.
    """
    from kdeclare.sandbox import SandboxSettings

    settings = SandboxSettings(Path(), brokers, 1, connect_workers=workers, secure=secure, registry=registry)
    return reserve_ports(lambda first: _list_ports(replace(settings, port=first)))


def free_ports_of_clusters(clusters: int, workers: int = 0, *, secure: bool = False) -> int:
    """Reserve the ports of a sandbox with this many clusters of one broker, and return the first port."""
    from kdeclare.sandbox import GroupSettings

    settings = GroupSettings(Path(), clusters, 1, 1, connect_workers=workers, secure=secure)
    return reserve_ports(
        lambda first: chain.from_iterable(map(_list_ports, replace(settings, port=first).members))
    )


def _list_ports(settings: "SandboxSettings") -> list[int]:
    ports = [port for i in settings.broker_ids for port in settings.ports(i)]
    ports += map(settings.get_worker_port, settings.worker_ids)
    return [*ports, settings.registry_port, settings.registry_management_port] if settings.registry else ports


signal.signal(signal.SIGINT, signal.default_int_handler)
"""A parent process may ignore Ctrl-C (a background job of sh does); child processes would inherit that."""


@pytest.fixture(autouse=True)
def _skip_fsync(request: pytest.FixtureRequest) -> Iterator[None]:
    """Replace fsync in fast tests, so that they do not wait for disks; the file must still be open.

    Thorough property tests, and tests with real brokers, with Spark or marked slow, call the real fsync.
    """
    with pytest.MonkeyPatch.context() as patch:  # separate from the tests' own patches
        if not is_thorough() and not any(map(request.node.get_closest_marker, ("kafka", "spark", "slow"))):
            patch.setattr(os, "fsync", os.fstat)
        yield


@pytest.fixture(scope="session", autouse=True)
def _use_class_archives() -> Iterator[None]:
    """Start brokers, Connect workers and Kafka's tools from class archives, even those of other processes."""
    if not archive_options(BROKER):
        yield
        return
    from kdeclare.sandbox import launch
    from kdeclare.sandbox.workers import worker_startup

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launch, "_FAST_START", (*launch._FAST_START, *archive_options(BROKER)))
        patch.setattr(worker_startup, "_HEAP", (*worker_startup._HEAP, *archive_options(WORKER)))
        if launch.HEAP_VARIABLE not in os.environ:
            heap = (*launch._BROKER_HEAP, *archive_options(BROKER))
            patch.setenv(launch.HEAP_VARIABLE, shlex.join(heap))
        yield


_LOGGERS = [logging.getLogger(name) for name in ("kdeclare", "kafka")]
_AT_FIRST = [(logger.handlers, logger.propagate, logger.level) for logger in _LOGGERS]


@pytest.fixture(autouse=True)
def _restore_logging() -> Iterator[None]:
    """Restore logging: a command that ran in this process, perhaps for a fixture, may have changed it."""
    _reset_loggers()
    yield
    _reset_loggers()


def _reset_loggers() -> None:
    for logger, (handlers, propagate, level) in zip(_LOGGERS, _AT_FIRST, strict=True):
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SandboxStatus]":
    """A running sandbox; its addresses are ``.bootstrap``. Each test must leave all brokers running.

    If KDECLARE_TEST_SANDBOX is set to the folder of a running sandbox, that one is used and keeps running,
    which saves time when the same tests run repeatedly.
    """
    from kdeclare import sandbox as kafka_sandbox
    from kdeclare.sandbox import SandboxSettings

    own = os.environ.get("KDECLARE_TEST_SANDBOX")
    if own:
        running = kafka_sandbox.status(Path(own))
        assert running.ready, f"the sandbox in {own} is not ready"
        yield running
        return
    settings = SandboxSettings(tmp_path_factory.mktemp("sandbox"), port=free_port(3))
    try:
        yield kafka_sandbox.start(settings, print)
    finally:
        kafka_sandbox.reset(settings.folder)


@pytest.fixture(scope="session")
def registry_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a running schema registry without brokers. Tests share it, and use subjects of their own.

    If KDECLARE_TEST_REGISTRY is set to the URL of a running sandbox's registry, that one is used.
    """
    from kdeclare.sandbox import SandboxSettings, processes
    from kdeclare.sandbox.layout import Layout
    from kdeclare.sandbox.registry.registry_startup import build_registry_startup

    own = os.environ.get("KDECLARE_TEST_REGISTRY")
    if own:
        yield own
        return
    folder = tmp_path_factory.mktemp("registry")
    settings = SandboxSettings(folder, 1, 1, free_port(1, registry=True), registry=True)
    startup = build_registry_startup(Layout(folder), settings, print)
    startup.prepare()
    record = startup.spawn()
    try:
        startup.wait(120)
        yield settings.registry_url
    finally:
        processes.terminate([record], 10, 10)


@pytest.fixture(scope="session")
def secured_sandbox(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SandboxStatus]":
    """A running broker with an authorizer; `connect_as` connects to it.

    KDECLARE_TEST_SANDBOX_SECURED works like KDECLARE_TEST_SANDBOX above.
    """
    from kdeclare import sandbox as kafka_sandbox
    from kdeclare.sandbox import SandboxSettings

    own = os.environ.get("KDECLARE_TEST_SANDBOX_SECURED")
    if own:
        running = kafka_sandbox.status(Path(own))
        assert running.ready, f"the sandbox in {own} is not ready"
        yield running
        return
    settings = SandboxSettings(
        tmp_path_factory.mktemp("secured"), 1, 1, free_port(1, secure=True), secure=True
    )
    try:
        yield kafka_sandbox.start(settings, print)
    finally:
        kafka_sandbox.reset(settings.folder)


def connect_as(sandbox: "SandboxStatus", user: str) -> "KafkaCluster":
    """Connect to a secured sandbox as one of its users."""
    from kdeclare.providers.kafka.client import connect, read_properties
    from kdeclare.sandbox.layout import resolve_layout

    return connect("", read_properties(resolve_layout(Path(sandbox.folder)).security.client(user)))


@contextmanager
def open_served_bed(memory: MemoryCluster) -> Iterator[ServedBed]:
    """Serve an in-memory cluster, and connect to it with kdeclare's client."""
    from kdeclare.providers.kafka.client import connect
    from tests.served import ServedCluster

    served = ServedCluster(memory)
    try:
        cluster = connect(served.bootstrap, {})
        try:
            yield ServedBed(cluster, served)
        finally:
            cluster.close()
    finally:
        served.close()


_BEDS = ["memory", "served", pytest.param("kafka", marks=pytest.mark.kafka)]


@pytest.fixture(params=_BEDS)
def secured_bed(request: pytest.FixtureRequest) -> Iterator[AnyBed]:
    """Brokers with an authorizer, and a super user as the client."""
    if request.param == "memory":
        yield MemoryBed(MemoryCluster())
        return
    if request.param == "served":
        with open_served_bed(MemoryCluster()) as served:
            yield served
        return
    from kdeclare.sandbox.security import ADMIN

    secured: SandboxStatus = request.getfixturevalue("secured_sandbox")
    cluster = connect_as(secured, ADMIN)
    try:
        yield KafkaBed(cluster, secured.bootstrap)
    finally:
        cluster.close()


@pytest.fixture(scope="session")
def connect_sandbox(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SandboxStatus]":
    """A running broker and Connect worker; tests use the fixture ``connect_bed``.

    KDECLARE_TEST_SANDBOX_CONNECT works like KDECLARE_TEST_SANDBOX above.
    """
    from kdeclare import sandbox as kafka_sandbox
    from kdeclare.sandbox import SandboxSettings

    own = os.environ.get("KDECLARE_TEST_SANDBOX_CONNECT")
    if own:
        running = kafka_sandbox.status(Path(own))
        assert running.ready, f"the sandbox in {own} is not ready"
        yield running
        return
    settings = SandboxSettings(
        tmp_path_factory.mktemp("connect"), 1, 1, free_port(1, workers=1), connect_workers=1
    )
    try:
        yield kafka_sandbox.start(settings, print)
    finally:
        kafka_sandbox.reset(settings.folder)


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.kafka)])
def connect_bed(request: pytest.FixtureRequest, tmp_path: Path) -> "Iterator[AnyConnectBed]":
    """A Connect cluster: in memory, and a real worker (marker ``kafka``)."""
    from tests.connect_beds import MemoryConnectBed, RealConnectBed

    if request.param == "memory":
        yield MemoryConnectBed(tmp_path)
        return
    from kdeclare.http.target import HttpTarget
    from kdeclare.providers.connect.client.connectors_rest import open_rest_cluster
    from kdeclare.providers.kafka.client import connect

    running: SandboxStatus = request.getfixturevalue("connect_sandbox")
    target = HttpTarget(tuple(worker.url for worker in running.workers), str(running.ca_file))
    kafka, cluster = connect(running.bootstrap, {}), open_rest_cluster(target)
    try:
        made = RealConnectBed(cluster, kafka, tmp_path)
        yield made
        made.clean()
    finally:
        cluster.close()
        kafka.close()


@pytest.fixture(scope="session")
def five_brokers(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SandboxStatus]":
    """Five running brokers on three racks; tests use the fixture ``five``.

    KDECLARE_TEST_SANDBOX_OF_FIVE works like KDECLARE_TEST_SANDBOX above.
    """
    from kdeclare import sandbox as kafka_sandbox
    from kdeclare.sandbox import SandboxSettings

    own = os.environ.get("KDECLARE_TEST_SANDBOX_OF_FIVE")
    if own:
        running = kafka_sandbox.status(Path(own))
        assert running.ready, f"the sandbox in {own} is not ready"
        yield running
        return
    settings = SandboxSettings(tmp_path_factory.mktemp("five"), 5, 3, free_port(5))
    try:
        yield kafka_sandbox.start(settings, print)
    finally:
        kafka_sandbox.reset(settings.folder)


@pytest.fixture(scope="module")
def five(five_brokers: "SandboxStatus") -> "Iterator[SandboxStatus]":
    """The five brokers, for one module at a time; they are restored and all running afterwards."""
    from kdeclare.providers.kafka.client import connect

    cluster = connect(five_brokers.bootstrap, {})
    bed = KafkaBed(cluster, five_brokers.bootstrap)

    def look() -> tuple[object, ...]:
        brokers = cluster.describe().brokers
        fenced = [broker.id for broker in brokers if broker.fenced]
        overrides = {broker.id: bed.overrides(broker_resource(broker.id)) for broker in brokers}
        return fenced, sorted(cluster.topics()), overrides, bed.overrides(CLUSTER_WIDE)

    def check() -> None:
        assert look() == found

    try:
        found = look()
        yield five_brokers
        bed.eventually(check)
    finally:
        cluster.close()


@pytest.fixture
def kafka_bed(sandbox: "SandboxStatus") -> Iterator[KafkaBed]:
    """Three real brokers on three racks, for one test."""
    from kdeclare.providers.kafka.client import connect

    cluster = connect(sandbox.bootstrap, {})
    made = KafkaBed(cluster, sandbox.bootstrap)
    try:
        yield made
        made.clean()
    finally:
        cluster.close()


@pytest.fixture(params=_BEDS)
def bed(request: pytest.FixtureRequest) -> Iterator[AnyBed]:
    """Three brokers on three racks: in memory, in memory behind real ports, and real (marker ``kafka``)."""
    memory = MemoryCluster({1: "rack-a", 2: "rack-b", 3: "rack-c"})
    if request.param == "memory":
        yield MemoryBed(memory)
    elif request.param == "served":
        with open_served_bed(memory) as served:
            yield served
    else:
        yield request.getfixturevalue("kafka_bed")


_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_BROWSER_ARGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-smooth-scrolling",  # no test depends on how a page scrolls
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="module")
def chromium() -> "Iterator[Browser]":
    """A real browser. Tests that need it are skipped if there is none, and must not change it.

    One per module, not per session, because while it is open, its event loop is the thread's event loop.
    """
    path = next((found for name in _BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip(f"no browser: none of {', '.join(_BROWSERS)} is installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(_BROWSER_ARGS))
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def desktop_window(chromium: "Browser") -> "Iterator[WatchedPage]":
    """A window, for one module: Chromium would start processes for a window of each test."""
    from tests.browser.watched import WatchedPage

    context = chromium.new_context()
    yield WatchedPage(context.new_page())
    context.close()


@pytest.fixture(scope="module")
def phone_window(chromium: "Browser") -> "Iterator[WatchedPage]":
    """The window of a phone, for one module."""
    from tests.browser.watched import WatchedPage

    context = chromium.new_context(is_mobile=True)
    yield WatchedPage(context.new_page())
    context.close()


@pytest.fixture(scope="module")
def scriptless_window(chromium: "Browser") -> "Iterator[Page]":
    """A window that runs no scripts, for one module."""
    context = chromium.new_context(java_script_enabled=False)
    yield context.new_page()
    context.close()


@pytest.fixture
def desktop(desktop_window: "WatchedPage") -> "Iterator[WatchedPage]":
    """A wide window that is empty. Fails at the end if the page logged to the console or sent a request."""
    yield from _lend_window(desktop_window, 1440, 1000)


@pytest.fixture
def phone(phone_window: "WatchedPage") -> "Iterator[WatchedPage]":
    """The window of a phone, which is empty. Fails at the end like `desktop`."""
    yield from _lend_window(phone_window, 390, 844)


def _lend_window(window: "WatchedPage", width: int, height: int) -> "Iterator[WatchedPage]":
    window.clear(width, height)
    yield window
    assert window.messages == []
    assert [url for url in window.requests if not url.startswith(("file:", "data:"))] == []
