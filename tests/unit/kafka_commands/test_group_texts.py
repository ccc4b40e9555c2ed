"""Output of ``group list``, ``group describe``, and of the plans for groups: text at two widths, and JSON."""

import json
import re
from dataclasses import replace

import pytest
from jsonschema import Draft202012Validator

from kdeclare.core.documents import dump_document
from kdeclare.core.plans.plan import ClusterRef, Plan
from kdeclare.core.resources.changes import Action
from kdeclare.providers.kafka.commands.group_plan import (
    GroupChange,
    PlanSource,
    build_deletion,
    build_group_plan,
    find_denial,
)
from kdeclare.providers.kafka.commands.group_text import render_group_list, render_group_names, render_groups
from kdeclare.providers.kafka.commands.group_views import (
    GroupDetail,
    GroupListView,
    GroupsView,
    GroupView,
    MemberView,
    OffsetView,
    build_group_schemas,
)
from kdeclare.providers.kafka.consumer_group.arguments import AlterOffsetsArgs, LogRange, OffsetChange
from kdeclare.providers.kafka.consumer_group.collector import LiveGroup
from kdeclare.providers.kafka.consumer_group.group import CommittedOffset, GroupType, ListedGroup
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.report.elements.terminal import Style
from kdeclare.report.plan.plan_text import plan_text
from tests.unit.report.golden_files import check_golden, check_schema

LONG = "payments.captured.by-country-and-currency.europe.with-a-very-long-name.v2"
GROUPS = GroupListView(
    "lab:9092",
    (
        GroupView("billing", GroupType.CONSUMER, "consumer", "Stable"),
        GroupView(LONG, GroupType.CLASSIC, "consumer", "Empty"),
        GroupView("odd\x1b[2J", GroupType.CLASSIC, "", "Dead"),
        GroupView("queue", GroupType.SHARE, "share", "Stable"),
        GroupView("topology", GroupType.STREAMS, "", "NotReady"),
        GroupView("workers", GroupType.CLASSIC, "connect", "PreparingRebalance"),
    ),
)
DETAILS = GroupsView(
    "lab:9092",
    (
        GroupDetail(
            "billing",
            GroupType.CONSUMER,
            "",
            "Stable",
            (
                MemberView("KxZcGQ3lT7q0", "app-1", "/10.0.0.7", "billing-1", ("orders-0", "orders-1")),
                MemberView("uV-29ahIQWSS", "app-2", "/10.0.0.8", None, ()),
            ),
            (
                OffsetView("orders", 0, 999_990, 0, 1_234_567, 234_577, "KxZcGQ3lT7q0", ""),
                OffsetView("orders", 1, None, 5, 7, None, "KxZcGQ3lT7q0", ""),
                OffsetView(LONG, 12, 7, None, None, None, None, "seen"),
            ),
        ),
        GroupDetail("idle", GroupType.CLASSIC, "consumer", "Empty", (), ()),
        GroupDetail("queue", GroupType.SHARE, "", "Stable", None, None),
        GroupDetail("topology", GroupType.STREAMS, "", "NotReady", None, None),
        GroupDetail("workers", GroupType.CLASSIC, "connect", "Stable", (), None),
    ),
)
NO_GROUPS = GroupListView("lab:9092", ())


@pytest.mark.parametrize("width", [80, 160])
def test_group_texts_match_golden_files(width: int) -> None:
    check_golden(f"group-list-{width}", render_group_list(GROUPS, width))
    check_golden(f"group-describe-{width}", render_groups(DETAILS, width, members=True))


@pytest.mark.parametrize("width", [None, 80])
def test_colors_add_only_color_sequences(width: int | None) -> None:
    for plain, coloured in (
        (render_group_list(GROUPS, width), render_group_list(GROUPS, width, Style(on=True))),
        (render_groups(DETAILS, width), render_groups(DETAILS, width, Style(on=True))),
    ):
        assert re.sub(r"\x1b\[\d+m", "", coloured) == plain
        assert "\x1b" not in plain
    assert "…" not in render_groups(DETAILS, members=True)


def test_empty_lists_are_sentences() -> None:
    assert render_group_list(NO_GROUPS) == "No groups on lab:9092.\n"
    assert render_group_list(replace(NO_GROUPS, is_filtered=True)) == "No matching groups on lab:9092.\n"
    assert render_groups(GroupsView("lab:9092", ())) == "No groups on lab:9092.\n"
    assert render_group_names(GROUPS).splitlines()[:3] == ["billing", LONG, "odd\\x1b[2J"]


def test_group_documents_match_schemas() -> None:
    schemas = build_group_schemas()
    for name, view in (("group-list", GROUPS), ("group-list", NO_GROUPS), ("group-describe", DETAILS)):
        document = json.loads(json.dumps(dump_document(view)))
        Draft202012Validator(schemas[name]).validate(document)
    for name, schema in schemas.items():
        check_schema(name, schema)


def make_plan() -> Plan:
    """Return a plan that resets one group, creates one, deletes one, and denies two."""
    live = {
        "billing": LiveGroup(ListedGroup("billing", GroupType.CLASSIC, "", "Empty")),
        "old": LiveGroup(
            ListedGroup("old", GroupType.CONSUMER, "", "Empty"),
            {TopicPartition("orders", 0): CommittedOffset(5)},
        ),
    }
    log = LogRange(30, 100)
    changes = {
        "orders-0": OffsetChange(CommittedOffset(30), CommittedOffset(40), log),
        "orders-1": OffsetChange(CommittedOffset(100), CommittedOffset(3), log),
        "orders-2": OffsetChange(CommittedOffset(30), None, log),
        "orders-3": OffsetChange(None, CommittedOffset(30), log),
        "orders-4": OffsetChange(CommittedOffset(30), CommittedOffset(3), log),
    }
    offsets = {TopicPartition.parse(name): change.before for name, change in changes.items() if change.before}
    live["billing"] = replace(live["billing"], offsets=offsets)
    others = (
        ListedGroup("mail", GroupType.CONSUMER, "", "Stable"),
        ListedGroup("queue", GroupType.SHARE, "", "Empty"),
    )
    return build_group_plan(
        PlanSource("shop", "lab", ClusterRef("c", "lab:9092"), None),
        [
            GroupChange("billing", AlterOffsetsArgs("billing", changes)),
            GroupChange("new", AlterOffsetsArgs("new", {"orders-2": changes["orders-2"]})),
            GroupChange("old", build_deletion(live["old"])),
            *(GroupChange(group.id, denial=find_denial(group), action=Action.DELETE) for group in others),
            GroupChange("unchanged"),
        ],
        live,
        (),
    )


def test_plan_text_matches_golden_file() -> None:
    check_golden("group-plan", plan_text(make_plan()))
