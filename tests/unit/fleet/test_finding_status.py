"""The status of findings in comparison with an earlier audit."""

from kdeclare.fleet.audit_results import Identity
from kdeclare.fleet.finding_status import FIXED, KNOWN, NEW, choose_status, select_fixed

A: Identity = ("eu", "Topic", "a", "changed", "configs.retention.ms")
B: Identity = ("eu", "Topic", "b", "changed", "configs.retention.ms")
C: Identity = ("us", "Topic", "a", "changed", None)


def test_finding_is_known_only_if_the_baseline_contains_it() -> None:
    assert choose_status(A, {A, C}) == KNOWN
    assert choose_status(B, {A, C}) == NEW
    assert choose_status(A, set()) == NEW
    assert FIXED not in {KNOWN, NEW}


def test_finding_is_fixed_only_if_it_was_checked_again_and_is_gone() -> None:
    baseline = {C: "c", A: "a", B: "b"}
    assert select_fixed(baseline, {B}, lambda row: True) == ["c", "a"]
    assert select_fixed(baseline, {B}, lambda row: row != "c") == ["a"]
    assert select_fixed({}, set(), lambda row: True) == []
