"""The format of single values."""

import pytest

from kdeclare.report.elements.values import format_count, format_duration, format_value, sanitize_for_terminal
from tests.jsontypes import Json


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        ("configs.retention.ms", "604800000", "604800000 (7 d)"),
        ("configs.retention.ms", "129600000", "129600000 (1 d 12 h)"),
        ("configs.retention.ms", "-1", "-1 (no limit)"),
        ("configs.retention.ms", "999", "999"),
        ("configs.retention.ms", "90061001", "90061001 (≈ 1 d)"),
        ("configs.local.retention.ms", "-2", "-2 (as retention)"),
        ("configs.max.compaction.lag.ms", "9223372036854775807", "9223372036854775807 (no limit)"),
        ("configs.segment.ms", "-1", "-1"),
        ("configs.segment.bytes", "1073741824", "1073741824 (1 GiB)"),
        ("configs.max.message.bytes", "1048588", "1048588 (≈ 1 MiB)"),
        ("configs.segment.bytes", "1610612736", "1610612736 (≈ 1.5 GiB)"),
        ("configs.follower.replication.throttled.rate", "52428800", "52428800 (50 MiB/s)"),
        ("configs.log.cleaner.io.max.bytes.per.second", "1048576", "1048576 (1 MiB/s)"),
        ("limits.send_byte_rate", 1048576, "1048576 (1 MiB/s)"),
        ("configs.min.insync.replicas", "604800000", "604800000"),
        ("configs.retention.ms", "many", "many"),
        ("configs.retention.ms", "", '""'),
        ("configs.x", " padded", '" padded"'),
        ("configs.x", "a\x1b[31mb\n", '"a\\u001b[31mb\\n"'),
        ("configs.x", "a\x1b[31mb", "a\\x1b[31mb"),
        ("configs.x", None, "(unset)"),
        ("configs.cleanup.policy", ["compact", "delete"], "[compact, delete]"),
        ("configs.cleanup.policy", [], "[]"),
        ("replicas.orders-0", [1, 2], "[1, 2]"),
        ("partitions", 12, "12"),
        ("x", True, "true"),
        ("x", {"a": [1]}, '{"a": [1]}'),
        ("x", {"secret": "hash", "reference": None}, "(sensitive)"),
        ("x", {}, "{}"),
        ("x", {"password": "(sensitive)", "iterations": 8192}, "iterations 8192, password (sensitive)"),
        (
            "x",
            {"password": {"secret": "hash", "reference": None}, "n": None},
            "n (unset), password (sensitive)",
        ),
        ("x", {"a": "b, c d", "e": "\x1b"}, r'a "b, c d", e \x1b'),
    ],
)
def test_format_value_matches_samples(path: str, value: Json, text: str) -> None:
    assert format_value(value, path) == text


def test_format_helpers_match_samples() -> None:
    assert format_count(1, "topic") == "1 topic"
    assert format_count(2000, "topic") == "2,000 topics"
    assert sanitize_for_terminal("orders") == "orders"
    assert [format_duration(s) for s in (0.25, 5, 83, 4000)] == ["250 ms", "5.0 s", "1 min 23 s", "1 h 6 min"]
