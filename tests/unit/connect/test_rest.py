"""`RestWorkers` with an HTTPS stub: the requests, and the handling of responses and failures."""

import json
import socket
import ssl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.providers.connect.client import port
from kdeclare.providers.connect.client.port import read_workers
from kdeclare.providers.connect.client.rest import PATH, RestWorkers, open_rest_workers, parse_certificate
from kdeclare.providers.connect.worker_state import WorkerGroup
from tests.pems import pems
from tests.unit.connect.https_stub import Stub, https, pair

__all__ = ["pems"]

KEY = "listeners.https.ssl.keystore.location"
STATUS = {
    "worker_id": "localhost:8083",
    "leader": True,
    "plugin_version": "0.1.0",
    "mode": "distributed",
    "seen": {"offset": 12},
    "applied": {"offset": 12, "at": "2026-01-01T00:00:00Z", "sha256": "ab"},
    "error": None,
    "overrides": [KEY],
    "whitelist": [KEY],
    "listeners": [
        {"name": "http", "port": 8080, "certificate": None},
        {
            "name": "https",
            "port": 8443,
            "certificate": {
                "sha256": "cd",
                "subject": "CN=a",
                "issuer": "CN=b",
                "not_before": "2026-01-01T00:00:00Z",
                "not_after": "2027-01-01T00:00:00Z",
            },
        },
    ],
    "something": "new",
}


@pytest.fixture(scope="module")
def certs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certs")
    for name in ("worker", "other", "client"):
        pair(folder, name)
    pair(folder, "elsewhere", host="elsewhere.example")
    return folder


@pytest.fixture(scope="module")
def _stub(certs: Path) -> Iterator[Stub]:
    with https(certs / "worker.pem", certs / "worker.key") as stub:
        yield stub


@pytest.fixture
def stub(_stub: Stub) -> Stub:
    _stub.answers.clear()
    _stub.asked.clear()
    return _stub


def workers(stub: Stub, certs: Path, timeout_s: float = 5.0, **group: Any) -> RestWorkers:
    wanted = replace(WorkerGroup((stub.url,), ca_file="worker.pem"), **group)
    return open_rest_workers(
        wanted, certs, lambda reference: reference.replace("${env.TOKEN}", "s3cret"), timeout_s
    )


def fault(call: Any) -> Fault:
    with pytest.raises(Fault) as raised:
        call()
    return raised.value


# Requests and parsed responses.


def test_a_status_as_the_plug_in_writes_it(stub: Stub, certs: Path) -> None:
    stub.answers["GET", f"{PATH}/status"] = 200, STATUS
    found = workers(stub, certs).status(stub.url)
    assert (found.worker_id, found.leader, found.mode, found.seen) == (
        "localhost:8083",
        True,
        "distributed",
        12,
    )
    assert found.applied
    assert found.applied.sha256 == "ab"
    assert found.error is None
    plain, secured = found.listeners
    assert plain.certificate is None
    assert secured.certificate
    assert (secured.port, secured.certificate.not_after.year) == (8443, 2027)


def test_a_worker_that_has_read_nothing_yet(stub: Stub, certs: Path) -> None:
    nothing = {"worker_id": "w", "plugin_version": "1", "leader": None, "seen": None, "applied": None}
    stub.answers["GET", f"{PATH}/status"] = 200, nothing
    found = workers(stub, certs).status(stub.url)
    assert (found.leader, found.seen, found.applied, found.listeners) == (None, None, None, ())


def test_changes_go_out_as_they_are_with_null_for_what_is_to_go(stub: Stub, certs: Path) -> None:
    stub.answers["PATCH", PATH] = 200, {KEY: "/new"}
    headers = (("Authorization", "Bearer ${env.TOKEN}"),)
    found = workers(stub, certs, headers=headers).patch(stub.url, {KEY: "/new", "b": None})
    assert found == {KEY: "/new"}
    (asked,) = stub.asked
    assert json.loads(asked.body) == {KEY: "/new", "b": None}
    assert asked.headers["Authorization"] == "Bearer s3cret"
    assert asked.headers["Content-Type"] == "application/json"


def test_a_key_with_odd_letters_stays_one_part_of_the_path(stub: Stub, certs: Path) -> None:
    stub.answers["DELETE", f"{PATH}/a%2Fb%20c"] = 204, b""
    workers(stub, certs).delete(stub.url, "a/b c")
    assert len(stub.asked) == 1


def test_what_a_worker_says_of_a_proposal(stub: Stub, certs: Path) -> None:
    said = {"valid": False, "configs": [KEY], "errors": {KEY: ["no such file"], "": ["cannot be read"]}}
    stub.answers["POST", f"{PATH}/validate"] = 200, said
    found = workers(stub, certs).validate(stub.url, {KEY: "/new"})
    assert (found.valid, found.errors) == (False, {KEY: ("no such file",), "": ("cannot be read",)})


