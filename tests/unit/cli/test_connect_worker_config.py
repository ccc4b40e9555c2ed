"""`kdeclare connect worker-config`, and manifests of its kind, with in-process workers."""

import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.providers.connect import connection
from kdeclare.providers.connect.client.port import Changes, ConnectWorkers
from kdeclare.providers.connect.testing import MemoryWorkers
from kdeclare.providers.connect.testing.workers import LOCATION, PASSWORD, Keystore
from kdeclare.providers.connect.worker_state import Certificate, WorkerGroup
from tests.unit.cli.command_line import CommandLine

open_real_workers = connection.open_workers
"""The function that the fixture `kdeclare` replaces."""

PLACEHOLDER = "${file:/etc/connect/secrets.properties:keystore}"
URLS = ("https://w1:8083", "https://w2:8083", "https://w3:8083")
WORKERS = tuple(word for url in URLS for word in ("--worker", url))


def make_certificate(name: str, days: int = 400) -> Certificate:
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    sha = name.encode().hex().ljust(64, "0")
    return Certificate(sha, f"CN={name}", "CN=ca", begin, datetime.now(UTC) + timedelta(days=days, hours=1))


@pytest.fixture
def workers() -> MemoryWorkers:
    found = MemoryWorkers(URLS)
    found.files = {
        "/old": Keystore(make_certificate("old"), "pw"),
        "/new": Keystore(make_certificate("new"), "pw"),
    }
    found.placeholders = {PLACEHOLDER: "pw"}
    return found


@pytest.fixture
def cli(kdeclare: CommandLine, workers: MemoryWorkers) -> CommandLine:
    kdeclare.workers[workers.urls] = workers
    return kdeclare


def declare_workers(typed: CommandLine, name: str = "eu", **spec: Any) -> Path:
    config = {LOCATION: "/old", PASSWORD: PLACEHOLDER}
    return typed.write(
        f"manifests/{name}.yaml",
        "ConnectWorkerConfig",
        name,
        **({"workers": list(URLS), "config": config} | spec),
    )


def run_worker_config(typed: CommandLine, *words: str, answer: str | None = None) -> tuple[int, str, str]:
    ran = typed("connect", "worker-config", *words, answer=answer)
    return ran.code, ran.out, ran.err


def build_change(location: str, password: str = PLACEHOLDER) -> tuple[str, str]:
    return f"{LOCATION}={location}", f"{PASSWORD}={password}"


# Ad hoc commands.


def test_patch_confirms_changes_and_waits_for_workers(cli: CommandLine, workers: MemoryWorkers) -> None:
    code, out, err = run_worker_config(cli, "patch", *build_change("/old"), *WORKERS, answer="yes\n")
    assert code == 0
    assert f"~ {LOCATION}  (unset) → /old" in out
    assert "3 workers can apply this change." in out
    assert "Only 'yes' is accepted" in err
    assert "3 workers applied the change" in out
    assert workers.current() == {LOCATION: "/old", PASSWORD: PLACEHOLDER}
    assert [call for call, _ in workers.calls].count("patch") == 1


def test_patch_without_yes_changes_nothing(cli: CommandLine, workers: MemoryWorkers) -> None:
    assert run_worker_config(cli, "patch", *build_change("/old"), *WORKERS, answer="no\n")[0] == 1
    assert run_worker_config(cli, "patch", *build_change("/old"), *WORKERS)[0] == 64
    assert not workers.log


def test_patch_changes_nothing_if_one_worker_cannot_apply_it(
    cli: CommandLine, workers: MemoryWorkers
) -> None:
    workers.workers[URLS[1]].missing_paths = {"/new"}
    words = ("patch", *build_change("/new"), *WORKERS, "--yes")
    code, out, _ = run_worker_config(cli, *words)
    assert code == 1
    assert "1 of 3 workers cannot apply this change:" in out
    assert f"✗ {URLS[1]}\n      {LOCATION}: There is no file /new" in out
    assert not workers.log
    code, out, _ = run_worker_config(cli, *words, "--format", "json")
    said = json.loads(out)
    assert (code, said["valid"]) == (1, False)
    assert [worker["valid"] for worker in said["workers"]] == [True, False, True]


