"""``fleet notify`` sends each message about an audit once, to real HTTP servers on this machine."""

import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from jsonschema import validate

from kdeclare.app.fleet import notify as notify_module
from kdeclare.cli.main import main
from kdeclare.core.progress import ignore_progress
from kdeclare.http import webhook
from kdeclare.report.fleet.fleet_runs import build_fleet_schemas
from tests.http_servers import serve
from tests.pems import pems as pems
from tests.spark.real_fleet import SECRETS, RealFleet, accept_drift, make_real_fleet
from tests.webhooks import Hook, accept, answer, make_handler

PATH = "/services/T0123/B4567/xoxb-the-secret-of-the-webhook"


def cut(handler: BaseHTTPRequestHandler) -> None:
    handler.connection.shutdown(socket.SHUT_RDWR)


def trickle(handler: BaseHTTPRequestHandler) -> None:
    """Send one byte of the response at a time, for longer than any timeout of these tests."""
    try:
        for _ in range(40):
            handler.wfile.write(b"H")
            time.sleep(0.1)
    except OSError:
        pass


def flood(status: int) -> Callable[[BaseHTTPRequestHandler], None]:
    def respond(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        handler.end_headers()
        try:
            for _ in range(2000):
                handler.wfile.write(b"x" * 100_000)
        except OSError:
            pass

    return respond


@pytest.fixture
def hook() -> Iterator[Hook]:
    hook = Hook()
    with serve(make_handler(hook), ("POST", "GET")) as url:
        hook.url = url + PATH
        yield hook


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Record the waits before retries instead of waiting."""
    waits: list[float] = []
    monkeypatch.setattr(notify_module.notify_fleet, "__defaults__", (ignore_progress, waits.append))
    return waits


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hook: Hook, waits: list[float]) -> RealFleet:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOOK_URL", hook.url)
    fleet = make_real_fleet(tmp_path / "fleet", monkeypatch)
    add_notifications(fleet, "- {name: platform, url: '${env.HOOK_URL}', format: json}")
    return fleet


def add_notifications(fleet: RealFleet, *items: str) -> None:
    text = fleet.file.read_text().partition("  notifications:\n")[0]
    lines = "\n".join(f"    {line}" for item in items for line in item.splitlines())
    fleet.file.write_text(f"{text}  notifications:\n{lines}\n")


def audit(fleet: RealFleet, *options: str) -> int:
    line = ["fleet", "audit", str(fleet.file), "--out", str(fleet.folder / "audits"), "--engine", "local"]
    return main([*line, "--snapshot", str(fleet.snapshots), *options])


def notify(fleet: RealFleet, *options: str) -> int:
    return main(["fleet", "notify", str(fleet.file), "--out", str(fleet.folder / "audits"), *options])


def read_records(fleet: RealFleet, target: str = "platform") -> list[dict[str, Any]]:
    folder = fleet.folder / "audits" / "notifications" / target
    return [json.loads(file.read_text()) for file in sorted(folder.iterdir())]


def fix_finding(fleet: RealFleet) -> None:
    """Let the manifest of t.1 declare the live value, and remove the manifest of t.3."""
    manifests = fleet.folder / "shop" / "manifests" / "all.yaml"
    documents = [text for text in manifests.read_text().split("---\n") if "name: t.3," not in text]
    documents = [text.replace("1000", "5") if "name: t.1," in text else text for text in documents]
    manifests.write_text("---\n".join(documents))


def test_message_is_sent_once(fleet: RealFleet, hook: Hook, capsys: pytest.CaptureFixture[str]) -> None:
    assert audit(fleet) == 0
    assert notify(fleet) == 0
    assert "platform: sent" in capsys.readouterr().out
    assert notify(fleet) == 0
    assert "platform: already sent" in capsys.readouterr().out
    (message,) = hook.messages
    validate(message, build_fleet_schemas()["fleet-notification"])
    summary = json.loads((fleet.folder / "audits" / "summary.json").read_text())
    assert message["new_count"] == message["open_count"] == sum(summary["found"].values())
    assert (message["since"], message["audit_id"]) == (None, summary["audit_id"])
    assert hook.headers[0]["Content-Type"] == "application/json; charset=utf-8"
    assert hook.headers[0]["path"] == PATH
    assert notify(fleet, "--again") == 0
    assert hook.messages[1] == message


@pytest.mark.slow
def test_message_reports_what_changed_since_previous_message(fleet: RealFleet, hook: Hook) -> None:
    audit(fleet)
    notify(fleet)
    fix_finding(fleet)
    audit(fleet)
    audit(fleet)  # this audit itself finds nothing new, but nobody was told about the one before
    assert notify(fleet) == 0
    message = hook.messages[1]
    assert message["since"]["audit_id"] == hook.messages[0]["audit_id"]
    assert {(one["cluster"], one["name"], one["finding"]) for one in message["new"]} == {
        ("eu-1", "t.3", "orphaned"),
        ("eu-2", "t.3", "orphaned"),
        ("eu-2", "t.1", "pending"),
    }
    assert ("eu-1", "t.1") in {(one["cluster"], one["name"]) for one in message["fixed"]}
    notify(fleet, "--again")
    assert hook.messages[2] == message


def test_nothing_new_sends_nothing(fleet: RealFleet, hook: Hook, capsys: pytest.CaptureFixture[str]) -> None:
    audit(fleet)
    notify(fleet)
    audit(fleet)
    capsys.readouterr()
    assert notify(fleet, "--format", "json") == 0
    document = json.loads(capsys.readouterr().out)
    validate(document, build_fleet_schemas()["fleet-notify"])
    assert [item["status"] for item in document["targets"]] == ["nothing-to-report"]
    add_notifications(fleet, "- {name: platform, url: '${env.HOOK_URL}', format: json, events: [always]}")
    assert notify(fleet) == 0
    assert (hook.messages[1]["new_count"], hook.messages[1]["fixed_count"]) == (0, 0)


@pytest.mark.slow
def test_failed_message_is_part_of_next_one(
    fleet: RealFleet, hook: Hook, capsys: pytest.CaptureFixture[str]
) -> None:
    audit(fleet)
    notify(fleet)
    fix_finding(fleet)
    audit(fleet)
    hook.responses = [answer(403)]
    assert notify(fleet) == 1
    audit(fleet)
    assert notify(fleet) == 0
    assert hook.messages[2]["new_count"] == hook.messages[1]["new_count"] == 3
    assert hook.messages[2]["fixed"] == hook.messages[1]["fixed"]


@pytest.mark.slow
def test_failed_first_message_is_part_of_next_one(fleet: RealFleet, hook: Hook) -> None:
    audit(fleet)
    hook.responses = [answer(403)]
    assert notify(fleet) == 1
    fix_finding(fleet)
    for _ in range(2):
        audit(fleet)
        hook.responses = [answer(403)]
        assert notify(fleet) == 1
    audit(fleet)
    assert notify(fleet) == 0
    message = hook.messages[-1]
    assert message["since"] is None
    assert message["new_count"] == message["open_count"] > 3
    assert [record["state"] for record in read_records(fleet)] == ["failed"] * 3 + ["sent"]


@pytest.mark.slow
def test_several_failed_messages_are_part_of_next_one(fleet: RealFleet, hook: Hook) -> None:
    add_notifications(fleet, "- {name: platform, url: '${env.HOOK_URL}', format: json, events: [always]}")
    audit(fleet)
    notify(fleet)
    fix_finding(fleet)
    for _ in range(2):
        latest = sorted((fleet.folder / "audits" / "audits").iterdir())[-1].stem
        audit(fleet)
        hook.responses = [answer(403)]
        assert notify(fleet, "--since", latest) == 1
    audit(fleet)
    assert notify(fleet) == 0
    assert hook.messages[-1]["since"]["audit_id"] == hook.messages[0]["audit_id"]
    assert hook.messages[-1]["new_count"] == 3


def test_failed_repetition_keeps_record_of_sent_message(fleet: RealFleet, hook: Hook) -> None:
    audit(fleet)
    notify(fleet)
    hook.responses = [answer(403)]
    assert notify(fleet, "--again") == 1
    assert [record["state"] for record in read_records(fleet)] == ["sent"]


def test_unreadable_records_of_one_target_do_not_stop_others(
    fleet: RealFleet, hook: Hook, capsys: pytest.CaptureFixture[str]
) -> None:
    add_notifications(
        fleet,
        "- {name: broken, url: '${env.HOOK_URL}', format: slack}",
        "- {name: up, url: '${env.HOOK_URL}', format: json}",
    )
    audit(fleet)
    records = fleet.folder / "audits" / "notifications"
    records.mkdir()
    (records / "broken").write_text("not a folder")
    capsys.readouterr()
    assert notify(fleet, "--format", "json") == 1
    shown = capsys.readouterr()
    targets = {item["name"]: item for item in json.loads(shown.out)["targets"]}
    assert {name: item["status"] for name, item in targets.items()} == {"broken": "failed", "up": "sent"}
    assert "notifications/broken" in targets["broken"]["error"]
    assert [message["target"] for message in hook.messages] == ["up"]


def test_message_that_cannot_be_recorded_is_not_sent(
    fleet: RealFleet, hook: Hook, capsys: pytest.CaptureFixture[str]
) -> None:
    audit(fleet)
    records = fleet.folder / "audits" / "notifications"
    records.mkdir()
    (records / "platform").symlink_to(fleet.folder / "missing" / "folder")  # can be listed, but not written
    capsys.readouterr()
    for _ in range(2):
        assert notify(fleet) == 1
    assert "Cannot write" in capsys.readouterr().err
    assert hook.bodies == []


@pytest.mark.slow
def test_failure_to_record_a_sent_message_is_reported(
    fleet: RealFleet, hook: Hook, capsys: pytest.CaptureFixture[str]
) -> None:
    def accept_and_break_record(handler: BaseHTTPRequestHandler) -> None:
        (record,) = (fleet.folder / "audits" / "notifications" / "platform").iterdir()
        record.unlink()
        (record / "folder").mkdir(parents=True)
        accept(handler)

    add_notifications(
        fleet,
        "- {name: platform, url: '${env.HOOK_URL}', format: json}",
        "- {name: up, url: '${env.HOOK_URL}', format: json}",
    )
    audit(fleet)
    hook.responses = [accept_and_break_record]
    capsys.readouterr()
    assert notify(fleet) == 1
    shown = capsys.readouterr()
    assert "platform: sent" in shown.out
    assert "up: sent" in shown.out
    assert "The message to 'platform' was sent, but not recorded. Cannot write" in " ".join(shown.err.split())


def test_deleted_audit_does_not_lose_changes(fleet: RealFleet, hook: Hook) -> None:
    for _ in range(2):
        audit(fleet)
        notify(fleet)
    records = sorted((fleet.folder / "audits" / "audits").iterdir())
    fix_finding(fleet)
    audit(fleet)
    records[1].unlink()
    assert notify(fleet) == 0
    assert hook.messages[1]["since"]["audit_id"] == records[0].stem
    assert hook.messages[1]["new_count"] == 3


def test_targets_select_findings(fleet: RealFleet, hook: Hook) -> None:
    add_notifications(
        fleet,
        "- {name: urgent, url: '${env.HOOK_URL}', format: json, where: 'severity>=high'}",
        "- {name: checkout, url: '${env.HOOK_URL}', format: json, team: checkout, events: [fixed]}",
        "- {name: search, url: '${env.HOOK_URL}', format: json, team: search}",
    )
    audit(fleet)
    assert notify(fleet) == 0
    (urgent,) = hook.messages
    assert urgent["target"] == "urgent"
    assert {one["severity"] for one in urgent["new"]} == {"high"}
    fix_finding(fleet)
    audit(fleet)
    assert notify(fleet, "--to", "checkout") == 0
    assert hook.messages[1]["target"] == "checkout"
    assert (hook.messages[1]["new"], hook.messages[1]["team"]) == ([], "checkout")
    assert {one["labels"]["team"] for one in hook.messages[1]["fixed"]} == {"checkout"}


def test_accepted_findings_are_neither_new_nor_fixed(fleet: RealFleet, hook: Hook) -> None:
    audit(fleet)
    notify(fleet)
    accept_drift(fleet)
    audit(fleet)
    assert notify(fleet) == 0
    assert len(hook.bodies) == 1


def test_dry_run_sends_and_records_nothing(
    fleet: RealFleet, hook: Hook, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    audit(fleet)
    monkeypatch.delenv("HOOK_URL")
    capsys.readouterr()
    assert notify(fleet, "--dry-run", "--format", "json") == 0
    (item,) = json.loads(capsys.readouterr().out)["targets"]
    assert item["status"] == "not-sent"
    validate(json.loads(item["body"]), build_fleet_schemas()["fleet-notification"])
    assert notify(fleet, "--dry-run") == 0
    assert '"headline": "Fleet shop: ' in capsys.readouterr().out
    assert not (fleet.folder / "audits" / "notifications").exists()
    assert hook.bodies == []


def test_audit_sends_messages(fleet: RealFleet, hook: Hook, capsys: pytest.CaptureFixture[str]) -> None:
    assert audit(fleet, "--notify", "--format", "json") == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["audit_id"] == hook.messages[0]["audit_id"]
    assert "platform: sent" in shown.err


def test_failed_message_keeps_audit(fleet: RealFleet, hook: Hook, capsys: pytest.CaptureFixture[str]) -> None:
    hook.responses = [answer(404, "no_service")]
    assert audit(fleet, "--notify", "--fail-on", "changed") == 1
    shown = " ".join(capsys.readouterr().err.split())
    assert "Message was not sent" in shown
    assert "it responded with 404 (no_service)" in shown
    assert (fleet.folder / "audits" / "report.html").exists()
    hook.responses = [accept]
    assert notify(fleet) == 0


def test_audit_checks_notifications_first(fleet: RealFleet, capsys: pytest.CaptureFixture[str]) -> None:
    add_notifications(fleet, "- {name: x, url: '${env.HOOK_URL}', format: json, where: 'severity>high'}")
    assert audit(fleet, "--notify") == 1
    assert "fleet.yaml:" in capsys.readouterr().err
    assert not (fleet.folder / "audits").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("responses", "expected_waits"),
    [
        ([answer(500), answer(502)], [1.0, 2.0]),
        ([answer(429, Retry_After="7")], [7.0]),
        ([cut], [1.0]),
        ([flood(503)], [1.0]),
        ([flood(200)], []),
        ([answer(204)], []),
    ],
)
def test_temporary_errors_are_retried(
    fleet: RealFleet, hook: Hook, waits: list[float], responses: list[Any], expected_waits: list[float]
) -> None:
    audit(fleet)
    hook.responses = list(responses)
    assert notify(fleet) == 0
    assert waits == expected_waits
    assert len(set(hook.bodies)) == 1  # every attempt sends the same message


@pytest.mark.slow
@pytest.mark.parametrize(
    ("responses", "attempts", "reason"),
    [
        ([answer(500, "internal")] * 9, 4, "it responded with 500 (internal)"),
        ([answer(429, Retry_After="3600")], 1, "asked to wait for 3,600 s"),
        ([answer(429, Retry_After="Wed, 21 Oct 2099 07:28:00 GMT")], 1, "asked to wait for"),
        ([answer(302, Location="/elsewhere")], 1, "a redirect, which is not followed"),
        ([answer(400, "invalid_blocks")], 1, "it responded with 400 (invalid_blocks)"),
        ([answer(403, "<html>proxy</html>")], 1, "it responded with 403."),
        ([trickle] * 4, 4, "it did not respond (timed out), and may have delivered the message"),
    ],
)
def test_errors_are_explained(
    fleet: RealFleet,
    hook: Hook,
    capsys: pytest.CaptureFixture[str],
    responses: list[Any],
    attempts: int,
    reason: str,
) -> None:
    audit(fleet)
    capsys.readouterr()
    hook.responses = list(responses)
    assert notify(fleet, "--timeout", "0.5") == 1
    shown = " ".join(capsys.readouterr().err.split())
    assert reason in shown
    assert "fleet.yaml:" in shown
    assert len(hook.bodies) == attempts
    assert [record["state"] for record in read_records(fleet)] == ["failed"]


def test_one_failed_target_does_not_stop_others(
    fleet: RealFleet, hook: Hook, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    add_notifications(
        fleet,
        "- {name: unset, url: '${env.NOT_SET}', format: slack}",
        "- {name: down, url: '${env.DOWN}', format: slack}",
        "- {name: up, url: '${env.HOOK_URL}', format: slack}",
    )
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    monkeypatch.setenv("DOWN", f"http://127.0.0.1:{port}/secret-of-another-hook")
    audit(fleet)
    capsys.readouterr()
    assert notify(fleet, "--format", "json") == 1
    shown = capsys.readouterr()
    targets = {item["name"]: item for item in json.loads(shown.out)["targets"]}
    assert {name: item["status"] for name, item in targets.items()} == {
        "unset": "failed",
        "down": "failed",
        "up": "sent",
    }
    assert "NOT_SET" in targets["unset"]["error"]
    assert "it is unreachable (connection refused)" in targets["down"]["error"]
    assert "secret-of-another-hook" not in shown.out + shown.err


@pytest.mark.slow
def test_url_and_headers_are_never_shown_or_stored(
    fleet: RealFleet, hook: Hook, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_TOKEN", "token-of-the-webhook-4711")
    add_notifications(
        fleet,
        "- name: platform\n  url: ${env.HOOK_URL}\n  format: json\n"
        "  headers: {Authorization: 'Bearer ${env.HOOK_TOKEN}'}",
    )
    secrets = ("xoxb-the-secret-of-the-webhook", "token-of-the-webhook-4711")
    audit(fleet)
    echo = answer(400, f"bad request to {hook.url} with token-of-the-webhook-4711")
    for responses in ([echo], [trickle] * 4, [cut] * 4, []):
        hook.responses = list(responses)
        for options in ([], ["--format", "json"], ["-v"]):
            notify(fleet, *options, "--again", "--timeout", "0.2")
            hook.responses = list(responses)
    shown = capsys.readouterr()
    assert "platform: failed" in shown.out
    assert hook.headers[-1]["Authorization"] == "Bearer token-of-the-webhook-4711"
    for secret in secrets:
        assert secret not in shown.out + shown.err
        for file in (fleet.folder / "audits").rglob("*"):
            assert not file.is_file() or secret.encode() not in file.read_bytes()
        assert not any(secret in body for body in hook.bodies)


def test_words_in_url_do_not_change_other_messages(
    fleet: RealFleet, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_URL", f"{hook.url.removesuffix(PATH)}/message")
    add_notifications(
        fleet,
        "- {name: a, url: '${env.HOOK_URL}', format: json}",
        "- {name: b, url: '${env.HOOK_URL}', format: teams}",
        "- {name: c, url: '${env.HOOK_URL}', format: json}",
    )
    audit(fleet)
    assert notify(fleet) == 0
    first, teams, last = hook.messages
    assert teams["type"] == "message"
    assert {**last, "target": "a", "id": first["id"]} == first
    assert all("message" in finding for finding in last["new"])


def send_partially(body: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def respond(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(400)
        handler.send_header("Content-Length", "5000")
        handler.end_headers()
        handler.wfile.write(body.encode())
        handler.close_connection = True

    return respond


@pytest.mark.slow
@pytest.mark.parametrize(
    ("respond", "text"),
    [
        (lambda url: answer(400, f"{'e' * (205 - len(url))} {url}"), "eee (sensiti"),
        (lambda _: answer(400, "no service at /services/xoxb-the-secret-of-the-webhook"), "(sensitive)"),
        (lambda _: answer(400, "bad signature: signed-4711"), "bad signature: (sensitive)"),
        (lambda _: send_partially("denied to xoxb-the-secret-of-the-we"), "400 (denied to)"),
    ],
)
def test_explanation_contains_no_part_of_url(
    fleet: RealFleet,
    hook: Hook,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    respond: Callable[[str], Callable[[BaseHTTPRequestHandler], None]],
    text: str,
) -> None:
    url = f"{hook.url}?sig=signed-4711"
    monkeypatch.setenv("HOOK_URL", url)
    audit(fleet)
    hook.responses = [respond(url)]
    capsys.readouterr()
    assert notify(fleet, "--format", "json") == 1
    shown = capsys.readouterr()
    (target,) = json.loads(shown.out)["targets"]
    assert text in target["error"]
    assert "xoxb" not in shown.out + shown.err
    assert "4711" not in shown.out + shown.err


@pytest.mark.slow
@pytest.mark.parametrize(
    "proxy",
    [
        "socks4://proxy.example:1080",
        "socks5://proxy.example:1080",
        "http://user:pass/word-of-proxy@proxy.example:8080",
        "http://[::1",
    ],
)
def test_unusable_proxy_does_not_stop_others(
    fleet: RealFleet,
    hook: Hook,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    proxy: str,
) -> None:
    monkeypatch.setenv("OTHER_URL", "https://hooks.example/secret-path")
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    add_notifications(
        fleet,
        "- {name: other, url: '${env.OTHER_URL}', format: slack}",
        "- {name: up, url: '${env.HOOK_URL}', format: slack}",
    )
    audit(fleet)
    capsys.readouterr()
    assert notify(fleet) == 1
    shown = capsys.readouterr()
    assert "the proxy URL cannot be used" in " ".join(shown.err.split())
    assert "up: sent" in shown.out
    assert "pass" not in shown.out + shown.err
    assert "proxy.example" not in shown.out + shown.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://hooks.example/secret", "messages to http:// URLs are not encrypted"),
        ("https://user:pw@hooks.example/x", "the URL contains credentials"),
        ("hooks.example/secret", "it is not a URL that starts with https://"),
        ("file:///etc/passwd", "it is not a URL that starts with https://"),
        ("https://hooks.example/a b", "the URL contains spaces"),
        ("https://[::1", "it is not a URL"),
    ],
)
def test_unusable_url_is_explained_without_the_url(
    fleet: RealFleet,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    url: str,
    reason: str,
) -> None:
    monkeypatch.setenv("HOOK_URL", url)
    audit(fleet)
    capsys.readouterr()
    assert notify(fleet) == 1
    shown = " ".join(capsys.readouterr().err.split())
    assert reason in shown
    assert url not in shown
    assert webhook.explain_webhook_problem("http://hooks.example/x", allow_http=True) is None


@pytest.mark.slow
def test_certificates_are_verified(
    fleet: RealFleet, pems: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    secure_hook = Hook()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pems / "cert", pems / "key")
    audit(fleet)
    with serve(make_handler(secure_hook), ("POST",), tls=context) as url:
        monkeypatch.setenv("HOOK_URL", url.replace("127.0.0.1", "localhost") + PATH)
        assert notify(fleet) == 1
        assert "its certificate is not trusted (self" in " ".join(capsys.readouterr().err.split())
        assert secure_hook.bodies == []
        (fleet.folder / "ca.pem").write_bytes((pems / "cert").read_bytes())
        add_notifications(fleet, "- {name: x, url: '${env.HOOK_URL}', format: slack, caFile: ca.pem}")
        assert notify(fleet) == 0
        assert "Fleet shop: " in secure_hook.messages[0]["text"]


def test_proxy_of_the_environment_is_used(
    fleet: RealFleet, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_URL", "http://hooks.example/secret-path")
    monkeypatch.setenv("HTTP_PROXY", hook.url.removesuffix(PATH))
    add_notifications(fleet, "- {name: x, url: '${env.HOOK_URL}', format: slack, allowHttp: true}")
    audit(fleet)
    assert notify(fleet) == 0
    assert hook.headers[0]["path"] == "http://hooks.example/secret-path"
    monkeypatch.setenv("NO_PROXY", "hooks.example")
    assert notify(fleet, "--again", "--timeout", "1") == 1
    assert len(hook.bodies) == 1


def test_file_reference_and_report_url(fleet: RealFleet, hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    (fleet.folder / "hook.txt").write_text(f"{hook.url}\n")
    monkeypatch.setenv("RUN", "42")
    add_notifications(fleet, "- {name: x, url: '${file.hook.txt}', format: json}")
    text = fleet.file.read_text()
    report_url = "  reportUrl: https://ci.example/runs/${env.RUN}/{audit_id}\n  notifications:"
    fleet.file.write_text(text.replace("  notifications:", report_url))
    audit(fleet)
    assert notify(fleet) == 0
    (message,) = hook.messages
    assert message["report_url"] == f"https://ci.example/runs/42/{message['audit_id']}"
    monkeypatch.setenv("RUN", "4>2")
    assert notify(fleet, "--again") == 1


def test_fleet_without_notifications_is_explained(
    fleet: RealFleet, capsys: pytest.CaptureFixture[str]
) -> None:
    audit(fleet)
    assert notify(fleet, "--to", "platfrom") == 1
    assert "Did you mean 'platform'?" in capsys.readouterr().err
    fleet.file.write_text(fleet.file.read_text().partition("  notifications:")[0])
    assert notify(fleet) == 1
    assert "has no 'spec.notifications'" in " ".join(capsys.readouterr().err.split())


def test_other_commands_do_not_need_url(fleet: RealFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOOK_URL")
    assert audit(fleet) == 0


def test_parallel_commands_leave_one_record(fleet: RealFleet, hook: Hook) -> None:
    audit(fleet)
    threads = [
        threading.Thread(
            target=notify_module.notify_fleet,
            args=(_options(fleet), notify_module.NotifyOptions(), {"HOOK_URL": hook.url, **SECRETS}),
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(hook.bodies)) == 1
    (record,) = (fleet.folder / "audits" / "notifications" / "platform").iterdir()
    assert json.loads(record.read_text())["state"] == "sent"


def _options(fleet: RealFleet) -> Any:
    from kdeclare.app.fleet.job import FleetOptions

    return FleetOptions(fleet.file, str(fleet.folder / "audits"))
