"""Kafka client properties, as Kafka's own tools take them, and what they are to kafka-python.

Sources: org.apache.kafka.clients.CommonClientConfigs, SslConfigs, SaslConfigs; java.util.Properties.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kdeclare.cluster.kafka.problems import problem
from kdeclare.cluster.kafka.sasl import sasl_arguments
from kdeclare.cluster.kafka.tls import ssl_context
from kdeclare.model.diagnostics import Diagnostic, KdeclareError, error, warning

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

_PLAIN: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "client.id": ("client_id", str),
    "request.timeout.ms": ("request_timeout_ms", int),
    "connections.max.idle.ms": ("connections_max_idle_ms", int),
    "reconnect.backoff.ms": ("reconnect_backoff_ms", int),
    "reconnect.backoff.max.ms": ("reconnect_backoff_max_ms", int),
    "socket.connection.setup.timeout.ms": ("socket_connection_setup_timeout_ms", int),
    "socket.connection.setup.timeout.max.ms": ("socket_connection_setup_timeout_max_ms", int),
    "metadata.max.age.ms": ("metadata_max_age_ms", int),
    "client.dns.lookup": ("client_dns_lookup", str),
}
"""Properties that mean the same to both."""

_HANDLED = re.compile(r"bootstrap\.servers|security\.protocol|ssl\..*|sasl\.(mechanism|jaas\.config)")
_HARMLESS = re.compile(
    r"retries|retry\.backoff(\.max)?\.ms|default\.api\.timeout\.ms|(send|receive)\.buffer\.bytes|"
    r"metadata\.recovery\..*|metrics?\..*|enable\.metrics\.push|auto\.include\.jmx\.reporter|"
    r"sasl\.(login|kerberos|oauthbearer)\..*"
)
"""Without effect here, and without harm in that."""
_REFUSED = re.compile(
    r"config\.providers(\..*)?|security\.providers|bootstrap\.controllers|"
    r"sasl\.(client\.callback\.handler|login\.callback\.handler|login)\.class"
)
"""What must not be ignored in silence, and cannot be done here."""

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_properties(path: str | Path) -> dict[str, str]:
    """Read a properties file as java.util.Properties does, ISO 8859-1 included.

    Raises KdeclareError when it cannot be read.
    """
    try:
        text = Path(path).read_text(encoding="iso-8859-1")
    except OSError as exc:
        raise KdeclareError(
            error("client-properties", "Client properties cannot be read", f"{path}: {exc.strerror}")
        ) from exc
    return dict(_pairs(text))


def client_arguments(properties: Mapping[str, str]) -> tuple[dict[str, Any], tuple[Diagnostic, ...]]:
    """Arguments for kafka-python, and warnings about properties without effect.

    Raises KdeclareError when a property asks for what cannot be done here; no message holds a secret.
    """
    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        raise problem("security.protocol", f"'{protocol}' is not one of {', '.join(_PROTOCOLS)}")
    arguments: dict[str, Any] = {"security_protocol": protocol}
    unused = []
    for name, value in properties.items():
        if name in _PLAIN:
            argument, convert = _PLAIN[name]
            try:
                arguments[argument] = convert(value.strip())
            except ValueError:
                raise problem(name, f"'{value}' is not a whole number") from None
        elif _REFUSED.fullmatch(name):
            raise problem(name, "kdeclare has no such mechanism", hint="Use PLAIN or SCRAM, and PEM files.")
        elif not _HANDLED.fullmatch(name) and not _HARMLESS.fullmatch(name):
            unused.append(name)
    if protocol in ("SSL", "SASL_SSL"):
        arguments["ssl_context"] = ssl_context(properties)
    if protocol.startswith("SASL_"):
        arguments |= sasl_arguments(properties)
    if not unused:
        return arguments, ()
    detail = f"These client properties have no effect in kdeclare: {', '.join(sorted(unused))}."
    return arguments, (warning("unused-client-property", "Client properties without effect", detail),)


def _pairs(text: str) -> list[tuple[str, str]]:
    pairs = []
    for line in _logical_lines(text):
        match = re.match(r"((?:\\.|[^\\=:\s])*)[ \t\f]*[=:]?[ \t\f]*(.*)", line, re.DOTALL)
        assert match is not None  # every part of it may be empty
        pairs.append((_unescaped(match[1]), _unescaped(match[2])))
    return pairs


def _logical_lines(text: str) -> list[str]:
    """Lines without comments, each joined with those that a backslash at its end continues it with."""
    lines: list[str] = []
    continued = False
    for raw in re.split(r"\r\n|\n|\r", text):
        line = raw.lstrip(" \t\f")
        if not continued and (not line or line[0] in "#!"):
            continue
        ends_open = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        body = line[:-1] if ends_open else line
        if continued:
            lines[-1] += body
        else:
            lines.append(body)
        continued = ends_open
    return lines


def _unescaped(text: str) -> str:
    def one(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        return _ESCAPES.get(match[2], match[2])

    return re.sub(r"\\(?:u([0-9a-fA-F]{4})|(.))", one, text, flags=re.DOTALL)
