"""The history of live objects other than topics."""

import pytest

from kdeclare.app.fleet.snapshot import build_unknown_object_error, parse_live_key
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.documents import dump_document
from kdeclare.core.live.live_codec import LiveKey
from kdeclare.core.secrets.secret_refs import UNKNOWN_HASH
from kdeclare.report.fleet.snapshot_text import build_object_history_document, render_object_history_text
from tests.jsontypes import Json
from tests.unit.report.test_topic_history_text import make_version


def render_lines(key: LiveKey, *bodies: Json) -> list[str]:
    text = render_object_history_text(
        "eu-1", key, [make_version(day, body) for day, body in enumerate(bodies)]
    )
    return [line for line in text.splitlines() if line.startswith("  ")]


def test_parse_live_key_reads_plain_word_as_topic() -> None:
    assert parse_live_key("orders") == LiveKey("Topic", "orders")
    assert parse_live_key("Topic/orders") == LiveKey("Topic", "orders")
    assert parse_live_key("ClientQuota/user=a/b") == LiveKey("ClientQuota", "user=a/b")


def test_parse_live_key_suggests_known_kind() -> None:
    with pytest.raises(KdeclareError) as caught:
        parse_live_key("BrokerConfg/1")
    (problem,) = caught.value.diagnostics
    assert (problem.code, problem.hint) == ("unknown-kind", "Did you mean 'BrokerConfig'?")


def test_unknown_object_error_names_object() -> None:
    topic = build_unknown_object_error("eu-1", LiveKey("Topic", "t"), 2)
    assert (topic.code, topic.detail) == (
        "no-such-topic",
        "No snapshot has a topic 't' in cluster 'eu-1' (snapshots: 2).",
    )
    other = build_unknown_object_error("eu-1", LiveKey("BrokerConfig", "9"), 2)
    assert (other.code, other.detail) == (
        "no-such-object",
        "No snapshot has BrokerConfig '9' in cluster 'eu-1' (snapshots: 2).",
    )


def test_object_history_names_fields_like_plans() -> None:
    broker = LiveKey("BrokerConfig", "1")
    before, after = ({"configs": {"log.cleaner.threads": {"value": n}}} for n in "12")
    assert render_lines(broker, before, after) == ["  log.cleaner.threads  1 → 2"]
    quota = LiveKey("ClientQuota", "user=a")
    assert render_lines(quota, {"request_percentage": 5}, {"request_percentage": 50}) == [
        "  limits.request_percentage  5 → 50"
    ]


def test_object_history_without_codec_compares_plain_fields() -> None:
    secret = {"secret": UNKNOWN_HASH}
    before, after = {"id": 1, "token": None, "rooms": ["a"]}, {"id": 2, "token": secret, "rooms": ["a"]}
    assert render_lines(LiveKey("FrontDoor", "main"), before, after) == [
        "  id     1 → 2",
        "  token  (unset) → (sensitive)",
    ]


def test_object_history_document_names_topic_or_kind_and_name() -> None:
    found = [make_version(0, {"a": 1}), make_version(1, {"a": 2})]
    document: Json = dump_document(build_object_history_document("eu-1", LiveKey("FrontDoor", "main"), found))
    assert document["topic"] == "FrontDoor/main"
    assert document["history"][1]["fields"] == [{"path": "a", "before": 1, "after": 2}]
