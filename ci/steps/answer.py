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


def github_issue(issues: Any, marker: str, author: str) -> Iterator[Any]:
    """The number of the open issue that has the marker and that author; ``gh`` calls bots ``app/NAME``."""
    names = (author, f"app/{author.removesuffix('[bot]')}" if author.endswith("[bot]") else author)
    marked = (issue for issue in issues if issue["body"].startswith(marker))
    yield from [issue["number"] for issue in marked if (issue["author"] or {}).get("login") in names][:1]


def gitlab_user(user: Any) -> Iterator[Any]:
    """The id of the user that the token belongs to."""
    yield user["id"]


def gitlab_note(notes: Any, marker: str, author: str) -> Iterator[Any]:
    """The id of the note with the marker and the author, by id, if it is on this page."""
    marked = (note for note in notes if not note["system"] and note["body"].startswith(marker))
    yield from [note["id"] for note in marked if _is_author(note, author)][:1]


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


def gitlab_issue(issues: Any, marker: str, author: str) -> Iterator[Any]:
    """The number of the issue that has the marker and the author, by id."""
    marked = (issue for issue in issues if (issue["description"] or "").startswith(marker))
    yield from [issue["iid"] for issue in marked if _is_author(issue, author)][:1]


def _is_author(item: Any, author: str) -> bool:
    return str((item["author"] or {}).get("id")) == author


_QUESTIONS: dict[str, Callable[..., Iterator[Any]]] = {
    "github-comment": github_comment,
    "github-pull": github_pull,
    "github-runs": github_runs,
    "github-issue": github_issue,
    "gitlab-user": gitlab_user,
    "gitlab-note": gitlab_note,
    "gitlab-merged": gitlab_merged,
    "gitlab-pipeline": gitlab_pipeline,
    "gitlab-job": gitlab_job,
    "gitlab-issue": gitlab_issue,
}

if __name__ == "__main__":
    for value in _QUESTIONS[sys.argv[1]](json.load(sys.stdin), *sys.argv[2:]):
        print(value)