def test_a_key_off_the_whitelist_is_what_the_worker_says_of_a_proposal(stub: Stub, certs: Path) -> None:
    stub.answers["POST", f"{PATH}/validate"] = 400, {"error_code": 400, "message": "x is not dynamic"}
    found = workers(stub, certs).validate(stub.url, {"x": "1"})
    assert (found.valid, found.errors) == (False, {"": ("x is not dynamic",)})


# Refusals.


@pytest.mark.parametrize(
    ("method", "status", "error", "kind"),
    [
        ("PATCH", 400, port.INVALID, FaultKind.REFUSED),
        ("PATCH", 401, port.NOT_AUTHORIZED, FaultKind.REFUSED),
        ("GET", 403, port.NOT_AUTHORIZED, FaultKind.REFUSED),
        ("GET", 404, port.PLUGIN_MISSING, FaultKind.REFUSED),
        ("PATCH", 404, port.PLUGIN_MISSING, FaultKind.REFUSED),
        ("PATCH", 405, port.PLUGIN_MISSING, FaultKind.REFUSED),
        ("PATCH", 409, port.NOT_READY, FaultKind.RETRIABLE),
        ("PATCH", 413, port.INVALID, FaultKind.REFUSED),
        ("PATCH", 500, port.LOST, FaultKind.UNKNOWN),
        ("GET", 500, port.LOST, FaultKind.RETRIABLE),
        ("GET", 503, port.NOT_READY, FaultKind.REFUSED),
        ("GET", 302, port.INVALID, FaultKind.REFUSED),
    ],
)
def test_what_a_status_means(
    stub: Stub, certs: Path, method: str, status: int, error: str, kind: FaultKind
) -> None:
    stub.answers[method, PATH] = status, {"error_code": status, "message": "in the worker's own words"}
    at = workers(stub, certs)
    found = fault(lambda: at.overrides(stub.url) if method == "GET" else at.patch(stub.url, {KEY: "s3cret"}))
    assert (found.error, found.kind) == (error, kind)
    assert error == port.PLUGIN_MISSING or found.message == "in the worker's own words"


def test_what_is_not_there_to_be_deleted_is_told_from_a_plug_in_that_is_not_there(
    stub: Stub, certs: Path
) -> None:
    path = f"{PATH}/k"
    stub.answers["DELETE", path] = 404, {"error_code": 404, "message": "There is no override of k"}
    assert fault(lambda: workers(stub, certs).delete(stub.url, "k")).error == port.NO_OVERRIDE
    stub.answers["DELETE", path] = 404, {"error_code": 404, "message": "HTTP 404 Not Found"}
    assert fault(lambda: workers(stub, certs).delete(stub.url, "k")).error == port.PLUGIN_MISSING


@pytest.mark.parametrize("body", [b"<html>", b"[1]", b'{"k": {"s3cret": 1}}', b'{"k": null}', b""])
def test_an_answer_that_is_none_of_the_plug_ins(stub: Stub, certs: Path, body: bytes) -> None:
    stub.answers["GET", PATH] = 200, body
    found = fault(lambda: workers(stub, certs).overrides(stub.url))
    assert found.error == port.BAD_ANSWER
    assert "s3cret" not in str(found)


def test_a_change_that_certainly_came_to_nothing_is_refused(stub: Stub, certs: Path) -> None:
    said = "Nothing was written: Transactional Id authorization failed."
    stub.answers["PATCH", PATH] = 500, {"error_code": 500, "message": said}
    found = fault(lambda: workers(stub, certs).patch(stub.url, {KEY: "/new"}))
    assert (found.kind, found.message) == (FaultKind.REFUSED, said)


def test_a_change_whose_answer_is_odd_may_have_been_made(stub: Stub, certs: Path) -> None:
    stub.answers["PATCH", PATH] = 200, b"<html>"
    found = fault(lambda: workers(stub, certs).patch(stub.url, {KEY: "/new"}))
    assert (found.error, found.kind) == (port.BAD_ANSWER, FaultKind.UNKNOWN)


# Missing responses.


def test_a_change_without_an_answer_may_have_been_made(stub: Stub, certs: Path) -> None:
    stub.silence_s = 0.0
    found = fault(lambda: workers(stub, certs).patch(stub.url, {KEY: "/new"}))
    assert (found.error, found.kind) == (port.LOST, FaultKind.UNKNOWN)


def test_a_look_without_an_answer_in_time_can_be_had_again(stub: Stub, certs: Path) -> None:
    stub.silence_s = 1.0
    found = fault(lambda: workers(stub, certs, timeout_s=0.3).status(stub.url))
    assert (found.error, found.kind) == (port.LOST, FaultKind.RETRIABLE)
    assert "timed out" in found.message


