"""Extract values from a response of GitHub's, GitLab's or Azure DevOps' API on stdin, and print one per line.

    python3 answer.py QUESTION [VALUE …] <<< "$answer"

Prints nothing if the response does not have the value.
"""

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any


def github_comment(pages: Any, marker: str, author: str) -> Iterator[Any]:
    """Find the id of the author's comment with the marker; ignore comments of other authors."""
    for comment in (item for page in pages for item in page):
        login = (comment["user"] or {}).get("login")  # None if the account was deleted
        if login == author and comment["body"].startswith(marker):
            yield comment["id"]
            return


def github_pull(pulls: Any, branch: str) -> Iterator[Any]:
    """Find number, head and source branch of the pull request that was merged to ``branch``."""
    for pull in pulls:
        if pull["merged_at"] and pull["base"]["ref"] == branch:
            yield from (pull["number"], pull["head"]["sha"], pull["head"]["ref"])
            return


def github_runs(answer: Any, repository: str, branch: str) -> Iterator[Any]:
    """Find the ids of successful runs for a branch of the repository, newest first; never of a fork."""
    wanted = ("pull_request", "success", repository, branch)
    for run in sorted(answer["workflow_runs"], key=lambda run: -run["run_number"]):
        home = (run["head_repository"] or {}).get("full_name")
        if (run["event"], run["conclusion"], home, run["head_branch"]) == wanted:
            yield run["id"]


def gitlab_user(user: Any) -> Iterator[Any]:
    """Find the id of the token's user."""
    yield user["id"]


def gitlab_note(notes: Any, marker: str, author: str) -> Iterator[Any]:
    """Find the id of the note with the marker and the author's id, if it is on this page."""
    marked = (note for note in notes if not note["system"] and note["body"].startswith(marker))
    yield from [note["id"] for note in marked if _is_author(note, author)][:1]


def gitlab_merged(requests: Any, branch: str) -> Iterator[Any]:
    """Find the number of the merge request that was merged to ``branch``."""
    found = [r["iid"] for r in requests if r["state"] == "merged" and r["target_branch"] == branch]
    yield from found[:1]


def gitlab_pipeline(request: Any, project: str) -> Iterator[Any]:
    """Find the id of the last pipeline if it succeeded, is of this merge request, and is not a fork's."""
    pipeline = request["head_pipeline"] or {}
    own = pipeline.get("ref", "").startswith(f"refs/merge-requests/{request['iid']}/")
    if own and pipeline["status"] == "success" and str(request["source_project_id"]) == project:
        yield pipeline["id"]


def gitlab_job(jobs: Any, name: str) -> Iterator[Any]:
    """Find the id of the newest job with that name."""
    yield from sorted((job["id"] for job in jobs if job["name"] == name), reverse=True)[:1]


def azure_user(data: Any) -> Iterator[Any]:
    """Find the id of the token's user."""
    yield data["authenticatedUser"]["id"]


def azure_comment(answer: Any, marker: str, author: str) -> Iterator[Any]:
    """Find the thread whose first comment has the marker and the author's id: the ids of both."""
    for thread in answer["value"]:
        comments = [comment for comment in thread["comments"] if not comment.get("isDeleted")]
        if comments and _is_author(comments[0], author) and comments[0]["content"].startswith(marker):
            yield from (thread["id"], comments[0]["id"])
            return


def _is_author(item: Any, author: str) -> bool:
    return str((item["author"] or {}).get("id")) == author


_QUESTIONS: dict[str, Callable[..., Iterator[Any]]] = {
    "github-comment": github_comment,
    "github-pull": github_pull,
    "github-runs": github_runs,
    "azure-user": azure_user,
    "azure-comment": azure_comment,
    "gitlab-user": gitlab_user,
    "gitlab-note": gitlab_note,
    "gitlab-merged": gitlab_merged,
    "gitlab-pipeline": gitlab_pipeline,
    "gitlab-job": gitlab_job,
}

if __name__ == "__main__":
    for value in _QUESTIONS[sys.argv[1]](json.load(sys.stdin), *sys.argv[2:]):
        print(value)
