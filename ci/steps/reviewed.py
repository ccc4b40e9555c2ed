"""Says whether a saved plan does nothing but what a fresh plan of the merged manifests does.

    python3 reviewed.py SAVED FRESH

Who may push a branch can keep any plan under the name of the reviewed one. So each operation and each change
of ownership of the saved plan has to stand in the fresh one, and be the same. That the fresh one has more
does not matter, as it is not applied. Secrets need no exception: the salt of their hashes is made of the
place where they stand, so equal values have equal hashes.

Of the saved plan, only names are printed, and only if they consist of characters that names can have: nobody
has reviewed the rest, and this runs in the job that may change the cluster.

Exit code: 0 so it is; 4 the plan is refused; 1 there is no fresh plan to tell by.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

OK, ERROR, STALE = 0, 1, 4

_ABOUT = ("project", "env", "cluster", "undoes")
_LONGEST = 300
"""Characters of a value that are shown."""

_NAME = re.compile(r"(?!.*::)[A-Za-z0-9 ._:/@|%+-]{1,300}")


def differences(saved: Mapping[str, Any], fresh: Mapping[str, Any]) -> Iterator[str]:
    """What the saved plan says and the fresh one does not, a line each; nothing where it may be applied."""
    for key in _ABOUT:
        if _canonical(saved.get(key)) != _canonical(fresh.get(key)):
            yield f"{key}: {_planned_now(fresh.get(key))}"
    for part in ("operations", "ownership"):
        there = {item["id"]: item for item in fresh[part]}
        for item in saved[part]:
            yield from _of_one(f"{part} {_safe_name(item['id'])}", item, there.get(item["id"]))


def _of_one(name: str, saved: Mapping[str, Any], fresh: Mapping[str, Any] | None) -> Iterator[str]:
    if fresh is None:
        yield f"{name}: is not planned any more"
        return
    for key in sorted(saved.keys() | fresh.keys()):
        if _canonical(saved.get(key)) != _canonical(fresh.get(key)):
            yield f"{name}, {_safe_name(key)}: {_planned_now(fresh.get(key))}"


def _canonical(value: Any) -> str:
    """As text: to Python, true and 1 and 1.0 are equal."""
    return json.dumps(value, sort_keys=True)


def _safe_name(name: object) -> str:
    return name if isinstance(name, str) and _NAME.fullmatch(name) else "(not shown: not a name)"


def _planned_now(fresh: Any) -> str:
    return f"differs from what is planned now, {_canonical(fresh)[:_LONGEST]}"


def _problems(fresh: Mapping[str, Any]) -> Iterator[str]:
    for found in fresh.get("diagnostics", ()):
        if found["severity"] == "error":
            yield f"error: {found['summary']}"
            if found["detail"]:
                yield f"  {found['detail']}"


def main(saved_file: str, fresh_file: str) -> int:
    """Print what keeps the saved plan from being applied; the exit code."""
    text = Path(fresh_file).read_text(encoding="utf-8")
    fresh = json.loads(text) if text else {}  # empty: wrong usage, told in the log
    if "operations" not in fresh:
        print(
            "The merged manifests cannot be planned, so nothing tells what was reviewed. Nothing is applied."
        )
        print(*_problems(fresh), sep="\n")
        return ERROR
    found = list(differences(json.loads(Path(saved_file).read_text(encoding="utf-8-sig")), fresh))
    if not found:
        return OK
    print("The plan is not what the merged manifests say now. Nothing is applied.\n")
    print(*(f"  {line}" for line in found), sep="\n")
    print(*_problems(fresh), sep="\n")
    print(
        "\nManifests, cluster or a secret have changed since the plan was made; or it is not the one\n"
        "that was reviewed. Plan again with a pull request, and review that."
    )
    return STALE


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
