"""TLS client properties (KIP-651, PEM) as an SSLContext."""

import os
import re
import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path

from kdeclare.cluster.kafka.problems import problem

_PEM_HINT = (
    "Convert it to PEM: keytool -importkeystore -srckeystore FILE -destkeystore store.p12 "
    "-deststoretype PKCS12, then openssl pkcs12 -in store.p12 -out store.pem; "
    "and set ssl.{store}.type=PEM."
)
_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
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
    # An empty algorithm turns the check of host names off, as in Kafka's clients.
    context.check_hostname = properties.get("ssl.endpoint.identification.algorithm", "https") != ""
    _limit_versions(context, properties)
    _trust(context, properties)
    _identify(context, properties)
    return context


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
            context.load_verify_locations(cadata=_normal(inline))
        elif path:
            _check_pem(properties, "truststore", path)
            context.load_verify_locations(cafile=path)
        else:
            context.load_default_certs()
    except (ssl.SSLError, ValueError) as exc:
        name = "ssl.truststore.certificates" if inline else "ssl.truststore.location"
        raise problem(name, f"it holds no readable certificates ({exc})") from exc


def _identify(context: ssl.SSLContext, properties: Mapping[str, str]) -> None:
    """Load the client's own certificate and key, where there is one."""
    password = properties.get("ssl.key.password") or properties.get("ssl.keystore.password") or ""
    key = properties.get("ssl.keystore.key")
    chain = properties.get("ssl.keystore.certificate.chain")
    path = properties.get("ssl.keystore.location")
    if key and chain:
        _load_inline(context, _normal(key) + "\n" + _normal(chain), password)
    elif path:
        _check_pem(properties, "keystore", path)
        _load_chain(context, path, password, "ssl.keystore.location")


def _load_inline(context: ssl.SSLContext, pem: str, password: str) -> None:
    """OpenSSL takes a client's key from a file only: give it one that nobody else can read."""
    descriptor, name = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(pem)
        _load_chain(context, name, password, "ssl.keystore.key")
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


def _check_pem(properties: Mapping[str, str], store: str, path: str) -> None:
    """Raises KdeclareError unless the file is there and is PEM, whatever ``ssl.*.type`` says."""
    name = f"ssl.{store}.location"
    try:
        head = Path(path).read_bytes()
    except OSError as exc:
        raise problem(name, f"{path}: {exc.strerror}") from exc
    if b"-----BEGIN " not in head:
        kind = properties.get(f"ssl.{store}.type", "JKS").upper()
        text = f"{path} is a {kind} store" if kind != "PEM" else f"{path} is not PEM"
        raise problem(name, f"{text}, and only PEM is supported", hint=_PEM_HINT.format(store=store))


def _normal(pem: str) -> str:
    """PEM text with a line to each part; in a properties file all may stand in one line."""
    return re.sub(
        r"(-----BEGIN [^-]+-----)(.*?)(-----END [^-]+-----)",
        lambda part: "\n".join([part[1], *part[2].split(), part[3], ""]),
        pem,
        flags=re.DOTALL,
    )
