"""`kdeclare connect worker-config`, and manifests of its kind, with in-process workers."""

import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.providers.connect.client.port import Changes
from kdeclare.providers.connect.testing import MemoryWorkers
from kdeclare.providers.connect.testing.workers import LOCATION, PASSWORD, Keystore
from kdeclare.providers.connect.worker_state import Certificate
from tests.unit.cli.command_line import CommandLine

PLACEHOLDER = "${file:/etc/connect/secrets.properties:keystore}"
URLS = ("https://w1:8083", "https://w2:8083", "https://w3:8083")
WORKERS = tuple(word for url in URLS for word in ("--worker", url))


def certificate(name: str, days: int = 400) -> Certificate:
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    sha = name.encode().hex().ljust(64, "0")
    return Certificate(sha, f"CN={name}", "CN=ca", begin, datetime.now(UTC) + timedelta(days=days, hours=1))


@pytest.fixture
def workers() -> MemoryWorkers:
    found = MemoryWorkers(URLS)
    found.files = {"/old": Keystore(certificate("old"), "pw"), "/new": Keystore(certificate("new"), "pw")}
    found.placeholders = {PLACEHOLDER: "pw"}
    return found


@pytest.fixture
def typed(kdeclare: CommandLine, workers: MemoryWorkers) -> CommandLine:
    kdeclare.workers[workers.urls] = workers
    return kdeclare


def declare(typed: CommandLine, name: str = "eu", **spec: Any) -> Path:
    config = {LOCATION: "/old", PASSWORD: PLACEHOLDER}
    return typed.write(
        f"manifests/{name}.yaml",
        "ConnectWorkerConfig",
        name,
        **({"workers": list(URLS), "config": config} | spec),
    )


def worker_config(typed: CommandLine, *words: str, answer: str | None = None) -> tuple[int, str, str]:
    ran = typed("connect", "worker-config", *words, answer=answer)
    return ran.code, ran.out, ran.err


def change(location: str, password: str = PLACEHOLDER) -> tuple[str, str]:
    return f"{LOCATION}={location}", f"{PASSWORD}={password}"


# Ad hoc commands.


def test_patch_shows_asks_changes_and_waits(typed: CommandLine, workers: MemoryWorkers) -> None:
    code, out, err = worker_config(typed, "patch", *change("/old"), *WORKERS, answer="yes\n")
    assert code == 0
    assert f"~ {LOCATION}  (unset) → /old" in out
    assert "3 workers can apply this." in out
    assert "Only 'yes' is accepted" in err
    assert "3 workers applied it" in out
    assert workers.current() == {LOCATION: "/old", PASSWORD: PLACEHOLDER}
    assert [call for call, _ in workers.calls].count("patch") == 1


def test_patch_changes_nothing_without_a_yes(typed: CommandLine, workers: MemoryWorkers) -> None:
    assert worker_config(typed, "patch", *change("/old"), *WORKERS, answer="no\n")[0] == 1
    assert worker_config(typed, "patch", *change("/old"), *WORKERS)[0] == 64
    assert not workers.log


def test_one_worker_that_cannot_apply_it_keeps_it_from_all(
    typed: CommandLine, workers: MemoryWorkers
) -> None:
    workers.workers[URLS[1]].missing_paths = {"/new"}
    words = ("patch", *change("/new"), *WORKERS, "--yes")
    code, out, _ = worker_config(typed, *words)
    assert code == 1
    assert "1 of 3 workers cannot apply this:" in out
    assert f"✗ {URLS[1]}\n      {LOCATION}: There is no file /new" in out
    assert not workers.log
    code, out, _ = worker_config(typed, *words, "--format", "json")
    said = json.loads(out)
    assert (code, said["valid"]) == (1, False)
    assert [worker["valid"] for worker in said["workers"]] == [True, False, True]


def test_a_worker_that_does_not_follow_is_named(typed: CommandLine, workers: MemoryWorkers) -> None:
    workers.workers[URLS[2]].lag = None
    words = ("patch", *change("/old"), *WORKERS, "--yes", "--wait", "0")
    code, out, _ = worker_config(typed, *words)
    assert code == 5
    assert "1 of 3 workers did not apply it" in out
    assert f"✗ {URLS[2]}  it has not applied the last update yet" in out
    code, out, _ = worker_config(typed, *words, "--format", "json")
    said = json.loads(out)
    assert (code, said["exit_code"]) == (5, 5)
    assert [item["url"] for item in said["behind"]] == [URLS[2]]