def test_nobody_at_home(certs: Path) -> None:
    with socket.socket() as free:
        free.bind(("localhost", 0))
        url = f"https://localhost:{free.getsockname()[1]}"
        at = open_rest_workers(WorkerGroup((url,), ca_file="worker.pem"), certs, str)
        for call in (
            lambda: at.patch(url, {}),
            lambda: at.status(url),
            lambda: at.read_served_certificate(url),
        ):
            found = fault(call)
            assert (found.error, found.kind) == (port.UNREACHABLE, FaultKind.REFUSED)
            assert "(connection refused)" in found.message


@pytest.mark.parametrize("host", ["worker..eu", "a" * 64, "xn--a", "[v1.a]", "999.1.1.1"])
def test_a_host_that_cannot_be_looked_up(certs: Path, host: str) -> None:
    url = f"https://{host}"
    at = open_rest_workers(WorkerGroup((url,), ca_file="worker.pem"), certs, str)
    for call in (lambda: at.patch(url, {}), lambda: at.status(url), lambda: at.read_served_certificate(url)):
        assert fault(call).error == port.UNREACHABLE


# TLS.


def test_a_handshake_shows_what_is_served_trusted_or_not(stub: Stub, certs: Path) -> None:
    served = parse_certificate(ssl.PEM_cert_to_DER_cert((certs / "worker.pem").read_text()))
    assert workers(stub, certs).read_served_certificate(stub.url) == served
    assert workers(stub, certs, ca_file="other.pem").read_served_certificate(stub.url) == served
    assert served.subject == "CN=worker"
    assert workers(stub, certs).read_served_certificate("http://localhost:1") is None


def test_a_worker_that_is_not_trusted_is_not_asked(stub: Stub, certs: Path) -> None:
    found = fault(lambda: workers(stub, certs, ca_file="other.pem").patch(stub.url, {KEY: "/new"}))
    assert (found.error, found.kind) == (port.NOT_TRUSTED, FaultKind.REFUSED)
    assert "its certificate is not trusted" in found.message
    assert not stub.asked


def test_a_certificate_for_another_host_is_not_trusted(certs: Path) -> None:
    with https(certs / "elsewhere.pem", certs / "elsewhere.key") as stub:
        found = fault(lambda: workers(stub, certs, ca_file="elsewhere.pem").status(stub.url))
    assert found.error == port.NOT_TRUSTED
    assert "Hostname mismatch" in found.message


def test_a_worker_that_asks_who_one_is(certs: Path) -> None:
    with https(certs / "worker.pem", certs / "worker.key", certs / "client.pem") as stub:
        stub.answers["GET", PATH] = 200, {}
        found = fault(lambda: workers(stub, certs).overrides(stub.url))
        assert found.error == port.NOT_TRUSTED
        own = workers(stub, certs, cert_file="client.pem", key_file="client.key")
        assert own.overrides(stub.url) == {}
        assert own.read_served_certificate(stub.url) is not None


@pytest.mark.parametrize(
    ("group", "said"),
    [
        ({"ca_file": "gone.pem"}, "caFile 'gone.pem' cannot be used: no such file"),
        ({"ca_file": "worker.key"}, "caFile 'worker.key' cannot be used: it has no certificates"),
        ({"cert_file": "worker.pem"}, "certFile 'worker.pem' cannot be used: it is not PEM"),
        ({"cert_file": "worker.pem", "key_file": "other.key"}, "the key does not match the certificate"),
        ({"cert_file": "worker.pem", "key_file": "."}, "keyFile '.' cannot be used: is a directory"),
    ],
)
def test_files_that_cannot_be_used(certs: Path, group: dict[str, Any], said: str) -> None:
    with pytest.raises(KdeclareError) as raised:
        open_rest_workers(replace(WorkerGroup(("https://localhost",)), **group), certs, str)
    assert said in str(raised.value)


def test_a_key_under_a_password_is_said_and_not_asked_for(certs: Path, pems: Path) -> None:
    locked = WorkerGroup(("https://localhost",), cert_file="cert", key_file="locked")
    with pytest.raises(KdeclareError) as raised:
        open_rest_workers(locked, pems, str)
    assert "its key is encrypted" in str(raised.value)


# All workers at once.


def test_what_one_worker_keeps_to_itself_is_its_trouble(stub: Stub, certs: Path) -> None:
    stub.answers["GET", f"{PATH}/status"] = 404, {"error_code": 404, "message": "HTTP 404 Not Found"}
    seen = read_workers(workers(stub, certs))
    (worker,) = seen.workers
    assert seen.overrides is None
    assert worker.served is not None
    assert "kdeclare's plug-in is not installed on it" in worker.trouble
    stub.answers["GET", f"{PATH}/status"] = 200, STATUS
    stub.answers["GET", PATH] = 200, {KEY: "/new"}
    seen = read_workers(workers(stub, certs))
    assert seen.overrides == {KEY: "/new"}
    assert seen.workers[0].trouble == ""