def test_patch_names_worker_that_did_not_apply_it(cli: CommandLine, workers: MemoryWorkers) -> None:
    workers.workers[URLS[2]].lag = None
    words = ("patch", *build_change("/old"), *WORKERS, "--yes", "--wait", "0")
    code, out, _ = run_worker_config(cli, *words)
    assert code == 5
    assert "1 of 3 workers did not apply the change" in out
    assert f"✗ {URLS[2]}  it has not applied the last update yet" in out
    code, out, _ = run_worker_config(cli, *words, "--format", "json")
    said = json.loads(out)
    assert (code, said["exit_code"]) == (5, 5)
    assert [item["url"] for item in said["behind"]] == [URLS[2]]


def test_patch_sends_unchanged_values_again(cli: CommandLine, workers: MemoryWorkers) -> None:
    run_worker_config(cli, "patch", *build_change("/old"), *WORKERS, "--yes")
    workers.files["/old"] = Keystore(make_certificate("renewed"), "pw")
    code, out, _ = run_worker_config(cli, "patch", f"{LOCATION}=/old", *WORKERS, "--yes")
    assert code == 0
    assert "unchanged: sent again" in out
    assert {worker.certificate.subject for worker in workers.workers.values()} == {"CN=renewed"}


def test_delete_removes_keys_in_one_request(cli: CommandLine, workers: MemoryWorkers) -> None:
    run_worker_config(cli, "patch", *build_change("/old"), *WORKERS, "--yes")
    code, out, _ = run_worker_config(cli, "delete", LOCATION, PASSWORD, *WORKERS, answer="yes\n")
    assert code == 0
    assert "as in the worker's own file" in out
    assert workers.log[-1] == {}
    assert len(workers.log) == 2


def test_delete_rejects_key_without_override(cli: CommandLine, workers: MemoryWorkers) -> None:
    run_worker_config(cli, "patch", *build_change("/old"), *WORKERS, "--yes")
    code, _, err = run_worker_config(cli, "delete", LOCATION, "no.such.key", *WORKERS, "--yes")
    assert code == 1
    assert "'no.such.key' is not overridden. The overridden keys are" in err
    assert len(workers.log) == 1


def test_validate_command_changes_nothing(cli: CommandLine, workers: MemoryWorkers) -> None:
    assert run_worker_config(cli, "validate", *build_change("/old"), *WORKERS)[0] == 0
    code, out, _ = run_worker_config(cli, "validate", *build_change("/gone"), *WORKERS)
    assert code == 1
    assert "3 of 3 workers cannot apply this change" in out
    assert not workers.log


@pytest.mark.parametrize("words", [("get",), ("status",), ("validate", f"{LOCATION}=/new")])
@pytest.mark.parametrize("form", ["text", "json"])
def test_passwords_are_hidden_in_all_commands(
    cli: CommandLine, workers: MemoryWorkers, words: tuple[str, ...], form: str
) -> None:
    workers.files["/old"] = Keystore(make_certificate("old"), "s3cret")
    workers.patch(URLS[0], {LOCATION: "/old", PASSWORD: "s3cret"})
    _, out, err = run_worker_config(cli, *words, *WORKERS, "--format", form)
    assert out
    assert "s3cret" not in out + err
    if words == ("get",):
        assert "(sensitive)" in out