def test_what_is_there_already_is_sent_again(typed: CommandLine, workers: MemoryWorkers) -> None:
    worker_config(typed, "patch", *change("/old"), *WORKERS, "--yes")
    workers.files["/old"] = Keystore(certificate("renewed"), "pw")
    code, out, _ = worker_config(typed, "patch", f"{LOCATION}=/old", *WORKERS, "--yes")
    assert code == 0
    assert "unchanged: sent again" in out
    assert {worker.certificate.subject for worker in workers.workers.values()} == {"CN=renewed"}


def test_delete_takes_keys_away_together(typed: CommandLine, workers: MemoryWorkers) -> None:
    worker_config(typed, "patch", *change("/old"), *WORKERS, "--yes")
    code, out, _ = worker_config(typed, "delete", LOCATION, PASSWORD, *WORKERS, answer="yes\n")
    assert code == 0
    assert "as in the worker's own file" in out
    assert workers.log[-1] == {}
    assert len(workers.log) == 2


def test_delete_of_what_is_not_there(typed: CommandLine, workers: MemoryWorkers) -> None:
    worker_config(typed, "patch", *change("/old"), *WORKERS, "--yes")
    code, _, err = worker_config(typed, "delete", LOCATION, "no.such.key", *WORKERS, "--yes")
    assert code == 1
    assert "'no.such.key' is not overridden. The overridden keys are" in err
    assert len(workers.log) == 1


def test_validate_changes_nothing(typed: CommandLine, workers: MemoryWorkers) -> None:
    assert worker_config(typed, "validate", *change("/old"), *WORKERS)[0] == 0
    code, out, _ = worker_config(typed, "validate", *change("/gone"), *WORKERS)
    assert code == 1
    assert "3 of 3 workers cannot apply this" in out
    assert not workers.log


@pytest.mark.parametrize("words", [("get",), ("status",), ("validate", f"{LOCATION}=/new")])
@pytest.mark.parametrize("form", ["text", "json"])
def test_passwords_are_shown_nowhere(
    typed: CommandLine, workers: MemoryWorkers, words: tuple[str, ...], form: str
) -> None:
    workers.files["/old"] = Keystore(certificate("old"), "s3cret")
    workers.patch(URLS[0], {LOCATION: "/old", PASSWORD: "s3cret"})
    _, out, err = worker_config(typed, *words, *WORKERS, "--format", form)
    assert out
    assert "s3cret" not in out + err
    if words == ("get",):
        assert "(sensitive)" in out


def test_a_raw_password_is_warned_of_and_not_shown(typed: CommandLine, workers: MemoryWorkers) -> None:
    workers.files["/old"] = Keystore(certificate("old"), "s3cret")
    typed.monkeypatch.setenv("STORE_PASSWORD", "s3cret")
    code, out, err = worker_config(
        typed, "patch", *change("/old", "${env.STORE_PASSWORD}"), *WORKERS, "--yes"
    )
    assert code == 0
    assert workers.current()[PASSWORD] == "s3cret"
    assert "Secret stored in Connect's topic" in err
    assert "s3cret" not in out + err


def test_get_shows_placeholders_as_they_are(typed: CommandLine, workers: MemoryWorkers) -> None:
    assert "No overrides" in worker_config(typed, "get", *WORKERS)[1]
    worker_config(typed, "patch", *change("/old"), *WORKERS, "--yes")
    _, out, _ = worker_config(typed, "get", *WORKERS, "--format", "json")
    assert json.loads(out)["overrides"] == {LOCATION: "/old", PASSWORD: PLACEHOLDER}


def test_status_of_workers_that_are_well(typed: CommandLine, workers: MemoryWorkers) -> None:
    worker_config(typed, "patch", *change("/old"), *WORKERS, "--yes")
    code, out, _ = worker_config(typed, "status", *WORKERS)
    assert code == 0
    assert "3 of 3 workers in step with 2 overrides." in out
    assert out.count("CN=old") >= 3
    assert "400 days" in out
    code, out, _ = worker_config(typed, "status", *WORKERS, "--format", "json")
    said = json.loads(out)
    assert (code, said["exit_code"]) == (0, 0)
    assert [(w["url"], w["leader"], w["in_step"]) for w in said["workers"]] == [
        (URLS[0], True, True),
        (URLS[1], False, True),
        (URLS[2], False, True),
    ]
    assert said["workers"][0]["served"]["subject"] == "CN=old"


