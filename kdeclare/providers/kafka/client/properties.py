"""Read Kafka client properties as Kafka's own tools do, and convert them for kafka-python.

Sources: org.apache.kafka.clients.CommonClientConfigs, SslConfigs, SaslConfigs. Files are parsed as in
java.util.Properties. Kafka's config providers are supported (KIP-297, KIP-421).
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error, warning
from kdeclare.providers.kafka.client.connection_problems import build_property_error
from kdeclare.providers.kafka.client.jaas import BEARER, KERBEROS, parse_jaas_line
from kdeclare.providers.kafka.client.tls import build_ssl_context
from kdeclare.providers.kafka.client.tokens.msk_properties import convert_msk_properties

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_properties(path: str | Path) -> dict[str, str]:
    """Read a properties file as java.util.Properties does. The encoding is ISO 8859-1.

    Raises KdeclareError if the file cannot be read.
    """
    try:
        text = Path(path).read_text(encoding="iso-8859-1")
    except OSError as exc:
        raise KdeclareError(
            error("client-properties", "Client properties cannot be read", f"{path}: {exc.strerror}")
        ) from exc
    return dict(_parse_pairs(text))


def _parse_pairs(text: str) -> list[tuple[str, str]]:
    pairs = []
    for line in _split_logical_lines(text):
        match = re.match(r"((?:\\.|[^\\=:\s])*)[ \t\f]*[=:]?[ \t\f]*(.*)", line, re.DOTALL)
        assert match is not None  # every part of the pattern can be empty
        pairs.append((_unescape(match[1]), _unescape(match[2])))
    return pairs


def _split_logical_lines(text: str) -> list[str]:
    """Return the lines without comments. Lines that end with a backslash are joined with the next line."""
    lines: list[str] = []
    continued = False
    for raw_line in re.split(r"\r\n|\n|\r", text):
        line = raw_line.lstrip(" \t\f")
        if not continued and (not line or line[0] in "#!"):
            continue
        continues = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        body = line[:-1] if continues else line
        if continued:
            lines[-1] += body
        else:
            lines.append(body)
        continued = continues
    return lines


def _unescape(text: str) -> str:
    def replace_escape(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        return _ESCAPES.get(match[2], match[2])

    return re.sub(r"\\(?:u([0-9a-fA-F]{4})|(.))", replace_escape, text, flags=re.DOTALL)


_PROVIDER_PACKAGE = "org.apache.kafka.common.config.provider."
_PLACEHOLDER = re.compile(r"\$\{([^}:]*):(?:([^}]*?):)?([^}]*)\}")
"""A placeholder of a config provider, such as ``${file:PATH:KEY}``. PATH ends at the first colon."""

ConfigProvider = Callable[[str, str], str | None]
"""A function that returns the value for a path and a key, or None if the value does not exist."""


def resolve_config_providers(
    properties: Mapping[str, str], environ: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Replace placeholders in property values (KIP-297). Placeholders in inserted values are not replaced.

    As in Kafka, a placeholder whose provider is not in ``config.providers`` is left unchanged.
    environ: the environment variables; by default, the environment of the process.

    Raises KdeclareError if a provider is not one of Kafka's own or if a value does not exist.
    """
    environ = os.environ if environ is None else environ
    builtin_providers = {
        "EnvVar": lambda path, key: environ.get(key),
        "File": _read_file_value,
        "Directory": _read_directory_value,
    }
    names = [name.strip() for name in properties.get("config.providers", "").split(",") if name.strip()]
    providers = {name: _get_provider(properties, name, builtin_providers) for name in names}
    provider_settings = re.compile(r"config\.providers(\..*)?")
    return {
        name: _resolve_placeholders(name, value, providers)
        for name, value in properties.items()
        if not provider_settings.fullmatch(name)
    }


def _get_provider(
    properties: Mapping[str, str], name: str, builtin_providers: Mapping[str, ConfigProvider]
) -> ConfigProvider:
    key = f"config.providers.{name}.class"
    class_name = properties.get(key, "")
    provider = builtin_providers.get(
        class_name.removeprefix(_PROVIDER_PACKAGE).removesuffix("ConfigProvider")
    )
    if provider is None or not class_name.startswith(_PROVIDER_PACKAGE):
        raise build_property_error(
            key,
            f"kdeclare does not support the provider '{class_name}'"
            if class_name
            else "the property is missing",
            hint="Use one of "
            f"{', '.join(f'{_PROVIDER_PACKAGE}{one}ConfigProvider' for one in builtin_providers)}.",
        )
    return provider