def test_patch_warns_about_raw_password_and_hides_it(cli: CommandLine, workers: MemoryWorkers) -> None:
    workers.files["/old"] = Keystore(make_certificate("old"), "s3cret")
    cli.monkeypatch.setenv("STORE_PASSWORD", "s3cret")
    code, out, err = run_worker_config(
        cli, "patch", *build_change("/old", "${env.STORE_PASSWORD}"), *WORKERS, "--yes"
    )
    assert code == 0
    assert workers.current()[PASSWORD] == "s3cret"
    assert "Secret stored in Connect's config topic" in err
    assert "s3cret" not in out + err


def test_get_shows_placeholders(cli: CommandLine, workers: MemoryWorkers) -> None:
    assert "No overrides" in run_worker_config(cli, "get", *WORKERS)[1]
    run_worker_config(cli, "patch", *build_change("/old"), *WORKERS, "--yes")
    _, out, _ = run_worker_config(cli, "get", *WORKERS, "--format", "json")
    assert json.loads(out)["overrides"] == {LOCATION: "/old", PASSWORD: PLACEHOLDER}


def test_status_shows_healthy_workers(cli: CommandLine, workers: MemoryWorkers) -> None:
    run_worker_config(cli, "patch", *build_change("/old"), *WORKERS, "--yes")
    code, out, _ = run_worker_config(cli, "status", *WORKERS)
    assert code == 0
    assert "3 of 3 workers in step with 2 overrides." in out
    assert out.count("CN=old") >= 3
    assert "400 days" in out
    code, out, _ = run_worker_config(cli, "status", *WORKERS, "--format", "json")
    said = json.loads(out)
    assert (code, said["exit_code"]) == (0, 0)
    assert [(w["url"], w["leader"], w["in_step"]) for w in said["workers"]] == [
        (URLS[0], True, True),
        (URLS[1], False, True),
        (URLS[2], False, True),
    ]
    assert said["workers"][0]["served"]["subject"] == "CN=old"


def test_status_names_unreachable_and_lagging_workers(cli: CommandLine, workers: MemoryWorkers) -> None:
    run_worker_config(cli, "patch", *build_change("/old"), *WORKERS, "--yes")
    workers.workers[URLS[1]].lag = None
    workers.patch(URLS[0], {LOCATION: "/new"})
    workers.workers[URLS[2]].down = True
    code, out, _ = run_worker_config(cli, "status", *WORKERS)
    assert code == 5
    assert "1 of 3 workers in step" in out
    assert f"{URLS[1]}: it has not applied the last update yet." in out
    assert f"{URLS[2]}: it is unreachable" in out
    assert run_worker_config(cli, "status", *WORKERS, "--format", "json")[0] == 5


def test_status_warns_about_expiring_certificates(cli: CommandLine, workers: MemoryWorkers) -> None:
    workers.files["/old"] = Keystore(make_certificate("old", days=20), "pw")
    run_worker_config(cli, "patch", *build_change("/old"), *WORKERS, "--yes")
    code, out, _ = run_worker_config(cli, "status", *WORKERS)
    assert code == 0
    assert "Certificate expires soon" in out
    assert "expires soon" not in run_worker_config(cli, "status", *WORKERS, "--warn-days", "7")[1]


def test_commands_report_unreachable_workers(cli: CommandLine, workers: MemoryWorkers) -> None:
    for worker in workers.workers.values():
        worker.down = True
    code, _, err = run_worker_config(cli, "get", *WORKERS)
    assert code == 1
    assert all(f"{url}: it is unreachable" in err for url in URLS)
    assert run_worker_config(cli, "status", *WORKERS)[0] == 5


