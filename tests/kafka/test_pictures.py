"""A team's release on real brokers, as the pages of its plan and run show it: the docs' pictures."""

import io
import json
import socket
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, redirect_stdout
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
import yaml
from playwright.sync_api import Page, expect

from kdeclare.cli.main import main
from kdeclare.core.exit_codes import ExitCode
from kdeclare.sandbox import SandboxStatus
from tests.beds import CLUSTER_WIDE, DELETE, SET, KafkaBed, topic_resource
from tests.browser.pictures import Picture, take_picture
from tests.browser.watched import WatchedPage
from tests.kafka.records import open_cluster

# the browser first: where there is none, nothing is applied for nothing
pytestmark = [pytest.mark.kafka, pytest.mark.thorough, pytest.mark.usefixtures("chromium")]

Spec = dict[str, Any]
DAY_MS = 86_400_000
RECORD_BYTES = 50_000
RECORDS = {"payments.captured": 100, "checkout.orders": 70, "checkout.carts": 30, "payments.refunds": 30}
"""Topics that hold some, so that their moves take a while."""
PROJECT = {
    "manifests": ["manifests"],
    "policies": [
        {"name": "at-most-48", "class": "kdeclare.policy.rules:PartitionBounds", "config": {"max": 48}}
    ],
    "reassignments": {"throttle": "1MiB/s", "batchSize": 12},
}


def build_small_spec(partitions: int, **configs: Any) -> Spec:
    """Two replicas each, on the brokers that were there first."""
    return {"assignments": {n: [1 + n % 2, 2 - n % 2] for n in range(partitions)}, "configs": configs}


def build_safe_spec(partitions: int, **configs: Any) -> Spec:
    """Three replicas each, on three racks."""
    return {"partitions": partitions, "replicationFactor": 3, "configs": configs}


def build_retention(count: int) -> Spec:
    """For how long records are kept."""
    return {"retention.ms": count * DAY_MS}


def build_cleanup_policy(*policies: str) -> Spec:
    """How they go."""
    return {"cleanup.policy": list(policies)}


TWO_IN_SYNC = {"min.insync.replicas": 2}
BEFORE = {
    "payments.captured": build_small_spec(6, **build_retention(14)),
    "payments.refunds": build_small_spec(3, **build_retention(14)),
    "payments.ledger": build_small_spec(4, **build_cleanup_policy("compact")),
    "checkout.orders": build_small_spec(6, **build_retention(7)),
    "checkout.carts": build_small_spec(4, **build_retention(30), **build_cleanup_policy("delete")),
    "checkout.prices": build_small_spec(3, **build_cleanup_policy("compact", "delete")),
    "search.clicks": build_small_spec(6, **build_retention(2)),
    "search.queries": build_small_spec(4, **build_retention(2)),
    "search.suggestions": build_small_spec(2, **build_retention(7)),
    "legacy.events": build_small_spec(2, **build_retention(1)),
}
AFTER = {
    "payments.captured": build_safe_spec(6, **build_retention(14), **TWO_IN_SYNC),
    "payments.refunds": build_safe_spec(3, **build_retention(14), **TWO_IN_SYNC),
    "payments.ledger": build_safe_spec(4, **build_cleanup_policy("compact"), **TWO_IN_SYNC),
    "payments.disputes": build_safe_spec(6, **build_retention(90), **TWO_IN_SYNC),
    "checkout.orders": build_safe_spec(12, **build_retention(7), **TWO_IN_SYNC),
    "checkout.carts": build_safe_spec(4, **build_retention(7), **build_cleanup_policy("compact", "delete")),
    "checkout.prices": build_safe_spec(3, **build_cleanup_policy("compact")),
    "checkout.coupons": build_safe_spec(3, **build_cleanup_policy("compact")),
    "search.clicks": {"partitions": 96, "configs": build_retention(2)},
    "search.queries": {"partitions": 4, "configs": {**build_retention(2), "compression.type": "zstd"}},
    "search.suggestions": {"partitions": 2, "configs": build_retention(7)},
    "search.embeddings": build_safe_spec(6, **build_retention(30), **{"max.message.bytes": 4_194_304}),
}
BESIDE: dict[str, tuple[str, Spec]] = {
    "cluster-default": ("BrokerConfig", {"configs": {"log.cleaner.threads": 2}}),
    "use-broker-3": (
        "Reassignment",
        {"topics": ["search.clicks", "search.queries", "search.suggestions"], "rebalance": True},
    ),
}


