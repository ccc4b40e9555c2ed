"""Explain connection errors, and detect which protocol an address uses."""

import contextlib
import re
import socket
import ssl
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from kafka import errors as client_errors

from kdeclare.core.diagnostics import KdeclareError, error

_PROBE_TIMEOUT_S = 2.0
_API_VERSIONS_REQUEST = bytes.fromhex("0000000a 0012 0000 00000000 ffff".replace(" ", ""))
"""An ApiVersions request of version 0, which brokers answer even without authentication (KIP-35)."""


class ListenerProtocol(StrEnum):
    """The protocol that a server uses at an address."""

    KAFKA = "Kafka"
    TLS = "TLS"
    HTTP = "HTTP"
    OTHER = "another protocol"
    SILENCE = "nothing"


def probe_protocol(host: str, port: int) -> ListenerProtocol:
    """Probe an address without TLS and then with TLS, for at most four seconds. Never raises."""
    reply = b""
    with contextlib.suppress(OSError), socket.create_connection((host, port), _PROBE_TIMEOUT_S) as raw:
        raw.sendall(_API_VERSIONS_REQUEST)
        while len(reply) < 8 and (received := raw.recv(8)):
            reply += received
    if reply[4:8] == bytes(4):  # the correlation id of the request, after the length
        return ListenerProtocol.KAFKA
    if reply.startswith(b"\x15\x03"):  # a TLS alert
        return ListenerProtocol.TLS
    if reply.startswith(b"HTTP"):
        return ListenerProtocol.HTTP
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # safe, because the probe sends no data over TLS
    with contextlib.suppress(OSError), socket.create_connection((host, port), _PROBE_TIMEOUT_S) as raw:
        try:
            context.wrap_socket(raw, server_hostname=host).close()
        except ssl.SSLError as exc:
            # an address that speaks TLS can reject a client without a certificate

            if "ALERT" in str(exc):
                return ListenerProtocol.TLS
        else:
            return ListenerProtocol.TLS
    return ListenerProtocol.OTHER if reply else ListenerProtocol.SILENCE


class AddressProblem(NamedTuple):
    """The problem with one address, and a hint for the user."""

    what: str
    hint: str


class KerberosError(client_errors.SaslAuthenticationFailedError):  # type: ignore[misc]
    """The Kerberos library could not log in. The message contains the service and the cause."""


def build_property_error(name: str, detail: str, *, hint: str = "") -> KdeclareError:
    """Build the error for a client property that cannot be used."""
    text = f"{name}: {detail}."
    return KdeclareError(error("client-properties", "Client property cannot be used", text, hint=hint))


def build_no_token_error(source: str, reason: str, hint: str) -> KdeclareError:
    """Build the error for a token that cannot be obtained. source: where the token is from."""
    return KdeclareError(error("no-token", "No OAUTHBEARER token", f"{source}: {reason}.", hint=hint))


def build_unreachable_error(problems: Mapping[str, AddressProblem]) -> KdeclareError:
    """Build the error for a cluster that cannot be reached. problems: the problem of each address."""
    detail = "; ".join(f"{address}: {it.what}" for address, it in problems.items())
    hints = dict.fromkeys(it.hint for it in problems.values())
    return KdeclareError(error("unreachable", "Cluster unreachable", f"{detail}.", hint=" ".join(hints)))


_ADDRESS_HINT = "Check the address in --bootstrap-server, and check that the brokers are running."
_SECURITY_HINT = "Check security.protocol in the client properties (--command-config)."
AUTHENTICATION_FAILED = "authentication failed"
"""The beginning of the message for a user name or password that the brokers reject."""
_LOGIN_HINT = "Check sasl.mechanism, and the user name and password in sasl.jaas.config."
_KERBEROS_HINT = (
    "Check the ticket with klist, or the keytab in sasl.jaas.config or KRB5_CLIENT_KTNAME. Also check "
    "sasl.kerberos.service.name and krb5.conf."
)
_MECHANISM_HINT = "Set sasl.mechanism to one of the mechanisms in sasl.enabled.mechanisms of the brokers."
_TRUST_HINT = (
    "Check that the truststore in ssl.truststore.location contains the CA that signed the certificate of the "
    "broker."
)
_RENEW_HINT = "Renew the certificate of the broker."
_SILENT_HINT = (
    "Check the broker logs for a hung or overloaded broker. Then run the command again, or set a longer "
    "--timeout."
)
_NO_ANSWER = AddressProblem("connected, but no response in time", f"{_ADDRESS_HINT} {_SECURITY_HINT}")
_REACHED_HINTS = {
    hint: hint for hint in (_TRUST_HINT, _LOGIN_HINT, _KERBEROS_HINT, _MECHANISM_HINT, _RENEW_HINT)
} | {_NO_ANSWER.hint: _SILENT_HINT}
"""Map each hint about a bootstrap address to the hint about the same problem at an advertised address."""
_NAME_HINT = (
    "Use a host name that is in the certificate, or set ssl.endpoint.identification.algorithm= (empty) to "
    "disable the check."
)


