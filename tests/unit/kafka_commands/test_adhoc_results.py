"""Results of ad hoc commands by resource: text, JSON and exit code."""

import json
from dataclasses import replace

import pytest
from jsonschema import Draft202012Validator

from kdeclare.core.documents import dump_document
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.plans.run import NOT_PROPAGATED, ApplyResult
from kdeclare.providers.kafka.commands.adhoc_changes import TOPIC_WORDING, TopicSummary
from kdeclare.report.adhoc import (
    SUCCESS_OUTCOMES,
    AdhocLabels,
    AdhocResult,
    ItemOutcome,
    ItemResult,
    build_adhoc_document,
    build_adhoc_schema,
    compute_adhoc_exit_code,
    render_adhoc_text,
)
from tests.unit.report.golden_files import check_golden, check_schema
from tests.unit.report.sample_runs import RUNS

DONE = RUNS["done"]
SEEN = TopicSummary(partitions=3, factors=(2, 3), replicas=8, in_sync=7, leaderless=1)
ITEMS = tuple(
    ItemResult(
        f"Topic/{came.value}",
        came,
        "" if came in SUCCESS_OUTCOMES else "Kafka's words.",
        seen=SEEN if came in (ItemOutcome.ALTERED, ItemOutcome.ONGOING) else None,
    )
    for came in ItemOutcome
)
UNSEEN = ItemResult("Topic/late\x1b[2J", ItemOutcome.CREATED, unlike=("topic", "configs"))
EVERYTHING = AdhocResult(
    DONE, (*ITEMS, UNSEEN), verified_s=30.0, written=("manifests/orders.yaml",), words=TOPIC_WORDING
)


def make_result(*came: ItemOutcome, run: ApplyResult | None = DONE) -> AdhocResult:
    return AdhocResult(run, tuple(ItemResult(f"Topic/{n}", each) for n, each in enumerate(came)))


def test_adhoc_text_matches_golden_file() -> None:
    check_golden("by-hand", render_adhoc_text(EVERYTHING))


def test_adhoc_document_matches_schema() -> None:
    for each in (EVERYTHING, make_result(ItemOutcome.FAILED, run=None)):
        Draft202012Validator(build_adhoc_schema(TopicSummary)).validate(
            json.loads(json.dumps(dump_document(build_adhoc_document(each, 1.5))))
        )
    check_schema("by-hand", build_adhoc_schema(TopicSummary))


@pytest.mark.parametrize(
    ("came", "code"),
    [
        ((ItemOutcome.CREATED, ItemOutcome.UNCHANGED, ItemOutcome.LEFT_OUT), ExitCode.OK),
        ((ItemOutcome.CREATED, ItemOutcome.FAILED), ExitCode.PARTIAL),
        ((ItemOutcome.UNCHANGED, ItemOutcome.FAILED), ExitCode.PARTIAL),
        ((ItemOutcome.FAILED, ItemOutcome.FAILED), ExitCode.PARTIAL),  # in each case, something was changed
        ((ItemOutcome.LEFT_OUT,), ExitCode.OK),
    ],
)
def test_adhoc_exit_code_of_completed_run(came: tuple[ItemOutcome, ...], code: ExitCode) -> None:
    assert compute_adhoc_exit_code(make_result(*came)) is code


def test_adhoc_exit_code_of_denied_and_failed_runs() -> None:
    assert compute_adhoc_exit_code(make_result(ItemOutcome.DENIED, run=RUNS["denied"])) is ExitCode.DENIED
    assert compute_adhoc_exit_code(make_result(ItemOutcome.FAILED, run=RUNS["all-failed"])) is ExitCode.ERROR
    assert compute_adhoc_exit_code(make_result(ItemOutcome.FAILED, run=None)) is ExitCode.ERROR
    assert (
        compute_adhoc_exit_code(make_result(ItemOutcome.DENIED, ItemOutcome.FAILED, run=RUNS["denied"]))
        is ExitCode.PARTIAL
    )
    assert compute_adhoc_exit_code(replace(make_result(), items=(UNSEEN,))) is ExitCode.PARTIAL
    assert (
        compute_adhoc_exit_code(make_result(ItemOutcome.NOT_BEGUN, run=RUNS["interrupted"]))
        is ExitCode.INTERRUPTED
    )


def test_adhoc_exit_code_is_partial_if_failed_operation_took_effect_in_part() -> None:
    """A throttle that not every broker applies yet stays set, although the moves after it were skipped."""
    failed = RUNS["all-failed"]
    results = {id_: replace(result, error=NOT_PROPAGATED) for id_, result in failed.results.items()}
    run = replace(failed, results=results)
    assert compute_adhoc_exit_code(make_result(ItemOutcome.FAILED, run=run)) is ExitCode.PARTIAL


def test_adhoc_text_does_not_repeat_reported_failures() -> None:
    assert render_adhoc_text(make_result(ItemOutcome.FAILED, run=None)) == ""
    assert "skipped" in render_adhoc_text(make_result(ItemOutcome.FAILED, ItemOutcome.LEFT_OUT, run=None))


def test_adhoc_text_uses_labels_of_provider() -> None:
    going_on = make_result(ItemOutcome.ONGOING)
    assert "in progress" in render_adhoc_text(going_on)
    assert "to follow" not in render_adhoc_text(going_on)
    theirs = AdhocLabels("books are being sorted", "Look at the shelves.")
    text = render_adhoc_text(replace(going_on, words=theirs))
    assert "books are being sorted" in text
    assert "Look at the shelves.\n" in text