@dataclass(frozen=True)
class Release:
    """What the commands printed: pages, and the same as data."""

    plan_page: Path
    plan: dict[str, Any]
    run_page: Path
    run: dict[str, Any]


def write_project(folder: Path, bootstrap: str, topics: Mapping[str, Spec], **more: tuple[str, Spec]) -> None:
    """The project, with a file for each team, and what else there is by name."""
    environments = {"production": {"bootstrapServers": bootstrap}}
    write_documents(
        folder / "kdeclare.yaml",
        [build_document("Project", "shop", PROJECT | {"environments": environments})],
    )
    for file in folder.glob("manifests/*"):
        file.unlink()
    for team, found in groupby(sorted(topics), key=get_team):
        labels = {"labels": {"team": team}}
        write_documents(
            folder / "manifests" / f"{team}.yaml",
            [build_document("Topic", n, topics[n], labels) for n in found],
        )
    for name, (kind, spec) in more.items():
        write_documents(folder / "manifests" / f"{name}.yaml", [build_document(kind, name, spec)])


def write_documents(file: Path, documents: Iterable[Spec]) -> None:
    """A file of manifests."""
    file.parent.mkdir(exist_ok=True)
    file.write_text(yaml.safe_dump_all(documents, sort_keys=False))


def build_document(kind: str, name: str, spec: Spec, metadata: Spec | None = None) -> Spec:
    """A manifest."""
    named = {"name": name, **(metadata or {})}
    return {"apiVersion": "kdeclare/v1", "kind": kind, "metadata": named, "spec": spec}


def get_team(topic: str) -> str:
    """Whose it is."""
    return topic.partition(".")[0]


def run_kdeclare(*arguments: str, code: int = 0) -> str:
    """What a command prints."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        ended = main(arguments)
    assert ended == code, printed.getvalue()
    return printed.getvalue()


@pytest.fixture(scope="module")
def bed(sandbox: SandboxStatus) -> Iterator[KafkaBed]:
    """Other people's client; nothing is left of the release."""
    with closing(open_cluster(sandbox.bootstrap)) as cluster:
        made = KafkaBed(cluster, sandbox.bootstrap)
        for name in BEFORE | AFTER:
            made.delete_at_end(name)
        try:
            yield made
        finally:
            made.alter(CLUSTER_WIDE, ("log.cleaner.threads", DELETE, None))
            made.clean()


