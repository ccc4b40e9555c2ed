"""The contract suite, as the author of the example runs it; and how little the example has to implement."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from kdeclare_flags.provider import CLIENT, FLAG
from kdeclare_flags.service import FlagService
from test_flags_contract import TestFlags

from kdeclare.core.live.faults import Fault
from kdeclare.core.resources.objects import ObjectWrite
from kdeclare.engine import cleanup

__all__ = ["TestFlags"]

MEMBERS = 7


def list_members(value: object) -> list[str]:
    """What the classes of an object have that kdeclare does not bring."""
    classes = type(value).__mro__
    own = [found for found in classes if not found.__module__.startswith(("kdeclare.", "builtins", "typing"))]
    return [name for found in own for name in vars(found) if not name.startswith("__")]


def test_smallest_kind_implements_at_most_seven_members() -> None:
    assert TestFlags.provider.kinds == (FLAG, CLIENT)
    counts = {kind.name: len(list_members(kind)) for kind in TestFlags.provider.kinds}
    assert max(counts.values()) <= MEMBERS, counts
    assert counts == {"Flag": 0, "FlagClient": 1}, "an object needs its name and its spec alone"


def test_contract_detects_provider_that_stops_at_first_refusal(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write = FlagService.write

    def stop_early(
        self: FlagService, writes: Sequence[ObjectWrite], *, validate_only: bool
    ) -> list[Fault | None]:
        results: list[Fault | None] = []
        for item in writes:
            if any(results):
                results.append(Fault("NOT_TRIED", "An earlier write was refused"))
            else:
                results += write(self, [item], validate_only=validate_only)
        return results

    suite = TestFlags()
    suite.test_a_refused_item_does_not_stop_its_batch(suite.start_benches(tmp_path))
    monkeypatch.setattr(FlagService, "write", stop_early)
    (tmp_path / "again").mkdir()
    with pytest.raises(AssertionError, match=r"flag\.create:Flag/dark-mode was refused"):
        suite.test_a_refused_item_does_not_stop_its_batch(suite.start_benches(tmp_path / "again"))


def test_contract_detects_provider_without_cleanup(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    suite = TestFlags()
    monkeypatch.setattr(cleanup, "find_cleanups", lambda request: ())
    with pytest.raises(AssertionError, match="must remove finished cleanup"):
        suite.test_what_a_run_left_is_cleaned_up(suite.start_benches(tmp_path))


def test_contract_names_reference_without_value(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    suite = TestFlags()
    monkeypatch.setattr(TestFlags, "secrets", {"WEB_TOKEN": "web-secret-1234567"})
    message = r"env.WEB_TOKEN\}, which is not a key of 'secrets' \(WEB_TOKEN\)"
    with pytest.raises(pytest.fail.Exception, match=message):
        suite.test_a_second_plan_is_empty(suite.start_benches(tmp_path))
