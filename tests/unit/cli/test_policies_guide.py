"""docs/policies.md and examples/policies work as shown, and the guide is complete."""

import json
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from kdeclare.engine.planning.prune_denied import evaluate_and_prune
from kdeclare.policy import RequestMetadata, TopicActionsPolicy, rules
from kdeclare.policy.cel.vocabulary import get_vocabulary
from kdeclare.policy.configured_policy import ConfiguredPolicy
from kdeclare.policy.evaluation import ProjectPolicyGate
from kdeclare.policy.testing.case_spec import RequestSpec
from kdeclare.providers.kafka.consumer_group.group import GroupMember
from kdeclare.providers.kafka.ids import TopicPartition
from tests.connections import connections_to
from tests.engine.world import World, desired
from tests.unit.cli.command_line import CommandLine
from tests.unit.policy.conftest import own_modules  # noqa: F401  a fixture

ROOT = Path(__file__).parents[3]
GUIDE = (ROOT / "docs" / "policies.md").read_text()
EXAMPLE = ROOT / "examples" / "policies"

pytestmark = pytest.mark.usefixtures("own_modules")


def find_blocks(language: str) -> list[str]:
    """Return the code blocks of the guide in one language."""
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)


def read_table(head: str) -> list[list[str]]:
    """Return the cells of the table whose head starts with this text."""
    lines = GUIDE.partition(f"\n| {head} |")[2].splitlines()
    rows = [line for line in lines[2:] if line.startswith("|")][: _count_table_lines(lines[2:])]
    return [[cell.strip() for cell in re.split(r"(?<!\|) \| (?!\|)", row.strip("| "))] for row in rows]


def _count_table_lines(lines: list[str]) -> int:
    return next((n for n, line in enumerate(lines) if not line.startswith("|")), len(lines))


def find_names(cell: str) -> list[str]:
    """Return the texts in backquotes."""
    return re.findall(r"`([^`]+)`", cell)


def set_up_guide(kdeclare: CommandLine) -> None:
    """Set up the project of the guide: project file, classes, manifests and cases."""
    for text in find_blocks("yaml"):
        kind, name = (yaml.safe_load(text)[key] for key in ("kind", "metadata"))
        folder = "cases" if kind == "PolicyTest" else "manifests"
        file = "kdeclare.yaml" if kind == "Project" else f"{folder}/{name['name']}.yaml"
        (kdeclare.folder / folder).mkdir(exist_ok=True)
        (kdeclare.folder / file).write_text(text)
    for text in find_blocks("python"):
        named = re.match(r"# (\S+\.py)\n", text)
        assert named
        path = kdeclare.folder / named[1]
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    (kdeclare.folder / "policies" / "teams.json").write_text('{"payments": "active", "search": "closing"}')


def test_guide_project_is_valid_and_its_cases_pass(kdeclare: CommandLine) -> None:
    set_up_guide(kdeclare)
    ran = kdeclare("validate")
    assert (ran.code, ran.out) == (0, "Valid: 4 resources in 4 files.\n")
    ran = kdeclare("policy", "test", "cases")
    count = GUIDE.count(
        "    - name: ", GUIDE.index("kind: PolicyTest"), GUIDE.index("kdeclare policy test tests")
    )
    assert (ran.code, ran.out, ran.err) == (0, f"{count} cases: {count} passed.\n", "")


def test_guide_policy_class_lets_closing_team_keep_topics(kdeclare: CommandLine) -> None:
    """In addition to its case: a closing team can keep its topics."""
    set_up_guide(kdeclare)
    request = {"topic": "search.queries", "labels": {"team": "search"}, "post": {"partitions": 1}}
    created = {"name": "new", "request": {"action": "CREATE", **request}, "expect": "deny"}
    modified = {"name": "old", "request": {"action": "MODIFY", "pre": {"partitions": 2}, **request}}
    found = [created, modified | {"expect": "allow"}]
    kdeclare.write("cases.yaml", "PolicyTest", "owner", cases=[case | {"policy": "owner"} for case in found])
    assert kdeclare("policy", "test", "cases.yaml").code == 0


