"""Policies that cannot be loaded or evaluated are reported with their positions, and block everything."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.unit.cli.command_line import CommandLine

BOUNDS = "kdeclare.policy.rules:PartitionBounds"

CLASS = """\
from collections.abc import Mapping
from typing import Any

from kdeclare.policy import RequestMetadata, TopicActionsPolicy


class Mine(TopicActionsPolicy):
    def configure(self, configs: Mapping[str, Any]) -> None:
        {configure}

    def validate(self, request: RequestMetadata) -> None:
        {validate}
"""


def write_module(configure: str = "pass", validate: str = "pass") -> dict[str, str]:
    """A module with a custom policy class."""
    return {"mine.py": CLASS.format(configure=configure, validate=validate)}


TEN = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"
ENDLESS = f"{TEN}.all(a, " * 6 + "a >= 0" + ")" * 6


PROJECT = """\
apiVersion: kdeclare/v1
kind: Project
metadata: {{name: shop}}
spec:
  environments: {{lab: {{bootstrapServers: 'lab:9092'}}}}
  policies:
    - name: mine
      class: {class_name}
      config: {config}
"""
RULE = """\
apiVersion: kdeclare/v1
kind: Policy
metadata: {{name: rule}}
spec:
  rule: {rule}
"""


@dataclass(frozen=True)
class BrokenPolicy:
    """A policy, given by its class or its rule, with the expected result.

    said: the position, then the words.
    """

    code: int
    said: tuple[str, ...]
    class_name: str = "mine:Mine"
    config: Mapping[str, Any] = field(default_factory=dict)
    rule: str | None = None
    files: Mapping[str, str] = field(default_factory=write_module)

    def put_into(self, kdeclare: CommandLine) -> None:
        """Add the policy to the project."""
        for name, text in self.files.items():
            (kdeclare.folder / name).write_text(text)
        if self.rule is None:
            project = PROJECT.format(class_name=self.class_name, config=json.dumps(self.config))
            (kdeclare.folder / "kdeclare.yaml").write_text(project)
        else:
            rule = RULE.format(rule=json.dumps(self.rule))
            (kdeclare.folder / "manifests" / "rule.yaml").write_text(rule)


AT_NAME, AT_CLASS, AT_CONFIG = (f"kdeclare.yaml:{place}" for place in ("7:13", "8:14", "9:15"))
AT_RULE = "manifests/rule.yaml:3:18"

UNUSABLE = {
    "no-module": BrokenPolicy(1, (AT_CLASS, "The module 'nowhere' does not exist."), "nowhere:Mine"),
    "no-class": BrokenPolicy(
        1, (AT_CLASS, "'mine' has no class 'Mina'.", "Did you mean 'Mine'?"), "mine:Mina"
    ),
    "no-policy": BrokenPolicy(1, (AT_CLASS, "'mine:Any'"), "mine:Any"),
    "import-error": BrokenPolicy(
        1, (AT_CLASS, "(mine.py:1)", "No module named 'nowhere'"), files={"mine.py": "import nowhere\n"}
    ),
    "unreadable": BrokenPolicy(
        1, (AT_CLASS, "SyntaxError", "(mine.py:2)"), files={"mine.py": "x = 1\nclass (\n"}
    ),
    "unknown-setting": BrokenPolicy(
        1,
        ("kdeclare.yaml:9:16", "There is no field 'maximum'", "Did you mean 'max'?"),
        BOUNDS,
        {"maximum": 3},
    ),
    "wrong-setting": BrokenPolicy(
        1, ("kdeclare.yaml:9:23", "'config.max' takes a whole number"), BOUNDS, {"max": "many"}
    ),
    "kafkas-own": BrokenPolicy(
        1,
        (
            AT_CLASS,
            "'kafka' ",
            "a module with the same name",
            "Rename the module in the folder of the project file.",
        ),
        "kafka:Mine",
        files={"kafka.py": "x = 1\n"},
    ),
    "an-int": BrokenPolicy(
        1,
        (AT_CLASS, "which is not a policy"),
        files={"mine.py": f"{write_module()['mine.py']}\n    def __new__(cls):\n        return 42\n"},
    ),
    "base-exception": BrokenPolicy(
        1,
        (AT_CONFIG, "does not accept its settings: GeneratorExit (mine.py:9)"),
        files=write_module(configure="raise GeneratorExit"),
    ),
    "settings-refused": BrokenPolicy(
        1,
        (AT_CONFIG, "does not accept its settings", "ValueError: 7 is unlucky", "(mine.py:9)"),
        files=write_module(configure='raise ValueError("7 is unlucky")'),
    ),
    "rule-syntax": BrokenPolicy(
        1, ("manifests/rule.yaml:5:27", "'>' is not expected here."), rule="post.partitions >> 3"
    ),
    "rule-types": BrokenPolicy(
        1,
        ("manifests/rule.yaml:5:26", "'==' does not accept a whole number and a string."),
        rule="post.partitions == '3'",
    ),
    "rule-misspelt": BrokenPolicy(
        1,
        ("manifests/rule.yaml:5:15", "partitons", "Did you mean 'partitions'?"),
        rule="post.partitons == 3",
    ),
    "rule-no-verdict": BrokenPolicy(
        1, ("manifests/rule.yaml:5:9", "A rule must return true or false"), rule="topic + 'x'"
    ),
}

FAILING = {
    "raises": BrokenPolicy(
        3,
        (AT_NAME, "ValueError: odd (mine.py:12)", "failed, so the request is denied"),
        files=write_module(validate='raise ValueError("odd")'),
    ),
    "gives-up": BrokenPolicy(
        3,
        (AT_NAME, "SystemExit: 0 (mine.py:12)"),
        files=write_module(validate="raise SystemExit(0)"),
    ),
    "rule-endless": BrokenPolicy(3, (AT_RULE, "the rule takes too many steps"), rule=ENDLESS),
    "rule-fails": BrokenPolicy(
        3,
        (AT_RULE, "'team' is not in labels", "'team' in labels && …"),
        rule="labels['team'] != 'blue'",
    ),
}


BROKEN = UNUSABLE | FAILING


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN)
def test_broken_policy_blocks_every_command(kdeclare: CommandLine, name: str) -> None:
    broken = BROKEN[name]
    kdeclare.topic("orders", partitions=2)
    assert kdeclare("plan", "--out", "it.plan").code == 0
    broken.put_into(kdeclare)
    for line in ("validate", "plan", "apply --yes", "apply it.plan --yes", "apply --yes --no-preflight"):
        ran = kdeclare(*line.split())
        said = ran.out + ran.err
        assert ran.code == broken.code, (line, said)
        for part in broken.said:
            assert part in said, (line, said)
        assert "Traceback" not in said
    assert kdeclare.topics == set()
    assert kdeclare("history").out == "No runs yet.\n"


def test_broken_policy_blocks_rollback(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders", partitions=2)
    assert kdeclare("apply", "--yes").code == 0
    for broken in (UNUSABLE["import-error"], FAILING["rule-endless"]):
        broken.put_into(kdeclare)
        ran = kdeclare("rollback", "--yes")
        assert ran.code == broken.code
        assert broken.said[0] in ran.out + ran.err
    assert kdeclare.topics == {"orders"}


def test_validate_warns_if_only_creation_would_be_denied(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders", partitions=2)
    BrokenPolicy(0, (), BOUNDS, {"max": 1}).put_into(kdeclare)
    ran = kdeclare("validate")
    assert ran.code == 0
    assert "warning: Policy violation if the resource is created" in ran.out
    assert "Run kdeclare plan to see" in ran.out


def test_verbose_shows_traceback_of_policy(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders", partitions=2)
    FAILING["raises"].put_into(kdeclare)
    said = kdeclare("plan", "-v").err
    assert "Traceback" in said
    assert 'raise ValueError("odd")' in said


IMPATIENT = """\
import os
import sys

