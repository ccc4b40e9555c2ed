"""SASL client properties: PLAIN and SCRAM with a JAAS line, as Kafka's clients take them."""

import re
from collections.abc import Mapping
from typing import Any

from kdeclare.cluster.kafka.problems import problem

_MODULES = {
    "PLAIN": "PlainLoginModule",
    "SCRAM-SHA-256": "ScramLoginModule",
    "SCRAM-SHA-512": "ScramLoginModule",
}
_JAAS = re.compile(
    r"\s*(?P<module>[\w.]+)\s+(?:required|requisite|sufficient|optional)\s+(?P<options>.*);\s*", re.DOTALL
)
_OPTION = re.compile(r"""\s*(\w+)\s*=\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|([^\s;"']+))""", re.DOTALL)


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
    line = properties.get("sasl.jaas.config", "")
    match = _JAAS.fullmatch(line)
    if match is None:
        raise problem(
            "sasl.jaas.config",
            "it is missing" if not line.strip() else "it is not of the form MODULE required KEY=VALUE …;",
            hint=f'Write {module} required username="…" password="…"; on one line, with the semicolon.',
        )
    if match["module"].rpartition(".")[2] != module:
        raise problem("sasl.jaas.config", f"{match['module']} does not go with {mechanism}")
    options = _options(match["options"])
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


def _options(text: str) -> dict[str, str]:
    options = {}
    for name, double, single, bare in _OPTION.findall(text):
        options[name] = bare or re.sub(r"\\(.)", r"\1", double or single, flags=re.DOTALL)
    return options
