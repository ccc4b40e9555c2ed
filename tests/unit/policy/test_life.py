"""The life cycle of a policy (KIP-201): constructed without arguments, configured, evaluated, closed."""

from pathlib import Path

import pytest

from kdeclare.app.authoring.validate import validate

PROJECT = """\
apiVersion: kdeclare/v1
kind: Project
metadata: {name: p}
spec:
  policies: [{name: mine, class: 'rules_of_mine:Mine', config: {file: FILE, max: 3}}]
"""
TOPICS = """\
{apiVersion: kdeclare/v1, kind: Topic, metadata: {name: a}, spec: {partitions: 1}}
---
{apiVersion: kdeclare/v1, kind: Topic, metadata: {name: b}, spec: {partitions: 9}}
"""
CLASS = """
from kdeclare.policy import PolicyViolation, TopicActionsPolicy


class Mine(TopicActionsPolicy):
    def configure(self, configs):
        self.file, self.max = configs["file"], configs["max"]
        self.tell("configured")

    def validate(self, request):
        partitions = request.post_request_state.num_partitions
        self.tell(f"asked about {request.topic}")
        if partitions > self.max:
            raise PolicyViolation(f"{partitions} are more than {self.max}.")

    def close(self):
        self.tell("closed")

    def tell(self, what):
        with open(self.file, "a") as file:
            print(what, file=file)
"""


@pytest.mark.parametrize("broken", [False, True])
def test_policy_is_closed_after_success_and_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    told = tmp_path / "told"
    Path("manifests").mkdir()
    Path("kdeclare.yaml").write_text(PROJECT.replace("FILE", str(told)))
    Path("rules_of_mine.py").write_text(CLASS)
    Path("manifests/topics.yaml").write_text(TOPICS + ("---\n{kind: Policy}\n" if broken else ""))
    view = validate(None, None, (), {})
    said = [d.detail for d in view.diagnostics if d.resource == "Topic/b"]
    assert said == [
        "Topic/b, policy 'mine': 9 are more than 3. If an existing resource already violates the policy, the "
        "policy applies only when the resource is changed."
    ]
    assert told.read_text().split("\n")[:-1] == ["configured", "asked about a", "asked about b", "closed"]
