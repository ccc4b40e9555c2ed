"""Stop brokers, Connect workers and registries that tests share after the last test that uses them.

An idle broker takes about half a second of processor time per minute, and pytest stops what a session shares
at its end. This plug-in sorts test files by the servers that they use, and stops each server after its last
test. A test that uses a stopped server after all starts it again.
"""

from collections.abc import Iterator, Mapping, Sequence

import pytest

SERVERS = (
    "connect_sandbox",
    "registry_url",
    "worker_settings",
    "clusters",
    "secured_sandbox",
    "tools",
    "five_brokers",
    "three_workers",
    "workshop",
    "policies",
    "sandbox",
)
"""Fixtures that start servers, in the order in which tests use them. Neighbors are used together."""

STARTED_BY_NAME = {name: name for name in SERVERS} | {
    "kafka_bed": "sandbox",
    "crew": "three_workers",
    "programs_with_tools": "tools",
}
"""Fixtures that other fixtures request by name (`getfixturevalue`), and the servers that they start."""

_SHARED = ("session", "package")


class SharedServers:
    """The plug-in. names: the fixtures to stop early, in the order in which tests use them."""

    def __init__(
        self, names: Sequence[str] = SERVERS, started_by_name: Mapping[str, str] = STARTED_BY_NAME
    ) -> None:
        self._names, self._started_by_name = names, started_by_name
        self._last_tests: dict[str, str] = {}
        self._running: dict[str, tuple[pytest.FixtureDef[object], pytest.FixtureRequest]] = {}

    @pytest.hookimpl(trylast=True)  # after tests are deselected
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Sort test files. The tests of a file stay in order; files without shared servers come first."""
        used = {item: self._find_servers(item) for item in items}
        ranks: dict[str, tuple[int, int]] = {}
        for item in items:
            file = _get_file(item)
            positions = [self._names.index(name) for name in used[item]]
            first, last = ranks.get(file, (len(self._names), -1))
            ranks[file] = min([first, *positions]), max([last, *positions])
        # A file without shared servers has the rank (number of servers, -1).
        items.sort(key=lambda item: (ranks[_get_file(item)][1] >= 0, ranks[_get_file(item)]))
        self._last_tests = {name: item.nodeid for item in items for name in used[item]}

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
    ) -> Iterator[None]:
        """Remember each server that starts."""
        if fixturedef.argname in self._names and fixturedef.scope in _SHARED:
            self._running[fixturedef.argname] = fixturedef, request
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Iterator[None]:
        """Stop the servers that no later test uses, after the test has cleaned up."""
        result = yield
        for name in [name for name in self._running if self._last_tests.get(name) == item.nodeid]:
            fixturedef, request = self._running.pop(name)
            fixturedef.finish(request)  # type: ignore[arg-type]
        return result

    def _find_servers(self, item: pytest.Item) -> set[str]:
        """Return the servers that a test with the marker ``kafka`` uses, also through fixtures."""
        if not isinstance(item, pytest.Function) or item.get_closest_marker("kafka") is None:
            return set()
        functions, found = [item.function], set[str]()
        for name, definitions in item._fixtureinfo.name2fixturedefs.items():
            functions.append(definitions[-1].func)
            if name in self._names and definitions[-1].scope in _SHARED:
                found.add(name)
        for function in functions:
            requested = _find_names_requested_by(function) & self._started_by_name.keys()
            found.update(self._started_by_name[name] for name in requested)
        return found


def _find_names_requested_by(function: object) -> set[str]:
    """Return the texts in a function that calls `getfixturevalue`; names of fixtures are among them."""
    code = getattr(function, "__code__", None)
    if code is None or "getfixturevalue" not in code.co_names:
        return set()
    return {text for text in code.co_consts if isinstance(text, str)}


def _get_file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]
