"""A saved plan is applied only if the merged manifests result in the same plan."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.ci.runner import STEPS

pytestmark = pytest.mark.slow

CREATE = {"id": "create", "verb": "create-topic", "args": {"partitions": 1}, "expect": {"exists": False}}
OTHER = CREATE | {"id": "other"}
OWNED = {"id": "Topic/orders", "before": None, "after": {"partitions": 1}}
PLAN: dict[str, Any] = {
    "plan_id": "1",
    "created_at": "2026-01-01T00:00:00Z",
    "base": {"lineage": "a", "serial": 1},
    "project": "shop",
    "env": "lab",
    "cluster": {"id": "x", "name": "lab:9092"},
    "undoes": None,
    "operations": [CREATE],
    "ownership": [OWNED],
    "diagnostics": [],
}


def compare_plans(tmp_path: Path, saved: object, fresh: object) -> tuple[int, str]:
    """Return the exit code and the output."""
    files = [tmp_path / "saved.json", tmp_path / "fresh.json"]
    for file, document in zip(files, (saved, fresh), strict=True):
        file.write_text("" if document is None else json.dumps(document))
    ran = subprocess.run(
        [sys.executable, str(STEPS / "reviewed.py"), *map(str, files)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stderr == ""
    return ran.returncode, ran.stdout


SAME = {
    "another moment, another id": {"plan_id": "2", "created_at": "2026-01-02T00:00:00Z"},
    "a state that went on elsewhere": {"base": {"lineage": "a", "serial": 7}},
    "more to do than was reviewed": {
        "operations": [OTHER, CREATE],
        "ownership": [OWNED | {"id": "x"}, OWNED],
    },
}


@pytest.mark.parametrize("facts", SAME.values(), ids=SAME.keys())
def test_plan_comparison_accepts_new_ids_and_more_changes(tmp_path: Path, facts: dict[str, Any]) -> None:
    assert compare_plans(tmp_path, PLAN, PLAN | facts) == (0, "")


OTHERWISE = {
    "operation gone": ({"operations": []}, "operations create: is no longer planned"),
    "other arguments": (
        {"operations": [CREATE | {"args": {}}]},
        "create, args: differs from the current plan: {}",
    ),
    "other expectation": (
        {"operations": [CREATE | {"expect": {"exists": True}}]},
        "create, expect: differs from",
    ),
    "an inverse more": (
        {"operations": [CREATE | {"inverse": {}}]},
        "inverse: differs from the current plan: {}",
    ),
    "true is not one": (
        {"operations": [CREATE | {"args": {"partitions": True}}]},
        "create, args: differs from",
    ),
    "ownership gone": ({"ownership": []}, "ownership Topic/orders: is no longer planned"),
    "other ownership": (
        {"ownership": [OWNED | {"after": None}]},
        "ownership Topic/orders, after: differs from",
    ),
    "another cluster": ({"cluster": {"id": "y", "name": "lab:9092"}}, "cluster: differs from"),
    "a rollback": ({"undoes": "run"}, 'undoes: differs from the current plan: "run"'),
}


@pytest.mark.parametrize(("facts", "said"), OTHERWISE.values(), ids=OTHERWISE.keys())
def test_plan_comparison_refuses_differences(tmp_path: Path, facts: dict[str, Any], said: str) -> None:
    code, told = compare_plans(tmp_path, PLAN, PLAN | facts)
    assert code == 4
    assert said in told
    assert "Nothing is applied." in told


def test_plan_comparison_prints_no_hostile_text(tmp_path: Path) -> None:
    """A user who can push a branch can store any plan, and parts of it are printed in the apply job."""
    evil = "::set-output name=x::y\n##[add-mask]a\n![](https://evil.example/track)"
    operation = {**CREATE, "id": evil, "args": {"note": evil}, evil: evil}
    saved = {**PLAN, "project": evil, "operations": [operation, CREATE | {"args": {"note": evil}, evil: 1}]}
    code, told = compare_plans(tmp_path, {**saved, "ownership": [OWNED | {"id": evil}]}, PLAN)
    assert code == 4
    assert not any(part in told for part in ("set-output", "add-mask", "evil.example"))
    assert "operations (not shown: not a name): is no longer planned" in told
    assert "operations create, args: differs from the current plan: " in told


def test_plan_comparison_without_fresh_plan_fails(tmp_path: Path) -> None:
    mistake = {"severity": "error", "summary": "Unknown field", "detail": "'partitons' is none."}
    code, told = compare_plans(tmp_path, PLAN, {"outcome": "error", "diagnostics": [mistake]})
    assert (code, "error: Unknown field\n  'partitons' is none." in told) == (1, True)
    assert compare_plans(tmp_path, PLAN, None)[0] == 1
