"""The steps of the GitLab jobs, with a stub of GitLab and an in-memory cluster."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.ci.curl_stub import TOKEN
from tests.ci.memory_kdeclare import load_cluster
from tests.ci.runner import Runner

pytestmark = pytest.mark.slow

HEAD, MERGED = "a" * 40, "b" * 40
PIPELINE = {"id": 50, "status": "success", "ref": "refs/merge-requests/4/head"}


@pytest.fixture
def gitlab(runner: Runner) -> Runner:
    """Provide a GitLab runner, in a project with merge request !4 and its pipeline 50."""
    runner.environ |= {
        "CI_API_V4_URL": "https://gitlab.example/api/v4",
        "CI_PROJECT_ID": "7",
        "CI_MERGE_REQUEST_IID": "4",
        "CI_COMMIT_SHA": HEAD,
        "CI_COMMIT_BRANCH": "main",
        "CI_JOB_URL": "https://gitlab.example/shop/kafka/-/jobs/60",
        "KDECLARE_GITLAB_TOKEN": TOKEN,
    }
    merged: dict[str, Any] = {
        "iid": 4,
        "state": "merged",
        "target_branch": "main",
        "merge_commit_sha": MERGED,
    }
    merged |= {"source_project_id": 7, "head_pipeline": PIPELINE}
    jobs = [{"id": 60, "name": "kdeclare-plan", "pipeline": 50}, {"id": 61, "name": "lint", "pipeline": 50}]
    runner.update_service(notes=[], issues=[], merge_requests=[merged], jobs=jobs)
    return runner


def write_report(gitlab: Runner, text: str, found: str = "drift", code: int = 0) -> None:
    """Write the output of an earlier step."""
    gitlab.out.mkdir(exist_ok=True)
    (gitlab.out / "report.md").write_text(text)
    (gitlab.out / "found").write_text(f"{found}\n")
    (gitlab.out / "exit-code").write_text(f"{code}\n")


def test_merge_request_note_is_updated_in_place(gitlab: Runner) -> None:
    someone = {"id": 8, "username": "mallory"}
    marked = "<!-- kdeclare plan default -->\nmine"
    spoken: list[dict[str, Any]] = [
        {"id": n, "system": False, "author": someone, "body": f"word {n}"} for n in range(5)
    ]
    spoken[1]["body"] = marked
    spoken[3] |= {"body": marked, "author": None}
    gitlab.update_service(notes=spoken)
    write_report(gitlab, "## Plan & more: 1 to create.\n")
    assert "Commented on !4." in gitlab.run_ok("gitlab/note.sh").stdout
    write_report(gitlab, "## Plan: 2 to create.\n")
    assert "Updated the note on !4." in gitlab.run_ok("gitlab/note.sh").stdout
    *others, note = gitlab.service_data["notes"]
    assert others == spoken
    assert note["body"].startswith("<!-- kdeclare plan default -->\n## Plan: 2 to create.\n")
    assert 'Planned for aaaaaaaaaaaa by <a href="https://gitlab.example/' in note["body"]


def test_apply_uses_reviewed_plan(gitlab: Runner) -> None:
    gitlab.topic("orders")
    for step in ("state.sh load", "plan.sh", "gitlab/note.sh"):
        gitlab.run_ok(*step.split())
    assert gitlab.exit_code == 0
    assert "1 to create" in gitlab.service_data["notes"][0]["body"]
    kept = gitlab.service / "artifacts" / "60"
    shutil.copytree(gitlab.out, kept / ".kdeclare")
    for expected in (0, 4):
        gitlab.switch_machine()
        gitlab.topic("refunds")
        merged = {"CI_COMMIT_SHA": MERGED, "CI_MERGE_REQUEST_IID": ""}
        for step in ("gitlab/find-plan.sh", "apply.sh"):
            gitlab.run_ok(*step.split(), **merged)
        assert gitlab.exit_code == expected
        assert set(load_cluster(Path(gitlab.environ["STUB_CLUSTER"])).topics()) == {"orders"}


def test_apply_refuses_plan_that_differs_from_merged_manifests(gitlab: Runner) -> None:
    gitlab.topic("evil")
    for step in ("state.sh load", "plan.sh"):
        gitlab.run_ok(*step.split())
    shutil.copytree(gitlab.out, gitlab.service / "artifacts" / "60" / ".kdeclare")
    gitlab.switch_machine()
    (gitlab.checkout / "manifests" / "evil.yaml").unlink()
    for step in ("gitlab/find-plan.sh", "apply.sh"):
        ran = gitlab.run_ok(*step.split(), CI_COMMIT_SHA=MERGED)
    assert "The merged manifests no longer produce this plan" in ran.stdout
    assert gitlab.exit_code == 4
    assert load_cluster(Path(gitlab.environ["STUB_CLUSTER"])).topics() == {}


REFUSED = {
    "not merged": ({"state": "closed"}, "was not merged from a merge request"),
    "merged elsewhere": ({"target_branch": "old"}, "was not merged from a merge request"),
    "failed": (
        {"head_pipeline": PIPELINE | {"status": "failed"}},
        "The last pipeline of !4 failed, does not belong to it, or is from a fork",
    ),
    "no pipeline": (
        {"head_pipeline": None},
        "The last pipeline of !4 failed, does not belong to it, or is from a fork",
    ),
    "a fork's": ({"source_project_id": 8}, "or is from a fork"),
    "a branch's": ({"head_pipeline": PIPELINE | {"ref": "topics"}}, "failed, does not belong to it, or"),
    "another merge request's": (
        {"head_pipeline": PIPELINE | {"ref": "refs/merge-requests/44/head"}},
        "failed, does not belong to it, or",
    ),
    "another pipeline": (
        {"head_pipeline": PIPELINE | {"id": 51}},
        "no successful job 'kdeclare-plan'",
    ),
    "artifact gone": ({}, "Job 60 of !4 does not have the artifact .kdeclare/kdeclare.plan.json"),
}


@pytest.mark.parametrize(("facts", "said"), REFUSED.values(), ids=REFUSED.keys())
def test_apply_without_reviewed_plan_is_refused(gitlab: Runner, facts: dict[str, Any], said: str) -> None:
    gitlab.update_service(merge_requests=[gitlab.service_data["merge_requests"][0] | facts])
    ran = gitlab.run("gitlab/find-plan.sh", CI_COMMIT_SHA=MERGED)
    assert ran.returncode == 1
    assert said in ran.stderr
    assert "Nothing is applied." in ran.stderr
    assert not (gitlab.out / "kdeclare.plan.json").exists()


@pytest.mark.parametrize(("code", "said"), [(0, "if you merge, exactly"), (3, "nothing is applied")])
def test_note_describes_the_effect_of_merging(gitlab: Runner, code: int, said: str) -> None:
    write_report(gitlab, "## Plan\n", code=code)
    gitlab.run_ok("gitlab/note.sh")
    assert f"this job</a>; {said}" in gitlab.service_data["notes"][0]["body"]


def test_fleet_and_project_have_separate_issues(gitlab: Runner) -> None:
    write_report(gitlab, "one")
    for fleet in ("", "fleet.yaml", "other.yaml", "fleet.yaml"):
        gitlab.run_ok("gitlab/issue.sh", KDECLARE_FLEET=fleet)
    titles = [
        issue["title"].removeprefix("Kafka differs from its manifests: ")
        for issue in gitlab.service_data["issues"]
    ]
    assert titles == ["default", "fleet.yaml", "other.yaml"]


def test_drift_opens_one_issue_and_closes_it(gitlab: Runner) -> None:
    theirs = {"iid": 1, "state": "opened", "labels": "kdeclare-drift", "author": {"id": 8}}
    marked = theirs | {"iid": 2, "description": "<!-- kdeclare audit default -->\nmine"}
    gitlab.update_service(issues=[theirs | {"description": None}, marked])
    steps = (("drift", "one"), ("drift", "two"), ("failed", "three"), ("in-order", ""), ("in-order", ""))
    for found, text in steps:
        write_report(gitlab, text, found)
        gitlab.run_ok("gitlab/issue.sh")
    unmarked, others, *[issue] = gitlab.service_data["issues"]
    assert unmarked["description"] is None
    assert others == marked, "someone else's issue with the same marker"
    assert issue["description"] == "<!-- kdeclare audit default -->\ntwo"
    assert (issue["title"], issue["state"]) == ("Kafka differs from its manifests: default", "closed")


def test_each_team_has_an_issue(gitlab: Runner) -> None:
    write_report(gitlab, "all", "drift")
    teams = gitlab.out / "audit" / "teams"
    teams.mkdir(parents=True)
    for name in ("checkout", "billing"):
        (teams / f"{name}.md").write_text(f"of {name}\n")
    settings = {"KDECLARE_FLEET": "fleet.yaml", "KDECLARE_ISSUES_BY": "team"}
    gitlab.run_ok("gitlab/issue.sh", **settings)
    (teams / "billing.md").unlink()
    (teams / "checkout.md").write_text("more of checkout\n")
    gitlab.run_ok("gitlab/issue.sh", **settings)
    assert {
        (issue["state"], issue["title"], issue["description"]) for issue in gitlab.service_data["issues"]
    } == {
        (
            state,
            f"Kafka differs from its manifests: fleet.yaml (team {team})",
            f"<!-- kdeclare audit fleet fleet.yaml team {team} -->\n{text}\n",
        )
        for state, team, text in (
            ("closed", "billing", "of billing"),
            ("opened", "checkout", "more of checkout"),
        )
    }


@pytest.mark.parametrize("step", ["gitlab/note.sh", "gitlab/find-plan.sh", "gitlab/issue.sh"])
def test_step_fails_when_gitlab_fails(gitlab: Runner, step: str) -> None:
    write_report(gitlab, "## Plan\n")
    ran = gitlab.run(step, KDECLARE_GITLAB_TOKEN="wrong")
    assert ran.returncode != 0
    assert "error: 401" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_token_is_in_no_command_line(gitlab: Runner) -> None:
    write_report(gitlab, "## Plan\n")
    gitlab.run_ok("gitlab/note.sh")
    assert json.loads(gitlab.requests.splitlines()[0])
    assert TOKEN not in gitlab.requests
