"""The rules by which GitLab jobs run in pipelines."""

import re
from typing import Any

import pytest
import yaml

from tests.ci.runner import ROOT

JOBS = yaml.safe_load((ROOT / "ci" / "gitlab" / "kdeclare.gitlab-ci.yml").read_text())
OURS, FORK = "7", "8"


def evaluate_rule(expression: str, variables: dict[str, str]) -> bool:
    """Evaluate a rule's ``if``, as far as these rules use it: comparisons joined by ``&&``."""
    return all(_evaluate_comparison(part.strip(), variables) for part in expression.split("&&"))


def _evaluate_comparison(comparison: str, variables: dict[str, str]) -> bool:
    found = re.fullmatch(r'(\$\w+) (==|!=) (\$\w+|"[^"]*")', comparison)
    assert found, f"an expression that this test does not know: {comparison}"
    left, right = (_evaluate_value(found[n], variables) for n in (1, 3))
    return (left == right) == (found[2] == "==")


def _evaluate_value(text: str, variables: dict[str, str]) -> str | None:
    return variables.get(text[1:]) if text.startswith("$") else text[1:-1]


def find_jobs(variables: dict[str, str]) -> set[str]:
    """Return the jobs of a pipeline with these variables, regardless of changed files."""
    jobs: dict[str, Any] = {name: job for name, job in JOBS.items() if "rules" in job}
    return {
        name
        for name, job in jobs.items()
        if any(evaluate_rule(rule["if"], variables) for rule in job["rules"])
    }


def build_merge_request(pipeline_of: str, source: str) -> dict[str, str]:
    """Return the variables of a merge request from a branch of ``source``."""
    return {
        "CI_PIPELINE_SOURCE": "merge_request_event",
        "CI_PROJECT_ID": pipeline_of,
        "CI_MERGE_REQUEST_PROJECT_ID": OURS,
        "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": source,
    }


PIPELINES = {
    "our own branch": (build_merge_request(OURS, OURS), "kdeclare-plan"),
    "a fork's branch, run by us": (build_merge_request(OURS, FORK), "kdeclare-validate"),
    "a fork's branch, run by the fork": (build_merge_request(FORK, FORK), "kdeclare-validate"),
    "merged": (
        {"CI_PIPELINE_SOURCE": "push", "CI_COMMIT_BRANCH": "main", "CI_DEFAULT_BRANCH": "main"},
        "kdeclare-apply",
    ),
    "every night": ({"CI_PIPELINE_SOURCE": "schedule"}, "kdeclare-audit"),
}


@pytest.mark.parametrize(("variables", "job"), PIPELINES.values(), ids=PIPELINES.keys())
def test_pipeline_rules_select_one_job(variables: dict[str, str], job: str) -> None:
    assert find_jobs(variables) == {job}


def test_pipeline_of_other_branch_applies_nothing() -> None:
    pushed = {"CI_PIPELINE_SOURCE": "push", "CI_COMMIT_BRANCH": "topics", "CI_DEFAULT_BRANCH": "main"}
    assert find_jobs(pushed) == set()
