"""Output of `topic list`, `topic describe` and `config describe`: text at two widths, and JSON."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from kdeclare.core.documents import dump_document
from kdeclare.providers.kafka.commands.topic_text import (
    render_configs,
    render_topic_list,
    render_topic_names,
    render_topics,
)
from kdeclare.providers.kafka.commands.views import build_document_schemas
from kdeclare.report.elements.terminal import ELISION_NOTE, Style, measure_width
from tests.unit.kafka_commands.sample_topics import CONFIGS, DESCRIBED, LISTS
from tests.unit.report.golden_files import check_golden, check_schema

WIDTHS = (None, 80, 160)
COLOURS = Style(on=True)
Text = Callable[..., str]
BY_NAME: Mapping[str, tuple[Text, Any]] = {
    **{f"topic-list-{name}": (render_topic_list, view) for name, view in LISTS.items()},
    **{f"topic-describe-{name}": (render_topics, view) for name, view in DESCRIBED.items()},
    **{f"config-describe-{name}": (render_configs, view) for name, view in CONFIGS.items()},
}


@pytest.mark.parametrize("name", BY_NAME)
@pytest.mark.parametrize("width", [80, 160])
def test_describe_text_matches_golden_file(name: str, width: int) -> None:
    text, view = BY_NAME[name]
    check_golden(f"{name}-{width}", text(view, width))


@given(st.lists(st.from_regex(r"[a-z0-9._-]{1,249}", fullmatch=True), min_size=1), st.integers(80, 250))
def test_topic_list_with_long_names_fits_terminal_width(names: list[str], width: int) -> None:
    view = LISTS["full"]
    topics = tuple(replace(view.topics[0], name=name) for name in names)
    _, _, *lines = render_topic_list(replace(view, topics=topics), width).splitlines()
    assert all(measure_width(line) <= width for line in lines[: len(names) + 1])
    whole = render_topic_list(replace(view, topics=topics))
    assert all(name in whole for name in names)
    assert ELISION_NOTE not in whole
    shown = "\n".join(lines)
    assert (ELISION_NOTE in shown) or all(name in shown for name in names)


@pytest.mark.parametrize("name", BY_NAME)
@pytest.mark.parametrize("width", WIDTHS)
def test_colors_add_only_color_sequences(name: str, width: int | None) -> None:
    text, view = BY_NAME[name]
    coloured = text(view, width, COLOURS)
    assert re.sub(r"\x1b\[\d+m", "", coloured) == text(view, width)
    assert text(view, width).isprintable() or set(re.findall(r"[^ -~–…]", text(view, width))) == {"\n"}


@pytest.mark.parametrize("name", BY_NAME)
def test_text_without_terminal_is_not_truncated(name: str) -> None:
    text, view = BY_NAME[name]
    assert "…" not in text(view)


@pytest.mark.parametrize("name", [n for n in BY_NAME if "hostile" not in n])
@pytest.mark.parametrize("width", [80, 160])
def test_describe_text_fits_terminal_width(name: str, width: int) -> None:
    text, view = BY_NAME[name]
    prose = re.compile(r"\S+: .*, replication factor .*|.*\.")
    rows = [line for line in text(view, width).splitlines() if not prose.fullmatch(line)]
    assert all(len(line) <= width for line in rows)
    assert rows or "none" in name or name.startswith("topic-describe-no-")


def test_topic_names_are_printed_one_per_line() -> None:
    assert render_topic_names(LISTS["full"]).splitlines() == [t.name for t in LISTS["full"].topics]
    assert render_topic_names(LISTS["none"]) == ""


def test_topics_text_marks_and_explains_moves() -> None:
    assert "1,2,+4,-3" in render_topics(DESCRIBED["full"])
    assert "+4 is being added" in render_topics(DESCRIBED["full"])
    assert "being added" not in render_topics(DESCRIBED["quick"])


def _dump(view: object) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(dump_document(view)))
    return document


def _validate_document(name: str, document: dict[str, Any]) -> None:
    Draft202012Validator(build_document_schemas()[name]).validate(document)


def test_documented_schemas_are_current() -> None:
    for name, schema in build_document_schemas().items():
        check_schema(name, schema)


@pytest.mark.parametrize("name", LISTS)
def test_topic_list_document_matches_schema(name: str) -> None:
    document = _dump(LISTS[name])
    _validate_document("topic-list", document)
    assert [t["name"] for t in document["topics"]] == [t.name for t in LISTS[name].topics]


@pytest.mark.parametrize("name", DESCRIBED)
def test_topic_describe_document_matches_schema(name: str) -> None:
    _validate_document("topic-describe", _dump(DESCRIBED[name]))


@pytest.mark.parametrize("name", CONFIGS)
def test_config_describe_document_matches_schema(name: str) -> None:
    _validate_document("config-describe", _dump(CONFIGS[name]))


def test_schema_rejects_unknown_fields() -> None:
    document = _dump(DESCRIBED["full"])
    document["topics"][0]["counts"]["sleepy"] = 1
    assert not Draft202012Validator(build_document_schemas()["topic-describe"]).is_valid(document)


def test_topic_document_has_moves_factors_and_unknown_values() -> None:
    document = _dump(DESCRIBED["full"])
    _, orders, troubled = document["topics"]
    assert (orders["replication_factor"], orders["replication_factors"]) == (3, [3])
    assert (troubled["replication_factor"], troubled["replication_factors"]) == (None, [2, 3])
    moving = troubled["partitions"][1]
    assert (moving["replicas"], moving["target"]) == ([1, 2, 4, 3], [1, 2, 4])
    assert moving["conditions"] == ["under-replicated", "at-min-isr", "not-preferred-leader", "moving"]
    assert troubled["sizes"] == {"data": None, "on_disk": None}
    assert orders["partitions"][1]["sizes"][0] == 90 * 2**20
    assert [c["key"] for c in orders["overrides"]] == ["cleanup.policy", "retention.ms"]
    assert [c["source"] for c in orders["configs"]][1] == "DYNAMIC_DEFAULT_BROKER_CONFIG"


def test_config_output_hides_sensitive_values() -> None:
    broker = _dump(CONFIGS["brokers"])["resources"][1]["configs"]
    assert [(c["key"], c["value"]) for c in broker if c["sensitive"]] == [("ssl.key.password", None)]
    assert "ssl.key.password     (sensitive)" in render_configs(CONFIGS["brokers"])
