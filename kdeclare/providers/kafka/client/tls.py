"""Build an SSLContext from ``ssl.*`` client properties, with PEM (KIP-651) and PKCS12 (RFC 7292) stores."""

import os
import re
import secrets
import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.providers.kafka.client.connection_problems import build_property_error

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates


_TLS_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_KEY = "ssl.keystore.key"
_CHAIN = "ssl.keystore.certificate.chain"
_UNSUPPORTED = (
    "ssl.cipher.suites",
    "ssl.engine.factory.class",
    "ssl.provider",
    "ssl.secure.random.implementation",
)


def build_ssl_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    """Build the SSLContext that the ``ssl.*`` properties describe. Raises KdeclareError."""
    for name in _UNSUPPORTED:
        if properties.get(name):
            raise build_property_error(name, "kdeclare does not support this property", hint="Remove it.")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = _is_hostname_checked(properties)
    _limit_versions(context, properties)
    _load_truststore(context, properties)
    _load_client_identity(context, properties)
    return context


def _is_hostname_checked(properties: Mapping[str, str]) -> bool:
    """Return whether to verify host names.

    As in Kafka's clients, an empty ``ssl.endpoint.identification.algorithm`` disables the check.
    """
    name = "ssl.endpoint.identification.algorithm"
    algorithm = properties.get(name, "https").strip().lower()
    if algorithm not in ("https", ""):
        raise build_property_error(name, f"'{algorithm}' is neither https nor empty")
    return algorithm != ""


def _limit_versions(context: ssl.SSLContext, properties: Mapping[str, str]) -> None:
    names = properties.get("ssl.enabled.protocols", "TLSv1.2,TLSv1.3").split(",")
    versions = sorted(_TLS_VERSIONS[name.strip()] for name in names if name.strip() in _TLS_VERSIONS)
    if not versions:
        raise build_property_error(
            "ssl.enabled.protocols", f"the list contains none of {', '.join(_TLS_VERSIONS)}"
        )
    context.minimum_version, context.maximum_version = versions[0], versions[-1]


def _load_truststore(context: ssl.SSLContext, properties: Mapping[str, str]) -> None:
    inline = properties.get("ssl.truststore.certificates")
    path = properties.get("ssl.truststore.location")
    try:
        if inline:
            context.load_verify_locations(cadata=_normalize_pem(inline, "ssl.truststore.certificates"))
        elif path:
            context.load_verify_locations(cadata=_read_truststore(properties, path))
        else:
            context.load_default_certs()
    except (ssl.SSLError, ValueError) as exc:
        name = "ssl.truststore.certificates" if inline else "ssl.truststore.location"
        raise build_property_error(name, f"there are no readable certificates ({exc})") from exc


def _load_client_identity(context: ssl.SSLContext, properties: Mapping[str, str]) -> None:
    """Load the client's certificate and key, if configured."""
    password = properties.get("ssl.key.password") or properties.get("ssl.keystore.password") or ""
    key, chain = properties.get(_KEY), properties.get(_CHAIN)
    path = properties.get("ssl.keystore.location")
    for name, counterpart in ((_KEY, _CHAIN), (_CHAIN, _KEY)):
        if properties.get(name) and not properties.get(counterpart):
            raise build_property_error(name, f"this property requires {counterpart}, which is missing")
    if key and chain:
        _load_identity(
            context, _normalize_pem(key, _KEY) + "\n" + _normalize_pem(chain, _CHAIN), password, _KEY
        )
    elif path:
        identity = _read_identity(properties, path)
        if identity is None:
            _load_cert_chain(context, path, password, "ssl.keystore.location")
        else:
            _load_identity(context, identity.pem, identity.password, "ssl.keystore.location")


def _load_identity(context: ssl.SSLContext, pem: str, password: str, property_name: str) -> None:
    """Load a certificate and key. OpenSSL requires a file, so the PEM data is written to a temporary file."""
    descriptor, pem_path = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(pem)
        _load_cert_chain(context, pem_path, password, property_name)
    finally:
        Path(pem_path).unlink()


def _load_cert_chain(context: ssl.SSLContext, path: str, password: str, property_name: str) -> None:
    try:
        # a function, because OpenSSL prompts on the terminal if the password is None
        context.load_cert_chain(path, password=lambda: password)
    except (ssl.SSLError, ValueError) as exc:
        raise build_property_error(
            property_name,
            f"the client's certificate and private key cannot be loaded ({exc})",
            hint="Check that the private key and its certificate chain are complete, and that "
            "ssl.key.password is correct.",
        ) from exc


