"""Connection errors: the messages that users see, and how soon they appear."""

import contextlib
import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kafka import errors as client

from kdeclare.core.diagnostics import Diagnostic, KdeclareError
from kdeclare.providers.kafka.client import connect
from kdeclare.providers.kafka.client.connection_problems import explain_broker_error, explain_connection_error
from tests.fake_broker import fake_broker
from tests.pems import pems

__all__ = ["pems"]


METADATA = 3


@contextlib.contextmanager
def run_server(talk: Callable[[socket.socket], None]) -> Iterator[str]:
    """Start a server that is not a broker, and return its address."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                talk(listener.accept()[0])

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()


def reserve_closed_port() -> str:
    """Return an address with a closed port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"


def catch_connect_error(
    servers: str, properties: dict[str, str] | None = None, timeout_s: float = 30.0
) -> Diagnostic:
    with pytest.raises(KdeclareError) as raised:
        connect(servers, properties or {}, timeout_s=timeout_s)
    (diagnostic,) = raised.value.diagnostics
    return diagnostic


def test_connect_reports_failure_of_every_address() -> None:
    refused = reserve_closed_port()
    begun = time.monotonic()
    found = catch_connect_error(f"{refused},no.such.host.invalid:9092", timeout_s=60)
    assert time.monotonic() - begun < 30
    assert found.code == "unreachable"
    assert f"{refused}: connection refused" in found.detail
    assert "no.such.host.invalid:9092: unknown host name" in found.detail
    assert "--bootstrap-server" in found.hint


def test_connect_to_silent_server_times_out() -> None:
    kept: list[socket.socket] = []
    with run_server(kept.append) as address:
        begun = time.monotonic()
        found = catch_connect_error(address, timeout_s=0.5)
        assert time.monotonic() - begun < 25
    assert f"{address}: connected, but no response in time" in found.detail


def test_connect_with_silent_tls_handshake_times_out() -> None:
    kept: list[socket.socket] = []
    with run_server(kept.append) as address:
        begun = time.monotonic()
        found = catch_connect_error(address, {"security.protocol": "SSL"}, timeout_s=0.5)
        assert time.monotonic() - begun < 25
    assert "in time" in found.detail


def make_responder(data: bytes) -> Callable[[socket.socket], None]:
    def talk(connection: socket.socket) -> None:
        with connection:
            connection.recv(1000)
            connection.sendall(data)

    return talk


@pytest.mark.parametrize(
    ("data", "properties", "seen"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", {}, "the server speaks HTTP, not Kafka"),
        (b"\x15\x03\x03\x00\x02\x02\x50", {}, "the server expects TLS, but the client connected without TLS"),
        (b"SSH-2.0-OpenSSH\r\n", {}, "the server speaks another protocol, not Kafka"),
        (b"", {}, "the server closes connections without a response"),
        (
            b"",
            {"security.protocol": "SSL"},
            "the server does not speak TLS, but the client connected with TLS",
        ),
        (
            b"HTTP/1.1 400\r\n\r\n",
            {"security.protocol": "SSL"},
            "the server does not speak TLS, but the client connected with TLS",
        ),
    ],
)
def test_connect_recognizes_other_protocols(data: bytes, properties: dict[str, str], seen: str) -> None:
    with run_server(make_responder(data)) as address:
        assert catch_connect_error(address, properties).detail == f"{address}: {seen}."


def test_connect_suggests_authentication_if_broker_disconnects() -> None:
    with fake_broker({METADATA: lambda _: None}) as broker:
        found = catch_connect_error(broker.bootstrap)
    assert "may require authentication" in found.detail
    assert "security.protocol" in found.hint


