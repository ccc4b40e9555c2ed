"""What users read if a bucket cannot be used, and how long they wait for it."""

import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from kdeclare.core.diagnostics import Diagnostic, KdeclareError
from kdeclare.core.storage.conditional_objects import ConditionalObjects, ObjectVersion
from tests.conditional_objects import KEY
from tests.http_servers import serve
from tests.object_servers import ProxiedRequest, run_proxy
from tests.pems import pems
from tests.unit.state.conftest import SECRET_KEY
from tests.unit.state.test_object_storage import open_url

__all__ = ["pems"]  # a fixture

TIMEOUT_S = 0.4
REQUESTS: dict[str, Callable[[ConditionalObjects], object]] = {
    "read": lambda objects: objects.get(KEY),
    "list": lambda objects: objects.list_keys(""),
    "write": lambda objects: objects.create(KEY, b"x"),
    "replace": lambda objects: objects.replace(KEY, b"x", ObjectVersion('"0"')),
    "delete": lambda objects: objects.delete([KEY]),
}


def fail(url: str, request: str, timeout_s: float = 10.0) -> Diagnostic:
    """Return the error of a request. It must come in bounded time, and it must not contain a secret.

    timeout_s: short in tests that wait for it; long enough for slow machines in the others.
    """
    objects = open_url(url, timeout_s)
    started_at = time.monotonic()
    with pytest.raises(KdeclareError) as caught:
        REQUESTS[request](objects)
    assert time.monotonic() - started_at < 2.5 * timeout_s + 30.0
    (diagnostic,) = caught.value.diagnostics
    assert SECRET_KEY not in f"{diagnostic}"
    assert diagnostic.hint
    return diagnostic


