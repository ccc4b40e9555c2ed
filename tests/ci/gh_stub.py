"""A stub of ``gh`` for the steps, with a small stateful GitHub."""

import json
import re
import shutil
import sys
from argparse import ArgumentParser
from itertools import count, takewhile
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.ci.service import Service, take_page

BOT = "github-actions[bot]"


def api(service: Service, arguments: list[str]) -> None:
    """Run ``gh api``."""
    parser = ArgumentParser()
    parser.add_argument("path")
    parser.add_argument("--method", default="GET")
    parser.add_argument("-F", dest="field", default="")
    for flag in ("--paginate", "--slurp", "--silent"):
        parser.add_argument(flag, action="store_true")
    asked = parser.parse_args(arguments)
    url = urlsplit(asked.path)
    own = re.fullmatch(r"repos/shop/kafka/(.*)", url.path)
    if own is None:
        raise service.refusal("HTTP 404: Not Found")
    body = Path(asked.field.removeprefix("body=@")).read_text() if asked.field else ""
    answer = request(service, asked.method, own[1], {k: v[0] for k, v in parse_qs(url.query).items()}, body)
    if asked.slurp:
        answer = list(takewhile(len, (take_page(answer, n) for n in count(1)))) or [[]]
    if not asked.silent:
        print(json.dumps(answer))


def request(service: Service, method: str, path: str, query: dict[str, str], body: str) -> Any:
    """Return the response of the REST API."""
    knows, steps = service.data, path.split("/")
    match method, steps:
        case "GET", ["issues", _, "comments"]:
            return knows["comments"]
        case "POST", ["issues", _, "comments"]:
            made = {"id": service.number(), "user": {"login": BOT}, "body": body}
            knows["comments"].append(made)
            return made
        case "PATCH", ["issues", "comments", number]:
            [found] = [c for c in knows["comments"] if c["id"] == int(number)]
            found["body"] = body
            return found
        case "GET", ["commits", sha, "pulls"]:
            return [pull for pull in knows["pulls"] if sha in (pull["merge_commit_sha"], pull["head"]["sha"])]
        case "GET", ["actions", "workflows", workflow, "runs"]:
            wanted = {"path": workflow, "head_sha": query["head_sha"], "event": query["event"]}
            wanted |= {"head_branch": query["branch"]} if "branch" in query else {}
            runs = [r for r in knows["runs"] if {k: r[k] for k in wanted} == wanted]
            return {"workflow_runs": [r for r in runs if r["conclusion"] == query["status"]]}
    raise service.refusal(f"the stub knows no {method} {path}")


def download(service: Service, arguments: list[str]) -> None:
    """Run ``gh run download``."""
    parser = ArgumentParser()
    parser.add_argument("run")
    for option in ("--repo", "--name", "--dir"):
        parser.add_argument(option, required=True)
    asked = parser.parse_args(arguments)
    kept = service.folder / "artifacts" / asked.run / asked.name
    if not kept.is_dir():
        raise service.refusal("no artifact matches any of the names or patterns provided")
    shutil.copytree(kept, asked.dir, dirs_exist_ok=True)


def issue(service: Service, what: str, arguments: list[str]) -> None:
    """Run ``gh issue``."""
    parser = ArgumentParser()
    parser.add_argument("number", nargs="?", type=int)
    for option in (
        "--repo",
        "--label",
        "--state",
        "--limit",
        "--json",
        "--body-file",
        "--title",
        "--comment",
    ):
        parser.add_argument(option)
    asked = parser.parse_args(arguments)
    if asked.repo != "shop/kafka":
        raise service.refusal("HTTP 404: Not Found")
    issues = service.data["issues"]
    if what == "list":
        found = [i for i in issues if i["state"] == asked.state and i["label"] == asked.label]
        print(json.dumps([{key: i[key] for key in asked.json.split(",")} for i in found]))
    elif what == "create":
        if asked.label not in service.data["labels"]:
            raise service.refusal(f"could not add label: '{asked.label}' not found")
        made = {"number": service.number(), "state": "open", "label": asked.label, "title": asked.title}
        made["author"] = {"is_bot": True, "login": f"app/{BOT.removesuffix('[bot]')}"}
        issues.append(made | {"body": Path(asked.body_file).read_text()})
    else:
        [found] = [i for i in issues if i["number"] == asked.number]
        found.update({"body": Path(asked.body_file).read_text()} if what == "edit" else {"state": "closed"})


def main(arguments: list[str]) -> None:
    """Run one command line."""
    service = Service()
    match arguments:
        case ["api", *rest]:
            api(service, rest)
        case ["run", "download", *rest]:
            download(service, rest)
        case ["issue", what, *rest]:
            issue(service, what, rest)
        case ["label", "create", name, *_]:
            service.data["labels"].append(name)
        case _:
            raise service.refusal(f"the stub knows no gh {' '.join(arguments)}")
    service.keep()


if __name__ == "__main__":
    main(sys.argv[1:])
