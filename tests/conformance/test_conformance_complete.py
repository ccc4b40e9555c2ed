"""Every case of the conformance list is run, or listed with the reason why it is not."""

import re
from collections import Counter
from pathlib import Path

import pytest
import yaml

HERE = Path(__file__).parent
LIST = HERE.parents[2] / "shared" / "conformance" / "cases.yaml"
"""Beside the checkout where the list was handed out; not part of the repository."""


def count_run_ids() -> Counter[str]:
    """Count the tests that are marked with each id."""
    sources = (path.read_text(encoding="utf-8") for path in HERE.parent.rglob("test_*.py"))
    return Counter(found for text in sources for found in re.findall(r'^@case\("([^"]+)"\)', text, re.M))


def load_excluded() -> dict[str, str]:
    """Return the ids that no test runs, with the reason."""
    groups = yaml.safe_load((HERE / "not_applicable.yaml").read_text(encoding="utf-8"))
    return {key: reason for group in groups.values() for key, reason in group.items()}


def test_no_case_is_both_run_and_excluded() -> None:
    assert not count_run_ids().keys() & load_excluded().keys()


def test_every_excluded_case_has_reason() -> None:
    assert all(load_excluded().values())


@pytest.mark.skipif(not LIST.exists(), reason="the list of cases is not beside this checkout")
def test_every_case_is_run_or_excluded() -> None:
    cases = {c["id"] for c in yaml.safe_load(LIST.read_text(encoding="utf-8"))["cases"]}
    assert count_run_ids().keys() | load_excluded().keys() == cases
