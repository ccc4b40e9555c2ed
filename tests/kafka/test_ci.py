"""From a pull request to the cluster and back, as CI does it, with real brokers behind it."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.ci.pull_request import apply_merge, open_pull_request, plan_pull_request
from tests.ci.runner import Runner
from tests.commands import run_here
from tests.waiting import run_server

if TYPE_CHECKING:
    from kdeclare.sandbox import SandboxStatus

pytestmark = pytest.mark.kafka

TOPIC = "ci.orders"
Typed = Callable[..., str]


@pytest.fixture
def github(tmp_path: Path, sandbox: "SandboxStatus") -> Iterator[Runner]:
    """A runner of GitHub's, in a project whose cluster is the sandbox."""
    with run_server() as kdeclare:
        made = open_pull_request(Runner(tmp_path, kdeclare))
        lab = {"bootstrapServers": sandbox.bootstrap}
        made.write("kdeclare.yaml", "Project", "shop", {"environments": {"lab": lab}})
        yield made


@pytest.fixture
def run_ad_hoc(sandbox: "SandboxStatus", tmp_path: Path) -> Iterator[Typed]:
    """Somebody at a keyboard elsewhere."""

    def typed(*arguments: str) -> str:
        ran = run_here(tmp_path, *arguments, "--bootstrap-server", sandbox.bootstrap)
        assert ran.code == 0, ran
        return ran.out

    yield typed
    typed("topic", "delete", TOPIC, "--if-exists", "--yes")


def test_pull_request_is_applied_unless_its_plan_is_stale(github: Runner, run_ad_hoc: Typed) -> None:
    retention = {"configs": {"retention.ms": 3600000}}
    github.topic(TOPIC, partitions=1, **retention)
    plan_pull_request(github, run=1)
    [comment] = github.service_data["comments"]
    github.topic(TOPIC, partitions=2, **retention)
    plan_pull_request(github, run=2)
    [updated] = github.service_data["comments"]
    assert updated["id"] == comment["id"]
    assert updated["body"] != comment["body"]

    assert apply_merge(github) == 0
    described = run_ad_hoc("topic", "describe", TOPIC, "--format", "json")
    assert json.loads(described)["topics"][0]["partition_count"] == 2

    github.topic(TOPIC, partitions=2, configs={"retention.ms": 7200000})
    plan_pull_request(github, run=3)
    run_ad_hoc("config", "alter", "--topic", TOPIC, "--add-config", "retention.ms=1000", "--yes")
    assert apply_merge(github) == 4
    told = (github.out / "report.md").read_text()
    assert "exit code 4" in told
    assert "1000" in run_ad_hoc("config", "describe", "--topic", TOPIC)

    plan_pull_request(github, run=4)
    assert "7200000" in github.service_data["comments"][0]["body"]
    assert apply_merge(github) == 0
    assert "7200000" in run_ad_hoc("config", "describe", "--topic", TOPIC)
