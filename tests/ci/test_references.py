"""What manifests of a pull request can read from the job that plans them."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.ci.pull_request import apply_merge, open_pull_request, plan_pull_request
from tests.ci.runner import Runner

pytestmark = pytest.mark.slow

TOKENS = {
    name: f"ghs_secret_{number}"
    for number, name in enumerate(
        (
            "GH_TOKEN",
            "KDECLARE_STATE_TOKEN",
            "KDECLARE_CLIENT_PROPERTIES",
            "CI_JOB_TOKEN",
            "KDECLARE_GITLAB_TOKEN",
        )
    )
}
LAB = {"environments": {"lab": {"bootstrapServers": "lab:9092"}}}


@pytest.fixture
def github(runner: Runner) -> Runner:
    """Provide a runner with a pull request to ``main``, where the project allows TEAM."""
    open_pull_request(runner)
    runner.environ |= {"TEAM": "checkout", "OTHER": "hunter2"}
    put_on_main(runner, {"env": ["TEAM"]})
    return runner


def write_project(runner: Runner, references: dict[str, list[str]] | None) -> None:
    runner.write("kdeclare.yaml", "Project", "shop", LAB | ({"references": references} if references else {}))


def put_on_main(runner: Runner, references: dict[str, list[str]] | None) -> None:
    """Commit the current project file to the base branch."""
    write_project(runner, references)
    clone = runner.folder / "clone"
    git = ["git", "-C", str(clone), "-c", "user.name=x", "-c", "user.email=x@localhost"]
    if not clone.exists():
        subprocess.run(["git", "init", "--quiet", "--initial-branch=main", str(clone)], check=True)
    (clone / "kdeclare.yaml").write_text((runner.checkout / "kdeclare.yaml").read_text())
    for command in (["add", "."], ["commit", "-qm", "x"], ["push", "-qf", str(runner.remote), "HEAD:main"]):
        subprocess.run([*git, *command], check=True)


def plan_topic_with(runner: Runner, reference: str, **more: str) -> str:
    """Plan a topic with a label on a pull request; return all output of the job."""
    document = "apiVersion: kdeclare/v1\nkind: Topic\nmetadata:\n  name: orders\n"
    document += f"  labels:\n    team: '{reference}'\nspec: {{partitions: 1, configs: {{retention.ms: 1}}}}\n"
    (runner.checkout / "manifests" / "orders.yaml").write_text(document)
    runner.update_service(comments=[])
    how = {"KDECLARE_COMMAND": "plan", "KDECLARE_PULL": "12", "KDECLARE_BASE": "main"}
    ran = runner.run("github/run.sh", **how | more)
    kept = [file.read_text() for file in runner.out.rglob("*") if file.is_file()]
    outside = [runner.folder / "output", runner.folder / "summary"]
    kept += [file.read_text() for file in outside if file.exists()]
    return "\n".join((ran.stdout, ran.stderr, runner.requests, json.dumps(runner.service_data), *kept))


@pytest.mark.parametrize("name", TOKENS)
def test_plan_cannot_read_job_tokens(github: Runner, name: str) -> None:
    github.environ |= TOKENS
    put_on_main(github, {"env": ["GH_*", "KDECLARE_*", "CI_*"]})
    told = plan_topic_with(github, f"${{env.{name}}}")
    assert github.exit_code == 1
    assert "credential of the CI job" in told
    assert not any(token in told for token in TOKENS.values())


@pytest.mark.parametrize("name", TOKENS)
def test_kdeclare_environment_has_no_job_tokens(github: Runner, name: str) -> None:
    github.environ |= TOKENS
    told = github.folder / "environ"
    (github.folder / "bin" / "kdeclare").write_text(f"#!/bin/sh\nenv > {told}\nexit 1\n")
    github.run("github/run.sh", KDECLARE_COMMAND="plan", KDECLARE_PULL="12")
    assert TOKENS[name] not in told.read_text()
    assert name not in told.read_text()


@pytest.mark.parametrize("path", ["/proc/self/environ", "secrets/environ", "manifests/../.git/config"])
def test_plan_cannot_read_files_of_the_job(github: Runner, path: str) -> None:
    github.environ |= {"NOTHING": "ghs_secret"}
    put_on_main(github, {"files": ["secrets"]})
    (github.checkout / "secrets").symlink_to("/proc/self")
    told = plan_topic_with(github, f"${{file.{path}}}")
    assert github.exit_code == 1
    assert "reference-not-allowed" in told
    assert "ghs_secret" not in told


def test_reference_allowed_by_base_branch_is_resolved(github: Runner) -> None:
    plan_topic_with(github, "${env.TEAM}")
    assert github.exit_code == 0
    assert "The project file on main" not in github.run("base.sh").stderr


def test_pull_request_cannot_extend_allowed_references(github: Runner) -> None:
    write_project(github, {"env": ["TEAM", "OTHER"]})
    told = plan_topic_with(github, "${env.OTHER}")
    assert github.exit_code == 1
    assert "hunter2" not in told
    [comment] = github.service_data["comments"]
    assert "trusted project file" in comment["body"]
    assert "merge that first" in comment["body"]
    assert "manifests/orders.yaml" in comment["body"]
    put_on_main(github, {"env": ["TEAM", "OTHER"]})
    plan_topic_with(github, "${env.OTHER}")
    assert github.exit_code == 0, "once it is merged"


@pytest.mark.parametrize("base", ["gone", "main"])
def test_reference_without_list_on_base_branch_is_refused(github: Runner, base: str) -> None:
    put_on_main(github, None)
    write_project(github, {"env": ["TEAM"]})
    plan_topic_with(github, "${env.TEAM}", KDECLARE_BASE=base)
    assert github.exit_code == 1


def test_project_path_with_dot_uses_limits_of_base_branch(github: Runner) -> None:
    plan_topic_with(github, "${env.TEAM}", KDECLARE_PROJECT="./kdeclare.yaml")
    assert github.exit_code == 0


def test_apply_without_allowed_references_is_refused(github: Runner) -> None:
    plan_topic_with(github, "plain")
    plan_pull_request(github)
    write_project(github, None)
    manifest = github.checkout / "manifests" / "orders.yaml"
    manifest.write_text(manifest.read_text().replace("plain", "${env.TEAM}"))
    assert apply_merge(github) == 1
    assert "has no 'spec.references'" in (github.out / "report.md").read_text()


def test_validate_of_a_fork_cannot_read_variables(github: Runner) -> None:
    write_project(github, {"env": ["OTHER"]})
    document = "apiVersion: kdeclare/v1\nkind: Topic\nmetadata: {name: '${env.OTHER}'}\nspec: {}\n"
    (github.checkout / "manifests" / "orders.yaml").write_text(document)
    ran = github.run_ok("github/run.sh", KDECLARE_COMMAND="validate", KDECLARE_BASE="main")
    assert github.exit_code == 1
    assert "hunter2" not in ran.stdout + ran.stderr
    assert "Reference is not allowed" in ran.stdout


HOSTILE = "\\n::set-output name=plan-file::/etc/passwd\\n##[add-mask]a\\r\\e[0Ksection_start:1:evil\\r\\e[0K"


def test_log_of_a_fork_contains_no_active_commands(github: Runner) -> None:
    """GitHub executes commands in the log, but not between stop-commands and a secret token."""
    (github.checkout / "manifests" / "orders.yaml").write_text(
        f'apiVersion: kdeclare/v1\nkind: Topic\nmetadata: {{name: "a{HOSTILE}"}}\n'
        f'spec: {{partitions: 1, "b{HOSTILE}": 1, cleanup: "c{HOSTILE}"}}\n'
    )
    (github.checkout / "manifests" / "::add-mask::x.yaml").write_text("::add-mask::secret\n")
    words = set()
    for command in ("validate", "plan", "audit", "apply"):
        how = {"KDECLARE_COMMAND": command, "KDECLARE_PULL": "12", "GITHUB_ACTIONS": "true"}
        ran = github.run("github/run.sh", **how)
        assert ran.stderr == "", "one stream, as there is no order between two"
        first, *lines = ran.stdout.strip().splitlines()
        word = first.removeprefix("::stop-commands::")
        assert lines[-1] == f"::{word}::"
        assert len(word) == 32
        assert ran.stdout.count(word) == 2
        assert not {"\r", "\x1b", "\x9b"} & set(ran.stdout)
        words.add(word)
    assert len(words) == 4, "nobody can know the next"
    assert "set-output" not in (github.folder / "output").read_text()


def test_log_commands_resume_after_failed_step(github: Runner) -> None:
    for step in ("conclude.sh", "github/find-plan.sh"):
        ran = github.run(step, GITHUB_ACTIONS="true", GITHUB_REPOSITORY="shop/other")
        assert ran.returncode != 0
        word = ran.stdout.splitlines()[0].removeprefix("::stop-commands::")
        assert ran.stdout.rstrip().endswith(f"::{word}::")


def test_step_output_with_line_break_is_refused(github: Runner) -> None:
    github.topic("orders")
    github.run_ok("state.sh", "load")
    hostile = f"{github.folder}/x\nartifact=evil"
    ran = github.run("plan.sh", KDECLARE_PLAN_FILE=hostile)
    assert ran.returncode == 64
    assert "artifact=evil" not in Path(github.environ["GITHUB_OUTPUT"]).read_text()


def test_apply_shows_nothing_of_unreviewed_plan(github: Runner) -> None:
    """A user who can push a branch can store any plan under the name of the reviewed one."""
    github.topic("evil", configs={"retention.ms": 4711})
    plan_pull_request(github)
    (github.checkout / "manifests" / "evil.yaml").unlink()
    github.switch_machine()
    Path(github.environ["GITHUB_STEP_SUMMARY"]).unlink()
    ran = github.run_ok("github/run.sh", KDECLARE_COMMAND="apply")
    shown = ran.stdout + ran.stderr + Path(github.environ["GITHUB_STEP_SUMMARY"]).read_text()
    assert github.exit_code == 4
    assert "4711" not in shown