def test_patch_shows_rejection_by_workers(
    cli: CommandLine, workers: MemoryWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(url: str, changes: Changes) -> Mapping[str, str]:
        raise Fault("WORKER_AUTHORIZATION_FAILED", "Only admins may")

    monkeypatch.setattr(workers, "patch", refuse)
    code, _, err = run_worker_config(cli, "patch", *build_change("/old"), *WORKERS, "--yes")
    assert code == 1
    assert "Only admins may" in err
    assert not workers.log


# Missing responses.


def test_patch_confirms_change_after_lost_response(cli: CommandLine, workers: MemoryWorkers) -> None:
    workers.lose_answers = 1
    code, out, _ = run_worker_config(cli, "patch", *build_change("/old"), *WORKERS, "--yes")
    assert code == 0
    assert "Changed; 3 workers applied the change" in out
    assert len(workers.log) == 1


def test_patch_names_lagging_worker_after_lost_response(cli: CommandLine, workers: MemoryWorkers) -> None:
    workers.lose_answers = 1
    workers.workers[URLS[2]].lag = None
    code, out, _ = run_worker_config(cli, "patch", *build_change("/old"), *WORKERS, "--yes", "--wait", "0")
    assert code == 5
    assert "Changed, but 1 of 3 workers did not apply the change" in out
    assert f"✗ {URLS[2]}  it has not applied the last update yet" in out


def test_patch_confirms_change_despite_concurrent_updates(
    cli: CommandLine, workers: MemoryWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = workers.patch

    def patch_and_lose_response(url: str, changes: Changes) -> Mapping[str, str]:
        lost(url, changes)
        lost(url, {"listeners.https.ssl.keystore.type": "PKCS12"})
        raise Fault("WORKER_LOST", "it did not respond", FaultKind.UNKNOWN)

    monkeypatch.setattr(workers, "patch", patch_and_lose_response)
    assert run_worker_config(cli, "patch", *build_change("/old"), *WORKERS, "--yes")[0] == 0


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("form", ["text", "json"])
def test_patch_reports_unknown_outcome_if_change_never_shows(
    cli: CommandLine, workers: MemoryWorkers, form: str, *, known: bool
) -> None:
    """known: its values are already set, so only a newer update proves the change."""
    if known:
        workers.patch(URLS[0], {LOCATION: "/old", PASSWORD: PLACEHOLDER})
    workers.lose_requests = 1
    words = ("patch", *build_change("/old"), *WORKERS, "--yes", "--wait", "0", "--format", form)
    code, out, err = run_worker_config(cli, *words)
    assert code == 5
    said = " ".join((out + err).split())
    assert "outcome-unclear" in said or form == "text"
    assert "Outcome of the change is unknown" in said
    assert f"{URLS[0]}: it did not respond" in said
    assert "worker-config status" in said


def test_patch_reports_unknown_outcome_if_no_worker_responds(
    cli: CommandLine, workers: MemoryWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def patch_and_disconnect(url: str, changes: Changes) -> Mapping[str, str]:
        for worker in workers.workers.values():
            worker.down = True
        raise Fault("WORKER_LOST", "it did not respond", FaultKind.UNKNOWN)

    monkeypatch.setattr(workers, "patch", patch_and_disconnect)
    code, _, err = run_worker_config(cli, "patch", *build_change("/old"), *WORKERS, "--yes", "--wait", "0")
    assert code == 5
    assert f"{URLS[1]}: it is unreachable" in err


def test_patch_is_sent_again_during_rebalance(cli: CommandLine, workers: MemoryWorkers) -> None:
    workers.rebalances = 2
    assert run_worker_config(cli, "patch", *build_change("/old"), *WORKERS, "--yes")[0] == 0
    assert workers.current()[LOCATION] == "/old"
    assert [call for call, _ in workers.calls].count("patch") == 3


# Which workers.


def test_get_without_urls_uses_workers_of_manifest(cli: CommandLine) -> None:
    code, _, err = run_worker_config(cli, "get")
    assert code == 64
    assert "Neither --worker nor a manifest" in err
    declare_workers(cli)
    assert run_worker_config(cli, "get")[0] == 0
    declare_workers(cli, "us")
    code, _, err = run_worker_config(cli, "get")
    assert code == 64
    assert "Choose one with --name NAME" in err
    assert run_worker_config(cli, "get", "--name", "us")[0] == 0
    code, _, err = run_worker_config(cli, "get", "--name", "euu")
    assert code == 64
    assert "Did you mean 'eu'?" in err


def test_patch_warns_about_keys_declared_in_manifest(cli: CommandLine) -> None:
    declare_workers(cli)
    _, _, err = run_worker_config(cli, "patch", f"{LOCATION}=/old", *WORKERS, answer="no\n")
    assert "Declared in a manifest" in err
    assert f"ConnectWorkerConfig/eu declares {LOCATION}" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("patch", "--yes"), "specify KEY=VALUE or --remove KEY"),
        (("patch", "no-value"), "does not have the form KEY=VALUE"),
        (("patch", f"{LOCATION}=/a", "--remove", LOCATION), "cannot be set and removed in the same change"),
        (("get", "--worker", "w1:8083"), "is not of the form https://HOST:PORT"),
        (("get", "--worker", "https://u:p@w1"), "a URL with credentials"),
        (("get", "--worker", "https://w1/connectors"), "has parts other than scheme, host and port"),
        (("get", "--ca-file", "ca.pem"), "can only be used with --worker"),
        (("get", "--name", "eu", *WORKERS), "cannot be combined with --worker"),
        (("get", *WORKERS, "--key-file", "k"), "requires --cert-file"),
        (("get", *WORKERS, "--header", "Authorization=Bearer x"), "must be a reference"),
        (("get", *WORKERS, "--header", "Ä=${env.HOME}"), "not a valid name of an HTTP header"),
        (("get", "--worker", "https://w1:99999"), "port"),
        (("get", "--worker", "https://w 1"), "a URL cannot contain spaces"),
        (("get", "--worker", "https://[1"), "is not a valid URL"),
    ],
)
def test_worker_config_rejects_wrong_usage(cli: CommandLine, words: tuple[str, ...], said: str) -> None:
    code, _, err = run_worker_config(cli, *words)
    assert code == 64
    assert said.lower() in " ".join(err.lower().split())


