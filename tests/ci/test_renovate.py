"""The configuration of Renovate finds the versions of kdeclare in the recipes."""

import json
import re
from typing import Any

import pytest

from tests.ci.runner import ROOT

CONFIG: dict[str, Any] = json.loads((ROOT / "ci" / "renovate" / "renovate.json").read_text())
(MANAGER,) = CONFIG["customManagers"]
RECIPES = (
    "ci/azure/azure-pipelines.yml",
    "ci/jenkins/apply.Jenkinsfile",
    "ci/jenkins/plan.Jenkinsfile",
    "ci/gitlab/kdeclare.gitlab-ci.yml",
)


def match_file(path: str) -> bool:
    """Whether Renovate reads a file for this manager. A pattern between slashes is a regular expression."""
    patterns = MANAGER["managerFilePatterns"]
    assert all(pattern[0] == pattern[-1] == "/" for pattern in patterns)
    return any(re.search(pattern[1:-1], path) for pattern in patterns)


@pytest.mark.parametrize("recipe", RECIPES)
def test_version_in_recipe_is_found(recipe: str) -> None:
    assert match_file(recipe)
    (pattern,) = MANAGER["matchStrings"]
    found = re.findall(pattern.replace("(?<", "(?P<"), (ROOT / recipe).read_text())
    assert found == ["v1"]


def test_other_files_are_not_read() -> None:
    assert not any(
        map(match_file, ("kdeclare.yaml", "manifests/orders.yaml", "ci/azure/install-kdeclare.yml"))
    )


def test_all_recipes_are_updated_together() -> None:
    (rule,) = CONFIG["packageRules"]
    assert {MANAGER["depNameTemplate"], MANAGER["packageNameTemplate"]} <= set(rule["matchPackageNames"])
    cron_job = (ROOT / "ci" / "kubernetes" / "kdeclare-audit.yaml").read_text()
    images = re.findall(r"image: (\S+/kdeclare):", cron_job)
    assert images
    assert set(images) <= set(rule["matchPackageNames"])
