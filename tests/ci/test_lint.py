"""The published CI files pass their linters."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from kdeclare.cli.main import main
from tests.ci.runner import ROOT, STEPS

pytestmark = pytest.mark.slow

PROGRAMS = Path(sys.executable).parent
SCRIPTS = sorted(STEPS.rglob("*.sh"))
WORKFLOWS = sorted((ROOT / "ci" / "github").glob("*.yml"))


def run_linter(*command: str | Path) -> str:
    """Return the complaints of a linter; empty if there are none."""
    program, *arguments = map(str, command)
    ran = subprocess.run(
        [str(PROGRAMS / program), *arguments], capture_output=True, text=True, cwd=ROOT, check=False
    )
    return "" if ran.returncode == 0 else ran.stdout + ran.stderr


def test_scripts_pass_shellcheck() -> None:
    assert len(SCRIPTS) > 10
    assert run_linter("shellcheck", "--external-sources", "--source-path=SCRIPTDIR", *SCRIPTS) == ""


def test_steps_import_only_the_standard_library(tmp_path: Path) -> None:
    """A module on ``PYTHONPATH`` with the name of one from the standard library is not imported."""
    (tmp_path / "json.py").write_text("raise SystemExit('this module was imported')")
    head = {"sha": "abc", "ref": "topics"}
    pulls = json.dumps([{"merged_at": "today", "base": {"ref": "main"}, "head": head, "number": 7}])
    ran = subprocess.run(
        ["bash", "-c", f". {STEPS}/settings.sh; pick '{pulls}' github-pull main"],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, "7\nabc\ntopics\n"), ran.stderr


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(STEPS)))
def test_scripts_stop_at_first_failure(script: Path) -> None:
    first, *rest = script.read_text().splitlines()
    if first == "#!/usr/bin/env bash":
        assert script.stat().st_mode & 0o111
        assert "set -euo pipefail" in rest
    else:
        assert first.startswith("# shellcheck shell=bash"), "it is sourced"
        assert not script.stat().st_mode & 0o111


SCHEMAS = {
    "github-workflows": WORKFLOWS,
    "github-actions": [ROOT / "action.yml"],
    "gitlab-ci": sorted((ROOT / "ci" / "gitlab").glob("*.yml")),
    "azure-pipelines": sorted((ROOT / "ci" / "azure").glob("*.yml")),
    "renovate": [ROOT / "ci" / "renovate" / "renovate.json"],
}


@pytest.mark.parametrize("schema", SCHEMAS)
def test_workflows_match_published_schemas(schema: str) -> None:
    options = ["--builtin-schema", f"vendor.{schema}"]
    if schema in ("gitlab-ci", "azure-pipelines"):
        options += ["--data-transform", schema]
    if schema == "azure-pipelines":  # patterns of the schema are not valid in the mode for Unicode
        options += ["--regex-variant", "nonunicode"]
    assert SCHEMAS[schema]
    assert run_linter("check-jsonschema", *options, *SCHEMAS[schema]) == ""


def test_workflows_pass_zizmor() -> None:
    how = ("--quiet", "--offline", "--no-progress", "--pedantic", "--config", "ci/zizmor.yml")
    assert run_linter("zizmor", *how, "action.yml", *WORKFLOWS) == ""


def test_action_expands_no_expressions_in_scripts() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    runs = [step["run"] for step in action["runs"]["steps"] if "run" in step]
    assert runs
    assert not any("${{" in run for run in runs)


def test_referenced_scripts_exist() -> None:
    recipes = (*SCHEMAS["gitlab-ci"], *SCHEMAS["azure-pipelines"], *(ROOT / "ci" / "jenkins").iterdir())
    texts = [path.read_text().replace("$STEPS/", "ci/steps/") for path in (ROOT / "action.yml", *recipes)]
    named = {name for text in texts for name in re.findall(r"ci/steps/([\w/-]+\.sh)", text)}
    assert {str(path.relative_to(STEPS)) for path in SCRIPTS} >= named
    assert len(named) > 5


def test_workflows_pass_only_inputs_of_the_action() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    for workflow in WORKFLOWS:
        jobs = yaml.safe_load(workflow.read_text())["jobs"].values()
        steps = [step for job in jobs for step in job["steps"] if step["uses"].startswith("kdeclare/")]
        assert steps
        for step in steps:
            assert step["with"].keys() <= action["inputs"].keys()
            assert step["with"]["command"] in action["inputs"]["command"]["description"]


def test_action_inputs_are_all_used() -> None:
    text = (ROOT / "action.yml").read_text()
    inputs = yaml.safe_load(text)["inputs"]
    assert [name for name in inputs if f"inputs.{name} " not in text] == []


def test_repeated_job_overwrites_its_artifacts() -> None:
    steps = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
    kept = [step["with"] for step in steps if "upload-artifact" in step.get("uses", "")]
    assert len(kept) == 1
    assert all(given["overwrite"] for given in kept)


def test_sarif_upload_has_the_permissions_it_needs() -> None:
    """In private repositories, the upload fails without ``actions: read`` and without code scanning."""
    for workflow in WORKFLOWS:
        for job in yaml.safe_load(workflow.read_text())["jobs"].values():
            told = any(step.get("with", {}).get("sarif") == "true" for step in job["steps"])
            assert told == ("security-events" in job["permissions"])
            assert "actions" in job["permissions"] or not told


def test_pre_commit_hook_validates_a_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [hook] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert hook.keys() >= {"id", "name", "entry", "language"}
    program, *arguments = shlex.split(hook["entry"])
    assert program == "kdeclare"
    project = {"apiVersion": "kdeclare/v1", "kind": "Project", "metadata": {"name": "shop"}, "spec": {}}
    (tmp_path / "kdeclare.yaml").write_text(json.dumps(project))
    (tmp_path / "manifests").mkdir()
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 0
    (tmp_path / "manifests" / "orders.yaml").write_text("kind: Topic\n")
    assert main(arguments) == 1
    assert "manifests/orders.yaml" in capsys.readouterr().out


def test_guide_to_other_systems_links_to_all_recipes() -> None:
    guide = (ROOT / "docs" / "howto" / "run-in-other-ci.md").read_text()
    folders = [ROOT / "ci" / name for name in ("argo", "azure", "jenkins", "renovate")]
    recipes = [path.relative_to(ROOT) for folder in folders for path in folder.iterdir()]
    assert len(recipes) == 6
    assert [path for path in recipes if f"(../../{path.as_posix()})" not in guide] == []


def test_guide_links_to_existing_files() -> None:
    guide = ROOT / "docs" / "howto" / "run-in-ci.md"
    named = set(re.findall(r"\]\(([^)#]+)\)", guide.read_text()))
    assert len(named) > 6
    assert [name for name in named if not (guide.parent / name).exists()] == []
    assert {str(path.relative_to(ROOT)) for path in WORKFLOWS} <= {
        name.removeprefix("../../") for name in named
    }
