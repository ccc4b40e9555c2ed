"""Tokens for OAUTHBEARER: from an endpoint that runs in this process, and from a file."""

import base64
import itertools
import json
import socket
import threading
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from kafka import errors as client

from kdeclare.core.diagnostics import Diagnostic, KdeclareError
from kdeclare.providers.kafka.client import connect
from kdeclare.providers.kafka.client.oauth import TokenProvider
from kdeclare.providers.kafka.client.properties import build_client_arguments
from tests.unit.connect.https_stub import create_key_pair, run_https_stub
from tests.unit.connect.raw_server import run_raw_server, split_into_bytes

HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
LOGIN = 'clientId="a b" clientSecret="s3cret" scope="kafka admin" extension_cluster="lkc-1"'


@dataclass
class Endpoint:
    """The endpoint's responses, and the requests that it received."""

    status: int = 200
    answer: object = field(default_factory=lambda: {"access_token": "tok", "expires_in": 3600})
    asked: list[tuple[str, str]] = field(default_factory=list)
    url: str = ""


@contextmanager
def run_endpoint() -> Iterator[Endpoint]:
    made = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            made.asked.append((self.headers["Authorization"], body))
            self.send_response(made.status)
            self.send_header("Location", f"{made.url}/elsewhere")
            self.end_headers()
            answer = made.answer
            self.wfile.write(answer if isinstance(answer, bytes) else json.dumps(answer).encode())

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    made.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()


def make_properties(url: str, login: str = LOGIN, **more: str) -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.login.callback.handler.class": HANDLER,
        "sasl.oauthbearer.token.endpoint.url": url,
        "sasl.jaas.config": f"{MODULE} required {login};",
        **more,
    }


def make_token_provider(given: dict[str, str]) -> TokenProvider:
    arguments, warnings = build_client_arguments(given)
    plain = given["sasl.oauthbearer.token.endpoint.url"].startswith("http:")
    assert [found.code for found in warnings] == ["plain-http"] * plain
    made = arguments["sasl_oauth_token_provider"]
    assert isinstance(made, TokenProvider)
    return made


def catch_connect_error(given: dict[str, str]) -> Diagnostic:
    with pytest.raises(KdeclareError) as raised:
        connect("127.0.0.1:1", given)
    (found,) = raised.value.diagnostics
    assert "s3cret" not in f"{found}"
    return found


def test_token_request_follows_standard_and_is_cached() -> None:
    with run_endpoint() as at:
        made = make_token_provider(make_properties(at.url))
        assert at.asked == []
        assert (made.token(), made.token()) == ("tok", "tok")
        assert made.extensions() == {"cluster": "lkc-1"}
    [(authorization, body)] = at.asked
    assert base64.b64decode(authorization.removeprefix("Basic ")) == b"a b:s3cret"
    assert urllib.parse.parse_qs(body) == {"grant_type": ["client_credentials"], "scope": ["kafka admin"]}


def test_expiring_token_is_requested_again() -> None:
    with run_endpoint() as at:
        at.answer = {"access_token": "short", "expires_in": 1e-9}
        made = make_token_provider(make_properties(at.url))
        made.first()
        at.answer = {"access_token": "next"}
        assert made.token() == "next"
        at.status = 500
        made._fresh_until = 0
        with pytest.raises(client.SaslAuthenticationFailedError, match="responded with 500"):
            made.token()


def test_credentials_can_be_separate_properties() -> None:
    with run_endpoint() as at:
        own = {
            "sasl.oauthbearer.client.credentials.client.id": "id",
            "sasl.oauthbearer.client.credentials.client.secret": "s3cret/",
            "sasl.oauthbearer.scope": "one",
            "sasl.oauthbearer.header.urlencode": "true",
            "sasl.jaas.config": "",
        }
        make_token_provider(make_properties(at.url, **own)).first()
        [(authorization, body)] = at.asked
        assert base64.b64decode(authorization.removeprefix("Basic ")) == b"id:s3cret%2F"
        assert "scope=one" in body


def test_token_is_read_from_file(tmp_path: Path) -> None:
    (tmp_path / "a token").write_text("tok\n")
    assert make_token_provider(make_properties(f"file://{tmp_path}/a%20token", login="")).token() == "tok"
    (tmp_path / "empty").write_text("\n")
    for name, words in {"none": "No such file", "empty": "the file is empty"}.items():
        found = catch_connect_error(make_properties(f"file://{tmp_path}/{name}", login=""))
        assert (found.code, f"{name}: {words}" in found.detail) == ("no-token", True)


@pytest.mark.parametrize(
    ("status", "answer", "words"),
    [
        (
            401,
            {"error": "invalid_client", "error_description": "who?"},
            "responded with 401 invalid_client: who?",
        ),
        (503, [], "responded with 503"),
        (302, {}, "responded with 302"),
        (200, {"token": "x"}, "not JSON with an access_token"),
        (200, ["x"], "not JSON with an access_token"),
        (200, "access_token", "not JSON with an access_token"),
        (200, b"[" * 100_000, "not JSON with an access_token"),
        (200, {"access_token": "x", "expires_in": 10**400}, "not JSON with an access_token"),
        (200, {"access_token": None}, "is empty or not a string"),
        (200, {"access_token": " "}, "is empty or not a string"),
        (200, {"access_token": {"a": 1}}, "is empty or not a string"),
        (400, b"[" * 100_000, "responded with 400 Bad Request"),
    ],
)
def test_endpoint_response_without_token_is_reported(status: int, answer: object, words: str) -> None:
    with run_endpoint() as at:
        at.status, at.answer = status, answer
        found = catch_connect_error(make_properties(at.url))
        assert found.code == "no-token"
        assert f"{at.url}: " in found.detail
        assert words in found.detail
        assert len(at.asked) == 1


