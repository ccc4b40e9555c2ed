"""Check that a saved plan has only operations that a fresh plan of the merged manifests also has.

    python3 reviewed.py SAVED FRESH

A user who can push a branch can store any plan under the name of the reviewed one. Therefore each operation
and each change of ownership of the saved plan must be in the fresh plan and be identical. Additional
operations of the fresh plan do not matter, because they are not applied. Secrets need no exception: the salt
of their hashes is derived from their position, so equal values have equal hashes.

Only names of the saved plan are printed, and only if they consist of characters that names can have: the
rest was not reviewed, and this script runs in the job that may change the cluster.

Exit code: 0 if the plan may be applied; 4 if it is refused; 1 if there is no fresh plan to compare with.
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
"""The maximum number of characters of a value that are shown."""

_NAME = re.compile(r"(?!.*::)[A-Za-z0-9 ._:/@|%+-]{1,300}")


def differences(saved: Mapping[str, Any], fresh: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each difference of the saved plan; none if it may be applied."""
    for key in _ABOUT:
        if _canonical(saved.get(key)) != _canonical(fresh.get(key)):
            yield f"{key}: {_planned_now(fresh.get(key))}"
    for part in ("operations", "ownership"):
        there = {item["id"]: item for item in fresh[part]}
        for item in saved[part]:
            yield from _of_one(f"{part} {_safe_name(item['id'])}", item, there.get(item["id"]))


def _of_one(name: str, saved: Mapping[str, Any], fresh: Mapping[str, Any] | None) -> Iterator[str]:
    if fresh is None:
        yield f"{name}: is no longer planned"
        return
    for key in sorted(saved.keys() | fresh.keys()):
        if _canonical(saved.get(key)) != _canonical(fresh.get(key)):
            yield f"{name}, {_safe_name(key)}: {_planned_now(fresh.get(key))}"


def _canonical(value: Any) -> str:
    """Return JSON text, because Python considers true, 1 and 1.0 equal."""
    return json.dumps(value, sort_keys=True)


def _safe_name(name: object) -> str:
    return name if isinstance(name, str) and _NAME.fullmatch(name) else "(not shown: not a name)"


def _planned_now(fresh: Any) -> str:
    return f"differs from the current plan: {_canonical(fresh)[:_LONGEST]}"


def _problems(fresh: Mapping[str, Any]) -> Iterator[str]:
    for found in fresh.get("diagnostics", ()):
        if found["severity"] == "error":
            yield f"error: {found['summary']}"
            if found["detail"]:
                yield f"  {found['detail']}"


def main(saved_file: str, fresh_file: str) -> int:
    """Print the reasons to refuse the saved plan, and return the exit code."""
    text = Path(fresh_file).read_text(encoding="utf-8")
    fresh = json.loads(text) if text else {}  # empty after a usage error, which is in the log
    if "operations" not in fresh:
        print("The merged manifests cannot be planned, so the plan cannot be verified. Nothing is applied.")
        print(*_problems(fresh), sep="\n")
        return ERROR
    found = list(differences(json.loads(Path(saved_file).read_text(encoding="utf-8-sig")), fresh))
    if not found:
        return OK
    print("The merged manifests no longer produce this plan. Nothing is applied.\n")
    print(*(f"  {line}" for line in found), sep="\n")
    print(*_problems(fresh), sep="\n")
    print(
        "\nThe manifests, the cluster or a secret have changed since the plan was made, or this is not\n"
        "the reviewed plan. Open a pull request with a new plan, and review that plan."
    )
    return STALE


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
