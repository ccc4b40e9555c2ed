"""Messages about audits in the formats of Slack, Teams, JSON and templates."""

import json
import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from kdeclare.core.secrets.scrubber import SCRUBBER
from kdeclare.fleet.finding_status import FIXED
from kdeclare.fleet.findings import AuditRow, FindingKind, FindingSeverity
from kdeclare.fleet.messages.notified_changes import NotifiedChanges
from kdeclare.manifests.fleet.manifest_links import ManifestLinks
from kdeclare.manifests.fleet.notification_target import MessageEvent, MessageFormat, NotificationTarget
from kdeclare.manifests.fleet.notification_template import (
    PLACEHOLDERS,
    MessageTemplate,
    explain_bad_message_template,
)
from kdeclare.report.fleet.fleet_runs import build_fleet_schemas
from kdeclare.report.fleet.notifications.message_body import render_message_body
from kdeclare.report.fleet.notifications.notification import Notification
from tests.browser.sample_audits import build_big_audit, build_row, build_small_audit
from tests.unit.report.golden_files import check_golden

SMALL = build_small_audit()
REPORT = "https://ci.example/audits/report.html?a=1&b=2"
HOSTILE = (
    "<!channel> <https://evil.example|click> [click](https://evil.example) @here *b* `c` </at> &amp; \x1b[1m"
)


def make_notification(format_: MessageFormat, **fields: Any) -> Notification:
    rows = tuple(replace(row, source="manifests/a b.yaml:4:18") for row in SMALL.rows)
    fixed = tuple(replace(row, status=FIXED) for row in SMALL.mended)
    target = NotificationTarget("platform", format_, "${env.URL}", where="severity>=low", team="payments")
    notification = Notification(
        target, SMALL.summary, SMALL.summary, NotifiedChanges(rows, fixed), SMALL.links, REPORT
    )
    return replace(notification, **fields)


def make_hostile_rows(count: int) -> tuple[AuditRow, ...]:
    return tuple(
        replace(
            build_row(
                FindingKind.CHANGED,
                HOSTILE,
                f"{HOSTILE}{n}" * 20,
                f"configs.{HOSTILE}",
                "SET",
                (HOSTILE * 50, f"{n}"),
            ),
            message=HOSTILE * 50,
            labels={"team": HOSTILE},
            status="new",
            severity=FindingSeverity.HIGH,
            source=f"{HOSTILE}:4:18",
        )
        for n in range(count)
    )


def make_hostile(format_: MessageFormat, count: int = 40) -> Notification:
    target = NotificationTarget("platform", format_, "${env.URL}", where=HOSTILE, team=HOSTILE)
    rows = make_hostile_rows(count)
    summary = replace(SMALL.summary, fleet=HOSTILE)
    links = ManifestLinks("https://git.example/{path}#L{line}")
    return Notification(target, summary, None, NotifiedChanges(rows, rows), links, REPORT)


@pytest.mark.parametrize("format_", ["slack", "teams", "json"])
def test_message_matches_golden_file(format_: MessageFormat) -> None:
    check_golden(
        f"notification-{format_}", render_message_body(make_notification(format_), is_indented=True), "json"
    )


@pytest.mark.parametrize("format_", ["slack", "teams", "json"])
def test_message_without_news_matches_golden_file(format_: MessageFormat) -> None:
    always = NotificationTarget("nightly", format_, "${env.URL}", events=frozenset({"always"}))
    quiet = make_notification(format_, target=always, since=None, changes=NotifiedChanges((), ()))
    assert quiet.is_due
    check_golden(f"notification-{format_}-nothing", render_message_body(quiet, is_indented=True), "json")


def test_template_message_matches_golden_file() -> None:
    text = "\n".join(f"{name}: {{{name}}}" for name in PLACEHOLDERS)
    target = NotificationTarget(
        "pager", "template", "${env.URL}", template=MessageTemplate(text, "text/plain")
    )
    check_golden(
        "notification-template", render_message_body(make_notification("template", target=target)) + "\n"
    )


def test_json_message_meets_published_schema() -> None:
    validator = Draft202012Validator(build_fleet_schemas()["fleet-notification"])
    for notification in (
        make_notification("json"),
        make_hostile("json", 300),
        make_notification("json", since=None),
    ):
        validator.validate(json.loads(render_message_body(notification)))


_OWN_LINK = re.compile(r"<(https://(?:git|ci)\.example/[^<>|\s]*\|(?:manifest|Open the report))>")


def list_strings(value: Any, key: str = "") -> list[tuple[str, str]]:
    if isinstance(value, str):
        return [(key, value)]
    items = (
        value.items()
        if isinstance(value, dict)
        else ((key, item) for item in value)
        if isinstance(value, list)
        else ()
    )
    return [found for name, item in items for found in list_strings(item, name)]


def test_slack_message_contains_no_foreign_markup() -> None:
    message = json.loads(render_message_body(make_hostile("slack")))
    links = []
    for block in message["blocks"]:
        for text in [block["text"]] if "text" in block else block["elements"]:
            assert "\x1b" not in text["text"]
            if text["type"] == "plain_text":
                continue
            assert text["verbatim"] is True
            links += _OWN_LINK.findall(text["text"])
            rest = _OWN_LINK.sub("", text["text"])
            assert "<" not in rest
            assert ">" not in rest
    assert "https://ci.example/audits/report.html?a=1&amp;b=2|Open the report" in links
    assert "<" not in message["text"]


