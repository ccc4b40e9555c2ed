"""A stub of ``curl`` for the steps, with a small stateful GitLab behind it."""

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.ci.service import Service, take_page

TOKEN = "glpat-secret"
USER = {"id": 77, "username": "project_7_bot"}


def parse_field(text: str) -> tuple[str, str]:
    """Parse ``name=value`` or ``name@file``, as ``--data-urlencode`` does."""
    name, sign, rest = text.partition("=")
    if sign and "@" not in name:
        return name, rest
    name, _, file = text.partition("@")
    return name, Path(file).read_text()


def build_answer(service: Service, method: str, url: str, given: dict[str, str]) -> Any:
    """Return GitLab's response."""
    parts = urlsplit(url)
    path = parts.path.removeprefix("/api/v4/projects/7/")
    query = {key: values[0] for key, values in parse_qs(parts.query).items()}
    knows = service.data
    match method, path.split("/"):
        case "GET", ["", "api", "v4", "user"]:
            return USER
        case "GET", ["merge_requests", _, "notes"]:
            return take_page(knows["notes"], int(query["page"]))
        case "POST", ["merge_requests", _, "notes"]:
            made = {"id": service.number(), "system": False, "author": USER, **given}
            knows["notes"].append(made)
            return made
        case "PUT", ["merge_requests", _, "notes", number]:
            [found] = [note for note in knows["notes"] if note["id"] == int(number)]
            found.update(given)
            return found
        case "GET", ["repository", "commits", sha, "merge_requests"]:
            return [r for r in knows["merge_requests"] if r["merge_commit_sha"] == sha]
        case "GET", ["merge_requests", number]:
            return next(r for r in knows["merge_requests"] if r["iid"] == int(number))
        case "GET", ["pipelines", number, "jobs"]:
            return [j for j in knows["jobs"] if j["pipeline"] == int(number)]
        case "GET", ["issues"]:
            wanted = (query["state"], query["labels"])
            return [i for i in knows["issues"] if (i["state"], i["labels"]) == wanted]
        case "POST", ["issues"]:
            knows["issues"].append({"iid": service.number(), "state": "opened", "author": USER, **given})
            return {}
        case "PUT", ["issues", number]:
            [found] = [i for i in knows["issues"] if i["iid"] == int(number)]
            found.update({"state": "closed"} if given.pop("state_event", "") == "close" else given)
            return found
        case "GET", ["jobs", number, "artifacts", *rest]:
            kept = service.folder / "artifacts" / number / "/".join(rest)
            return kept if kept.is_file() else None
    raise service.refusal(f"the stub knows no {method} {path}")


def main(arguments: list[str]) -> None:
    """Run one command line."""
    parser = ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--request", default="GET")
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--retry")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--data-urlencode", dest="given", action="append", default=[], type=parse_field)
    for flag in ("--silent", "--show-error", "--fail-with-body", "--globoff"):
        parser.add_argument(flag, action="store_true")
    service = Service()
    asked = parser.parse_args(arguments)
    if asked.config.read_text() != f'header = "PRIVATE-TOKEN: {TOKEN}"\n':
        raise service.refusal("curl: (22) The requested URL returned error: 401")
    said = build_answer(service, asked.request, asked.url, dict(asked.given))
    if said is None:
        raise service.refusal("curl: (22) The requested URL returned error: 404")
    text = said.read_text() if isinstance(said, Path) else json.dumps(said)
    if asked.output is None:
        print(text)
    else:
        asked.output.write_text(text)
    service.keep()


if __name__ == "__main__":
    main(sys.argv[1:])
