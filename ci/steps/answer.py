"""Picks from an answer of GitHub's or GitLab's API, on stdin, what a step needs, one value a line.

    python3 answer.py QUESTION [VALUE …] <<< "$answer"

Nothing is printed where the answer has no such thing.
"""

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any


def github_comment(pages: Any, marker: str, author: str) -> Iterator[Any]:
    """The id of the comment that a bot has marked; a person's with the same words is left alone."""
    for comment in (item for page in pages for item in page):
        login = (comment["user"] or {}).get("login")  # nobody: whose account is gone
        if login == author and comment["body"].startswith(marker):
            yield comment["id"]
            return


def github_pull(pulls: Any, branch: str) -> Iterator[Any]:
    """Number, head and its branch of the pull request that was merged to ``branch``."""
    for pull in pulls:
        if pull["merged_at"] and pull["base"]["ref"] == branch:
            yield from (pull["number"], pull["head"]["sha"], pull["head"]["ref"])
            return


def github_runs(answer: Any, repository: str, branch: str) -> Iterator[Any]:
    """The ids of successful runs for a branch of the repository's own, newest first; never a fork's."""
    wanted = ("pull_request", "success", repository, branch)
    for run in sorted(answer["workflow_runs"], key=lambda run: -run["run_number"]):
        home = (run["head_repository"] or {}).get("full_name")
        if (run["event"], run["conclusion"], home, run["head_branch"]) == wanted:
            yield run["id"]


def github_issue(issues: Any, marker: str) -> Iterator[Any]:
    """The number of the open issue that has the marker."""
    yield from [issue["number"] for issue in issues if issue["body"].startswith(marker)][:1]


def gitlab_note(notes: Any, marker: str) -> Iterator[Any]:
    """The id of the marked note, if it is on this page."""
    yield from [note["id"] for note in notes if not note["system"] and note["body"].startswith(marker)][:1]


def gitlab_merged(requests: Any, branch: str) -> Iterator[Any]:
    """The number of the merge request that was merged to ``branch``."""
    found = [r["iid"] for r in requests if r["state"] == "merged" and r["target_branch"] == branch]
    yield from found[:1]


def gitlab_pipeline(request: Any, project: str) -> Iterator[Any]:
    """The id of its last pipeline, if that was a success, of this merge request, and not a fork's."""
    pipeline = request["head_pipeline"] or {}
    own = pipeline.get("ref", "").startswith(f"refs/merge-requests/{request['iid']}/")
    if own and pipeline["status"] == "success" and str(request["source_project_id"]) == project:
        yield pipeline["id"]


def gitlab_job(jobs: Any, name: str) -> Iterator[Any]:
    """The id of the job of that name, of several the newest."""
    yield from sorted((job["id"] for job in jobs if job["name"] == name), reverse=True)[:1]


def gitlab_issue(issues: Any, marker: str) -> Iterator[Any]:
    """The number of the issue that has the marker."""
    yield from [i["iid"] for i in issues if (i["description"] or "").startswith(marker)][:1]


_QUESTIONS: dict[str, Callable[..., Iterator[Any]]] = {
    "github-comment": github_comment,
    "github-pull": github_pull,
    "github-runs": github_runs,
    "github-issue": github_issue,
    "gitlab-note": gitlab_note,
    "gitlab-merged": gitlab_merged,
    "gitlab-pipeline": gitlab_pipeline,
    "gitlab-job": gitlab_job,
    "gitlab-issue": gitlab_issue,
}

if __name__ == "__main__":
    for value in _QUESTIONS[sys.argv[1]](json.load(sys.stdin), *sys.argv[2:]):
        print(value)