@pytest.fixture(scope="module")
def release(bed: KafkaBed, sandbox: SandboxStatus, tmp_path_factory: pytest.TempPathFactory) -> Release:
    """A plan that was reviewed, and its run; other hands were at the cluster before each."""
    folder = tmp_path_factory.mktemp("release")
    first = sandbox.bootstrap.partition(",")[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("LOGNAME", "ann")
        patch.setattr(socket, "gethostname", lambda: "laptop")
        write_project(folder, first, BEFORE)
        run_kdeclare("apply", "--yes", "--quiet")
        for name, count in RECORDS.items():
            bed.produce(name, count, RECORD_BYTES)
        alter_topic(bed, "payments.refunds", "retention.ms", "3600000")
        write_project(folder, first, AFTER, **BESIDE)
        plan_page = run_kdeclare(
            *("plan", "--allow-deletes", "--out", "release.plan", "--format", "html"), code=ExitCode.DENIED
        )
        alter_topic(bed, "search.queries", "compression.type", "lz4")
        run_page = run_kdeclare(
            *("apply", "release.plan", "--yes", "--skip-stale", "--format", "html"), code=ExitCode.PARTIAL
        )
        run_id = json.loads(run_kdeclare("history", "--format", "json"))["runs"][0]["run_id"]
        run = json.loads(run_kdeclare("history", run_id, "--format", "json"))
        assert run_kdeclare("history", run_id, "--format", "html") == run_page
    (folder / "plan.html").write_text(plan_page)
    (folder / "run.html").write_text(run_page)
    plan = json.loads((folder / "release.plan").read_text())
    return Release(folder / "plan.html", plan, folder / "run.html", run)


def alter_topic(bed: KafkaBed, topic: str, key: str, value: str) -> None:
    """Somebody is in a hurry; it lasts until the brokers show it."""
    assert bed.alter(topic_resource(topic), (key, SET, value)) is None
    bed.eventually(lambda: expect_value(bed, topic, key, value))


def expect_value(bed: KafkaBed, topic: str, key: str, value: str) -> None:
    """What a key is set to now."""
    assert bed.overrides(topic_resource(topic))[key] == value


def test_plan_page_has_counts_of_the_plan(desktop: WatchedPage, release: Release) -> None:
    page, plan = desktop.open(release.plan_page), release.plan
    summary = plan["summary"]
    names = {"create": "create", "update": "change", "delete": "delete", "blocked": "blocked"}
    for what, name in names.items():
        assert summary[what] == int(read_tile(page, name))
    assert (summary["create"], summary["delete"], summary["blocked"]) == (3, 1, 1)
    shown = [change for change in plan["changes"] if change["id"] != "Topic/search.clicks"]
    risks = Counter(risk for change in shown for risk in change["risks"])
    for risk in ("irreversible", "destructive", "disruptive"):
        assert risks[risk] == int(read_tile(page, risk)) > 0
    assert f"{summary['reassign']} partitions to move" in page.locator("h1").inner_text()
    assert f"{len(plan['operations'])} operations in" in page.locator("#graph-note").inner_text()
    assert desktop.read_count() == f"{len(plan['changes'])} of {len(plan['changes'])} changes"
    page.locator("#list .toggle", has_text="payments.refunds").click()
    row = page.locator(".detail tr", has_text="retention.ms")
    assert row.locator("td").all_inner_texts()[2:] == ["3600000 (1 h)", "1209600000 (14 d)"]


def test_run_page_has_outcomes_of_the_run(desktop: WatchedPage, release: Release, bed: KafkaBed) -> None:
    page, run = desktop.open(release.run_page), release.run
    assert f"Run {run['run_id']} on shop/production" in page.locator("h1").inner_text()
    total = len(run["steps"])
    facts = page.locator("#facts").inner_text()
    assert f"{run['counts']['done']} of {total} operations" in " ".join(facts.split())
    assert "ann@laptop" in facts
    assert (read_tile(page, "stale"), read_tile(page, "skipped")) == ("1", "1")
    assert 'was not set when the plan was made, but is now "lz4"' in page.locator("#risky").inner_text()
    never = sum(step["begun"] is None for step in run["steps"])
    assert f"{never} operations not started" in page.locator("#times-note").inner_text()
    moves = page.locator(".time", has_text="partitions.reassign")
    expect(moves.nth(2)).to_be_attached()
    assert all("done, started after" in (one.get_attribute("aria-label") or "") for one in moves.all())
    assert len(bed.topic("checkout.orders").partitions) == 12
    assert {len(p.replicas) for p in bed.topic("payments.captured").partitions} == {3}
    assert not bed.cluster.topics(["legacy.events"])
    expect_value(bed, "search.queries", "compression.type", "lz4")


def read_tile(page: Page, name: str) -> str:
    """What the page counts of something."""
    return page.locator(f".tile[data-value={name}] .tile-count").inner_text()


@pytest.mark.parametrize(
    "picture",
    [
        Picture("plan-top", 1200, 600),
        Picture("plan", 1200, 1300, link="#q=checkout", opened="checkout.orders"),
        Picture("plan-dark", 1200, 1120, "dark"),
        Picture("plan-phone", 390, 1880),
        Picture("run", 1200, 1045),
        Picture("run-dark", 1200, 1045, "dark"),
        Picture("run-phone", 390, 1480, "dark"),
    ],
    ids=lambda picture: picture.name,
)
def test_plan_and_run_pictures(desktop: WatchedPage, release: Release, picture: Picture) -> None:
    page_file = release.run_page if picture.name.startswith("run") else release.plan_page
    take_picture(desktop, page_file, picture)
