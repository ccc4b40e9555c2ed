"""What plans predict for topics with tiered storage, compared with what a real broker deletes."""

import random
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from kdeclare.providers.kafka.client import KafkaCluster, connect
from tests.commands import run_here
from tests.kafka.random_topics import (
    RECORDS,
    Case,
    Figures,
    check_bounds,
    commit,
    declare_cases,
    draw_case,
    draw_positions,
    read_bounds,
    read_figures,
    wait_for_starts,
    write_records,
)
from tests.kafka.test_bad_input import Project
from tests.kafka.tiered_brokers import TieredBrokers, start_tiered_brokers
from tests.polling import wait_for

pytestmark = pytest.mark.kafka

CASES = 12
TIERED = {"remote.storage.enable": True, "local.retention.bytes": 1}
"""The configs of a topic of which the broker keeps only the active segment."""
ENDED = {"remote.storage.enable": False, "remote.log.delete.on.disable": True}


@pytest.fixture(scope="module")
def tiered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TieredBrokers]:
    with start_tiered_brokers(tmp_path_factory.mktemp("tiered")) as running:
        yield running


@pytest.fixture
def cluster(tiered: TieredBrokers) -> Iterator[KafkaCluster]:
    client = connect(tiered.sandbox.bootstrap, {})
    try:
        yield client
    finally:
        client.close()


def draw_tiered_case(chance: random.Random) -> Case:
    """Draw a topic that has remote segments before the change, whose limits do not concern local ones."""
    case = draw_case(chance)
    limits = chance.choice([case.limits, case.limits, case.limits, ENDED])
    if limits.get("retention.bytes") == 0:  # Kafka refuses less than the local records may have
        limits = {**limits, "retention.bytes": TIERED["local.retention.bytes"]}
    return replace(case, limits=limits, more_configs=TIERED)


def wait_for_copies(tiered: TieredBrokers, topics: Mapping[str, Case]) -> None:
    """Wait until each topic has remote segments and the broker has copied no more of them for a while."""
    deadline, unchanged_since = time.monotonic() + 90, time.monotonic()
    copied: dict[str, int] = {}
    while time.monotonic() - unchanged_since < 4 or not all(copied.values()):
        assert time.monotonic() < deadline, f"segments are not copied: {copied}"
        found = {name: len(tiered.list_segments(name)) for name in topics}
        if found != copied:
            copied, unchanged_since = found, time.monotonic()
        time.sleep(0.5)


def find_deleted(figures: list[Figures]) -> Figures:
    (deleted,) = (each for each in figures if each["code"].endswith("-records") and "records_total" in each)
    return deleted


@pytest.mark.thorough
def test_predicted_bounds_hold_for_tiered_topics(
    tiered: TieredBrokers, cluster: KafkaCluster, tmp_path: Path
) -> None:
    """Retention is lowered or tiered storage ends; at last, all topics are deleted."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    project = Project(tmp_path, tiered.sandbox.bootstrap)
    cases = {project.name(f"t{number}"): draw_tiered_case(chance) for number in range(CASES)}
    declare_cases(project, cases)
    assert run_here(tmp_path, "apply", "--yes").code == 0
    write_records(tiered.sandbox.bootstrap, cases, chance)
    wait_for_copies(tiered, cases)
    committed = draw_positions(cases, dict.fromkeys(cases, RECORDS))
    commit(cluster, committed)
    assert set(read_bounds(cluster, cases).values()) == {(0, RECORDS)}  # remote records count
    read_by = {name: {g: at[name] for g, at in committed.items() if name in at} for name in cases}
    declare_cases(project, cases, changed=True)
    planned = run_here(tmp_path, "plan", "--format", "json", "--out", "it.plan")
    assert planned.code == 0, planned.err
    figures = read_figures(planned.out)
    applied = run_here(tmp_path, "apply", "it.plan", "--yes")
    assert applied.code == 0, applied.out + applied.err
    starts = wait_for_starts(cluster, cases)
    for name, case in cases.items():
        text = f"seed {seed}, {name}: {case}, {figures[name]}, deleted {starts[name]}"
        check_bounds(figures[name], starts[name], read_by[name], text)
        deleted = find_deleted(figures[name])
        assert (deleted["bytes_at_most"], deleted["records_total"]) == (None, RECORDS), text
        if case.limits is ENDED:  # all remote records are deleted, and there were some
            assert starts[name] > 0, text
            assert not tiered.list_segments(name), text
    assert any(starts.values())
    assert any(tiered.list_segments(name) for name in cases)

    project.declare()
    deletion = ("--allow-deletes", "--allow-empty", "--max-deletes", "100")
    planned = run_here(tmp_path, "plan", *deletion, "--format", "json")
    assert planned.code == 0, planned.err
    figures = read_figures(planned.out)
    for name in cases:
        deleted = find_deleted(figures[name])
        assert (deleted["records_at_least"], deleted["records_at_most"]) == (RECORDS - starts[name],) * 2
    applied = run_here(tmp_path, "apply", *deletion, "--yes")
    assert applied.code == 0, applied.out + applied.err
    wait_for(
        lambda: not any(tiered.list_segments(name) for name in cases),
        every=0.5,
        problem="the remote segments of deleted topics are not deleted",
    )
