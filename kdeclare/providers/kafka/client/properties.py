"""Kafka client properties, as Kafka's own tools take them, and what they are to kafka-python.

Sources: org.apache.kafka.clients.CommonClientConfigs, SslConfigs, SaslConfigs.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from kdeclare.core.diagnostics import Diagnostic, warning
from kdeclare.providers.kafka.client.problems import problem
from kdeclare.providers.kafka.client.providers import provided
from kdeclare.providers.kafka.client.sasl import sasl_arguments
from kdeclare.providers.kafka.client.tls import ssl_context

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

_DNS_LOOKUPS = ("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only")


def _dns_lookup(text: str) -> str:
    if text not in _DNS_LOOKUPS:
        raise ValueError(f"not one of {', '.join(_DNS_LOOKUPS)}")
    return text


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("not a whole number") from None


_PLAIN: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "client.id": ("client_id", str),
    "request.timeout.ms": ("request_timeout_ms", _number),
    "connections.max.idle.ms": ("connections_max_idle_ms", _number),
    "reconnect.backoff.ms": ("reconnect_backoff_ms", _number),
    "reconnect.backoff.max.ms": ("reconnect_backoff_max_ms", _number),
    "socket.connection.setup.timeout.ms": ("socket_connection_setup_timeout_ms", _number),
    "socket.connection.setup.timeout.max.ms": ("socket_connection_setup_timeout_max_ms", _number),
    "metadata.max.age.ms": ("metadata_max_age_ms", _number),
    "client.dns.lookup": ("client_dns_lookup", _dns_lookup),
}
"""Properties that mean the same to both."""

_HANDLED = re.compile(
    r"bootstrap\.servers|security\.protocol|ssl\.(truststore|keystore)\.(location|password|type)|"
    r"ssl\.truststore\.certificates|ssl\.keystore\.(key|certificate\.chain)|ssl\.key\.password|"
    r"ssl\.(enabled\.protocols|endpoint\.identification\.algorithm|cipher\.suites|engine\.factory\.class)|"
    r"ssl\.(provider|secure\.random\.implementation)|sasl\.(mechanism|jaas\.config)|"
    r"sasl\.login\.(callback\.handler\.class|(connect|read)\.timeout\.ms)|"
    r"sasl\.oauthbearer\.(token\.endpoint\.url|scope|client\.credentials\..*|header\.urlencode|jwt\.retriever\.class)"
)
_HARMLESS = re.compile(
    r"retries|retry\.backoff(\.max)?\.ms|default\.api\.timeout\.ms|(send|receive)\.buffer\.bytes|"
    r"metadata\.recovery\..*|metrics?\..*|enable\.metrics\.push|auto\.include\.jmx\.reporter|"
    r"ssl\.protocol|ssl\.(trust|key)manager\.algorithm|ssl\.allow\..*|sasl\.(login|kerberos|oauthbearer)\..*"
)
"""Without effect here, and without harm in that."""
_REFUSED = re.compile(
    r"security\.providers|bootstrap\.controllers|sasl\.(client\.callback\.handler|login)\.class"
)
"""What must not be ignored in silence, and cannot be done here."""


def client_arguments(properties: Mapping[str, str]) -> tuple[dict[str, Any], tuple[Diagnostic, ...]]:
    """Arguments for kafka-python, and warnings about properties without effect.

    Raises KdeclareError when a property asks for what cannot be done here; no message holds a secret.
    """
    properties = provided(properties)
    protocol = properties.get("security.protocol", "PLAINTEXT").strip().upper()
    if protocol not in _PROTOCOLS:
        raise problem("security.protocol", f"'{protocol}' is not one of {', '.join(_PROTOCOLS)}")
    arguments: dict[str, Any] = {"security_protocol": protocol}
    unused = []
    for name, value in properties.items():
        if name in _PLAIN:
            argument, convert = _PLAIN[name]
            try:
                arguments[argument] = convert(value.strip())
            except ValueError as exc:
                raise problem(name, f"'{value}' is {exc}") from None
        elif _REFUSED.fullmatch(name):
            raise problem(
                name,
                "kdeclare has no such mechanism",
                hint="Leave it out: logins are PLAIN, SCRAM and OAUTHBEARER, stores PEM and PKCS12.",
            )
        elif not _HANDLED.fullmatch(name) and not _HARMLESS.fullmatch(name):
            unused.append(name)
    if protocol in ("SSL", "SASL_SSL"):
        arguments["ssl_context"] = ssl_context(properties)
    if protocol.startswith("SASL_"):
        arguments |= sasl_arguments(properties)
    warnings: list[Diagnostic] = []
    if "sasl_oauth_token_provider" in arguments:
        from kdeclare.providers.kafka.client.oauth import (
            plain_http_warnings,  # HTTP, which most have no use for
        )

        warnings += plain_http_warnings(properties)
    if unused:
        detail = f"These client properties have no effect in kdeclare: {', '.join(sorted(unused))}."
        warnings.append(warning("unused-client-property", "Client properties without effect", detail))
    return arguments, tuple(warnings)