def test_endpoint_that_does_not_speak_http_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def talk() -> None:
            peer, _ = server.accept()
            with peer:
                peer.recv(1 << 16)
                peer.sendall(b"220 mail ready\r\n")

        threading.Thread(target=talk, daemon=True).start()
        found = catch_connect_error(make_properties(f"http://127.0.0.1:{server.getsockname()[1]}"))
    assert (found.code, "the response is not valid HTTP" in found.detail) == ("no-token", True)


@pytest.mark.parametrize("url", ["http://a b/", "http://127.0.0.1:1/a b", "http://127.0.0.1:1/\u00e9"])
def test_invalid_endpoint_url_is_reported(url: str) -> None:
    found = catch_connect_error(make_properties(url))
    assert (found.code, f"{url}: " in found.detail) == ("no-token", True)


def test_token_with_invalid_lifetime_expires_soon() -> None:
    with run_endpoint() as at:
        at.answer = b'{"access_token": "tok", "expires_in": NaN}'
        made = make_token_provider(make_properties(at.url))
        made.first()
        assert time.monotonic() < made._fresh_until < time.monotonic() + 300


@pytest.mark.parametrize(
    "parts",
    [
        split_into_bytes(b"HTTP/1.1 200 OK\r\n", 0),
        [b"HTTP/1.1 200 OK\r\n", *(b"X-%d: y\r\n" % n for n in range(90))],
        [b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n", *split_into_bytes(b"{", 200)],
        [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", *([b"1\r\n \r\n"] * 200)],
    ],
)
def test_slow_endpoint_times_out(parts: list[bytes]) -> None:
    with run_raw_server(parts, 0.1) as url:
        found = catch_connect_error(make_properties(url, **{"sasl.login.read.timeout.ms": "500"}))
    assert (found.code, url in found.detail) == ("no-token", True)
    assert "no response within 0.5 s" in found.detail


def test_slow_refusal_of_endpoint_is_reported_without_its_body() -> None:
    parts = [b"HTTP/1.1 401 No\r\nContent-Length: 10000\r\n\r\n", *split_into_bytes(b"{", 9_000)]
    with run_raw_server(parts, 0.1) as url:
        found = catch_connect_error(make_properties(url, **{"sasl.login.read.timeout.ms": "500"}))
    assert found.detail == f"{url}: the endpoint responded with 401 No."


def test_endless_endpoint_response_is_rejected() -> None:
    head = b"HTTP/1.1 200 OK\r\n\r\n"
    with run_raw_server(itertools.chain([head], itertools.repeat(b" " * 0x10000))) as url:
        found = catch_connect_error(make_properties(url))
    assert "the response is larger than 1048576 bytes" in found.detail


def test_slow_tls_endpoint_times_out(tmp_path: Path) -> None:
    cert, key = create_key_pair(tmp_path, "tokens")
    with run_https_stub(cert, key) as stub:
        stub.drip_s = 0.1
        stub.answers["POST", "/token"] = 200, {"access_token": "tok" * 100}
        login = f'{LOGIN} ssl.truststore.type="PEM" ssl.truststore.location="{cert}"'
        url = f"{stub.url}/token"
        found = catch_connect_error(make_properties(url, login, **{"sasl.login.read.timeout.ms": "500"}))
        assert "no response within 0.5 s" in found.detail
        stub.drip_s = 0.0
        assert make_token_provider(make_properties(url, login)).token() == "tok" * 100


def test_endpoint_without_tls_gives_warning() -> None:
    _, (found,) = build_client_arguments(make_properties("http://tokens.example/"))
    assert (found.code, found.is_error) == ("plain-http", False)
    assert "sasl.oauthbearer.token.endpoint.url is an http:// address" in found.detail


def test_unreachable_endpoint_is_reported() -> None:
    assert "refused" in catch_connect_error(make_properties("http://127.0.0.1:1")).detail


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (make_properties(""), ["token.endpoint.url", "missing", "https://"]),
        (make_properties("ftp://x"), ["'ftp://x' is not the URL"]),
        (make_properties("http://[bad/"), ["token.endpoint.url", "'http://[bad/' is not a URL"]),
        (make_properties("https://host:abc/"), ["token.endpoint.url", "'https://host:abc/' is not a URL"]),
        (make_properties("http://x", **{"sasl.login.connect.timeout.ms": " "}), ["connect.timeout.ms"]),
        (make_properties("http://x", **{"sasl.login.connect.timeout.ms": "9" * 20}), ["connect.timeout.ms"]),
        (
            make_properties("http://x", **{"sasl.login.connect.timeout.ms": "9" * 5000}),
            ["connect.timeout.ms"],
        ),
        (make_properties("http://x", login=""), ["no clientId and no clientSecret"]),
        (
            make_properties("http://x", **{"sasl.login.read.timeout.ms": "soon"}),
            ["read.timeout.ms", "'soon'"],
        ),
        (
            make_properties(
                "http://x", **{"sasl.oauthbearer.jwt.retriever.class": "x.JwtBearerJwtRetriever"}
            ),
            ["JwtBearerJwtRetriever"],
        ),
        (
            make_properties("http://x", **{"sasl.login.callback.handler.class": "x.Own"}),
            ["x.Own", "OAUTHBEARER"],
        ),
    ],
)
def test_unsupported_oauth_properties_are_rejected(given: dict[str, str], words: list[str]) -> None:
    found = catch_connect_error(given)
    assert found.code == "client-properties"
    for word in words:
        assert word in f"{found.detail} {found.hint}"
