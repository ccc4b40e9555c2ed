"""Decide which issues about drift to create, update or close, and write their texts.

    python3 issues.py github|gitlab OUT MARKER TITLE AUTHOR <<< "$open_issues"

OUT is the folder of the audit. Prints one action per line, with tabs between the words:

    create	TITLE	FILE
    edit	NUMBER	FILE
    close	NUMBER

There is one issue, or one for each team if KDECLARE_ISSUES_BY is "team". An issue belongs to an audit if its
text begins with the marker of the audit, and if its author is this job.
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote


def plan_issues(answer: Any, service: str, out: Path, marker: str, title: str, author: str) -> Iterator[str]:
    """Yield the actions for the open issues in the answer of the service."""
    found = (out / "found").read_text().strip()
    if found not in ("drift", "in-order"):
        print("The audit failed; the issues stay unchanged.", file=sys.stderr)
        return
    by_team = os.environ.get("KDECLARE_ISSUES_BY") == "team"
    texts = (
        dict(_read_teams(out))
        if by_team
        else {"": (out / "report.md").read_text()}
        if found == "drift"
        else {}
    )
    opened = dict(_find_own(answer, service, marker, author))
    folder = out / "issues"
    folder.mkdir(exist_ok=True)
    for team, text in sorted(texts.items()):
        subject = _build_marker(marker, team)
        file = folder / f"{quote(team, safe='') or 'all'}.md"
        file.write_text(f"{subject}\n{text}")
        name = f"{title} (team {_join_line(team)})" if team else title
        action = f"edit\t{opened[subject]}" if subject in opened else f"create\t{name}"
        yield f"{action}\t{file}"
    current = {_build_marker(marker, team) for team in texts}
    for subject, number in opened.items():
        if subject not in current:
            yield f"close\t{number}"


def _read_teams(out: Path) -> Iterator[tuple[str, str]]:
    """Yield each team with findings, and its report."""
    for file in sorted((out / "audit" / "teams").glob("*.md")):
        yield unquote(file.stem), file.read_text()


def _build_marker(marker: str, team: str) -> str:
    """Return the first line of an issue. Names of teams are escaped, so that they cannot end the comment."""
    suffix = f" team {quote(team, safe='')}" if team else ""
    return f"<!-- {marker}{suffix} -->"


def _find_own(answer: Any, service: str, marker: str, author: str) -> Iterator[tuple[str, Any]]:
    """Yield the first line and the number of each issue of this audit that this job opened."""
    text_field, number_field = ("body", "number") if service == "github" else ("description", "iid")
    for issue in answer:
        first_line = (issue[text_field] or "").partition("\n")[0].strip()
        is_marked = first_line == f"<!-- {marker} -->" or first_line.startswith(f"<!-- {marker} team ")
        if is_marked and _is_author(issue["author"] or {}, service, author):
            yield first_line, issue[number_field]


def _is_author(user: Mapping[str, Any], service: str, author: str) -> bool:
    if service == "gitlab":
        return str(user.get("id")) == author
    # gh calls bots app/NAME
    names = (author, f"app/{author.removesuffix('[bot]')}" if author.endswith("[bot]") else author)
    return user.get("login") in names


def _join_line(text: str) -> str:
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


if __name__ == "__main__":
    for line in plan_issues(json.load(sys.stdin), sys.argv[1], Path(sys.argv[2]), *sys.argv[3:]):
        print(line)