def _normalize_pem(text: str, name: str) -> str:
    """Split PEM data into lines. In a properties file, PEM data can be on a single line."""
    content = text.encode(errors="ignore")
    if not _is_pem(content):
        raise build_property_error(name, "the value is not in PEM format")
    return re.sub(
        r"(-----BEGIN [^-]+-----)(.*?)(-----END [^-]+-----)",
        lambda part: "\n".join([part[1], *part[2].split(), part[3], ""]),
        _decode_pem(content),
        flags=re.DOTALL,
    )


_JAVA_ONLY_STORES = {b"\xfe\xed\xfe\xed": "JKS", b"\xce\xce\xce\xce": "JCEKS"}
"""The first bytes of store formats that only Java can read."""
_DER_SEQUENCE = b"\x30"
"""The first byte of DER data, such as a PKCS12 store."""


class _Identity(NamedTuple):
    """A private key and its certificate chain as PEM, and the password of the key."""

    pem: str
    password: str


def _is_pem(content: bytes) -> bool:
    """Return whether the content has a PEM section (RFC 7468). Text outside the section is allowed."""
    return b"-----BEGIN " in content


def _decode_pem(content: bytes) -> str:
    """Decode PEM data as ASCII. Drop all other characters, which can occur outside the PEM sections."""
    return content.decode("ascii", "ignore")


def _read_truststore(properties: Mapping[str, str], path: str) -> str:
    """Return the certificates of a truststore as PEM.

    The content determines the format, regardless of ``ssl.truststore.type``. Raises KdeclareError.
    """
    content = _read_store("truststore", path)
    if _is_pem(content):
        return _decode_pem(content)
    # imported here because the import takes 40 ms and is rarely needed
    from cryptography.hazmat.primitives.serialization import Encoding

    store = _open_pkcs12(properties, "truststore", path, content)
    certificates = [item.certificate for item in (store.cert, *store.additional_certs) if item is not None]
    if not certificates:
        raise build_property_error("ssl.truststore.location", f"{path} contains no certificates")
    return "".join(one.public_bytes(Encoding.PEM).decode() for one in certificates)


def _read_identity(properties: Mapping[str, str], path: str) -> _Identity | None:
    """Return the key and certificate chain of a keystore; None if the keystore is a PEM file.

    Raises KdeclareError.
    """
    content = _read_store("keystore", path)
    if _is_pem(content):
        return None
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        PrivateFormat,
    )

    store = _open_pkcs12(properties, "keystore", path, content)
    if store.key is None or store.cert is None:
        raise build_property_error(
            "ssl.keystore.location", f"{path} does not contain both a private key and its certificate"
        )
    one_time_password = secrets.token_urlsafe(16)  # the key is briefly written to a file
    key = store.key.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(one_time_password.encode())
    )
    chain = (store.cert, *store.additional_certs)
    parts = (key, *(item.certificate.public_bytes(Encoding.PEM) for item in chain))
    return _Identity(b"".join(parts).decode(), one_time_password)


def _read_store(store: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as exc:
        raise build_property_error(f"ssl.{store}.location", f"{path}: {exc.strerror}") from exc


def _open_pkcs12(
    properties: Mapping[str, str], store: str, path: str, content: bytes
) -> "PKCS12KeyAndCertificates":
    name = f"ssl.{store}.location"
    if content[:4] in _JAVA_ONLY_STORES:
        raise _build_java_store_error(name, path, _JAVA_ONLY_STORES[content[:4]])
    if not content.startswith(_DER_SEQUENCE):
        raise build_property_error(name, f"{path} is neither PEM nor PKCS12")
    from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

    password = properties.get(f"ssl.{store}.password")
    try:
        return load_pkcs12(content, password.encode() if password else None)
    except (ValueError, TypeError) as exc:
        reason = "wrong" if password else "missing"
        raise build_property_error(
            f"ssl.{store}.password",
            f"{path} cannot be opened: the password is {reason}, or the store is damaged",
        ) from exc


def _build_java_store_error(name: str, path: str, store_type: str) -> KdeclareError:
    converted_path = Path(path).with_suffix(".p12")
    return build_property_error(
        name,
        f"{path} is a {store_type} store, which only Java can read",
        hint=f"Convert the store with: keytool -importkeystore -srckeystore {path} -destkeystore "
        f"{converted_path} -deststoretype PKCS12. Then set {name}={converted_path}. Kafka's own tools also "
        f"require {name.replace('location', 'type')}=PKCS12.",
    )
