"""The scripts of the pipelines for Jenkins, with a stub of GitHub and an in-memory cluster."""

import re
from pathlib import Path

import pytest

from tests.ci.memory_kdeclare import load_cluster
from tests.ci.pull_request import open_pull_request
from tests.ci.recipes import (
    JENKINS,
    commit_checkout,
    link_source,
    read_jenkins_environment,
    read_jenkins_script,
    run_shell,
)
from tests.ci.runner import Ran, Runner
from tests.git_remotes import run_git

pytestmark = pytest.mark.slow

PLAN, APPLY = "plan.Jenkinsfile", "apply.Jenkinsfile"


@pytest.fixture
def jenkins(runner: Runner) -> Runner:
    """Provide an agent with pull request 12, which declares a topic."""
    open_pull_request(runner)
    link_source(runner.checkout / ".kdeclare-source")
    properties = runner.folder / "client.properties"
    properties.write_text("security.protocol=PLAINTEXT\n")
    runner.environ |= {"KDECLARE_CLIENT_PROPERTIES_FILE": str(properties)}
    runner.topic("orders")
    commit_checkout(runner)
    run_git(runner.checkout, "push", "--quiet", str(runner.remote), "HEAD:main")
    return runner


def run_stage(jenkins: Runner, file: str, stage: str, **more: str) -> Ran:
    """Run the script of a stage with ``sh``, as Jenkins does."""
    environ = read_jenkins_environment(file)
    own = {"KDECLARE_ENV": "lab", "KDECLARE_STATE_REMOTE": str(jenkins.remote)}
    if file == PLAN:
        own |= {"KDECLARE_PULL": "12", "KDECLARE_BASE": "main"}
        own |= {"KDECLARE_COMMENT_AUTHOR": "github-actions[bot]"}
    return run_shell(jenkins, ("sh", "-xe", "-c"), read_jenkins_script(file, stage), environ | own | more)


def list_topics(jenkins: Runner) -> set[str]:
    """Return the topics of the cluster."""
    return set(load_cluster(Path(jenkins.environ["STUB_CLUSTER"])).topics())


def test_plan_is_commented_and_applied_after_the_merge(jenkins: Runner) -> None:
    planned = run_stage(jenkins, PLAN, "Plan")
    assert planned.returncode == 0, planned.stdout + planned.stderr
    (comment,) = jenkins.service_data["comments"]
    assert "1 to create" in comment["body"]
    jenkins.switch_machine()
    commit_checkout(jenkins)
    for expected in (0, 4):
        applied = run_stage(jenkins, APPLY, "Apply")
        assert applied.returncode == expected, applied.stdout + applied.stderr
        assert list_topics(jenkins) == {"orders"}
    jenkins.switch_machine()
    audited = run_stage(jenkins, APPLY, "Audit")
    assert audited.returncode == 0, audited.stdout + audited.stderr


@pytest.mark.thorough
def test_plan_of_several_pull_requests_are_stored_side_by_side(jenkins: Runner) -> None:
    first = run_git(jenkins.checkout, "rev-parse", "HEAD").strip()
    assert run_stage(jenkins, PLAN, "Plan").returncode == 0
    jenkins.topic("refunds")
    commit_checkout(jenkins)
    assert run_stage(jenkins, PLAN, "Plan").returncode == 0
    files = run_git(jenkins.remote, "ls-tree", "-r", "--name-only", "kdeclare-plans").split()
    assert len(files) == 2
    assert all(re.fullmatch(r"lab/\d{8}T\d{6}Z-[0-9a-f]{40}\.json", file) for file in files)
    run_git(jenkins.checkout, "checkout", "--quiet", first)
    assert run_stage(jenkins, APPLY, "Apply").returncode == 0
    assert list_topics(jenkins) == {"orders"}


def test_oldest_plans_are_removed(jenkins: Runner) -> None:
    clone = jenkins.folder / "plans"
    clone.mkdir()
    run_git(clone, "init", "--quiet", "--initial-branch=kdeclare-plans")
    for folder, count in (("lab", 120), ("prod", 3)):
        (clone / folder).mkdir()
        for number in range(count):
            (clone / folder / f"20260101T000{number:03}Z-{number:040x}.json").write_text("{}")
    run_git(clone, "add", "--all")
    run_git(clone, "commit", "--quiet", "--message=x")
    run_git(clone, "push", "--quiet", str(jenkins.remote), "HEAD")
    assert run_stage(jenkins, PLAN, "Plan").returncode == 0
    files = run_git(jenkins.remote, "ls-tree", "-r", "--name-only", "kdeclare-plans").split()
    lab = [file for file in files if file.startswith("lab/")]
    assert (len(lab), len(files)) == (100, 103)
    tree = run_git(jenkins.checkout, "rev-parse", "HEAD^{tree}").strip()
    assert lab[-1].endswith(f"-{tree}.json")


def test_stored_plan_of_other_changes_is_refused(jenkins: Runner) -> None:
    """Everyone who can push can store a plan under the tree of the merge."""
    jenkins.topic("evil")
    assert run_stage(jenkins, PLAN, "Plan").returncode == 0  # the tree of HEAD does not contain the topic
    jenkins.switch_machine()
    (jenkins.checkout / "manifests" / "evil.yaml").unlink()
    refused = run_stage(jenkins, APPLY, "Apply")
    assert refused.returncode == 4
    assert "The merged manifests no longer produce this plan" in refused.stdout
    assert list_topics(jenkins) == set()


def test_fork_is_validated_without_credentials(jenkins: Runner) -> None:
    text = (JENKINS / PLAN).read_text()
    stage = text[text.index("stage('Validate')") : text.index("stage('Plan')")]
    assert "withCredentials" not in stage
    del jenkins.environ["KDECLARE_CLIENT_PROPERTIES_FILE"]
    validated = run_stage(jenkins, PLAN, "Validate")
    assert validated.returncode == 0, validated.stdout + validated.stderr


def test_drift_fails_the_audit(jenkins: Runner) -> None:
    drifted = run_stage(jenkins, APPLY, "Audit")
    assert drifted.returncode == 1
    assert "1 to create" in drifted.stdout


@pytest.mark.parametrize("forge", ["none", "other"])
def test_plan_without_forge_is_in_the_log(jenkins: Runner, forge: str) -> None:
    planned = run_stage(jenkins, PLAN, "Plan", KDECLARE_FORGE=forge)
    if forge == "none":
        assert (planned.returncode, "1 to create" in planned.stdout) == (0, True)
    else:
        assert (planned.returncode, "'other' is not valid" in planned.stderr) == (64, True)
    assert jenkins.service_data["comments"] == []


@pytest.mark.parametrize("file", [PLAN, APPLY])
def test_braces_and_quotes_of_pipeline_are_balanced(file: str) -> None:
    """Jenkins itself, which could check more, is not installed where these tests run."""
    literal = r"'''.*?'''|\"[^\"\n]*\"|'[^'\n]*'"
    code = re.sub(literal, "", (JENKINS / file).read_text(), flags=re.DOTALL)
    code = re.sub(r"//.*", "", code)
    open_brackets = []
    for character in code:
        if character in "{[(":
            open_brackets.append(character)
        elif character in "}])":
            assert open_brackets.pop() + character in ("{}", "[]", "()")
    assert open_brackets == []
    assert "'" not in code
    directives = set(re.findall(r"^ {4}(\w+) ", code, re.MULTILINE))
    assert directives <= {"agent", "options", "triggers", "environment", "stages"}
