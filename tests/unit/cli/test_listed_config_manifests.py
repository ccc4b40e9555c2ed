"""Invalid GroupConfig and ClientMetrics manifests: errors offline, with position (P-GRP-02, P-CM-02)."""

import re
from pathlib import Path

import pytest

from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.live.faults import Fault
from tests.unit.cli.command_line import CommandLine

GROUP = """apiVersion: kdeclare/v1
kind: GroupConfig
metadata: {name: g}
spec:
  configs:
    %s
"""
METRICS = """apiVersion: kdeclare/v1
kind: ClientMetrics
metadata: {name: m}
spec:
  %s
"""
BAD = {
    "misspelt key": (
        GROUP,
        "consumer.session.timeoutms: 1",
        "6:5",
        "Did you mean 'consumer.session.timeout.ms'?",
    ),
    "type": (GROUP, "consumer.session.timeout.ms: soon", "6:5", "takes an integer, not 'soon'."),
    "unit": (GROUP, "consumer.session.timeout.ms: 1m", "6:5", "one of the units ms, s, min, h, d, w"),
    "append": (GROUP, "share.auto.offset.reset: {append: [latest]}", "6:5", "has type STRING, not LIST"),
    "topic key": (GROUP, "retention.ms: 1", "6:5", "is not a Kafka group config"),
    "metrics append": (METRICS, "metrics: {append: [org.x.]}", "5:12", "takes a list"),
    "no metrics": (METRICS, "metrics: []", "5:12", "needs at least one element"),
    "comma": (METRICS, "metrics: ['a.,b.']", "5:13", "is empty, contains a comma"),
    "blank": (METRICS, "metrics: [' a.']", "5:13", "starts or ends with a space"),
    "all and more": (
        METRICS,
        "metrics: ['*', a.]",
        "5:12",
        "contains other prefixes in addition to '*', which selects all metrics",
    ),
    "attribute": (METRICS, "match: {client.id: a}", "5:11", "Did you mean 'client_id'?"),
    "pattern with comma": (METRICS, "match: {client_id: 'a{1,2}'}", "5:22", "contains ',' or '='"),
    "pattern with sign": (METRICS, "match: {client_id: 'a=b'}", "5:22", "contains ',' or '='"),
    "empty pattern": (METRICS, "match: {client_id: ''}", "5:22", "is empty"),
    "interval without unit": (
        METRICS,
        "interval: 30",
        "5:13",
        "takes a duration between 100ms and 1h, not '30'",
    ),
    "short interval": (METRICS, "interval: 99ms", "5:13", "takes a duration between 100ms and 1h"),
    "long interval": (METRICS, "interval: 2h", "5:13", "takes a duration between 100ms and 1h"),
}


@pytest.mark.parametrize("wrong", BAD)
def test_validate_rejects_invalid_configs_with_position(kdeclare: CommandLine, wrong: str) -> None:
    document, line, place, message = BAD[wrong]
    path = kdeclare.folder / "manifests" / "x.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document % line)
    ran = kdeclare("validate")
    output = " ".join((ran.out + ran.err).split())
    assert ran.code == ExitCode.ERROR
    assert f"manifests/x.yaml:{place}" in output
    assert message in output
    assert kdeclare.cluster.calls == []


@pytest.mark.parametrize("is_visible", [True, False])
def test_plan_looks_up_unknown_key_of_declared_group(kdeclare: CommandLine, is_visible: bool) -> None:
    """A principal may have rights on this group only. If it has none, the brokers decide in the preflight."""
    path = kdeclare.folder / "manifests" / "x.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(GROUP % "consumer.new.key: 1")
    for name in ("kdeclare", *(() if is_visible else ("g",))):
        refused = Fault("GROUP_AUTHORIZATION_FAILED", "")
        kdeclare.cluster.faults.fail(refused, method="configs", item=f"GROUP/{name}", nth=None)
    ran = kdeclare("plan")
    output = " ".join((ran.out + ran.err).split())
    assert ran.code == (ExitCode.ERROR if is_visible else ExitCode.DENIED)
    assert "Unknown config key" in output
    assert ("Configs not visible" in output) is not is_visible


def test_manifests_of_the_page_are_valid_and_its_policy_works(kdeclare: CommandLine) -> None:
    page = (Path(__file__).parents[3] / "docs" / "groups-and-metrics.md").read_text()
    path = kdeclare.folder / "manifests" / "page.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "---\n".join(re.findall(r"```yaml\n(.*?)```", page, re.DOTALL))
    path.write_text(text)
    assert kdeclare("validate").out.startswith("Valid")
    assert kdeclare("apply", "--yes").code == 0
    path.write_text(text.replace("60000\n", "60001\n", 1))
    ran = kdeclare("plan")
    assert ran.code == ExitCode.DENIED
    assert "Brokers must notice within a minute that a member failed." in ran.out
    path.write_text("---\n".join(part for part in text.split("---\n") if "kind: GroupConfig\n" not in part))
    assert kdeclare("apply", "--yes", "--allow-deletes").code == 0