def explain_connection_error(exc: BaseException, *, tls: bool) -> AddressProblem:
    """Explain an exception of kafka-python. tls: whether the client uses TLS."""
    text = "; ".join(str(arg) for arg in getattr(exc, "args", ())) or type(exc).__name__
    login_problem = _explain_login(exc, text)
    if login_problem is not None:
        return login_problem
    for pattern, problem in (*_NETWORK, *(_HANDSHAKE if tls else ())):
        if re.search(pattern, text):
            return problem
    if isinstance(exc, client_errors.IncompatibleBrokerVersion):
        return AddressProblem(
            "the server responds, but returns no metadata",
            "Use the addresses of brokers in --bootstrap-server. This address may belong to a controller.",
        )
    if isinstance(exc, client_errors.RequestTimedOutError | client_errors.KafkaTimeoutError):
        return _NO_ANSWER
    return AddressProblem(text, _ADDRESS_HINT)


def explain_broker_error(exc: BaseException, advertised: str, *, tls: bool) -> AddressProblem:
    """Explain why no broker's advertised address can be used, although a bootstrap address works."""
    problem = explain_connection_error(exc, tls=tls)
    cause = f"the server responds, but no advertised broker ({advertised}) can be used: {problem.what}"
    return AddressProblem(
        cause, _REACHED_HINTS.get(problem.hint, "Check advertised.listeners of the brokers.")
    )


def _explain_login(exc: BaseException, text: str) -> AddressProblem | None:
    if isinstance(exc, KerberosError):
        return AddressProblem(f"{AUTHENTICATION_FAILED}: Kerberos service {exc.args[0]}", _KERBEROS_HINT)
    if isinstance(exc, client_errors.SaslAuthenticationFailedError):
        reason = re.sub(r"^\w+Error: ", "", text)
        reason = re.sub(r"^Authentication failed(: | during authentication due to )", "", reason)
        return AddressProblem(f"{AUTHENTICATION_FAILED}: {reason}", _LOGIN_HINT)
    if isinstance(exc, client_errors.UnsupportedSaslMechanismError):
        return AddressProblem("the broker does not offer this SASL mechanism", _MECHANISM_HINT)
    if isinstance(exc, client_errors.IllegalSaslStateError):
        return AddressProblem("the broker does not use SASL authentication on this port", _SECURITY_HINT)
    return None


def is_closed_by_peer(exc: BaseException) -> bool:
    """Return whether the server closed the connection or sent data that is not a Kafka response.

    `probe_protocol` can then find the cause.
    """
    text = "; ".join(str(arg) for arg in getattr(exc, "args", ()))
    is_closed = re.search("socket disconnected|Connection reset", text) is not None
    return is_closed or isinstance(exc, client_errors.InvalidReceiveError)


def explain_closed_connection(protocol: ListenerProtocol, *, tls: bool, sasl: bool) -> AddressProblem:
    """Explain why a server that uses ``protocol`` closed the connection."""
    if protocol is ListenerProtocol.TLS and not tls:
        return AddressProblem("the server expects TLS, but the client connected without TLS", _SECURITY_HINT)
    if protocol in (ListenerProtocol.KAFKA, ListenerProtocol.TLS) and not sasl:
        return AddressProblem(
            "the server closed the connection and may require authentication", _SECURITY_HINT
        )
    if protocol in (ListenerProtocol.KAFKA, ListenerProtocol.TLS):
        return AddressProblem("the server closed the connection", f"{_LOGIN_HINT} {_SECURITY_HINT}")
    if protocol is ListenerProtocol.SILENCE:
        return AddressProblem("the server closes connections without a response", _ADDRESS_HINT)
    return AddressProblem(f"the server speaks {protocol}, not Kafka", _ADDRESS_HINT)


_HANDSHAKE: tuple[tuple[str, AddressProblem], ...] = (
    (
        "Hostname mismatch|IP address mismatch",
        AddressProblem("the certificate of the server is for a different host name", _NAME_HINT),
    ),
    (
        "CERTIFICATE_VERIFY_FAILED.*expired",
        AddressProblem("the certificate of the server has expired", _RENEW_HINT),
    ),
    (
        "CERTIFICATE_VERIFY_FAILED",
        AddressProblem("the certificate of the server is not trusted", _TRUST_HINT),
    ),
    (
        "ALERT_(CERTIFICATE_REQUIRED|BAD_CERTIFICATE|UNKNOWN_CA)|ALERT_HANDSHAKE_FAILURE",
        AddressProblem(
            "the server requires a client certificate, or rejected the one it received",
            "Check ssl.keystore.location.",
        ),
    ),
    (
        r"WRONG_VERSION_NUMBER|RECORD_LAYER_FAILURE|EOF|Handshake failed",
        AddressProblem("the server does not speak TLS, but the client connected with TLS", _SECURITY_HINT),
    ),
)
_NETWORK: tuple[tuple[str, AddressProblem], ...] = (
    ("ECONNREFUSED", AddressProblem("connection refused", _ADDRESS_HINT)),
    ("DNS", AddressProblem("unknown host name", "Check the host name.")),
    ("EHOSTUNREACH|ENETUNREACH", AddressProblem("no route to the host", _ADDRESS_HINT)),
    (
        "Connection timed out|ETIMEDOUT|I/O wait timed out",
        AddressProblem(
            "the connection attempt timed out",
            f"{_ADDRESS_HINT} Check for a firewall that blocks the connection.",
        ),
    ),
)
