"""What holds for every provider, as a suite of pytest.

Subclass `ProviderContract` in a test module of your own, under a name that starts with ``Test``. Say which
provider it is, how an empty system of it is made, and three sets of resources. Every test makes systems of
its own, so they should be quick to make: fakes, or real ones that run in the test.

A test fails where kdeclare could not keep a promise to those who use the provider; its docstring says which.
"""

import json
import logging
import pickle
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest
import yaml
from pydantic import ValidationError

from kdeclare.core.clock import Clock
from kdeclare.core.diagnostics import KdeclareError, Severity
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonObject, JsonValue, as_object, dump_canonical_json
from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.argument_binding import bind_arguments, dump_arguments
from kdeclare.core.operations.operation import Inverse, Operation
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.run import ApplyResult, Status
from kdeclare.core.plans.state import PendingCleanup
from kdeclare.core.provider.provider import Provider
from kdeclare.core.provider.registry import KINDS, find_api_version, get_operation_type
from kdeclare.core.resources.changes import Action
from kdeclare.core.resources.fleet_capabilities import (
    encode_body,
)
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.manifest_capabilities import (
    ExportRequest,
    export_manifests,
    find_editable,
)
from kdeclare.core.resources.plan_capabilities import (
    forget_identity,
)
from kdeclare.core.resources.record_binding import bind_record, dump_record
from kdeclare.core.secrets.secret_refs import Referenced
from kdeclare.engine.observation import observe, select_all
from kdeclare.engine.planning.planfile import render_plan_file
from kdeclare.engine.planning.request import DeletionLimit, PlanScope
from kdeclare.engine.state import memory_store
from kdeclare.engine.state.document import encode_state
from kdeclare.manifests.editing.project_edits import build_project_edits
from kdeclare.manifests.load_manifests import load_project_manifests
from kdeclare.manifests.project import MANIFESTS_FOLDER, PROJECT_FILE, Project, open_project
from kdeclare.report.plan.plan_markdown import plan_markdown
from kdeclare.report.plan.plan_page import render_plan_page
from kdeclare.report.plan.plan_text import plan_text
from kdeclare.report.sarif import build_plan_sarif
from kdeclare.testing.faults import Crash, FaultyOperations
from kdeclare.testing.world import Secrets, TestClock, World, declare

CrashMoment = Literal["before", "after"]
CRASH_MOMENTS: tuple[CrashMoment, ...] = ("before", "after")


@dataclass(frozen=True, slots=True)
class Declared:
    """A resource as a manifest declares it; references to secrets are written as there (``${env.TOKEN}``)."""

    kind: str
    name: str
    spec: Mapping[str, JsonValue]
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def id(self) -> ResourceId:
        """Its id."""
        return ResourceId(self.kind, self.name)


@dataclass
class Bench:
    """One system, a project that is applied to it, and what stands between the two."""

    system: object
    world: World
    requests: FaultyOperations

    def apply(self, declared: Sequence[DesiredResource], **options: Any) -> ApplyResult:
        """Plan and apply; what is not declared any longer is deleted."""
        return self.world.apply(*declared, scope=_ALLOW_DELETES, **options)

    def plan(self, declared: Sequence[DesiredResource]) -> Plan:
        """Plan; what is not declared any longer would be deleted."""
        return self.world.plan(*declared, scope=_ALLOW_DELETES)


_COMMAND_COUNT, _BETWEEN_COMMANDS_S = 3, 60.0
"""How many commands later everything is cleaned up, and the time between them on the clock of the runs."""

_REFERENCE = re.compile(r"\$\{(env|file|var)\.")

_ALLOW_DELETES = PlanScope(allow_deletes=True)
_ALLOW_ALL_DELETES = PlanScope(allow_deletes=True, max_deletes=DeletionLimit.parse("100%"))