@contextmanager
def listen_without_answer() -> Iterator[str]:
    """Accept connections, and never respond."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("request_name", REQUESTS)
def test_server_that_never_responds_is_reported(credentials: None, request_name: str) -> None:
    with listen_without_answer() as endpoint:
        diagnostic = fail(f"s3://bucket/team?endpoint={endpoint}", request_name, TIMEOUT_S)
    assert diagnostic.code == "state-storage"
    assert diagnostic.summary == "State storage did not respond"
    assert f"there was no response within {TIMEOUT_S:g} s" in diagnostic.detail
    assert "s3://bucket/team/payments/prod/" in diagnostic.detail
    assert endpoint in diagnostic.hint
    assert ("is not known" in diagnostic.detail) == (request_name in ("write", "replace"))


@pytest.mark.parametrize("request_name", ["read", "write"])
def test_unreachable_server_is_reported(credentials: None, request_name: str) -> None:
    diagnostic = fail("s3://bucket/team?endpoint=http://127.0.0.1:1", request_name, TIMEOUT_S)
    assert diagnostic.code == "state-storage"
    assert "the connection failed (Connection refused)" in diagnostic.detail


def test_unknown_host_is_reported(credentials: None) -> None:
    diagnostic = fail("s3://bucket?endpoint=https://storage.invalid", "read", TIMEOUT_S)
    assert diagnostic.code == "state-storage"
    assert "the connection failed (" in diagnostic.detail


def test_untrusted_certificate_is_reported(credentials: None, pems: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pems / "cert", pems / "key")
    with serve(BaseHTTPRequestHandler, tls=context) as endpoint:
        diagnostic = fail(f"s3://bucket?endpoint={endpoint}", "read", TIMEOUT_S)
    assert diagnostic.code == "state-storage"
    assert "TLS certificate" in diagnostic.detail
    assert "SSL_CERT_FILE" in diagnostic.hint


@pytest.mark.parametrize("request_name", ["read", "write", "delete"])
def test_server_with_constant_errors_is_reported(
    s3_server: str, credentials: None, request_name: str
) -> None:
    def refuse(request: ProxiedRequest) -> None:
        request.respond(
            503, b"<Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>"
        )

    with run_proxy(s3_server, refuse) as proxy:
        diagnostic = fail(f"s3://bucket?endpoint={proxy}", request_name, 1.0)
    assert diagnostic.code == "state-storage"
    assert diagnostic.summary == "State storage failed"
    assert "503 Service Unavailable (SlowDown: Reduce your request rate.)" in diagnostic.detail


def test_temporary_errors_are_survived(s3_server: str, bucket: str) -> None:
    counts = {"GET": 0, "PUT": 0, "DELETE": 0}

    def refuse_first_two(request: ProxiedRequest) -> None:
        counts[request.method] += 1
        if counts[request.method] <= 2:
            request.respond(503)
        else:
            request.forward()

    with run_proxy(s3_server, refuse_first_two) as proxy:
        objects = open_url(f"s3://{bucket}?endpoint={proxy}")
        objects.create(KEY, b"x")
        assert objects.get(KEY) is not None
        objects.delete([KEY])
        assert objects.list_keys("") == ()


@pytest.mark.parametrize("request_name", REQUESTS)
@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        (403, "AccessDenied", "Access Denied"),
        (403, "SignatureDoesNotMatch", "The request signature does not match."),
        (403, "InvalidAccessKeyId", "The AWS Access Key Id does not exist in our records."),
        (401, "Unauthorized", "Unauthorized"),
        (400, "ExpiredToken", "The provided token has expired."),
    ],
)
def test_refused_access_is_reported(
    s3_server: str, credentials: None, request_name: str, status: int, code: str, message: str
) -> None:
    def refuse(request: ProxiedRequest) -> None:
        body = f"<Code>{code}</Code><Message>{message}</Message><StringToSign>{SECRET_KEY}</StringToSign>"
        request.respond(status, f"<Error>{body}</Error>".encode())

    with run_proxy(s3_server, refuse) as proxy:
        diagnostic = fail(f"s3://bucket?endpoint={proxy}", request_name)
    assert diagnostic.code == "state-no-access"
    assert f"({code}: {message})" in diagnostic.detail
    assert "AWS_ACCESS_KEY_ID" in diagnostic.hint
    assert "s3:ListBucket" in diagnostic.hint


@pytest.mark.parametrize("request_name", ["read", "write"])
def test_missing_credentials_are_reported(
    s3_server: str, bucket: str, monkeypatch: pytest.MonkeyPatch, request_name: str
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    diagnostic = fail(f"s3://{bucket}?endpoint={s3_server}", request_name, TIMEOUT_S)
    assert diagnostic.code == "state-no-access"
    assert diagnostic.summary == "No credentials for the state storage"
    assert "AWS_ACCESS_KEY_ID" in diagnostic.hint


def test_wrong_region_is_reported(s3_server: str, credentials: None) -> None:
    with run_proxy(s3_server, lambda request: request.respond(301)) as proxy:
        diagnostic = fail(f"s3://bucket?endpoint={proxy}", "read")
    assert "different region" in diagnostic.detail
    assert "?region=NAME" in diagnostic.hint


def test_server_without_object_storage_is_not_an_empty_state(s3_server: str, credentials: None) -> None:
    with run_proxy(s3_server, lambda request: request.respond(404, b"<html>Not found</html>")) as proxy:
        diagnostic = fail(f"s3://bucket?endpoint={proxy}", "read")
    assert diagnostic.code == "state-storage"
    assert "404 Not Found" in diagnostic.detail
    assert "Check the URL of the state" in diagnostic.hint


@pytest.mark.parametrize("request_name", ["read", "write"])
def test_disabled_encryption_key_is_reported(s3_server: str, credentials: None, request_name: str) -> None:
    def refuse(request: ProxiedRequest) -> None:
        body = b"<Error><Code>KMS.DisabledException</Code><Message>The key is disabled.</Message></Error>"
        request.respond(400, body)

    with run_proxy(s3_server, refuse) as proxy:
        diagnostic = fail(f"s3://bucket?endpoint={proxy}", request_name)
    assert diagnostic.code == "state-storage"
    assert "400 Bad Request (KMS.DisabledException: The key is disabled.)" in diagnostic.detail
    assert "settings of the bucket 'bucket'" in diagnostic.hint


class RepeatingServer(BaseHTTPRequestHandler):
    """Refuses requests, and repeats the token in their headers."""

    def respond(self) -> None:
        message = f"<Message>{self.headers['x-amz-security-token']}</Message>"
        body = f"<Error><Code>No</Code>{message}</Error>".encode()
        self.send_response(400)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Write nothing."""


def test_token_that_a_server_repeats_is_not_shown(credentials: None, monkeypatch: pytest.MonkeyPatch) -> None:
    token = "/+session-token-of-the-job=="
    monkeypatch.setenv("AWS_SESSION_TOKEN", token)
    with serve(RepeatingServer, ("GET",)) as url:
        diagnostic = fail(f"s3://bucket/team?endpoint={url}", "read")
    assert "(No: (sensitive))" in diagnostic.detail
    assert token not in f"{diagnostic}"