def _resolve_placeholders(name: str, value: str, providers: Mapping[str, ConfigProvider]) -> str:
    def resolve_match(match: re.Match[str]) -> str:
        provider = providers.get(match[1])
        if provider is None:
            return match[0]
        try:
            resolved = provider(match[2] or "", match[3])
        except OSError as exc:
            raise build_property_error(name, f"{match[0]}: {exc.strerror}") from exc
        except ValueError as exc:  # a path with a null byte, or a value that is not UTF-8
            raise build_property_error(name, f"{match[0]}: the path or the value is not valid text") from exc
        if resolved is None:
            raise build_property_error(name, f"{match[0]}: the value does not exist")
        return resolved

    return _PLACEHOLDER.sub(resolve_match, value)


def _read_file_value(path: str, key: str) -> str | None:
    if not Path(path).is_file():
        raise FileNotFoundError(2, "No such file", path)
    return read_properties(path).get(key)


def _read_directory_value(path: str, key: str) -> str | None:
    """Return the content of the file ``key`` in the folder ``path``; None if there is no such file.

    Kubernetes Secrets that are mounted as a volume have one file per key.
    """
    file = Path(path, key)
    if file.parent != Path(path) or not file.is_file():
        return None
    return file.read_text("utf-8")


_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

_DNS_LOOKUPS = ("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only")


def _parse_dns_lookup(text: str) -> str:
    if text not in _DNS_LOOKUPS:
        raise ValueError(f"not one of {', '.join(_DNS_LOOKUPS)}")
    return text


def _parse_number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("not a whole number") from None


_CLIENT_ARGUMENTS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "client.id": ("client_id", str),
    "request.timeout.ms": ("request_timeout_ms", _parse_number),
    "connections.max.idle.ms": ("connections_max_idle_ms", _parse_number),
    "reconnect.backoff.ms": ("reconnect_backoff_ms", _parse_number),
    "reconnect.backoff.max.ms": ("reconnect_backoff_max_ms", _parse_number),
    "socket.connection.setup.timeout.ms": ("socket_connection_setup_timeout_ms", _parse_number),
    "socket.connection.setup.timeout.max.ms": ("socket_connection_setup_timeout_max_ms", _parse_number),
    "metadata.max.age.ms": ("metadata_max_age_ms", _parse_number),
    "client.dns.lookup": ("client_dns_lookup", _parse_dns_lookup),
}
"""The kafka-python argument of each supported property, and the function that converts the value."""

_HANDLED = re.compile(
    r"bootstrap\.servers|security\.protocol|ssl\.(truststore|keystore)\.(location|password|type)|"
    r"ssl\.truststore\.certificates|ssl\.keystore\.(key|certificate\.chain)|ssl\.key\.password|"
    r"ssl\.(enabled\.protocols|endpoint\.identification\.algorithm|cipher\.suites|engine\.factory\.class)|"
    r"ssl\.(provider|secure\.random\.implementation)|sasl\.(mechanism|jaas\.config)|"
    r"sasl\.login\.(callback\.handler\.class|(connect|read)\.timeout\.ms)|"
    r"sasl\.oauthbearer\.(token\.endpoint\.url|scope|client\.credentials\..*|header\.urlencode|jwt\.retriever\.class)|"
    r"kdeclare\.token\.(command|provider(\..+)?)"
)
_IGNORED = re.compile(
    r"retries|retry\.backoff(\.max)?\.ms|default\.api\.timeout\.ms|(send|receive)\.buffer\.bytes|"
    r"metadata\.recovery\..*|metrics?\..*|enable\.metrics\.push|auto\.include\.jmx\.reporter|"
    r"ssl\.protocol|ssl\.(trust|key)manager\.algorithm|ssl\.allow\..*|sasl\.(login|kerberos|oauthbearer)\..*"
)
"""Properties that kdeclare can safely ignore."""
_UNSUPPORTED = re.compile(
    r"security\.providers|bootstrap\.controllers|sasl\.(client\.callback\.handler|login)\.class"
)
"""Properties that kdeclare does not support and must reject."""


