"""Output of ``kdeclare usage``: text at two widths, and JSON."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from jsonschema import Draft202012Validator

from kdeclare.core.documents import dump_document
from kdeclare.providers.kafka.commands.usage.usage_text import format_age, render_usage
from kdeclare.providers.kafka.commands.usage.usage_views import (
    UsageView,
    build_usage_schemas,
    build_usage_view,
)
from kdeclare.providers.kafka.live import Topic
from kdeclare.providers.kafka.usage.topic_purpose import TopicPurpose, find_purpose
from kdeclare.providers.kafka.usage.topic_usage import ClusterUsage, GroupUsage, TopicUsage, Unknown
from kdeclare.report.elements.terminal import Style
from tests.unit.report.golden_files import check_golden, check_schema

NOW = datetime(2026, 11, 28, 12, 0, tzinfo=UTC)
MINUTE, DAY = 60_000, 86_400_000
LONG = "payments.captured.by-country-and-currency.europe.with-a-very-long-name.v2"


def at(age_ms: int) -> int:
    """Return the timestamp of a record with this age."""
    return int(NOW.timestamp() * 1000) - age_ms


NO_LEADER = Unknown("partition 3 has no leader")
NO_READ = Unknown("kdeclare lacks the Read permission on the topic")
ORDERS = TopicUsage(
    "orders",
    12,
    None,
    67_540_000,
    5_583_457_485,
    at(2 * MINUTE),
    at(2 * MINUTE),
    2,
    (
        GroupUsage("billing", "Stable", 3, 12_000),
        GroupUsage("mail\x1b[2J", "PreparingRebalance", None, 7),
        GroupUsage("archive", "Empty", 0, 67_540_000),
        GroupUsage("audit", "Empty", 0, 0),
    ),
)
TOPICS = (
    TopicUsage("app-orders-changelog", 3, TopicPurpose.STREAMS, 8, 900, at(3 * DAY), at(3 * DAY), 0, ()),
    TopicUsage("audit", 1, None, 40, 4_000, at(0), at(0), NO_READ, ()),
    TopicUsage("broken", 6, None, NO_LEADER, NO_LEADER, NO_LEADER, NO_LEADER, NO_LEADER, ()),
    TopicUsage("connect-offsets", 25, TopicPurpose.CONNECT, 0, 0, None, None, 0, ()),
    TopicUsage("legacy", 1, None, 1, 70, at(900 * DAY), at(900 * DAY), 0, ()),
    ORDERS,
    TopicUsage(
        LONG, 120, None, 1_234_567, 2**40, at(40 * DAY), at(40 * DAY), 0, (GroupUsage("g", "Empty", 0, 5),)
    ),
    TopicUsage("purged", 1, None, 0, 0, None, Unknown("all records of partition 0 were deleted"), 0, ()),
)
ALL = build_usage_view("lab:9092", NOW, ClusterUsage(TOPICS))
UNUSED = build_usage_view("lab:9092", NOW, ClusterUsage(TOPICS), 30 * 86_400.0)
ONE = build_usage_view("lab:9092", NOW, ClusterUsage((ORDERS,), unknown_groups=("mail",)))
UNREADABLE = build_usage_view(
    "lab:9092",
    NOW,
    ClusterUsage((replace(TOPICS[2], producers=NO_READ, groups=Unknown("the cluster has too many groups")),)),
)


@pytest.mark.parametrize("width", [80, 160])
def test_usage_texts_match_golden_files(width: int) -> None:
    check_golden(f"usage-{width}", render_usage(ALL, width))
    check_golden(f"usage-unused-{width}", render_usage(UNUSED, width))


def test_usage_of_one_topic_matches_golden_files() -> None:
    check_golden("usage-topic", render_usage(ONE, 80, has_details=True))
    check_golden("usage-topic-unknown", render_usage(UNREADABLE, 80, has_details=True))


def test_problems_are_reported_once_for_all_topics() -> None:
    assert [problem.detail for problem in ALL.diagnostics] == [
        "kdeclare could not determine the producers of 1 topic (audit): kdeclare lacks the Read "
        "permission on the topic.",
        "kdeclare could not determine the records, the size, the newest record and the producers of 1 topic "
        "(broken): partition 3 has no leader.",
    ]


@pytest.mark.parametrize("view", [ALL, UNUSED, ONE])
def test_colors_add_only_color_sequences(view: UsageView) -> None:
    for has_details in (True, False):
        plain = render_usage(view, 80, has_details=has_details)
        coloured = render_usage(view, 80, Style(on=True), has_details=has_details)
        assert re.sub(r"\x1b\[\d+m", "", coloured) == plain
        assert "\x1b" not in plain


def test_no_topics_is_a_sentence() -> None:
    assert render_usage(build_usage_view("lab:9092", NOW, ClusterUsage(()))) == "No topics on lab:9092.\n"


def test_usage_documents_match_schema() -> None:
    schemas = build_usage_schemas()
    for view in (ALL, UNUSED, ONE, UNREADABLE):
        document = json.loads(json.dumps(dump_document(view)))
        Draft202012Validator(schemas["usage"]).validate(document)
    check_schema("usage", schemas["usage"])


@pytest.mark.parametrize(
    ("age_ms", "text"),
    [
        (0, "now"),
        (59_999, "now"),
        (90 * MINUTE, "1 h ago"),
        (47 * 60 * MINUTE, "47 h ago"),
        (2 * DAY, "2 d ago"),
        (-DAY, "2026-11-29 12:00 UTC"),
        (-(10**17), f"{at(-(10**17))} ms, which is not a date"),
    ],
)
def test_age_is_rounded_down(age_ms: int, text: str) -> None:
    assert format_age(at(age_ms), NOW) == text


@pytest.mark.parametrize(
    ("name", "purpose"),
    [
        ("orders", None),
        ("changelog", None),
        ("disconnect-offsets", None),
        ("connect-metrics", None),
        ("__consumer_offsets", TopicPurpose.KAFKA),
        ("__audit", None),
        ("app-KSTREAM-AGGREGATE-STATE-STORE-0000000003-changelog", TopicPurpose.STREAMS),
        ("app-KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000006-topic", TopicPurpose.STREAMS),
        ("connect-configs", TopicPurpose.CONNECT),
        ("docker-connect-status", TopicPurpose.CONNECT),
        ("connect-cluster-offsets", TopicPurpose.CONNECT),
        ("mm2-offset-syncs.target.internal", TopicPurpose.MIRROR_MAKER),
        ("source.checkpoints.internal", TopicPurpose.MIRROR_MAKER),
        ("source.heartbeats", TopicPurpose.MIRROR_MAKER),
        ("_schemas", TopicPurpose.SCHEMA_REGISTRY),
    ],
)
def test_names_tell_the_purpose_of_topics(name: str, purpose: TopicPurpose | None) -> None:
    assert find_purpose(Topic(name, "", ())) is purpose


def test_internal_topics_belong_to_kafka() -> None:
    assert find_purpose(Topic("any", "", (), internal=True)) is TopicPurpose.KAFKA
