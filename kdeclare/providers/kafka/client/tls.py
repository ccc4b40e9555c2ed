"""TLS client properties (``ssl.*``; KIP-651 for PEM) as an SSLContext."""

import os
import re
import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path

from kdeclare.providers.kafka.client.problems import problem
from kdeclare.providers.kafka.client.stores import identity, is_pem, pem_text, trusted

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_KEY = "ssl.keystore.key"
_CHAIN = "ssl.keystore.certificate.chain"
_UNSUPPORTED = (
    "ssl.cipher.suites",
    "ssl.engine.factory.class",
    "ssl.provider",
    "ssl.secure.random.implementation",
)


def ssl_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    """The context that ``ssl.*`` properties describe. Raises KdeclareError."""
    for name in _UNSUPPORTED:
        if properties.get(name):
            raise problem(name, "it is not supported")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = _checks_names(properties)
    _limit_versions(context, properties)
    _trust(context, properties)
    _identify(context, properties)
    return context


def _checks_names(properties: Mapping[str, str]) -> bool:
    """An empty algorithm turns the check of host names off, as in Kafka's clients."""
    name = "ssl.endpoint.identification.algorithm"
    algorithm = properties.get(name, "https").strip().lower()
    if algorithm not in ("https", ""):
        raise problem(name, f"'{algorithm}' is neither https nor empty")
    return algorithm != ""


def _limit_versions(context: ssl.SSLContext, properties: Mapping[str, str]) -> None:
    names = properties.get("ssl.enabled.protocols", "TLSv1.2,TLSv1.3").split(",")
    versions = sorted(_VERSIONS[name.strip()] for name in names if name.strip() in _VERSIONS)
    if not versions:
        raise problem("ssl.enabled.protocols", f"none of {', '.join(_VERSIONS)} is among them")
    context.minimum_version, context.maximum_version = versions[0], versions[-1]


def _trust(context: ssl.SSLContext, properties: Mapping[str, str]) -> None:
    inline = properties.get("ssl.truststore.certificates")
    path = properties.get("ssl.truststore.location")
    try:
        if inline:
            context.load_verify_locations(cadata=_pem(inline, "ssl.truststore.certificates"))
        elif path:
            context.load_verify_locations(cadata=trusted(properties, path))
        else:
            context.load_default_certs()
    except (ssl.SSLError, ValueError) as exc:
        name = "ssl.truststore.certificates" if inline else "ssl.truststore.location"
        raise problem(name, f"it holds no readable certificates ({exc})") from exc


def _identify(context: ssl.SSLContext, properties: Mapping[str, str]) -> None:
    """Load the client's own certificate and key, where there is one."""
    password = properties.get("ssl.key.password") or properties.get("ssl.keystore.password") or ""
    key, chain = properties.get(_KEY), properties.get(_CHAIN)
    path = properties.get("ssl.keystore.location")
    for given, other in ((_KEY, _CHAIN), (_CHAIN, _KEY)):
        if properties.get(given) and not properties.get(other):
            raise problem(given, f"it goes with {other}, which is missing")
    if key and chain:
        _load(context, _pem(key, _KEY) + "\n" + _pem(chain, _CHAIN), password, _KEY)
    elif path:
        held = identity(properties, path)
        if held is None:
            _load_chain(context, path, password, "ssl.keystore.location")
        else:
            _load(context, held.pem, held.password, "ssl.keystore.location")


def _load(context: ssl.SSLContext, pem: str, password: str, source: str) -> None:
    """OpenSSL takes a client's key from a file only: give it one that nobody else can read."""
    descriptor, name = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(pem)
        _load_chain(context, name, password, source)
    finally:
        Path(name).unlink()


def _load_chain(context: ssl.SSLContext, path: str, password: str, name: str) -> None:
    try:
        # A callable, as a None would make OpenSSL ask on the terminal.
        context.load_cert_chain(path, password=lambda: password)
    except (ssl.SSLError, ValueError) as exc:
        raise problem(
            name,
            f"no certificate and key can be loaded from it ({exc})",
            hint="It must hold the private key and then its certificate chain; ssl.key.password unlocks it.",
        ) from exc


def _pem(text: str, name: str) -> str:
    """PEM text with a line to each part; in a properties file all may stand in one line."""
    content = text.encode(errors="ignore")
    if not is_pem(content):
        raise problem(name, "it is not PEM text")
    return re.sub(
        r"(-----BEGIN [^-]+-----)(.*?)(-----END [^-]+-----)",
        lambda part: "\n".join([part[1], *part[2].split(), part[3], ""]),
        pem_text(content),
        flags=re.DOTALL,
    )