def build_client_arguments(properties: Mapping[str, str]) -> tuple[dict[str, Any], tuple[Diagnostic, ...]]:
    """Return the arguments for kafka-python, and warnings about properties that have no effect.

    Raises KdeclareError for an unsupported property. Error messages never contain a secret.
    """
    properties = convert_msk_properties(resolve_config_providers(properties))
    protocol = properties.get("security.protocol", "PLAINTEXT").strip().upper()
    if protocol not in _PROTOCOLS:
        raise build_property_error("security.protocol", f"'{protocol}' is not one of {', '.join(_PROTOCOLS)}")
    arguments: dict[str, Any] = {"security_protocol": protocol}
    unused_names = []
    for name, value in properties.items():
        if name in _CLIENT_ARGUMENTS:
            argument, convert = _CLIENT_ARGUMENTS[name]
            try:
                arguments[argument] = convert(value.strip())
            except ValueError as exc:
                raise build_property_error(name, f"'{value}' is {exc}") from None
        elif _UNSUPPORTED.fullmatch(name):
            raise build_property_error(
                name,
                "kdeclare does not support this property",
                hint="Remove this property. kdeclare supports PLAIN, SCRAM, OAUTHBEARER and GSSAPI, and PEM "
                "and PKCS12 stores.",
            )
        elif not _HANDLED.fullmatch(name) and not _IGNORED.fullmatch(name):
            unused_names.append(name)
    if protocol in ("SSL", "SASL_SSL"):
        arguments["ssl_context"] = build_ssl_context(properties)
    if protocol.startswith("SASL_"):
        arguments |= _build_sasl_arguments(properties)
    warnings: list[Diagnostic] = []
    if "sasl_oauth_token_provider" in arguments:
        # imported here because few clients need its HTTP modules
        from kdeclare.providers.kafka.client.oauth import warn_plain_http

        warnings += warn_plain_http(properties)
    if unused_names:
        detail = f"These client properties have no effect in kdeclare: {', '.join(sorted(unused_names))}."
        hint = "Correct the names of these properties, or remove the properties."
        warnings.append(
            warning("unused-client-property", "Client properties without effect", detail, hint=hint)
        )
    return arguments, tuple(warnings)


_LOGIN_MODULES = {
    "PLAIN": "PlainLoginModule",
    "SCRAM-SHA-256": "ScramLoginModule",
    "SCRAM-SHA-512": "ScramLoginModule",
    BEARER: "OAuthBearerLoginModule",
    KERBEROS: "Krb5LoginModule",
}
_CALLBACK_HANDLER = re.compile(
    r"org\.apache\.kafka\.common\.security\.oauthbearer\.(secured\.)?OAuthBearerLoginCallbackHandler"
)
"""The supported callback handlers: Kafka's own handlers that request tokens from an endpoint (KIP-768)."""


def _build_sasl_arguments(properties: Mapping[str, str]) -> dict[str, Any]:
    """Return kafka-python's arguments for authentication. Raises KdeclareError."""
    mechanism = properties.get("sasl.mechanism", KERBEROS).strip().upper()  # GSSAPI is Kafka's default
    module = _LOGIN_MODULES.get(mechanism)
    if module is None:
        raise build_property_error(
            "sasl.mechanism",
            f"{mechanism} is not supported",
            hint=f"Use one of {', '.join(_LOGIN_MODULES)}.",
        )
    handler = properties.get("sasl.login.callback.handler.class", "").strip()
    if handler and not (mechanism == BEARER and _CALLBACK_HANDLER.fullmatch(handler)):
        raise build_property_error(
            "sasl.login.callback.handler.class",
            f"kdeclare does not support {handler} for {mechanism}",
            hint="Use PLAIN or SCRAM, or OAUTHBEARER with sasl.oauthbearer.token.endpoint.url, "
            "kdeclare.token.command or kdeclare.token.provider.",
        )
    if mechanism == KERBEROS:
        # imported here because few clients need it
        from kdeclare.providers.kafka.client.access.kerberos import build_kerberos_arguments

        return build_kerberos_arguments(properties)
    options = parse_jaas_line(properties, mechanism, module)
    if mechanism == BEARER:
        # imported here because few clients need its HTTP modules
        from kdeclare.providers.kafka.client.oauth import build_token_provider

        provider = build_token_provider(properties, options)
        return {"sasl_mechanism": mechanism, "sasl_oauth_token_provider": provider}
    missing = [name for name in ("username", "password") if name not in options]
    if missing:
        raise build_property_error(
            "sasl.jaas.config",
            f"the value has no {' and no '.join(missing)}",
            hint="Add the username and the password that kdeclare uses to log in.",
        )
    if options.get("tokenauth", "").lower() == "true":
        raise build_property_error(
            "sasl.jaas.config",
            "kdeclare does not support delegation tokens",
            hint="Remove tokenauth, and use the name and password of a SCRAM user.",
        )
    return {
        "sasl_mechanism": mechanism,
        "sasl_plain_username": options["username"],
        "sasl_plain_password": options["password"],
    }