def test_status_names_who_is_silent_behind_or_different(typed: CommandLine, workers: MemoryWorkers) -> None:
    worker_config(typed, "patch", *change("/old"), *WORKERS, "--yes")
    workers.workers[URLS[1]].lag = None
    workers.patch(URLS[0], {LOCATION: "/new"})
    workers.workers[URLS[2]].down = True
    code, out, _ = worker_config(typed, "status", *WORKERS)
    assert code == 5
    assert "1 of 3 workers in step" in out
    assert f"{URLS[1]}: it has not applied the last update yet." in out
    assert f"{URLS[2]}: it is unreachable" in out
    assert worker_config(typed, "status", *WORKERS, "--format", "json")[0] == 5


def test_status_warns_of_certificates_that_end_soon(typed: CommandLine, workers: MemoryWorkers) -> None:
    workers.files["/old"] = Keystore(certificate("old", days=20), "pw")
    worker_config(typed, "patch", *change("/old"), *WORKERS, "--yes")
    code, out, _ = worker_config(typed, "status", *WORKERS)
    assert code == 0
    assert "Certificate expires soon" in out
    assert "expires soon" not in worker_config(typed, "status", *WORKERS, "--warn-days", "7")[1]


def test_workers_of_which_none_answers(typed: CommandLine, workers: MemoryWorkers) -> None:
    for worker in workers.workers.values():
        worker.down = True
    code, _, err = worker_config(typed, "get", *WORKERS)
    assert code == 1
    assert all(f"{url}: it is unreachable" in err for url in URLS)
    assert worker_config(typed, "status", *WORKERS)[0] == 5


