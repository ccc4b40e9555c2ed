"""Tests of a provider's promises about ``lifecycle.state`` and ``lifecycle.ignoreChanges``."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import pytest

from kdeclare.core.jsontypes import JsonValue, as_object
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.adoption import ADOPTION
from kdeclare.core.resources.changes import Change, Reason
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.testing.provider_contract.bench import (
    ALLOW_ALL_DELETES,
    Bench,
    ContractBase,
    Declared,
)

_STATE, _IGNORE_CHANGES = "state", "ignoreChanges"


class LifecyclePromises(ContractBase):
    """Tests of the promises about declared absence and ignored fields.

    A test leaves out kinds that do not support the tested option. If no kind of the provider supports the
    option, the test is skipped.
    """

    def test_resources_that_are_declared_absent_are_deleted(self, make_bench: Callable[[], Bench]) -> None:
        """A resource that a manifest declares as absent is deleted, and the project no longer owns it."""
        bench = self._apply_before(make_bench)
        absent = self._declare_absent(self.before)
        others = [item for item in self.before if item.id not in {other.id for other in absent}]
        declared = [*absent, *self._declare(others)]
        # The deletions need no --allow-deletes, only a higher limit.
        scope = replace(ALLOW_ALL_DELETES, allow_deletes=False)
        plan = bench.world.plan(*declared, scope=scope)
        absent_ids = {item.id for item in absent}
        deleted_ids = {change.id for change in plan.changes if change.reason is Reason.ABSENT}
        # A resource that consists of settings does not exist if its manifest only unsets them.
        assert deleted_ids
        assert deleted_ids <= absent_ids
        run = bench.world.run(plan)
        assert run.complete, run.results
        assert bench.world.owned().keys() == {str(item.id) for item in others}
        second_plan = bench.world.plan(*declared, scope=scope)
        assert (second_plan.changes, second_plan.ownership) == ((), ())

    def test_resources_of_others_are_not_deleted(self, make_bench: Callable[[], Bench]) -> None:
        """A resource that is declared absent but was never applied is deleted only if adoption is allowed."""
        bench = make_bench()
        other_project = self._make_world(bench.system)
        assert other_project.apply(*self._declare(self.before)).complete
        bench.world.adopts = False
        absent = self._declare_absent(self.before)
        plan = bench.world.plan(*absent)
        assert {change.blocked for change in plan.changes} == {ADOPTION}
        assert not plan.operations

    def test_ignored_fields_stay_as_others_have_set_them(self, make_bench: Callable[[], Bench]) -> None:
        """If a manifest ignores the fields that another client changed, a plan leaves them unchanged."""
        bench = self._apply_before(make_bench)
        changed_ids = {item.id for item in self._change_by_others(bench)}
        plan = bench.world.plan(*self._declare(self.before))
        changes = {change.id: change for change in plan.changes if change.id in changed_ids}
        ignoring = [
            item
            for declared in self.before
            if declared.id in changes and (item := self._declare_ignoring(declared, changes[declared.id]))
        ]
        if not ignoring:
            pytest.skip("no kind of the provider can ignore the changed fields")
        later_plan = bench.world.plan(*ignoring)
        ignoring_ids = {item.id for item in ignoring}
        assert not [change for change in later_plan.changes if change.id in ignoring_ids]

    def _change_by_others(self, bench: Bench) -> Iterator[Declared]:
        other_project = self._make_world(bench.system)
        names = {item.id for item in self.before}
        for item in self.elsewhere:
            if item.id in names and other_project.apply(*self._declare([item])).complete:
                yield item

    def _declare_absent(self, resources: Sequence[Declared]) -> list[DesiredResource]:
        absent = [
            _with_lifecycle(item, _STATE, "absent") for item in resources if _has_option(item.kind, _STATE)
        ]
        if not absent:
            pytest.skip("no kind of the provider has lifecycle.state")
        return self._declare(absent)

    def _declare_ignoring(self, item: Declared, change: Change) -> DesiredResource | None:
        """Return the resource with a manifest that ignores the changed fields.

        Return None if the kind of the resource cannot ignore these fields.
        """
        if not _has_option(item.kind, _IGNORE_CHANGES):
            return None
        paths = [self._find_ignorable_path(item, field.path) for field in change.fields]
        known_paths = list(dict.fromkeys(path for path in paths if path is not None))
        if None in paths or not known_paths:
            return None
        return self._declare([_with_lifecycle(item, _IGNORE_CHANGES, known_paths)])[0]

    def _find_ignorable_path(self, item: Declared, path: str) -> str | None:
        """Return the path that ``ignoreChanges`` accepts for a changed field, such as ``assignments``."""
        kind = KINDS[item.kind]
        for candidate in _list_prefixes(path):
            spec = self._resolve_spec(_with_lifecycle(item, _IGNORE_CHANGES, [candidate]).spec)
            _, problems = kind.parse(item.name, kind.spec.model_validate(spec))
            if not any(problem.diagnostic.is_error for problem in problems):
                return candidate
        return None


def _list_prefixes(path: str) -> Iterable[str]:
    parts = path.split(".")
    return [".".join(parts[:count]) for count in range(len(parts), 0, -1)]


def _has_option(kind: str, option: str) -> bool:
    lifecycle = KINDS[kind].spec.model_fields.get("lifecycle")
    return lifecycle is not None and option in getattr(lifecycle.annotation, "model_fields", {})


def _with_lifecycle(item: Declared, option: str, value: JsonValue) -> Declared:
    lifecycle = {**as_object(item.spec.get("lifecycle", {})), option: value}
    if option == _STATE:
        lifecycle.pop("preventDestroy", None)  # deletion cannot be both declared and prevented
    return replace(item, spec={**item.spec, "lifecycle": lifecycle})
