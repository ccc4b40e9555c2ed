"""SASL client properties: PLAIN, SCRAM and OAUTHBEARER with a JAAS line, as Kafka's clients take them."""

import re
from collections.abc import Mapping
from typing import Any

from kdeclare.providers.kafka.client.problems import problem

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


def sasl_arguments(properties: Mapping[str, str]) -> dict[str, Any]:
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
    options = _jaas_options(properties, mechanism, module)
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


def _jaas_options(properties: Mapping[str, str], mechanism: str, module: str) -> dict[str, str]:
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
    return _options(match["options"] or "")


def _options(text: str) -> dict[str, str]:
    options = {}
    for name, double, single, bare in _OPTION.findall(text):
        options[name] = bare or re.sub(r"\\(.)", r"\1", double or single, flags=re.DOTALL)
    return options