def test_slack_message_keeps_limits() -> None:
    big = NotifiedChanges(build_big_audit(500).rows, build_big_audit(500).rows)
    for notification in (make_hostile("slack", 1000), make_notification("slack", changes=big)):
        blocks = json.loads(render_message_body(notification))["blocks"]
        assert len(blocks) <= 50
        assert len(blocks[0]["text"]["text"]) <= 150
        texts = [
            text["text"]
            for block in blocks
            for text in ([block["text"]] if "text" in block else block["elements"])
        ]
        assert all(0 < len(text) <= 3000 for text in texts)


def test_teams_message_interprets_no_foreign_text() -> None:
    message = json.loads(render_message_body(make_hostile("teams")))
    card = message["attachments"][0]["content"]
    assert {block["type"] for block in card["body"]} == {"RichTextBlock"}
    assert {run["type"] for block in card["body"] for run in block["inlines"]} == {"TextRun"}
    urls = {text for key, text in list_strings(message) if key == "url"}
    assert {url for url in urls if not url.startswith("https://git.example/%3C%21channel")} == {REPORT}
    assert "entities" not in json.dumps(message)  # without entities, <at> is text


def test_teams_message_keeps_limit() -> None:
    for count in (1, 10, 1000):
        message = render_message_body(make_hostile("teams", count))
        assert len(message.encode("utf-16-le")) <= 28_000
        assert f"{count:,} new finding" in message


def test_age_is_shown_for_findings_that_are_new_for_recipient() -> None:
    now = SMALL.summary.taken_at
    for age, is_fixed, text in (
        (timedelta(days=10), False, "open for 10 days"),
        (timedelta(days=10), True, "was open for 10 days"),
        (timedelta(0), False, ""),
    ):
        row = build_row(FindingKind.MISSING, "eu-1", "t", status=FIXED if is_fixed else "new")
        rows = (replace(row, first_seen=now - age),)
        changes = NotifiedChanges(() if is_fixed else rows, rows if is_fixed else ())
        for format_ in ("slack", "teams"):
            body = render_message_body(make_notification(format_, changes=changes))
            assert text in body
            assert ("open for" in body) is bool(text)


def test_secrets_are_removed_from_values_but_not_from_keys() -> None:
    secret = 'quoted "secret" & more'
    for value in ("message", "headline", secret):
        SCRUBBER.register(value)
    rows = tuple(
        replace(row, message=f"{secret} {'x' * 290} {secret}", status="new") for row in make_hostile_rows(2)
    )
    template = MessageTemplate('{"headline": "{new}", "message": "the headline"}')
    for format_ in ("slack", "teams", "json", "template"):
        notification = make_notification(format_, changes=NotifiedChanges(rows, ()))
        if format_ == "template":
            target = replace(notification.target, format="template", template=template)
            notification = replace(notification, target=target)
        body = render_message_body(notification)
        message = json.loads(body)
        assert "secret" not in body
        assert "(sensitive)" in body
        if format_ == "json":
            assert all(finding["message"].startswith("(sensitive) x") for finding in message["new"])
            assert "headline" in message
        if format_ == "template":
            assert message["message"] == "the headline"


def test_omitted_findings_are_counted() -> None:
    rows = tuple(
        build_row(FindingKind.MISSING, "eu-1", f"t.{n}", message=f"{n}", status="new") for n in range(25)
    )
    for format_ in ("slack", "teams"):
        assert "… and 15 more new findings" in render_message_body(
            make_notification(format_, changes=NotifiedChanges(rows, ()))
        )
    message = json.loads(
        render_message_body(make_notification("json", changes=NotifiedChanges(rows * 10, ())))
    )
    assert (message["new_count"], len(message["new"])) == (250, 100)


def test_json_message_is_bounded() -> None:
    huge = tuple(replace(row, before=json.dumps("x" * 100_000)) for row in make_hostile_rows(40))
    body = render_message_body(make_notification("json", changes=NotifiedChanges(huge, ())))
    assert len(body.encode()) <= 256 * 1024
    assert json.loads(body)["new_count"] == 40


def test_events_select_findings() -> None:
    notification = make_notification("json")
    cases: tuple[tuple[MessageEvent, bool, bool], ...] = (
        ("new", True, False),
        ("fixed", False, True),
        ("always", True, True),
    )
    for event, has_new, has_fixed in cases:
        chosen = replace(notification, target=replace(notification.target, events=frozenset({event})))
        message = json.loads(render_message_body(chosen))
        assert (bool(message["new"]), bool(message["fixed"])) == (has_new, has_fixed)
    only_new = replace(notification.target, events=frozenset({"new"}))
    assert not replace(notification, target=only_new, changes=NotifiedChanges((), SMALL.mended)).is_due


@given(st.text(max_size=80), st.text(max_size=80))
def test_values_cannot_change_structure_of_template(name: str, message: str) -> None:
    row = replace(build_row(FindingKind.MISSING, "eu-1", name), message=message, status="new")
    template = MessageTemplate('{"a": "{headline}", "b": ["{new}"], "n": {new_count}}')
    target = NotificationTarget("t", "template", "${env.URL}", template=template, team=name)
    body = render_message_body(
        make_notification("template", target=target, changes=NotifiedChanges((row,), ()))
    )
    document = json.loads(body)
    assert (document.keys(), document["n"]) == ({"a", "b", "n"}, 1)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"text": "{headlin}"}', "there is no value {headlin}"),
        ('{"text": {headline}}', "not valid JSON"),
        ('{"key": "${env.KEY}"}', "references are not resolved"),
        ("hello", "not valid JSON"),
    ],
)
def test_bad_template_is_explained(text: str, reason: str) -> None:
    assert reason in (explain_bad_message_template(MessageTemplate(text)) or "")


@pytest.mark.parametrize("text", ['{"a": {"b": "{new}"}, "n": {open_count}}', '"{headline}"'])
def test_good_template_is_accepted(text: str) -> None:
    assert explain_bad_message_template(MessageTemplate(text)) is None