def test_connect_without_tls_recognizes_tls_broker(pems: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pems / "cert", pems / "key")

    def talk(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            context.wrap_socket(connection, server_side=True).close()

    with run_server(talk) as address:
        found = catch_connect_error(address)
        assert found.detail == f"{address}: the server expects TLS, but the client connected without TLS."
        assert (
            "the certificate of the server is not trusted"
            in catch_connect_error(address, {"security.protocol": "SSL"}).detail
        )


@pytest.mark.parametrize(
    ("exc", "what", "hint"),
    [
        (
            client.SaslAuthenticationFailedError(
                "SaslAuthenticationFailedError: Invalid username or password"
            ),
            "authentication failed: Invalid username or password",
            "sasl.jaas.config",
        ),
        (client.IllegalSaslStateError(), "does not use SASL authentication", "security.protocol"),
        (client.UnsupportedSaslMechanismError("x"), "does not offer", "sasl.mechanism"),
        (
            client.KafkaConnectionError("Handshake failed: [SSL: CERTIFICATE_VERIFY_FAILED] self-signed"),
            "not trusted",
            "ssl.truststore.location",
        ),
        (
            client.KafkaConnectionError(
                "Handshake failed: [SSL: CERTIFICATE_VERIFY_FAILED] Hostname mismatch"
            ),
            "a different host name",
            "ssl.endpoint.identification.algorithm",
        ),
        (
            client.KafkaConnectionError("[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED]"),
            "requires a client certificate",
            "ssl.keystore.location",
        ),
        (client.IncompatibleBrokerVersion("Metadata"), "no metadata", "controller"),
        (client.KafkaConnectionError("Connection timed out"), "timed out", "firewall"),
    ],
)
def test_connection_errors_are_explained(exc: Exception, what: str, hint: str) -> None:
    seen = explain_connection_error(exc, tls=True)
    assert what in seen.what
    assert hint in seen.hint


@pytest.mark.parametrize(
    "servers",
    [
        "",
        " , ",
        "localhost",
        "localhost:",
        "localhost:kafka",
        "a:1,b",
        "[::1:9",
        "::1]:9",
        "::1:9",
        "fe80::1",
        "[::1]]:9",
        "[]:9",
        ":9",
    ],
)
def test_connect_rejects_invalid_addresses(servers: str) -> None:
    assert catch_connect_error(servers).code == "bootstrap-servers"


def test_connect_needs_one_good_address() -> None:
    kept: list[socket.socket] = []
    with fake_broker({}) as broker, run_server(kept.append) as silent:
        begun = time.monotonic()
        connect(f"{silent},{reserve_closed_port()},{broker.bootstrap}", {}, timeout_s=60).close()
        assert time.monotonic() - begun < 30


def test_connect_uses_addresses_from_properties() -> None:
    with fake_broker({}) as broker:
        connect("", {"bootstrap.servers": broker.bootstrap}).close()


def test_connect_names_wrong_advertised_address() -> None:
    with fake_broker({}) as broker:
        real, wrong = broker.port, reserve_closed_port()
        broker.port = int(wrong.rpartition(":")[2])
        found = catch_connect_error(f"127.0.0.1:{real}")
    assert wrong in found.detail
    assert "advertised.listeners" in found.hint


def test_errors_of_reached_broker_do_not_blame_advertised_address() -> None:
    def find_hint(exc: Exception) -> str:
        return explain_broker_error(exc, "b1:9093", tls=True).hint

    expired = client.KafkaConnectionError("CERTIFICATE_VERIFY_FAILED: certificate has expired")
    assert find_hint(expired) == "Renew the certificate of the broker."
    assert "sasl.mechanism" in find_hint(client.SaslAuthenticationFailedError("no"))
    assert "hung or overloaded" in find_hint(client.KafkaTimeoutError("no answer"))
    assert "advertised.listeners" in find_hint(client.KafkaConnectionError("ECONNREFUSED"))
    # a host name missing in the certificate can mean that the wrong name is advertised
    assert "advertised.listeners" in find_hint(client.KafkaConnectionError("Hostname mismatch"))


def test_failed_connect_prints_nothing_and_leaves_no_thread(capfd: pytest.CaptureFixture[str]) -> None:
    before = threading.active_count()
    catch_connect_error(reserve_closed_port())
    assert threading.active_count() <= before
    assert capfd.readouterr() == ("", "")


def test_client_log_never_includes_frames() -> None:
    log = logging.getLogger("kafka")
    level = log.level
    try:
        log.setLevel(logging.DEBUG)
        catch_connect_error(reserve_closed_port())
        assert log.level == logging.INFO
    finally:
        log.setLevel(level)
