"""Kafka client properties, as Kafka's own tools take them, and what they are to kafka-python.

Sources: org.apache.kafka.clients.CommonClientConfigs, SslConfigs, SaslConfigs. Files are read as
java.util.Properties reads them, with Kafka's config providers (KIP-297, KIP-421).
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error, warning
from kdeclare.providers.kafka.client.connection_problems import problem
from kdeclare.providers.kafka.client.tls import ssl_context

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


def _pairs(text: str) -> list[tuple[str, str]]:
    pairs = []
    for line in _logical_lines(text):
        match = re.match(r"((?:\\.|[^\\=:\s])*)[ \t\f]*[=:]?[ \t\f]*(.*)", line, re.DOTALL)
        assert match is not None  # every part of it may be empty
        pairs.append((_unescape(match[1]), _unescape(match[2])))
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


def _unescape(text: str) -> str:
    def one(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        return _ESCAPES.get(match[2], match[2])

    return re.sub(r"\\(?:u([0-9a-fA-F]{4})|(.))", one, text, flags=re.DOTALL)


_PACKAGE = "org.apache.kafka.common.config.provider."
_PLACEHOLDER = re.compile(r"\$\{([^}:]*):(?:([^}]*?):)?([^}]*)\}")
"""``path`` ends at the first colon, as in org.apache.kafka.common.config.ConfigTransformer."""

Provider = Callable[[str, str], str | None]
"""From path and key to a value; None where there is none."""


def provided(properties: Mapping[str, str], environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The properties, with what stands for something else replaced by it; values are not looked into again.

    A placeholder of a provider that ``config.providers`` does not name is left as it is, as Kafka does.
    environ: default: that of the process. Raises KdeclareError for a provider that is not one of Kafka's
    own, and where there is no such value.
    """
    environ = os.environ if environ is None else environ
    known = {"EnvVar": lambda path, key: environ.get(key), "File": _from_file, "Directory": _from_folder}
    names = [name.strip() for name in properties.get("config.providers", "").split(",") if name.strip()]
    providers = {name: _find_provider(properties, name, known) for name in names}
    own = re.compile(r"config\.providers(\..*)?")
    return {
        name: _resolve_placeholders(name, value, providers)
        for name, value in properties.items()
        if not own.fullmatch(name)
    }


def _find_provider(properties: Mapping[str, str], name: str, known: Mapping[str, Provider]) -> Provider:
    key = f"config.providers.{name}.class"
    kind = properties.get(key, "")
    found = known.get(kind.removeprefix(_PACKAGE).removesuffix("ConfigProvider"))
    if found is None or not kind.startswith(_PACKAGE):
        raise problem(
            key,
            f"'{kind}' is not a provider that kdeclare has" if kind else "it is missing",
            hint=f"There are {', '.join(f'{_PACKAGE}{one}ConfigProvider' for one in known)}.",
        )
    return found


def _resolve_placeholders(name: str, value: str, providers: Mapping[str, Provider]) -> str:
    def one(match: re.Match[str]) -> str:
        provider = providers.get(match[1])
        if provider is None:
            return match[0]
        try:
            found = provider(match[2] or "", match[3])
        except OSError as exc:
            raise problem(name, f"{match[0]}: {exc.strerror}") from exc
        except ValueError as exc:  # a path with a zero byte in it, or what is no UTF-8
            raise problem(name, f"{match[0]}: it is not text") from exc
        if found is None:
            raise problem(name, f"{match[0]}: there is no such value")
        return found

    return _PLACEHOLDER.sub(one, value)


def _from_file(path: str, key: str) -> str | None:
    if not Path(path).is_file():
        raise FileNotFoundError(2, "No such file", path)
    return read_properties(path).get(key)


def _from_folder(path: str, key: str) -> str | None:
    """A file a key, as Kubernetes mounts secrets."""
    file = Path(path, key)
    if file.parent != Path(path) or not file.is_file():
        return None
    return file.read_text("utf-8")


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
        arguments |= _sasl_arguments(properties)
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


_BEARER = "OAUTHBEARER"
_MODULES = {
    "PLAIN": "PlainLoginModule",
    "SCRAM-SHA-256": "ScramLoginModule",
    "SCRAM-SHA-512": "ScramLoginModule",
    _BEARER: "OAuthBearerLoginModule",
}
_CALLBACK = re.compile(
    r"org\.apache\.kafka\.common\.security\.oauthbearer\.(secured\.)?OAuthBearerLoginCallbackHandler"
)
"""What asks a token endpoint in Kafka's clients (KIP-768); what others do is unknown here."""
_JAAS = re.compile(
    r"\s*(?P<module>[\w.]+)\s+(?:required|requisite|sufficient|optional)(?P<options>\s.*)?;\s*", re.DOTALL
)
_OPTION = re.compile(
    r"""\s*([\w.]+)\s*=\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|([^\s;"']+))""", re.DOTALL
)


def _sasl_arguments(properties: Mapping[str, str]) -> dict[str, Any]:
    """kafka-python's arguments for authentication. Raises KdeclareError."""
    mechanism = properties.get("sasl.mechanism", "GSSAPI").strip().upper()  # GSSAPI is Kafka's default
    module = _MODULES.get(mechanism)
    if module is None:
        raise problem(
            "sasl.mechanism",
            f"{mechanism} is not supported",
            hint=f"Use one of {', '.join(_MODULES)}.",
        )
    handler = properties.get("sasl.login.callback.handler.class", "").strip()
    if handler and not (mechanism == _BEARER and _CALLBACK.fullmatch(handler)):
        raise problem(
            "sasl.login.callback.handler.class",
            f"kdeclare cannot do what {handler} does for {mechanism}",
            hint="Use PLAIN or SCRAM, or OAUTHBEARER with sasl.oauthbearer.token.endpoint.url.",
        )
    options = _parse_jaas_line(properties, mechanism, module)
    if mechanism == _BEARER:
        from kdeclare.providers.kafka.client.oauth import token_provider  # HTTP, which most have no use for

        provider = token_provider(properties, options)
        return {"sasl_mechanism": mechanism, "sasl_oauth_token_provider": provider}
    missing = [name for name in ("username", "password") if name not in options]
    if missing:
        raise problem("sasl.jaas.config", f"it has no {' and no '.join(missing)}")
    if options.get("tokenauth", "").lower() == "true":
        raise problem("sasl.jaas.config", "delegation tokens are not supported")
    return {
        "sasl_mechanism": mechanism,
        "sasl_plain_username": options["username"],
        "sasl_plain_password": options["password"],
    }


def _parse_jaas_line(properties: Mapping[str, str], mechanism: str, module: str) -> dict[str, str]:
    line = properties.get("sasl.jaas.config", "")
    if mechanism == _BEARER and not line.strip():
        return {}  # all of it can be told by properties (KIP-1139)
    match = _JAAS.fullmatch(line)
    if match is None:
        wanted = 'clientId="…" clientSecret="…"' if mechanism == _BEARER else 'username="…" password="…"'
        raise problem(
            "sasl.jaas.config",
            "it is missing" if not line.strip() else "it is not of the form MODULE required KEY=VALUE …;",
            hint=f"Write {module} required {wanted}; on one line, with the semicolon.",
        )
    if match["module"].rpartition(".")[2] != module:
        raise problem("sasl.jaas.config", f"{match['module']} does not go with {mechanism}")
    return _parse_options(match["options"] or "")


def _parse_options(text: str) -> dict[str, str]:
    options = {}
    for name, double, single, bare in _OPTION.findall(text):
        options[name] = bare or re.sub(r"\\(.)", r"\1", double or single, flags=re.DOTALL)
    return options
