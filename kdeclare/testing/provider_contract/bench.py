"""The test bench (a system and a project), and the methods that tests of a provider override."""

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar

import pytest

from kdeclare.core.clock import Clock
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonObject, JsonValue, as_object
from kdeclare.core.parts import Connections
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.run import ApplyResult
from kdeclare.core.provider.installed_providers import resolve_completely
from kdeclare.core.provider.provider import Provider
from kdeclare.core.resources.changes import Action
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.plan_capabilities import (
    forget_identity,
)
from kdeclare.core.resources.record_binding import bind_record, dump_record
from kdeclare.core.secrets.secret_refs import Referenced
from kdeclare.engine.planning.request import DeletionLimit, PlanScope
from kdeclare.testing.faults import FaultyOperations
from kdeclare.testing.world import Secrets, TestClock, World, declare

_REFERENCE = re.compile(r"\$\{(env|file|var)\.")

ALLOW_DELETES = PlanScope(allow_deletes=True)
ALLOW_ALL_DELETES = PlanScope(allow_deletes=True, max_deletes=DeletionLimit.parse("100%"))


@dataclass(frozen=True, slots=True)
class Declared:
    """A resource as a manifest declares it, with references to secrets (``${env.TOKEN}``)."""

    kind: str
    name: str
    spec: Mapping[str, JsonValue]
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def id(self) -> ResourceId:
        """The id of the resource."""
        return ResourceId(self.kind, self.name)


@dataclass
class Bench:
    """A system, a project that is applied to the system, and the requests that kdeclare sent to it."""

    system: object
    world: World
    requests: FaultyOperations

    def apply(self, declared: Sequence[DesiredResource], **options: Any) -> ApplyResult:
        """Plan and apply the declared resources, and delete resources that are no longer declared."""
        return self.world.apply(*declared, scope=ALLOW_DELETES, **options)

    def plan(self, declared: Sequence[DesiredResource]) -> Plan:
        """Plan the declared resources, and the deletion of resources that are no longer declared."""
        return self.world.plan(*declared, scope=ALLOW_DELETES)


class ContractBase:
    """The base class of the contract tests, with the attributes and methods that subclasses override."""

    provider: ClassVar[Provider]
    before: ClassVar[Sequence[Declared]]
    after: ClassVar[Sequence[Declared]]
    elsewhere: ClassVar[Sequence[Declared]]
    secrets: ClassVar[Mapping[str, str]] = {}
    actions: ClassVar[Set[Action]] = frozenset({Action.CREATE, Action.UPDATE, Action.DELETE})

    def make_system(self, folder: Path) -> object:
        """Return a new, empty system. folder: an empty folder that only this system uses."""
        raise NotImplementedError

    def connect(self, system: object) -> Connections:
        """Return the connections to a system."""
        raise NotImplementedError

    def dump(self, system: object) -> JsonValue:
        """Return all content of a system that users can see, as plain data.

        Tests compare the content before a run with the content after its rollback. Omit values that a
        rollback cannot restore, such as ids and times.
        """
        raise NotImplementedError

    def make_clock(self) -> Clock:
        """Return the clock for runs. By default, this clock advances without waiting in real time.

        If the system acknowledges a write before it shows the write, return `core.clock.SystemClock`. The
        suite then waits in real time, which can take minutes.
        """
        return TestClock()

    # Steps that the tests share.

    @pytest.fixture
    def make_bench(self, tmp_path: Path) -> Callable[[], Bench]:
        """A fixture that returns a function.

        Each call of the function creates a system with its own project.
        """
        return self.start_benches(tmp_path)

    def start_benches(self, folder: Path) -> Callable[[], Bench]:
        """Return a function that creates a system with its own project in a new subfolder of ``folder``."""
        benches: list[Bench] = []

        def make() -> Bench:
            system_folder = folder / f"system-{len(benches)}"
            system_folder.mkdir()
            system = self.make_system(system_folder)
            benches.append(Bench(system, self._make_world(system), FaultyOperations()))
            return benches[-1]

        return make

    def _make_world(self, system: object) -> World:
        secrets = Secrets(dict(self.secrets))
        return World(connections=self.connect(system), secrets=secrets, clock=self.make_clock())

    @contextmanager
    def _intercept_operations(self, bench: Bench) -> Iterator[None]:
        with bench.requests.intercept(resolve_completely(self.provider).operation_types):
            yield

    def _declare(self, resources: Sequence[Declared]) -> list[DesiredResource]:
        return [declare(r.kind, r.name, self._resolve_spec(r.spec), r.labels) for r in resources]

    def _resolve_spec(self, spec: JsonObject) -> JsonObject:
        return as_object(self._resolve(spec))

    def _resolve(self, value: JsonValue) -> JsonValue:
        """Resolve the references in a value in the same way as the manifest loader."""
        if isinstance(value, str) and value in self.secrets:
            return Referenced(self.secrets[value], value)
        if isinstance(value, str) and _REFERENCE.match(value):
            keys = ", ".join(self.secrets) or "none"
            pytest.fail(f"A spec contains the reference {value}, which is not a key of 'secrets' ({keys}).")
        if isinstance(value, Mapping):
            return {key: self._resolve(item) for key, item in value.items()}
        return [self._resolve(item) for item in value] if isinstance(value, list) else value

    def _apply_before(self, make_bench: Callable[[], Bench]) -> Bench:
        bench = make_bench()
        assert bench.apply(self._declare(self.before)).complete, (
            "applying 'before' to an empty system must succeed"
        )
        return bench

    def _compute_final_state(self, make_bench: Callable[[], Bench]) -> tuple[JsonValue, JsonValue]:
        bench = self._apply_before(make_bench)
        assert bench.apply(self._declare(self.after), batch=1).complete, "applying 'after' must succeed"
        return self._read_state(bench)

    def _read_state(self, bench: Bench) -> tuple[JsonValue, JsonValue]:
        """Return the content of the system, and the ownership records without the ids of objects."""
        bench.world.recover()
        kinds = {text: ResourceId.parse(text).kind for text in bench.world.owned()}
        owned = {
            text: dump_record(forget_identity(kinds[text], bind_record(kinds[text], record)))
            for text, record in bench.world.owned().items()
        }
        return self.dump(bench.system), owned

    def _check_recovery(self, bench: Bench, final_state: tuple[JsonValue, JsonValue]) -> None:
        """Check that the first command after a crash recovers the run and reaches the expected state."""
        for thread in threading.enumerate():
            if thread.name.startswith("apply"):
                thread.join()  # a request in flight still arrives after the crash
        bench.world.store.restart()
        bench.requests.faults.clear()
        result = bench.apply(self._declare(self.after), batch=1)
        assert result.complete, result.results
        assert not bench.plan(self._declare(self.after)).has_changes
        assert self._read_state(bench) == final_state
