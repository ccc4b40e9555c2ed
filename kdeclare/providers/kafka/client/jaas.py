"""Parse the value of ``sasl.jaas.config``."""

import re
from collections.abc import Mapping

from kdeclare.providers.kafka.client.connection_problems import build_property_error

BEARER = "OAUTHBEARER"
KERBEROS = "GSSAPI"
"""The SASL mechanism for Kerberos."""

_EXAMPLE = 'username="…" password="…"'
_EXAMPLES = {
    BEARER: 'clientId="…" clientSecret="…"',
    KERBEROS: 'useKeyTab=true keyTab="…" principal="…"',
}
"""Examples of the options in a JAAS line, for mechanisms whose options differ from those in `_EXAMPLE`."""

_JAAS = re.compile(
    r"\s*(?P<module>[\w.]+)\s+(?:required|requisite|sufficient|optional)(?P<options>\s.*)?;\s*", re.DOTALL
)
_OPTION = re.compile(
    r"""\s*([\w.]+)\s*=\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|([^\s;"']+))""", re.DOTALL
)


def parse_jaas_line(properties: Mapping[str, str], mechanism: str, module: str) -> dict[str, str]:
    """Return the options of the login module. Raises KdeclareError.

    module: the name of the class that the mechanism requires, without its package.
    """
    line = properties.get("sasl.jaas.config", "")
    if mechanism == BEARER and not line.strip():
        return {}  # properties can replace the JAAS config (KIP-1139)
    match = _JAAS.fullmatch(line)
    if match is None:
        example = _EXAMPLES.get(mechanism, _EXAMPLE)
        raise build_property_error(
            "sasl.jaas.config",
            "the property is missing"
            if not line.strip()
            else "the value is not of the form MODULE required KEY=VALUE …;",
            hint=f"Write the value on one line, including the semicolon: {module} required {example};",
        )
    if match["module"].rpartition(".")[2] != module:
        raise build_property_error(
            "sasl.jaas.config",
            f"{match['module']} cannot be used with {mechanism}",
            hint=f"Use {module}, or change sasl.mechanism.",
        )
    return parse_options(match["options"] or "")


def parse_options(text: str) -> dict[str, str]:
    """Return all options in a JAAS line, by name."""
    options = {}
    for name, double, single, bare in _OPTION.findall(text):
        options[name] = bare or re.sub(r"\\(.)", r"\1", double or single, flags=re.DOTALL)
    return options