def test_what_the_workers_refuse_is_said_in_their_words(
    typed: CommandLine, workers: MemoryWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(url: str, changes: Changes) -> Mapping[str, str]:
        raise Fault("WORKER_AUTHORIZATION_FAILED", "Only admins may")

    monkeypatch.setattr(workers, "patch", refuse)
    code, _, err = worker_config(typed, "patch", *change("/old"), *WORKERS, "--yes")
    assert code == 1
    assert "Only admins may" in err
    assert not workers.log


# Missing responses.


def test_a_change_without_an_answer_is_looked_for(typed: CommandLine, workers: MemoryWorkers) -> None:
    workers.lose_answers = 1
    code, out, _ = worker_config(typed, "patch", *change("/old"), *WORKERS, "--yes")
    assert code == 0
    assert "Changed; 3 workers applied it" in out
    assert len(workers.log) == 1


def test_a_change_without_an_answer_names_who_does_not_follow(
    typed: CommandLine, workers: MemoryWorkers
) -> None:
    workers.lose_answers = 1
    workers.workers[URLS[2]].lag = None
    code, out, _ = worker_config(typed, "patch", *change("/old"), *WORKERS, "--yes", "--wait", "0")
    assert code == 5
    assert "Changed, but 1 of 3 workers did not apply it" in out
    assert f"✗ {URLS[2]}  it has not applied the last update yet" in out


def test_others_who_change_other_keys_meanwhile_do_not_hide_it(
    typed: CommandLine, workers: MemoryWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = workers.patch

    def patch(url: str, changes: Changes) -> Mapping[str, str]:
        lost(url, changes)
        lost(url, {"listeners.https.ssl.keystore.type": "PKCS12"})
        raise Fault("WORKER_LOST", "it did not respond", FaultKind.UNKNOWN)

    monkeypatch.setattr(workers, "patch", patch)
    assert worker_config(typed, "patch", *change("/old"), *WORKERS, "--yes")[0] == 0


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("form", ["text", "json"])
def test_of_a_change_that_never_shows_nobody_says_that_it_was_not_made(
    typed: CommandLine, workers: MemoryWorkers, form: str, *, known: bool
) -> None:
    """known: its values are already set, so only a newer update proves the change."""
    if known:
        workers.patch(URLS[0], {LOCATION: "/old", PASSWORD: PLACEHOLDER})
    workers.lose_requests = 1
    words = ("patch", *change("/old"), *WORKERS, "--yes", "--wait", "0", "--format", form)
    code, out, err = worker_config(typed, *words)
    assert code == 5
    said = " ".join((out + err).split())
    assert "outcome-unclear" in said or form == "text"
    assert "Unknown whether the change was made" in said
    assert f"{URLS[0]}: it did not respond" in said
    assert "worker-config status" in said


def test_of_a_change_after_which_nobody_answers(
    typed: CommandLine, workers: MemoryWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def patch(url: str, changes: Changes) -> Mapping[str, str]:
        for worker in workers.workers.values():
            worker.down = True
        raise Fault("WORKER_LOST", "it did not respond", FaultKind.UNKNOWN)

    monkeypatch.setattr(workers, "patch", patch)
    code, _, err = worker_config(typed, "patch", *change("/old"), *WORKERS, "--yes", "--wait", "0")
    assert code == 5
    assert f"{URLS[1]}: it is unreachable" in err


def test_during_a_rebalance_the_change_is_sent_again(typed: CommandLine, workers: MemoryWorkers) -> None:
    workers.rebalances = 2
    assert worker_config(typed, "patch", *change("/old"), *WORKERS, "--yes")[0] == 0
    assert workers.current()[LOCATION] == "/old"
    assert [call for call, _ in workers.calls].count("patch") == 3


# Which workers.


def test_without_urls_the_manifest_names_the_workers(typed: CommandLine) -> None:
    code, _, err = worker_config(typed, "get")
    assert code == 64
    assert "Neither --worker nor a manifest" in err
    declare(typed)
    assert worker_config(typed, "get")[0] == 0
    declare(typed, "us")
    code, _, err = worker_config(typed, "get")
    assert code == 64
    assert "Choose one with --name NAME" in err
    assert worker_config(typed, "get", "--name", "us")[0] == 0
    code, _, err = worker_config(typed, "get", "--name", "euu")
    assert code == 64
    assert "Did you mean 'eu'?" in err


def test_keys_of_a_manifest_are_named_before_anybody_is_asked(typed: CommandLine) -> None:
    declare(typed)
    _, _, err = worker_config(typed, "patch", f"{LOCATION}=/old", *WORKERS, answer="no\n")
    assert "Declared in a manifest" in err
    assert f"ConnectWorkerConfig/eu declares {LOCATION}" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("patch", "--yes"), "specify KEY=VALUE or --remove KEY"),
        (("patch", "no-value"), "does not have the form KEY=VALUE"),
        (("patch", f"{LOCATION}=/a", "--remove", LOCATION), "is also to be set"),
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
def test_wrong_usage(typed: CommandLine, words: tuple[str, ...], said: str) -> None:
    code, _, err = worker_config(typed, *words)
    assert code == 64
    assert said.lower() in " ".join(err.lower().split())


# As a manifest.


def test_a_manifest_from_plan_to_rollback(typed: CommandLine, workers: MemoryWorkers) -> None:
    declare(typed)
    ran = typed("plan")
    assert ran.code == 0
    assert "ConnectWorkerConfig/eu" in ran.out
    assert PLACEHOLDER in ran.out
    ran = typed("apply", "--yes")
    assert ran.code == 0
    assert "1 group of Connect workers configured" in ran.out
    assert typed("plan", "--detailed-exitcode").code == 0
    declare(typed, config={LOCATION: "/new", PASSWORD: PLACEHOLDER})
    assert typed("plan", "--out", "it.plan").code == 0
    assert typed("apply", "it.plan", "--yes").code == 0
    assert workers.current()[LOCATION] == "/new"
    assert typed("rollback", "--yes").code == 0
    assert workers.current()[LOCATION] == "/old"
    ran = typed("history")
    assert ran.code == 0


def test_apply_and_rollback_wait_for_workers_as_long_as_they_are_told(
    typed: CommandLine, workers: MemoryWorkers
) -> None:
    workers.workers[URLS[2]].lag = None
    declare(typed)
    begun = time.monotonic()
    ran = typed("apply", "--yes", "--follow-timeout", "0")
    assert ran.code == 5
    assert f"{URLS[2]}: it has not applied the last update yet" in ran.out
    ran = typed("rollback", "--yes", "--follow-timeout", "0")
    assert ran.code == 5
    assert time.monotonic() - begun < 15
    assert typed("apply", "--follow-timeout", "inf").code == 64


def test_workers_that_fall_silent_between_plan_and_apply(typed: CommandLine, workers: MemoryWorkers) -> None:
    declare(typed)
    assert typed("plan", "--out", "it.plan").code == 0
    for worker in workers.workers.values():
        worker.down = True
    ran = typed("apply", "it.plan", "--yes")
    assert ran.code == 1
    assert "Connect workers rejected the request" in ran.err
    assert f"{URLS[0]}: it is unreachable" in ran.err
    assert not workers.log


def test_texts_stay_as_they_are_written(typed: CommandLine, workers: MemoryWorkers) -> None:
    typed.monkeypatch.setenv("STORE_PASSWORD", "0123")
    workers.files["/1.50"] = Keystore(certificate("old"), "0123")
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
    (typed.folder / "manifests" / "eu.yaml").write_text(manifest)
    assert typed("apply", "--yes").code == 0
    assert workers.current()[PASSWORD] == "0123"
    assert workers.current()["listeners.https.ssl.keystore.type"] == "1.50"
    everything = [path.read_text() for path in (typed.folder / "state").rglob("*") if path.is_file()]
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
        ({"workers": []}, "workers", "bad-value"),
        ({"confg": {}}, "config", "unknown-field"),
        ({"warnBeforeExpiry": "soon"}, "'soon' is not a duration", "bad-value"),
    ],
)
def test_what_is_wrong_with_a_manifest_is_said_with_its_place(
    typed: CommandLine, spec: dict[str, Any], said: str, code: str
) -> None:
    declare(typed, **spec)
    ran = typed("validate", "--format", "json")
    assert ran.code == 1
    (problem,) = json.loads(ran.out)["diagnostics"]
    assert problem["code"] == code
    assert said in problem["detail"] + problem["hint"]
    assert problem["place"]["file"].endswith("eu.yaml")
    assert problem["place"]["line"] > 1
    assert "s3cret" not in ran.out


