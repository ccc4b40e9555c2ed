"""A pull request and its workflows, on a GitHub runner."""

import shutil
from pathlib import Path
from typing import Any

from tests.ci.runner import Runner

HEAD, MERGED = "a" * 40, "b" * 40


def open_pull_request(runner: Runner) -> Runner:
    """Set up a runner with pull request #12, which adds commit HEAD and is merged as MERGED."""
    runner.environ |= {
        "GITHUB_REPOSITORY": "shop/kafka",
        "GITHUB_OUTPUT": str(runner.folder / "output"),
        "GITHUB_STEP_SUMMARY": str(runner.folder / "summary"),
        "GITHUB_SHA": MERGED,
        "GITHUB_REF_NAME": "main",
        "KDECLARE_ENV": "lab",
        "KDECLARE_REVISION": HEAD,
        "KDECLARE_RUN_URL": "https://github.example/shop/kafka/actions/runs/1",
    }
    merged = {"number": 12, "merged_at": "2026-01-01", "merge_commit_sha": MERGED, "base": {"ref": "main"}}
    runner.update_service(
        comments=[], issues=[], labels=[], runs=[], pulls=[merged | {"head": {"sha": HEAD, "ref": "topics"}}]
    )
    return runner


def plan_pull_request(github: Runner, *, run: int = 1, **facts: Any) -> None:
    """Plan on the pull request, and store the plan as the workflow does."""
    github.run_ok("github/run.sh", KDECLARE_COMMAND="plan", KDECLARE_PULL="12")
    output = read_outputs(github)
    kept = github.service / "artifacts" / str(run) / output["artifact"]
    kept.mkdir(parents=True)
    shutil.copy(github.checkout / output["plan-file"], kept)
    build_plan_run(github, run, **facts)


def build_plan_run(github: Runner, run: int, **facts: Any) -> None:
    """Build a run of the plan workflow."""
    ran = {
        "id": run,
        "run_number": run,
        "path": "kdeclare-plan.yml",
        "head_sha": HEAD,
        "head_branch": "topics",
        "event": "pull_request",
    }
    ran |= {"conclusion": "success", "head_repository": {"full_name": "shop/kafka"}}
    github.update_service(runs=[*github.service_data["runs"], ran | facts])


def read_outputs(github: Runner) -> dict[str, str]:
    """Return the outputs of the steps."""
    lines = Path(github.environ["GITHUB_OUTPUT"]).read_text().splitlines()
    return {key: value for key, _, value in (line.partition("=") for line in lines)}


def apply_merge(github: Runner, **more: str) -> int:
    """Run the apply workflow on another machine; return its result."""
    github.switch_machine()
    ran = github.run("github/run.sh", KDECLARE_COMMAND="apply", **more)
    return ran.returncode or github.exit_code
