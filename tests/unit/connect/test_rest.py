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
from tests.unit.connect.https_stub import Stub, create_key_pair, run_https_stub

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
        create_key_pair(folder, name)
    create_key_pair(folder, "elsewhere", host="elsewhere.example")
    return folder


@pytest.fixture(scope="module")
def _stub(certs: Path) -> Iterator[Stub]:
    with run_https_stub(certs / "worker.pem", certs / "worker.key") as stub:
        yield stub


@pytest.fixture
def empty_stub(_stub: Stub) -> Stub:
    _stub.answers.clear()
    _stub.asked.clear()
    return _stub


def open_workers(stub: Stub, certs: Path, timeout_s: float = 5.0, **group: Any) -> RestWorkers:
    wanted = replace(WorkerGroup((stub.url,), ca_file="worker.pem"), **group)
    return open_rest_workers(
        wanted, certs, lambda reference: reference.replace("${env.TOKEN}", "s3cret"), timeout_s
    )


def catch_fault(call: Any) -> Fault:
    with pytest.raises(Fault) as raised:
        call()
    return raised.value


# Requests and parsed responses.


def test_status_reads_all_fields(empty_stub: Stub, certs: Path) -> None:
    empty_stub.answers["GET", f"{PATH}/status"] = 200, STATUS
    found = open_workers(empty_stub, certs).status(empty_stub.url)
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


def test_status_of_worker_that_has_read_nothing(empty_stub: Stub, certs: Path) -> None:
    nothing = {"worker_id": "w", "plugin_version": "1", "leader": None, "seen": None, "applied": None}
    empty_stub.answers["GET", f"{PATH}/status"] = 200, nothing
    found = open_workers(empty_stub, certs).status(empty_stub.url)
    assert (found.leader, found.seen, found.applied, found.listeners) == (None, None, None, ())


def test_patch_sends_changes_with_null_for_deletions(empty_stub: Stub, certs: Path) -> None:
    empty_stub.answers["PATCH", PATH] = 200, {KEY: "/new"}
    headers = (("Authorization", "Bearer ${env.TOKEN}"),)
    found = open_workers(empty_stub, certs, headers=headers).patch(empty_stub.url, {KEY: "/new", "b": None})
    assert found == {KEY: "/new"}
    (asked,) = empty_stub.asked
    assert json.loads(asked.body) == {KEY: "/new", "b": None}
    assert asked.headers["Authorization"] == "Bearer s3cret"
    assert asked.headers["Content-Type"] == "application/json"


def test_delete_escapes_key_in_path(empty_stub: Stub, certs: Path) -> None:
    empty_stub.answers["DELETE", f"{PATH}/a%2Fb%20c"] = 204, b""
    open_workers(empty_stub, certs).delete(empty_stub.url, "a/b c")
    assert len(empty_stub.asked) == 1


def test_validate_returns_errors_of_worker(empty_stub: Stub, certs: Path) -> None:
    said = {"valid": False, "configs": [KEY], "errors": {KEY: ["no such file"], "": ["cannot be read"]}}
    empty_stub.answers["POST", f"{PATH}/validate"] = 200, said
    found = open_workers(empty_stub, certs).validate(empty_stub.url, {KEY: "/new"})
    assert (found.valid, found.errors) == (False, {KEY: ("no such file",), "": ("cannot be read",)})


def test_validate_returns_error_for_key_that_is_not_dynamic(empty_stub: Stub, certs: Path) -> None:
    empty_stub.answers["POST", f"{PATH}/validate"] = 400, {"error_code": 400, "message": "x is not dynamic"}
    found = open_workers(empty_stub, certs).validate(empty_stub.url, {"x": "1"})
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
def test_http_status_is_mapped_to_fault(
    empty_stub: Stub, certs: Path, method: str, status: int, error: str, kind: FaultKind
) -> None:
    empty_stub.answers[method, PATH] = status, {"error_code": status, "message": "in the worker's own words"}
    at = open_workers(empty_stub, certs)
    found = catch_fault(
        lambda: at.overrides(empty_stub.url) if method == "GET" else at.patch(empty_stub.url, {KEY: "s3cret"})
    )
    assert (found.error, found.kind) == (error, kind)
    assert error == port.PLUGIN_MISSING or found.message == "in the worker's own words"