# As a manifest.


def test_manifest_is_planned_applied_and_rolled_back(cli: CommandLine, workers: MemoryWorkers) -> None:
    declare_workers(cli)
    ran = cli("plan")
    assert ran.code == 0
    assert "ConnectWorkerConfig/eu" in ran.out
    assert PLACEHOLDER in ran.out
    ran = cli("apply", "--yes")
    assert ran.code == 0
    assert "1 group of Connect workers configured" in ran.out
    assert cli("plan", "--detailed-exitcode").code == 0
    declare_workers(cli, config={LOCATION: "/new", PASSWORD: PLACEHOLDER})
    assert cli("plan", "--out", "it.plan").code == 0
    assert cli("apply", "it.plan", "--yes").code == 0
    assert workers.current()[LOCATION] == "/new"
    assert cli("rollback", "--yes").code == 0
    assert workers.current()[LOCATION] == "/old"
    ran = cli("history")
    assert ran.code == 0


def test_apply_and_rollback_respect_follow_timeout(cli: CommandLine, workers: MemoryWorkers) -> None:
    workers.workers[URLS[2]].lag = None
    declare_workers(cli)
    begun = time.monotonic()
    ran = cli("apply", "--yes", "--follow-timeout", "0")
    assert ran.code == 5
    assert f"{URLS[2]}: it has not applied the last update yet" in ran.out
    ran = cli("rollback", "--yes", "--follow-timeout", "0")
    assert ran.code == 5
    assert time.monotonic() - begun < 55, "the usual limit is 30 s for each of them"
    assert cli("apply", "--follow-timeout", "inf").code == 64


def test_apply_fails_if_workers_became_unreachable(cli: CommandLine, workers: MemoryWorkers) -> None:
    declare_workers(cli)
    assert cli("plan", "--out", "it.plan").code == 0
    for worker in workers.workers.values():
        worker.down = True
    ran = cli("apply", "it.plan", "--yes")
    assert ran.code == 1
    assert "Request to Connect workers failed" in ran.err
    assert f"{URLS[0]}: it is unreachable" in ran.err
    assert not workers.log


