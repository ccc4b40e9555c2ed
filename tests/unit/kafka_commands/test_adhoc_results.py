"""What ad hoc commands say of each resource: text, JSON and exit code."""

import json
from dataclasses import replace

import pytest
from jsonschema import Draft202012Validator

from kdeclare.core.documents import dump_document
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.plans.run import RunResult
from kdeclare.providers.kafka.commands.changes import WORDS, TopicSummary
from kdeclare.report.adhoc import (
    GOOD,
    AdhocResult,
    AdhocWords,
    ItemResult,
    Outcome,
    adhoc_exit_code,
    adhoc_schema,
    adhoc_text,
    describe_adhoc,
)
from tests.unit.report.golden_files import check_golden, check_schema
from tests.unit.report.sample_runs import RUNS

DONE = RUNS["done"]
SEEN = TopicSummary(partitions=3, factors=(2, 3), replicas=8, in_sync=7, leaderless=1)
ITEMS = tuple(
    ItemResult(
        f"Topic/{came.value}",
        came,
        "" if came in GOOD else "Kafka's words.",
        seen=SEEN if came in (Outcome.ALTERED, Outcome.ONGOING) else None,
    )
    for came in Outcome
)
UNSEEN = ItemResult("Topic/late\x1b[2J", Outcome.CREATED, unlike=("topic", "configs"))
EVERYTHING = AdhocResult(
    DONE, (*ITEMS, UNSEEN), verified_s=30.0, written=("manifests/orders.yaml",), words=WORDS
)


def view(*came: Outcome, run: RunResult | None = DONE) -> AdhocResult:
    return AdhocResult(run, tuple(ItemResult(f"Topic/{n}", each) for n, each in enumerate(came)))


def test_all_that_can_come_of_it() -> None:
    check_golden("by-hand", adhoc_text(EVERYTHING))


def test_all_of_it_fits_the_schema() -> None:
    for each in (EVERYTHING, view(Outcome.FAILED, run=None)):
        Draft202012Validator(adhoc_schema(TopicSummary)).validate(
            json.loads(json.dumps(dump_document(describe_adhoc(each, 1.5))))
        )
    check_schema("by-hand", adhoc_schema(TopicSummary))


@pytest.mark.parametrize(
    ("came", "code"),
    [
        ((Outcome.CREATED, Outcome.UNCHANGED, Outcome.LEFT_OUT), ExitCode.OK),
        ((Outcome.CREATED, Outcome.FAILED), ExitCode.PARTIAL),
        ((Outcome.UNCHANGED, Outcome.FAILED), ExitCode.PARTIAL),
        ((Outcome.FAILED, Outcome.FAILED), ExitCode.PARTIAL),  # of each, something was done
        ((Outcome.LEFT_OUT,), ExitCode.OK),
    ],
)
def test_the_exit_code_of_a_run_that_went_well(came: tuple[Outcome, ...], code: ExitCode) -> None:
    assert adhoc_exit_code(view(*came)) is code


def test_what_was_denied_failed_or_was_not_seen() -> None:
    assert adhoc_exit_code(view(Outcome.DENIED, run=RUNS["denied"])) is ExitCode.DENIED
    assert adhoc_exit_code(view(Outcome.FAILED, run=RUNS["all-failed"])) is ExitCode.ERROR
    assert adhoc_exit_code(view(Outcome.FAILED, run=None)) is ExitCode.ERROR
    assert adhoc_exit_code(view(Outcome.DENIED, Outcome.FAILED, run=RUNS["denied"])) is ExitCode.PARTIAL
    assert adhoc_exit_code(replace(view(), items=(UNSEEN,))) is ExitCode.PARTIAL
    assert adhoc_exit_code(view(Outcome.NOT_BEGUN, run=RUNS["interrupted"])) is ExitCode.INTERRUPTED


def test_failures_that_were_told_before_are_not_told_twice() -> None:
    assert adhoc_text(view(Outcome.FAILED, run=None)) == ""
    assert "left out" in adhoc_text(view(Outcome.FAILED, Outcome.LEFT_OUT, run=None))


def test_words_are_those_of_the_provider() -> None:
    going_on = view(Outcome.ONGOING)
    assert "work on it goes on" in adhoc_text(going_on)
    assert "follows" not in adhoc_text(going_on)
    theirs = AdhocWords("books are being sorted", "Look at the shelves.")
    text = adhoc_text(replace(going_on, words=theirs))
    assert "books are being sorted" in text
    assert "Look at the shelves.\n" in text