def test_delete_distinguishes_missing_override_from_missing_plugin(empty_stub: Stub, certs: Path) -> None:
    path = f"{PATH}/k"
    empty_stub.answers["DELETE", path] = 404, {"error_code": 404, "message": "There is no override of k"}
    assert (
        catch_fault(lambda: open_workers(empty_stub, certs).delete(empty_stub.url, "k")).error
        == port.NO_OVERRIDE
    )
    empty_stub.answers["DELETE", path] = 404, {"error_code": 404, "message": "HTTP 404 Not Found"}
    assert (
        catch_fault(lambda: open_workers(empty_stub, certs).delete(empty_stub.url, "k")).error
        == port.PLUGIN_MISSING
    )


@pytest.mark.parametrize("body", [b"<html>", b"[1]", b'{"k": {"s3cret": 1}}', b'{"k": null}', b""])
def test_overrides_rejects_malformed_response(empty_stub: Stub, certs: Path, body: bytes) -> None:
    empty_stub.answers["GET", PATH] = 200, body
    found = catch_fault(lambda: open_workers(empty_stub, certs).overrides(empty_stub.url))
    assert found.error == port.BAD_ANSWER
    assert "s3cret" not in str(found)


def test_patch_that_wrote_nothing_is_refused(empty_stub: Stub, certs: Path) -> None:
    said = "Nothing was written: Transactional Id authorization failed."
    empty_stub.answers["PATCH", PATH] = 500, {"error_code": 500, "message": said}
    found = catch_fault(lambda: open_workers(empty_stub, certs).patch(empty_stub.url, {KEY: "/new"}))
    assert (found.kind, found.message) == (FaultKind.REFUSED, said)


def test_patch_with_malformed_response_has_unknown_result(empty_stub: Stub, certs: Path) -> None:
    empty_stub.answers["PATCH", PATH] = 200, b"<html>"
    found = catch_fault(lambda: open_workers(empty_stub, certs).patch(empty_stub.url, {KEY: "/new"}))
    assert (found.error, found.kind) == (port.BAD_ANSWER, FaultKind.UNKNOWN)


# Missing responses.


def test_patch_without_response_has_unknown_result(empty_stub: Stub, certs: Path) -> None:
    empty_stub.silence_s = 0.0
    found = catch_fault(lambda: open_workers(empty_stub, certs).patch(empty_stub.url, {KEY: "/new"}))
    assert (found.error, found.kind) == (port.LOST, FaultKind.UNKNOWN)


def test_status_time_out_is_retriable(empty_stub: Stub, certs: Path) -> None:
    empty_stub.silence_s = 1.0
    found = catch_fault(lambda: open_workers(empty_stub, certs, timeout_s=0.3).status(empty_stub.url))
    assert (found.error, found.kind) == (port.LOST, FaultKind.RETRIABLE)
    assert "timed out" in found.message


def test_closed_port_is_unreachable(certs: Path) -> None:
    with socket.socket() as free:
        free.bind(("localhost", 0))
        url = f"https://localhost:{free.getsockname()[1]}"
        at = open_rest_workers(WorkerGroup((url,), ca_file="worker.pem"), certs, str)
        for call in (
            lambda: at.patch(url, {}),
            lambda: at.status(url),
            lambda: at.read_served_certificate(url),
        ):
            found = catch_fault(call)
            assert (found.error, found.kind) == (port.UNREACHABLE, FaultKind.REFUSED)
            assert "(connection refused)" in found.message


@pytest.mark.parametrize("host", ["worker..eu", "a" * 64, "xn--a", "[v1.a]", "999.1.1.1"])
def test_invalid_host_is_unreachable(certs: Path, host: str) -> None:
    url = f"https://{host}"
    at = open_rest_workers(WorkerGroup((url,), ca_file="worker.pem"), certs, str)
    for call in (lambda: at.patch(url, {}), lambda: at.status(url), lambda: at.read_served_certificate(url)):
        assert catch_fault(call).error == port.UNREACHABLE