from kdeclare.providers.kafka import connection
from kdeclare.cli.main import main
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.policy import isolation

isolation.LIMIT_S = 0.3
cluster = MemoryCluster()
connection.connect_cluster = lambda *_: cluster
code = main(sys.argv[1:])
assert not cluster.topics()
sys.stdout.flush()
os._exit(code)  # as the command does: a thread that prints for ever must not hold it up
"""
"""Run the command on an empty cluster, with a shorter timeout for policies than the usual 30 s."""


@pytest.mark.slow
def test_endless_policy_evaluation_is_stopped(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders", partitions=2)
    assert kdeclare("plan", "--out", "it.plan").code == 0
    BrokenPolicy(3, (), files=write_module(validate="while True: pass")).put_into(kdeclare)
    for line in ("validate", "plan", "apply it.plan --yes"):
        command = [sys.executable, "-c", IMPATIENT, *line.split()]
        ran = subprocess.run(command, cwd=kdeclare.folder, capture_output=True, text=True, timeout=300)
        assert ran.returncode == 3, ran
        assert f"Policy 'mine' ({AT_NAME}) timed out after 0.3 s." in ran.stdout + ran.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "place"),
    [
        ("while True: print('on and on')\n", AT_CLASS),
        (write_module(configure="while True: pass")["mine.py"], AT_CONFIG),
    ],
)
def test_endless_policy_import_is_stopped(kdeclare: CommandLine, module: str, place: str) -> None:
    kdeclare.topic("orders", partitions=2)
    BrokenPolicy(1, (), files={"mine.py": module}).put_into(kdeclare)
    for line in ("validate", "plan"):
        command = [sys.executable, "-c", IMPATIENT, *line.split()]
        ran = subprocess.run(command, cwd=kdeclare.folder, capture_output=True, text=True, timeout=60)
        assert ran.returncode == 1, ran
        assert "it did not finish within 0.3 s." in ran.stdout + ran.stderr
        assert place in ran.stdout + ran.stderr
        assert "on and on" not in ran.stdout


def test_modules_beside_project_do_not_shadow_packages(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders", partitions=2)
    for name in ("kafka", "cel_expr_python", "json", "rich", "google"):
        (kdeclare.folder / f"{name}.py").write_text("raise SystemExit(9)\n")
    BrokenPolicy(0, (), rule="post == null || post.partitions < 3").put_into(kdeclare)
    BrokenPolicy(0, ()).put_into(kdeclare)
    assert kdeclare("plan").code == 0


def test_policy_output_is_not_part_of_json(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders", partitions=2)
    files = {"mine.py": f"print('import')\n{write_module(configure='print(configs)')['mine.py']}"}
    BrokenPolicy(0, (), files=files).put_into(kdeclare)
    ran = kdeclare("plan", "--format", "json")
    assert json.loads(ran.out)["changes"]
    assert "import\n{}\n" in ran.err


def test_invalid_manifests_and_policies_are_reported_together(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders", partitions=2)
    UNUSABLE["no-class"].put_into(kdeclare)
    UNUSABLE["rule-syntax"].put_into(kdeclare)
    for line in ("validate", "plan", "apply --yes", "policy check"):
        ran = kdeclare(*line.split())
        assert ran.code == 1
        for part in (*UNUSABLE["no-class"].said, *UNUSABLE["rule-syntax"].said):
            assert part in ran.out + ran.err, line


def test_overlay_without_policies_keeps_project_policies(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders", partitions=2)
    BrokenPolicy(3, (), rule="post == null || post.partitions > 3").put_into(kdeclare)
    project = kdeclare.folder / "kdeclare.yaml"
    project.write_text(
        PROJECT.partition("  policies")[0].format().replace("{bootstrap", "{overlays: [over], bootstrap")
    )
    (kdeclare.folder / "over").mkdir()
    assert kdeclare("plan", "manifests/orders.yaml").code == 3
    (kdeclare.folder / "over" / "x.yaml").symlink_to("../manifests/rule.yaml")
    for line in ("plan", "plan manifests/orders.yaml", "apply --yes", "policy check"):
        ran = kdeclare(*line.split())
        assert "over/x.yaml:3:18" in ran.out + ran.err, line
        assert ran.code == 1
    assert kdeclare.topics == set()