def test_guide_rule_about_changes_ignores_old_topics(kdeclare: CommandLine) -> None:
    kdeclare.topic("old", configs={"retention.ms": 5})
    assert kdeclare("apply", "--yes").code == 0
    set_up_guide(kdeclare)
    kdeclare.write("kdeclare.yaml", "Project", "shop", environments={"lab": {"bootstrapServers": "lab:9092"}})
    kdeclare.topic("old", configs={"retention.ms": 5, "segment.ms": 5})
    assert kdeclare("plan").code == 0
    kdeclare.topic("old", configs={"retention.ms": 6})
    assert "Keep the records for a month or forever." in kdeclare("plan").out


def test_guide_verdict_matches_output(kdeclare: CommandLine) -> None:
    shown = GUIDE.partition("declared:\n")[2].partition("\n- **denied**")[0]
    set_up_guide(kdeclare)
    project = yaml.safe_load((kdeclare.folder / "kdeclare.yaml").read_text())
    environments = {"production": {"bootstrapServers": "lab:9092"}}
    kdeclare.write("kdeclare.yaml", "Project", "payments", environments=environments, **project["spec"])
    labels = {"team": "payments"}
    document = {
        "apiVersion": "kdeclare/v1",
        "kind": "Topic",
        "metadata": {"name": "payments.orders", "labels": labels},
        "spec": {"partitions": 60, "replicationFactor": 3},
    }
    (kdeclare.folder / "manifests" / "payments.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    out = kdeclare("plan").out.replace("lab:9092", "broker:9092")
    assert shown.strip()
    assert shown.replace("\n    ", "\n").strip() in out


def test_guide_table_lists_every_builtin_rule() -> None:
    found = {find_names(row[0])[0]: find_names(row[1]) for row in read_table("class")}
    models: dict[str, type[BaseModel]] = {name: getattr(rules, name).settings_model for name in rules.__all__}
    assert found == {
        name: [field.alias or key for key, field in model.model_fields.items()]
        for name, model in models.items()
    }


def test_guide_table_settings_are_accepted() -> None:
    for row in read_table("class"):
        (name,), settings = find_names(row[0]), find_names(row[1])
        for text in find_names(row[2]):
            if text.startswith("{"):
                getattr(rules, name)().configure({settings[0]: yaml.safe_load(text)})


def test_guide_table_lists_every_rule_variable() -> None:
    found = [name for row in read_table("variable") for name in find_names(row[0])]
    assert sorted(found) == sorted(get_vocabulary("Topic").all_variables)


def test_guide_names_every_request_field() -> None:
    sentence = GUIDE.partition("can have the fields ")[2].partition(". ")[0]
    assert {name for name in find_names(sentence) if name.isidentifier()} == set(RequestSpec.model_fields)


@pytest.mark.parametrize("row", read_table("rule"), ids=lambda row: find_names(row[0])[0])
def test_guide_table_of_rule_errors_matches_output(kdeclare: CommandLine, row: list[str]) -> None:
    kdeclare.topic("orders", partitions=2, replicationFactor=1, configs={"retention.ms": 5})
    rule = {"rule": find_names(row[0])[0], "actions": ["CREATE", "MODIFY"]}
    kdeclare.write("manifests/wrong.yaml", "Policy", "wrong", **rule)
    ran = kdeclare("validate")
    assert ran.code != 0
    assert row[1] in " ".join(ran.out.split())


@pytest.mark.parametrize(
    ("rule", "allowed"),
    [
        ("'retention.ms' in changed", False),
        ("'configs.retention.ms' in changed", True),
        ("action == 'create'", False),
        ("topic.matches('rder')", True),
        ("topic.matches('^rder$')", False),
    ],
)
def test_rule_with_silent_mistake_has_stated_result(kdeclare: CommandLine, rule: str, allowed: bool) -> None:
    kdeclare.topic("orders", configs={"retention.ms": 5})
    kdeclare.write("manifests/p.yaml", "Policy", "p", rule=rule)
    assert (kdeclare("plan").code == 0) is allowed


REQUESTS = {
    "topics": "Metadata",
    "moves": "ListPartitionReassignments",
    "configs": "DescribeConfigs",
    "describe": "DescribeCluster",
    "record_counts": "ListOffsets",
    "list_offsets": "ListOffsets",
    "last_writes": "ListOffsets",
    "log_dirs": "DescribeLogDirs",
    "list_groups": "ListGroups",
    "cluster_rights": "DescribeCluster",
    "describe_groups": "DescribeGroups",
    "fetch_offsets": "OffsetFetch",
    "producers": "DescribeProducers",
}


class ReadingPolicy(TopicActionsPolicy):
    """Reads one attribute of a request."""

    def __init__(self, what: str) -> None:
        self._what = what

    def validate(self, request: RequestMetadata) -> None:
        if self._what == "partitions_of":
            request.partitions_of({"team": "blue"})
        elif self._what.startswith("impact."):
            getattr(request.impact, self._what.removeprefix("impact."))
        elif not hasattr(request, self._what):
            getattr(request.pre_request_state, self._what)


def list_costs() -> Iterator[Any]:
    """Yield the attributes that a policy can read, and their requests."""
    for asked, requests in read_table("field that a policy reads"):
        for what in find_names(asked):
            yield pytest.param(what, [] if requests == "none" else requests.split(", "), id=what)


@pytest.mark.parametrize(("what", "requests"), list(list_costs()))
def test_guide_request_costs_match_requests(what: str, requests: list[str]) -> None:
    here = World()
    labels = {"team": "blue"}
    here.apply(*(desired("Topic", name, labels, partitions=1) for name in "ab"))
    here.cluster.produce("a", 1)  # in 1970
    here.cluster.set_members("readers", GroupMember("m", "c", "h", partitions=(TopicPartition("a", 0),)))
    plan = here.plan(*(desired("Topic", name, labels, configs={"retention.ms": 5}) for name in "ab"))
    state = here.store.read()
    assert state is not None
    before = len(here.cluster.calls)
    policies = ProjectPolicyGate((ConfiguredPolicy("asks", ReadingPolicy(what)),))
    evaluate_and_prune(plan, connections_to(here.cluster), policies, state.resources, lambda verdict: None)
    assert [REQUESTS[call.method] for call in here.cluster.calls[before:]] == requests


def test_guide_entry_for_kafka_policies_works(kdeclare: CommandLine) -> None:
    entry = re.search(r"`(\{name: old, .*?\}\})`", GUIDE)
    assert entry
    (kdeclare.folder / "policies").mkdir()
    (kdeclare.folder / "policies" / "old.py").write_text(
        "from kdeclare.policy import CreateTopicPolicy, PolicyViolation\n\n\n"
        "class Old(CreateTopicPolicy):\n"
        "    def validate(self, request):\n"
        "        if (request.num_partitions or 0) > 2:\n"
        "            raise PolicyViolation('too many')\n"
    )
    kdeclare.topic("orders", partitions=2)
    assert kdeclare("apply", "--yes").code == 0
    project = {"environments": {"lab": {"bootstrapServers": "lab:9092"}}}
    kdeclare.write("kdeclare.yaml", "Project", "shop", **project, policies=[yaml.safe_load(entry[1])])
    kdeclare.topic("orders", partitions=3)
    ran = kdeclare("plan")
    assert (ran.code, "denied by policy old: too many" in ran.out, ran.err) == (3, True, "")


def test_example_policies_both_allow_and_deny(
    kdeclare: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = shutil.copytree(EXAMPLE, tmp_path / "example")
    monkeypatch.chdir(project)
    document = json.loads(kdeclare("policy", "test", "tests", "--format", "json").out)
    assert document["failed"] == 0
    seen = defaultdict(set)
    for case in document["cases"]:
        for verdict in case["verdicts"]:
            seen[verdict["policy"]].add(verdict["outcome"] == "allow")
    declared = yaml.safe_load((project / "kdeclare.yaml").read_text())["spec"]["policies"]
    manifests = yaml.safe_load_all((project / "policies" / "rules.yaml").read_text())
    expected = [entry["name"] for entry in declared] + [m["metadata"]["name"] for m in manifests]
    assert seen == {name: {True, False} for name in expected}