# TLS.


def test_served_certificate_is_read_without_trust(empty_stub: Stub, certs: Path) -> None:
    served = parse_certificate(ssl.PEM_cert_to_DER_cert((certs / "worker.pem").read_text()))
    assert open_workers(empty_stub, certs).read_served_certificate(empty_stub.url) == served
    assert (
        open_workers(empty_stub, certs, ca_file="other.pem").read_served_certificate(empty_stub.url) == served
    )
    assert served.subject == "CN=worker"
    assert open_workers(empty_stub, certs).read_served_certificate("http://localhost:1") is None


def test_patch_is_not_sent_to_untrusted_worker(empty_stub: Stub, certs: Path) -> None:
    found = catch_fault(
        lambda: open_workers(empty_stub, certs, ca_file="other.pem").patch(empty_stub.url, {KEY: "/new"})
    )
    assert (found.error, found.kind) == (port.NOT_TRUSTED, FaultKind.REFUSED)
    assert "its certificate is not trusted" in found.message
    assert not empty_stub.asked


def test_certificate_for_other_host_is_not_trusted(certs: Path) -> None:
    with run_https_stub(certs / "elsewhere.pem", certs / "elsewhere.key") as stub:
        found = catch_fault(lambda: open_workers(stub, certs, ca_file="elsewhere.pem").status(stub.url))
    assert found.error == port.NOT_TRUSTED
    assert "Hostname mismatch" in found.message


def test_worker_that_requires_client_certificate(certs: Path) -> None:
    with run_https_stub(certs / "worker.pem", certs / "worker.key", certs / "client.pem") as stub:
        stub.answers["GET", PATH] = 200, {}
        found = catch_fault(lambda: open_workers(stub, certs).overrides(stub.url))
        assert found.error == port.NOT_TRUSTED
        own = open_workers(stub, certs, cert_file="client.pem", key_file="client.key")
        assert own.overrides(stub.url) == {}
        assert own.read_served_certificate(stub.url) is not None


@pytest.mark.parametrize(
    ("group", "said"),
    [
        ({"ca_file": "gone.pem"}, "caFile 'gone.pem' cannot be used: no such file"),
        ({"ca_file": "worker.key"}, "caFile 'worker.key' cannot be used: it contains no PEM certificates"),
        ({"cert_file": "worker.pem"}, "certFile 'worker.pem' cannot be used: it is not PEM"),
        ({"cert_file": "worker.pem", "key_file": "other.key"}, "the key does not match the certificate"),
        ({"cert_file": "worker.pem", "key_file": "."}, "keyFile '.' cannot be used: is a directory"),
    ],
)
def test_open_workers_rejects_unusable_files(certs: Path, group: dict[str, Any], said: str) -> None:
    with pytest.raises(KdeclareError) as raised:
        open_rest_workers(replace(WorkerGroup(("https://localhost",)), **group), certs, str)
    assert said in str(raised.value)


def test_encrypted_key_is_rejected_without_prompt(certs: Path, pems: Path) -> None:
    locked = WorkerGroup(("https://localhost",), cert_file="cert", key_file="locked")
    with pytest.raises(KdeclareError) as raised:
        open_rest_workers(locked, pems, str)
    assert "the key is encrypted" in str(raised.value)


# All workers at once.


def test_read_workers_records_problem_of_single_worker(empty_stub: Stub, certs: Path) -> None:
    empty_stub.answers["GET", f"{PATH}/status"] = 404, {"error_code": 404, "message": "HTTP 404 Not Found"}
    seen = read_workers(open_workers(empty_stub, certs))
    (worker,) = seen.workers
    assert seen.overrides is None
    assert worker.served is not None
    assert "kdeclare's plug-in is not installed on the worker" in worker.trouble
    empty_stub.answers["GET", f"{PATH}/status"] = 200, STATUS
    empty_stub.answers["GET", PATH] = 200, {KEY: "/new"}
    seen = read_workers(open_workers(empty_stub, certs))
    assert seen.overrides == {KEY: "/new"}
    assert seen.workers[0].trouble == ""