def test_a_raw_password_in_a_manifest_is_warned_of_and_cannot_be_saved(
    typed: CommandLine, workers: MemoryWorkers
) -> None:
    workers.files["/old"] = Keystore(certificate("old"), "s3cret")
    declare(typed, config={LOCATION: "/old", PASSWORD: "s3cret"})
    ran = typed("plan", "--out", "it.plan")
    assert ran.code == 1
    assert "Literal secret cannot be saved in a plan" in ran.err
    ran = typed("apply", "--yes")
    assert ran.code == 0
    assert "Secret in a manifest" in ran.out
    assert workers.current()[PASSWORD] == "s3cret"
    everything = [path.read_text() for path in (typed.folder / "state").rglob("*") if path.is_file()]
    assert "s3cret" not in "".join([*everything, ran.out, ran.err])


def test_schema_and_target_know_the_kind(typed: CommandLine) -> None:
    ran = typed("schema", "--kind", "ConnectWorkerConfig")
    assert ran.code == 0
    assert "warnBeforeExpiry" in ran.out
    declare(typed)
    assert typed("plan", "--target", "ConnectWorkerConfig/eu").code == 0


# Credentials without encryption.


def test_validate_warns_of_headers_that_go_out_unencrypted(
    typed: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = {"Authorization": "Basic ${env.CONNECT_AUTH}"}
    plain = ["https://w1:8083", "http://w2:8083"]
    declare(typed, workers=plain, headers=header)
    monkeypatch.setenv("CONNECT_AUTH", "YTpi")
    ran = typed("validate")
    assert ran.code == 0
    said = ran.out + ran.err
    assert said.count("Secret sent without encryption") == 1
    assert "The headers sent to http://w2:8083 can be read on the network." in said
    declare(typed, workers=plain)
    assert "without encryption" not in typed("validate").out


def test_a_command_warns_of_a_header_that_goes_out_unencrypted(
    typed: CommandLine, workers: MemoryWorkers
) -> None:
    workers.urls = ("http://w1:8083",)
    words = ("status", "--worker", "http://w1:8083")
    said = worker_config(typed, *words, "--header", "Authorization=${env.HOME}")[2]
    assert "warning: The headers sent to http://w1:8083 can be read on the network." in said
    assert "can be read" not in worker_config(typed, *words)[2]


# Policies.


def test_policies_judge_worker_configs(typed: CommandLine, workers: MemoryWorkers) -> None:
    def rule(text: str, *actions: str) -> None:
        selector = {"kind": "ConnectWorkerConfig", "names": ["/e.*/"]}
        typed.write("manifests/rule.yaml", "Policy", "rule", rule=text, actions=actions, selector=selector)

    declare(typed)
    rule(f"after.configs['{LOCATION}'] == '/new'", "CREATE", "MODIFY")
    assert typed("policy", "check").code == 3
    assert typed("plan").code == 3
    assert "denied by policy rule" in typed("apply", "--yes").out
    assert workers.current() == {}
    declare(typed, config={LOCATION: "/new", PASSWORD: PLACEHOLDER})
    assert typed("policy", "check").code == 0
    assert typed("plan", "--out", "saved.json").code == 0
    assert typed("apply", "saved.json", "--yes").code == 0  # evaluated against the current workers
    assert typed("policy", "check", "--live").code == 0
    rule(f"before.configs['{LOCATION}'] != '/new' || after.workers.size() != 3", "MODIFY")
    assert typed("policy", "check", "--live").code == 3
    declare(typed)
    assert typed("plan").code == 3
    assert typed("rollback", "--yes").code == 3
    assert workers.current()[LOCATION] == "/new"