def test_manifest_values_keep_their_text(cli: CommandLine, workers: MemoryWorkers) -> None:
    cli.monkeypatch.setenv("STORE_PASSWORD", "0123")
    workers.files["/1.50"] = Keystore(make_certificate("old"), "0123")
    manifest = f"""
apiVersion: kdeclare/v1
kind: ConnectWorkerConfig
metadata: {{name: eu}}
spec:
  workers: {list(URLS)}
  headers: {{Authorization: '${{env.STORE_PASSWORD}}'}}
  config:
    {LOCATION}: /1.50
    {PASSWORD}: ${{env.STORE_PASSWORD}}
    listeners.https.ssl.keystore.type: 1.50
"""
    (cli.folder / "manifests" / "eu.yaml").write_text(manifest)
    assert cli("apply", "--yes").code == 0
    assert workers.current()[PASSWORD] == "0123"
    assert workers.current()["listeners.https.ssl.keystore.type"] == "1.50"
    everything = [path.read_text() for path in (cli.folder / "state").rglob("*") if path.is_file()]
    assert '"0123"' not in "".join(everything)


@pytest.mark.parametrize(
    ("spec", "said", "code"),
    [
        (
            {"workers": ["w1:8083"]},
            "'w1:8083' is not of the form https://HOST:PORT.",
            "invalid-worker-config",
        ),
        ({"workers": ["https://w1", "https://w1/"]}, "is listed twice", "invalid-worker-config"),
        ({"headers": {"Authorization": "Basic s3cret"}}, "has a literal value", "invalid-worker-config"),
        (
            {"headers": {"a b": "${env.HOME}"}},
            "is not a valid name of an HTTP header",
            "invalid-worker-config",
        ),
        ({"tls": {"keyFile": "k"}}, "'certFile', which is missing", "invalid-worker-config"),
        ({"config": {LOCATION: ["/a"]}}, "takes a single value", "invalid-config"),
        ({"workers": []}, "names no workers", "invalid-worker-config"),
        ({"confg": {}}, "config", "unknown-field"),
        ({"warnBeforeExpiry": "soon"}, "'soon' is not a duration", "bad-value"),
    ],
)
def test_validate_reports_manifest_errors_with_position(
    cli: CommandLine, spec: dict[str, Any], said: str, code: str
) -> None:
    declare_workers(cli, **spec)
    ran = cli("validate", "--format", "json")
    assert ran.code == 1
    (problem,) = json.loads(ran.out)["diagnostics"]
    assert problem["code"] == code
    assert said in problem["detail"] + problem["hint"]
    assert problem["place"]["file"].endswith("eu.yaml")
    assert problem["place"]["line"] > 1
    assert "s3cret" not in ran.out


def test_raw_password_in_manifest_warns_and_blocks_saved_plan(
    cli: CommandLine, workers: MemoryWorkers
) -> None:
    workers.files["/old"] = Keystore(make_certificate("old"), "s3cret")
    declare_workers(cli, config={LOCATION: "/old", PASSWORD: "s3cret"})
    ran = cli("plan", "--out", "it.plan")
    assert ran.code == 1
    assert "Literal secret cannot be saved in a plan" in ran.err
    ran = cli("apply", "--yes")
    assert ran.code == 0
    assert "Secret in a manifest" in ran.out
    assert workers.current()[PASSWORD] == "s3cret"
    everything = [path.read_text() for path in (cli.folder / "state").rglob("*") if path.is_file()]
    assert "s3cret" not in "".join([*everything, ran.out, ran.err])


def test_schema_and_target_accept_worker_config(cli: CommandLine) -> None:
    ran = cli("schema", "--kind", "ConnectWorkerConfig")
    assert ran.code == 0
    assert "warnBeforeExpiry" in ran.out
    declare_workers(cli)
    assert cli("plan", "--target", "ConnectWorkerConfig/eu").code == 0


