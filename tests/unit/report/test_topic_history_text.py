"""The history of a topic: one entry for each change."""

import json
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from kdeclare.core.documents import dump_document
from kdeclare.core.live.live_codec import LiveKey
from kdeclare.fleet.history.object_history import ObjectVersion, Turn, list_turns
from kdeclare.providers.kafka.fleet.codec import dump_live_topic
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import ConfigEntry, ConfigSource, ConfigType, Move, Partition, Topic
from kdeclare.report.fleet.snapshot_text import build_object_history_document, render_object_history_text
from tests.browser.sample_audits import NOON, SILENT
from tests.jsontypes import Json
from tests.unit.report.golden_files import check_golden

ORDERS = LiveKey("Topic", "orders")


def make_version(day: int, body: Json, error: str | None = None) -> ObjectVersion:
    when = NOON + timedelta(days=day)
    return ObjectVersion(when, f"{when:%Y%m%d-%H%M%S}-a1b2", body, error)


def make_body(*replicas: list[int], **configs: str) -> Json:
    return {"partitions": list(replicas), "configs": {key.replace("_", "."): v for key, v in configs.items()}}


STORY = [
    make_version(0, None),
    make_version(1, make_body([1, 2], [2, 3], retention_ms="604800000")),
    make_version(2, make_body([1, 2], [2, 3], retention_ms="604800000")),
    make_version(3, None, SILENT),
    make_version(4, None, SILENT),
    make_version(5, make_body([1, 2], [2, 1], [3, 1], retention_ms="1000", cleanup_policy="compact")),
    make_version(6, make_body([1, 2], [2, 1], [3, 1], retention_ms="1000")),
    make_version(7, None),
    make_version(8, make_body([1, 2])),
]


def test_topic_history_matches_golden_files() -> None:
    check_golden("topic-history", render_object_history_text("eu-1", ORDERS, STORY))
    document = dump_document(build_object_history_document("eu-1", ORDERS, STORY))
    check_golden("topic-history", json.dumps(document, indent=1) + "\n", "json")


def test_topic_history_without_snapshots_or_topic() -> None:
    assert render_object_history_text("eu-1", ORDERS, ()) == "No snapshots of eu-1 yet.\n"
    unseen = render_object_history_text("eu-1", ORDERS, [make_version(0, None)])
    assert unseen == "Topic/orders on eu-1: not found in 1 snapshot.\n"


def test_read_error_is_not_a_change() -> None:
    same = make_body([1, 2], retention_ms="1")
    found = list_turns([make_version(0, same), make_version(1, None, "refused"), make_version(2, same)])
    assert [turn.turn for turn in found] == [Turn.APPEARED, Turn.UNKNOWN]


def test_changed_parts_are_listed_separately() -> None:
    old = {"partitions": [{"replicas": [1, 2], "dirs": "a"}], "configs": {"x": {"value": "1", "source": "s"}}}
    new = {"partitions": [{"replicas": [1, 2], "dirs": "b"}], "configs": {"x": {"value": "2", "source": "s"}}}
    *_, last = list_turns([make_version(0, old), make_version(1, new)])
    assert [(f.path, f.before, f.after) for f in last.fields] == [
        ("assignments.0.dirs", "a", "b"),
        ("configs.x", "1", "2"),
    ]


def test_snapshot_bodies_show_effective_changes() -> None:
    def build_version(day: int, id_: str, retention: str, moves: frozenset[tuple[str, int]]) -> ObjectVersion:
        key = ConfigEntry(retention, ConfigSource.TOPIC)
        policy = ConfigEntry("compact", ConfigSource.BROKER, ConfigType.LIST)
        topic = Topic("orders", id_, (Partition((1, 2)),))
        of = {TopicPartition(t, n): Move((1, 2, 3), (3,), (1,)) for t, n in moves}
        return make_version(day, dump_live_topic(topic, {"retention.ms": key, "cleanup.policy": policy}, of))

    story = [
        build_version(0, "a", "1000", frozenset()),
        build_version(1, "a", "2000", frozenset({("orders", 0)})),
        build_version(2, "b", "2000", frozenset()),
    ]
    text = render_object_history_text("eu-1", ORDERS, story)
    said = [line.strip() for line in text.splitlines() if line.startswith("  ")]
    assert said == [
        "retention.ms                 1000 (1 s) → 2000 (2 s)",
        'reassignment of partition 0  (unset) → {"replicas": [1, 2, 3], "adding": [3], "removing": [1]}',
        "topic id (re-created)        a → b",
        'reassignment of partition 0  {"replicas": [1, 2, 3], "adding": [3], "removing": [1]} → (unset)',
    ]


def test_topic_history_shortens_many_partition_changes() -> None:
    text = render_object_history_text(
        "eu-1",
        LiveKey("Topic", "t"),
        [make_version(0, make_body(*[[1]] * 1000)), make_version(1, make_body(*[[2]] * 1000))],
    )
    assert "1,000 changes" in text
    assert "… and 940 more fields" in text
    numbers = [line.split()[3] for line in text.splitlines() if "replicas of partition" in line]
    assert numbers == [str(n) for n in range(60)]


configs = st.dictionaries(st.sampled_from(["a", "b.c", "d"]), st.text(max_size=3))
bodies = st.none() | st.builds(
    lambda partitions, values: {"partitions": partitions, "configs": values},
    st.lists(st.lists(st.integers(1, 3), max_size=2), max_size=3),
    configs,
)


@given(st.lists(bodies, max_size=6))
def test_list_turns_finds_exactly_the_differing_versions(story: list[Json]) -> None:
    versions = [make_version(day, one) for day, one in enumerate(story)]
    changed = [day for day, one in enumerate(story) if one != (story[day - 1] if day else None)]
    found = list_turns(list(reversed(versions)))
    assert [(turn.version.taken_at - NOON).days for turn in found] == changed
    for turn in found:
        assert bool(turn.fields) == (turn.turn is Turn.CHANGED)
        assert all(field.before != field.after for field in turn.fields)
