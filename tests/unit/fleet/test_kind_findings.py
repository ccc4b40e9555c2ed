"""The local engine finds every type of drift of every kind, of kdeclare's providers and of the example."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kdeclare.core.provider.installed_providers import find_providers, use_providers
from kdeclare.core.provider.registry import KINDS
from kdeclare.fleet.findings import FindingKind
from kdeclare.fleet.local.audit import LocalTables, find_all
from kdeclare.fleet.tables.row_builder import Row
from tests.unit.fleet.kind_scenarios import (
    CHANGED,
    FINDINGS,
    FLAGS,
    PENDING,
    SCENARIOS,
    SESSION,
    expect_findings,
    run_scenario,
)

FindRows = Callable[[str], list[Row]]


@pytest.fixture(scope="module", autouse=True)
def _example_provider() -> Iterator[None]:
    use_providers((*find_providers(), FLAGS))
    yield
    use_providers(None)


@pytest.fixture(scope="module")
def find_rows(tmp_path_factory: pytest.TempPathFactory) -> FindRows:
    """A function that returns the findings in the scenario of a kind, which runs once."""
    found: dict[str, list[Row]] = {}

    def find(kind: str) -> list[Row]:
        if kind not in found:
            tables = run_scenario(kind, tmp_path_factory.mktemp(kind))
            local = LocalTables(tables.declared, tables.live, [kind])
            found[kind] = find_all(local, lambda _: None)[0]
        return found[kind]

    return find


def test_every_kind_has_a_scenario_with_every_finding() -> None:
    kinds = set(KINDS)
    assert SCENARIOS.keys() == kinds, "add a scenario for each new kind"
    for kind, scenario in SCENARIOS.items():
        assert set(scenario.found) == set(FINDINGS), kind


@pytest.mark.slow
@pytest.mark.parametrize("finding", FINDINGS)
@pytest.mark.parametrize("kind", SCENARIOS)
def test_local_audit_finds_drift(kind: str, finding: FindingKind, find_rows: FindRows) -> None:
    expect_findings(kind, finding, find_rows(kind))


@pytest.mark.parametrize("kind", SCENARIOS)
def test_applied_resources_and_secrets_are_not_in_findings(
    kind: str, find_rows: FindRows, tmp_path: Path
) -> None:
    rows = find_rows(kind)
    unchanged = {row["name"] for row in rows if row["kind"] == kind and row["finding"] != "unmanaged"}
    assert "kept" not in unchanged
    assert "hunter2" not in repr([rows, run_scenario(kind, tmp_path)])


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("Topic", "configs.retention.ms"),
        ("GroupConfig", f"configs.{SESSION}"),
        ("ClientMetrics", "metrics"),
        ("ClientQuota", "limits.producer_byte_rate"),
        ("ScramUser", "mechanisms.SCRAM-SHA-512"),
        ("Connector", "config.file"),
        ("Schema", "schema"),
        ("Flag", "rollout"),
    ],
)
def test_ignored_changes_are_not_drift(kind: str, path: str, tmp_path: Path) -> None:
    tables = run_scenario(kind, tmp_path, ignored=path)
    rows = find_all(LocalTables(tables.declared, tables.live, [kind]), lambda _: None)[0]
    found = {(row["name"], row["finding"]) for row in rows if row["kind"] == kind}
    assert (CHANGED, "changed") not in found
    assert (PENDING, "pending") in found