# Credentials without encryption.


def test_validate_warns_about_headers_over_plain_http(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = {"Authorization": "Basic ${env.CONNECT_AUTH}"}
    plain = ["https://w1:8083", "http://w2:8083"]
    declare_workers(cli, workers=plain, headers=header)
    monkeypatch.setenv("CONNECT_AUTH", "YTpi")
    ran = cli("validate")
    assert ran.code == 0
    said = ran.out + ran.err
    assert said.count("Secret sent without encryption") == 1
    assert "Anyone on the network can read the headers that are sent to http://w2:8083." in said
    declare_workers(cli, workers=plain)
    assert "without encryption" not in cli("validate").out


def test_command_warns_about_headers_over_plain_http(cli: CommandLine, workers: MemoryWorkers) -> None:
    workers.urls = ("http://w1:8083",)
    words = ("status", "--worker", "http://w1:8083")
    said = run_worker_config(cli, *words, "--header", "Authorization=${env.HOME}")[2]
    assert "warning: Anyone on the network can read the headers that are sent to http://w1:8083." in said
    assert "can be read" not in run_worker_config(cli, *words)[2]


# Policies.


def test_policies_evaluate_worker_configs(cli: CommandLine, workers: MemoryWorkers) -> None:
    def add_rule(text: str, *actions: str) -> None:
        selector = {"kind": "ConnectWorkerConfig", "names": ["/e.*/"]}
        cli.write("manifests/rule.yaml", "Policy", "rule", rule=text, actions=actions, selector=selector)

    declare_workers(cli)
    add_rule(f"after.configs['{LOCATION}'] == '/new'", "CREATE", "MODIFY")
    assert cli("policy", "check").code == 3
    assert cli("plan").code == 3
    assert "denied by policy rule" in cli("apply", "--yes").out
    assert workers.current() == {}
    declare_workers(cli, config={LOCATION: "/new", PASSWORD: PLACEHOLDER})
    assert cli("policy", "check").code == 0
    assert cli("plan", "--out", "saved.json").code == 0
    assert cli("apply", "saved.json", "--yes").code == 0  # evaluated against the current workers
    assert cli("policy", "check", "--live").code == 0
    add_rule(f"before.configs['{LOCATION}'] != '/new' || after.workers.size() != 3", "MODIFY")
    assert cli("policy", "check", "--live").code == 3
    declare_workers(cli)
    assert cli("plan").code == 3
    assert cli("rollback", "--yes").code == 3
    assert workers.current()[LOCATION] == "/new"


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"tls": {"caFile": "gone.pem"}}, "caFile 'gone.pem' cannot be used: no such file or directory"),
        ({"tls": {"certFile": "gone.pem", "keyFile": "gone.key"}}, "certFile 'gone.pem' cannot be used"),
    ],
)
def test_group_with_unusable_tls_file_blocks_only_itself(
    cli: CommandLine, spec: Mapping[str, Any], reason: str
) -> None:
    memory = connection.open_workers

    def open_some(group: WorkerGroup, *more: Any) -> ConnectWorkers:
        return (open_real_workers if group.urls == ("https://us:8083",) else memory)(group, *more)

    cli.monkeypatch.setattr(connection, "open_workers", open_some)
    declare_workers(cli)
    declare_workers(cli, "us", workers=["https://us:8083"], **spec)
    cli.topic("orders")
    plan = cli("plan")
    assert plan.code == 1
    assert reason in " ".join((plan.out + plan.err).split())
    ran = cli("apply", "--yes")
    assert ran.code == 5
    assert cli.topics == {"orders"}
    assert "ConnectWorkerConfig/us" not in cli("history", "--format", "json").out
    (cli.folder / "manifests" / "us.yaml").unlink()
    assert cli("plan", "--detailed-exitcode").code == 0