class ProviderContract:
    """The suite. See the module for how to use it.

    provider: the one that is tested.
    before, after: what is declared first, and what then. Between them, every kind should have a resource that
        is created, one that is updated, and one that is deleted; and what secrets there are should change.
    elsewhere: some of the resources of ``after`` in yet another form, as other people change them meanwhile.
        Each differs from ``before`` and from ``after``.
    secrets: the values of references to secrets, by reference: ``{"${env.TOKEN}": "any text"}``.
    actions: what changes between ``before`` and ``after`` are, exactly. State it only where a kind has fewer:
        objects that exist by themselves, such as brokers, are neither created nor deleted; and where nothing
        brings back what is deleted, a class of its own without deletions can show that the rest is undone.

    A provider whose system takes its time to show what was done overrides `make_clock`, too. Work that
    continues after a request (a `Completion`) does not need that.
    """

    provider: ClassVar[Provider]
    before: ClassVar[Sequence[Declared]]
    after: ClassVar[Sequence[Declared]]
    elsewhere: ClassVar[Sequence[Declared]]
    secrets: ClassVar[Mapping[str, str]] = {}
    actions: ClassVar[Set[Action]] = frozenset({Action.CREATE, Action.UPDATE, Action.DELETE})

    def make_system(self, folder: Path) -> object:
        """Return a new, empty system. folder: an empty one that nobody else uses."""
        raise NotImplementedError

    def connect(self, system: object) -> Connections:
        """Return the connections to a system."""
        raise NotImplementedError

    def dump(self, system: object) -> JsonValue:
        """Return all that is in a system and that its users see: what must be equal after a rollback.

        Leave out what is never the same again, such as ids and times.
        """
        raise NotImplementedError

    def make_clock(self) -> Clock:
        """Return the clock of runs, on which nothing takes time.

        Only a system that shows a finished write later than it answers needs `core.clock.SystemClock`; the
        suite then waits for real, which can take minutes.
        """
        return TestClock()

    # What the tests do.

    @pytest.fixture
    def make_bench(self, tmp_path: Path) -> Callable[[], Bench]:
        """Make systems, each with a project of its own."""
        return self.start_benches(tmp_path)

    def start_benches(self, folder: Path) -> Callable[[], Bench]:
        """Return what makes systems in folders of their own below this one, each with a project."""
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
        with bench.requests.intercept(self.provider.operation_types):
            yield

    def _declare(self, resources: Sequence[Declared]) -> list[DesiredResource]:
        return [declare(r.kind, r.name, self._resolve_spec(r.spec), r.labels) for r in resources]

    def _resolve_spec(self, spec: JsonObject) -> JsonObject:
        return as_object(self._resolve(spec))

    def _resolve(self, value: JsonValue) -> JsonValue:
        """The value with its references resolved, as loading manifests does."""
        if isinstance(value, str) and value in self.secrets:
            return Referenced(self.secrets[value], value)
        if isinstance(value, str) and _REFERENCE.match(value):
            keys = ", ".join(self.secrets) or "nothing"
            pytest.fail(
                f"A spec has the reference {value}; 'secrets' has {keys}. Its keys are references, too."
            )
        if isinstance(value, Mapping):
            return {key: self._resolve(item) for key, item in value.items()}
        return [self._resolve(item) for item in value] if isinstance(value, list) else value

    def _apply_before(self, make_bench: Callable[[], Bench]) -> Bench:
        bench = make_bench()
        assert bench.apply(self._declare(self.before)).complete, "'before' can be applied to an empty system"
        return bench

    def _compute_final_state(self, make_bench: Callable[[], Bench]) -> tuple[JsonValue, JsonValue]:
        bench = self._apply_before(make_bench)
        assert bench.apply(self._declare(self.after), batch=1).complete, "'after' can be applied"
        return self._read_state(bench)

    def _read_state(self, bench: Bench) -> tuple[JsonValue, JsonValue]:
        """What the system has, and what is owned of it; ids are added by a later apply."""
        bench.world.recover()
        kinds = {text: ResourceId.parse(text).kind for text in bench.world.owned()}
        owned = {
            text: dump_record(forget_identity(kinds[text], bind_record(kinds[text], record)))
            for text, record in bench.world.owned().items()
        }
        return self.dump(bench.system), owned

    def _check_recovery(self, bench: Bench, final_state: tuple[JsonValue, JsonValue]) -> None:
        """The next command goes on where the last one was killed, and comes to the same."""
        for thread in threading.enumerate():
            if thread.name.startswith("apply"):
                thread.join()  # a request that was on its way arrives, and then the sender is no more
        bench.world.store.restart()
        bench.requests.faults.clear()
        result = bench.apply(self._declare(self.after), batch=1)
        assert result.complete, result.results
        assert not bench.plan(self._declare(self.after)).has_changes
        assert self._read_state(bench) == final_state

    # Manifests.

    def test_misspelt_fields_are_refused(self) -> None:
        """A spec refuses fields that it does not know: people are told of typing errors."""
        for item in (*self.before, *self.after):
            with pytest.raises(ValidationError):
                KINDS[item.kind].spec.model_validate({**self._resolve_spec(item.spec), "noSuchField": 1})

    def test_bodies_can_be_pickled(self) -> None:
        """Bodies go to the tasks of Spark."""
        for desired in self._declare((*self.before, *self.after)):
            assert pickle.loads(pickle.dumps(desired)) == desired, desired.id

    def test_bodies_read_back_have_the_same_diff(self, make_bench: Callable[[], Bench]) -> None:
        """A body as plain data, read again, is the same to a diff; only secrets are known by hashes."""
        bench = self._apply_before(make_bench)
        for declared in (self.before, self.after):
            plain = bench.plan(self._declare(declared))
            read_back = bench.world.plan_as_read_back(*self._declare(declared), scope=_ALLOW_DELETES)
            assert read_back.changes == plain.changes
            assert read_back.operations == plain.operations

    # Import.

    def test_what_is_exported_changes_nothing_when_it_is_declared(
        self, make_bench: Callable[[], Bench]
    ) -> None:
        """The plan after an import says "No changes."; secrets are references to be filled in."""
        bench = self._apply_before(make_bench)
        connections = bench.world.connect()
        request = ExportRequest(lambda selections: observe(connections, selections), bool, lambda id_: True)
        for kind in self.provider.kinds:
            for name, text in export_manifests(kind, connections, request).manifests.items():
                document = yaml.safe_load(text)
                assert (document["kind"], document["metadata"]["name"]) == (kind.name, name)
                if "${" in text.replace("$${", "") and not any(ref in text for ref in self.secrets):
                    continue  # nobody knows the value of its secret
                redeclared = declare(kind.name, name, self._resolve_spec(document["spec"]))
                scope = PlanScope(targets=frozenset({redeclared.id}))
                assert not bench.world.plan(redeclared, scope=scope).operations, text

    # Write-back.

    def test_what_is_written_back_changes_nothing_when_it_is_planned(
        self, make_bench: Callable[[], Bench], tmp_path: Path
    ) -> None:
        """Manifests say what was done by hand; what a kind cannot write, such as a secret, it refuses."""
        bench = self._apply_before(make_bench)
        changes = bench.plan(self._declare(self.after)).changes
        assert bench.apply(self._declare(self.after)).complete
        project, environ = self._write_project(tmp_path)
        for change in changes:
            if change.action not in (Action.CREATE, Action.UPDATE) or find_editable(change.id.kind) is None:
                continue
            try:
                files = build_project_edits(project, environ, [change]).files
            except KdeclareError:
                continue
            loaded = load_project_manifests(
                project, (), KINDS, environ, replacements={edit.file: edit.after for edit in files}
            )
            assert not [d for d in loaded.diagnostics if d.is_error], files
            (written,) = (item for item in loaded.desired if item.id == change.id)
            scope = PlanScope(targets=frozenset({change.id}))
            assert not bench.world.plan(written, scope=scope).operations, files

    def _write_project(self, folder: Path) -> tuple[Project, Mapping[str, str]]:
        """A project with the manifests of ``before``, and the variables that its secrets are in."""
        file = folder / PROJECT_FILE
        file.write_text("apiVersion: kdeclare/v1\nkind: Project\nmetadata: {name: test}\nspec: {}\n")
        manifests = folder / MANIFESTS_FOLDER
        manifests.mkdir()
        for number, item in enumerate(self.before):
            document = {
                "apiVersion": find_api_version(item.kind),
                "kind": item.kind,
                "metadata": {"name": item.name, "labels": dict(item.labels)},
                "spec": _parse_number_keys(item.spec),
            }
            (manifests / f"{number}.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
        environ = {text.removeprefix("${env.").rstrip("}"): value for text, value in self.secrets.items()}
        return open_project(file, None, environ), environ

    def _read_live(self, bench: Bench) -> LiveState:
        operations = bench.plan(self._declare(self.after)).operations
        return observe(bench.world.connect(), select_all(operations))

    # Plan, apply, rollback.

    def test_a_second_plan_is_empty(self, make_bench: Callable[[], Bench]) -> None:
        """What was applied is in order: nothing is sent twice, and nothing is owned twice."""
        bench = self._apply_before(make_bench)
        for declared in (self.before, self.after):
            assert bench.apply(self._declare(declared)).complete
            second_plan = bench.plan(self._declare(declared))
            assert not second_plan.has_changes
            assert not second_plan.ownership

    def test_operations_can_be_stored(self, make_bench: Callable[[], Bench]) -> None:
        """Arguments of operations, and of what undoes them, are of the type that is declared for them."""
        bench = self._apply_before(make_bench)
        operations = bench.plan(self._declare(self.after)).operations
        assert operations, "'after' changes something"
        for op in operations:
            for stored in (Inverse(op.verb, op.args), op.inverse):
                if stored is not None:
                    text = dump_canonical_json(dump_arguments(stored.args))
                    assert bind_arguments(stored.verb, json.loads(text)) == stored.args, (op.id, text)

    def test_the_example_creates_updates_and_deletes(self, make_bench: Callable[[], Bench]) -> None:
        """The suite is worth as much as its example."""
        bench = self._apply_before(make_bench)
        plan = bench.plan(self._declare(self.after))
        actions = {change.action for change in plan.changes} - {Action.NO_OP}
        assert actions, "'after' changes something"
        assert actions == self.actions, "the attribute 'actions' says what changes there are"
        kinds = {change.id.kind for change in plan.changes}
        assert kinds == {kind.name for kind in self.provider.kinds}

    def test_a_rollback_restores_everything(self, make_bench: Callable[[], Bench]) -> None:
        """Undoing a run brings back what the system had, and what was owned."""
        bench = self._apply_before(make_bench)
        before = self._read_state(bench)
        run = bench.apply(self._declare(self.after))
        assert run.complete
        assert self._read_state(bench) != before
        rollback_result = bench.world.rollback(run.run_id)
        assert rollback_result.complete, (rollback_result.results, rollback_result.plan.diagnostics)
        irreversible_resources = {op.resource for op in run.plan.operations if op.irreversible}
        problems = [d for d in rollback_result.plan.diagnostics if d.severity is not Severity.INFO]
        assert {d.resource for d in problems} <= set(map(str, irreversible_resources)), (
            "only what cannot be undone is reported"
        )
        if not irreversible_resources:
            assert self._read_state(bench) == before
            return
        restorable = (item for item in self.before if item.id not in irreversible_resources)
        assert all(self._is_as_declared(bench, item) for item in restorable), (
            "a loss keeps nothing else from going back"
        )

    def test_a_rollback_takes_away_what_a_run_created(self, make_bench: Callable[[], Bench]) -> None:
        """Undoing the first run leaves the system as empty as it was."""
        bench = make_bench()
        before = self._read_state(bench)
        assert bench.apply(self._declare(self.before)).complete
        assert bench.world.rollback().complete
        assert self._read_state(bench) == before

    def test_a_rollback_leaves_alone_what_others_have_changed(self, make_bench: Callable[[], Bench]) -> None:
        """What was changed since the run is a conflict: it is named and not touched."""
        bench = self._apply_before(make_bench)
        run = bench.apply(self._declare(self.after))
        changed = self._change_elsewhere(bench, self.elsewhere)
        states = {item.id: self._is_as_declared(bench, item) for item in changed}
        rollback_result = bench.world.rollback(run.run_id)
        assert {d.resource for d in rollback_result.plan.diagnostics} >= {str(item.id) for item in changed}
        assert {item.id: self._is_as_declared(bench, item) for item in changed} == states

    def _is_as_declared(self, bench: Bench, item: Declared) -> bool:
        """Whether a resource is as it is declared."""
        scope = PlanScope(targets=frozenset({item.id}))
        other_world = self._make_world(bench.system)
        return not other_world.plan(*self._declare([item]), scope=scope).operations

    def _change_elsewhere(self, bench: Bench, resources: Sequence[Declared]) -> Sequence[Declared]:
        """Another project adopts and changes resources."""
        result = self._make_world(bench.system).apply(*self._declare(resources))
        assert result.complete, result.results
        return resources

    # Cleanup.

    def test_what_a_run_left_is_cleaned_up(self, make_bench: Callable[[], Bench]) -> None:
        """Later commands remove what a run left behind, and then the state has nothing more to clean up."""
        bench = self._apply_before(make_bench)
        assert bench.apply(self._declare(self.after)).complete
        for _ in range(_COMMAND_COUNT):
            bench.world.recover()
            if not self._read_pending_cleanup(bench):
                break
            bench.world.clock.sleep(_BETWEEN_COMMANDS_S)
        assert not self._read_pending_cleanup(bench), "'update_cleanup' takes out what was cleaned up"
        assert not bench.plan(self._declare(self.after)).has_changes

    def _read_pending_cleanup(self, bench: Bench) -> PendingCleanup:
        state = bench.world.store.read()
        assert state is not None
        return state.pending_cleanup

    # Staleness.

    def test_a_plan_is_stale_where_others_have_changed_what_it_is_about(
        self, make_bench: Callable[[], Bench]
    ) -> None:
        """Nothing of such a plan is applied; or, where that was chosen, only the rest of it."""
        for item in self.elsewhere:
            bench = self._apply_before(make_bench)
            plan = bench.plan(self._declare(self.after))
            affected_operations = [op for op in plan.operations if op.resource == item.id]
            assert affected_operations, f"'after' changes {item.id}, which is in 'elsewhere'"
            self._change_elsewhere(bench, [item])
            changed_ids = self._find_changed(bench, affected_operations)
            state_before = self.dump(bench.system)
            with pytest.raises(KdeclareError) as refused:
                bench.world.run(plan)
            assert refused.value.exit_code is ExitCode.STALE
            assert {d.resource for d in refused.value.diagnostics} == {str(item.id)}
            expected = {element for op in affected_operations for element in op.expect}
            assert {d.subject for d in refused.value.diagnostics} <= expected
            assert self.dump(bench.system) == state_before, "nothing was applied"
            result = bench.world.run(plan, skip_stale=True)
            assert self._is_as_declared(bench, item), "what others have changed is left alone"
            stale_ids = {id_ for id_, r in result.results.items() if r.status is Status.STALE}
            assert stale_ids
            assert stale_ids == changed_ids, "of several operations of a resource, the others need not be"
            assert all(r.is_good for r in result.results.values() if r.status not in _LEFT_OUT_STATUSES)

    def _find_changed(self, bench: Bench, operations: Sequence[Operation]) -> set[str]:
        """The operations that are about what is otherwise by now."""
        live = observe(bench.world.connect(), select_all(operations))
        primary_operations = (op for op in operations if not get_operation_type(op).is_auxiliary)
        return {
            op.id for op in primary_operations if get_operation_type(op).compute_view(op, live) != op.expect
        }

    # Faults.

    def test_killed_at_every_position_of_the_journal(self, make_bench: Callable[[], Bench]) -> None:
        """Whenever the process dies, the next command goes on and comes to the same end."""
        final_state = self._compute_final_state(make_bench)
        step, crashes = 0, [True]
        while any(crashes):
            step += 1
            crashes = [self._crash_at(step, when, make_bench, final_state) for when in CRASH_MOMENTS]
        assert step > 1

    def _crash_at(
        self,
        step: int,
        moment: CrashMoment,
        make_bench: Callable[[], Bench],
        final_state: tuple[JsonValue, JsonValue],
    ) -> bool:
        """Kill a run at its n-th step, and go on; False where it had fewer.

        How many it has varies: what ends at the same time is one line of the journal.
        """
        bench = self._apply_before(make_bench)
        bench.world.store.restart()
        bench.world.store.crash = memory_store.StoreCrash(step, moment, Crash())
        try:
            bench.apply(self._declare(self.after), batch=1)
        except Crash:
            self._check_recovery(bench, final_state)
            return True
        assert len(bench.world.store.steps) < step
        bench.world.store.restart()
        assert self._read_state(bench) == final_state
        return False

    def _count_requests(self, make_bench: Callable[[], Bench]) -> int:
        bench = self._apply_before(make_bench)
        with self._intercept_operations(bench):
            bench.apply(self._declare(self.after), batch=1)
        return len(bench.requests.writes)

    def test_killed_before_and_after_every_request(self, make_bench: Callable[[], Bench]) -> None:
        """Whether a request has arrived is found out by looking."""
        final_state = self._compute_final_state(make_bench)
        for request_number in range(1, self._count_requests(make_bench) + 1):
            for after_effect in (False, True):
                bench = self._apply_before(make_bench)
                with self._intercept_operations(bench):
                    bench.requests.faults.crash(nth=request_number, after_effect=after_effect)
                    with pytest.raises(Crash):
                        bench.apply(self._declare(self.after), batch=1)
                    self._check_recovery(bench, final_state)

    def test_a_time_out_is_settled_by_looking(self, make_bench: Callable[[], Bench]) -> None:
        """A request without an answer is neither taken for done nor for failed, and the run goes on."""
        final_state = self._compute_final_state(make_bench)
        for request_number in range(1, self._count_requests(make_bench) + 1):
            for after_effect in (False, True):
                bench = self._apply_before(make_bench)
                with self._intercept_operations(bench):
                    bench.requests.faults.time_out(nth=request_number, after_effect=after_effect)
                    result = bench.apply(self._declare(self.after), batch=1)
                assert result.complete, (request_number, after_effect, result.results)
                assert self._read_state(bench) == final_state

    def test_one_refusal_stops_only_what_needs_it(self, make_bench: Callable[[], Bench]) -> None:
        """An error about one resource does not stop another."""
        bench = self._apply_before(make_bench)
        for victim in bench.plan(self._declare(self.after)).operations:
            bench = self._apply_before(make_bench)
            with self._intercept_operations(bench):
                plan = bench.plan(self._declare(self.after))
                bench.requests.faults.fail(
                    Fault("REFUSED", "Not today."), nth=None, method=victim.verb, item=str(victim.resource)
                )
                result = bench.world.run(plan)
            failed_ids = {id_ for id_, r in result.results.items() if not r.is_good}
            assert failed_ids == _find_dependent(plan, victim), victim.id

    # Batches.

    def test_batches_are_small_enough_and_name_nothing_twice(self, make_bench: Callable[[], Bench]) -> None:
        """However many operations go in a request, the system ends the same."""
        final_state = self._compute_final_state(make_bench)
        for size in (1, 2, 1000):
            bench = self._apply_before(make_bench)
            with self._intercept_operations(bench):
                assert bench.apply(self._declare(self.after), batch=size).complete
            assert self._read_state(bench) == final_state
            for call in bench.requests.writes:
                assert len(call.items) <= size
        plan = self._apply_before(make_bench).plan(self._declare(self.after))
        items = [_identify(op) for op in plan.operations]
        assert len(set(items)) == len(items), "two operations of one type about the same thing"

    def test_a_refused_item_does_not_stop_its_batch(self, make_bench: Callable[[], Bench]) -> None:
        """What someone else has created or deleted a moment ago stops nothing else of a request."""
        for declared in (self.before, ()):
            for method, items in self._find_batches(make_bench, declared).items():
                bench, plan = self._plan_from_start(make_bench, declared)
                refused_operation = next(
                    op for op in plan.operations if (op.verb, str(op.resource)) == (method, items[0])
                )
                with self._intercept_operations(bench):
                    bench.requests.faults.run_before(
                        partial(_execute_elsewhere, bench, refused_operation), item=items[0]
                    )
                    result = bench.world.run(plan)
                failed_ids = {id_ for id_, r in result.results.items() if not r.is_good}
                assert failed_ids <= _find_dependent(plan, refused_operation), (
                    f"{refused_operation.id} was refused in a request with {items}"
                )

    def _find_batches(
        self, make_bench: Callable[[], Bench], declared: Sequence[Declared]
    ) -> Mapping[str, Sequence[str]]:
        """Return what goes together in a request, for each operation type that creates or deletes."""
        bench, plan = self._plan_from_start(make_bench, declared)
        batched_types = {
            op.verb
            for op in plan.operations
            if get_operation_type(op).creates or get_operation_type(op).deletes
        }
        with self._intercept_operations(bench):
            bench.world.run(plan)
        return {
            c.method: c.items for c in bench.requests.writes if c.method in batched_types and len(c.items) > 1
        }

    def _plan_from_start(
        self, make_bench: Callable[[], Bench], declared: Sequence[Declared]
    ) -> tuple[Bench, Plan]:
        """What is declared is created in an empty system; if that is nothing, what there is is deleted."""
        bench = make_bench() if declared else self._apply_before(make_bench)
        return bench, bench.world.plan(*self._declare(declared), scope=_ALLOW_ALL_DELETES)

    # Secrets.

    def test_secrets_are_nowhere(
        self, make_bench: Callable[[], Bench], caplog: pytest.LogCaptureFixture
    ) -> None:
        """No value of a secret is in a plan, state, journal, report, log or message."""
        caplog.set_level(logging.DEBUG)
        texts: list[str] = []
        bench = self._apply_before(make_bench)
        texts.append(repr(self._read_live(bench)))
        texts += [dump_canonical_json(encode_body(d)) for d in bench.world.seal(self._declare(self.after))]
        texts += [repr(desired) for desired in self._declare(self.after)]
        plan = bench.plan(self._declare(self.after))
        texts += _render(plan)
        result = bench.world.run(plan)
        assert result.complete
        rollback_plan = bench.world.plan_rollback(result.run_id)
        texts += _render(rollback_plan)
        bench.world.run(rollback_plan)
        bench = self._apply_before(make_bench)
        with self._intercept_operations(bench):
            for value in self.secrets.values():
                bench.requests.faults.fail(Fault("ECHO", f"I do not like '{value}'."), nth=None)
            failed = bench.apply(self._declare(self.after))
        texts += [f"{r.error} {r.message}" for r in failed.results.values()]
        texts += _collect_stored_texts(bench.world)
        texts.append(caplog.text)
        for value in self.secrets.values():
            assert not [text for text in texts if value in text]


_LEFT_OUT_STATUSES = (Status.STALE, Status.SKIPPED)


def _parse_number_keys(value: JsonValue) -> object:
    """Keys as people write them in YAML: JSON has no numbers there."""
    if isinstance(value, Mapping):
        return {int(key) if key.isdecimal() else key: _parse_number_keys(item) for key, item in value.items()}
    return [_parse_number_keys(item) for item in value] if isinstance(value, list) else value


def _find_dependent(plan: Plan, refused: Operation) -> set[str]:
    """What is refused, as operations of one type on one resource are, and all that needs it.

    And what would clean up after operations of which none has begun; after others it does, however they end.
    """
    victims = {op.id for op in plan.operations if (op.verb, op.resource) == (refused.verb, refused.resource)}
    not_begun: set[str] = set()
    for op in plan.operations:  # in order
        if get_operation_type(op).is_cleanup:
            is_left_out = bool(op.after) and not_begun >= op.after.keys()
        else:
            is_left_out = not op.needs.keys().isdisjoint(victims | not_begun)
        if is_left_out:
            not_begun.add(op.id)
    return victims | not_begun


def _execute_elsewhere(bench: Bench, op: Operation, _: None) -> None:
    """Someone else does the same."""
    get_operation_type(op).execute(bench.world.connect(), [op], bench.world.secrets, validate_only=False)


def _identify(op: Operation) -> tuple[str, ...]:
    """What no other operation may be about, too; auxiliary ones can share it, and be one at a time."""
    if get_operation_type(op).is_auxiliary:
        return (op.verb, str(op.resource), dump_canonical_json(dump_arguments(op.args)))
    return (op.verb, get_operation_type(op).get_batch_key(op))


def _render(plan: Plan) -> list[str]:
    texts = [
        render_plan_file(plan)[0],
        plan_text(plan, graph=True),
        plan_markdown(plan),
        render_plan_page(plan),
    ]
    return [*texts, json.dumps(build_plan_sarif(plan))]


def _collect_stored_texts(world: World) -> list[str]:
    state = world.store.read()
    texts = [] if state is None else [encode_state(state)]
    for run_id in world.store.runs():
        texts.append(world.store.read_plan_text(run_id))
        texts += [json.dumps(entry) for entry in world.store.entries(run_id)]
    return texts
