"""Stores of certificates and keys, PEM and PKCS12 (RFC 7292), as the PEM text that OpenSSL takes."""

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.providers.kafka.client.problems import problem

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates

_JAVAS_OWN = {b"\xfe\xed\xfe\xed": "JKS", b"\xce\xce\xce\xce": "JCEKS"}
"""How the stores begin that Java alone reads."""
_SEQUENCE = b"\x30"
"""How DER begins, and so PKCS12."""


class Identity(NamedTuple):
    """A private key with its certificate chain, as PEM, and the password of the key."""

    pem: str
    password: str


def is_pem(content: bytes) -> bool:
    """Whether there is a part of PEM (RFC 7468) in it, whatever stands around."""
    return b"-----BEGIN " in content


def pem_text(content: bytes) -> str:
    """PEM as OpenSSL takes it; people write between its parts what they like, in any language."""
    return content.decode("ascii", "ignore")


def trusted(properties: Mapping[str, str], path: str) -> str:
    """The certificates of a trust store, as PEM.

    What the file is, its content says, whatever ``ssl.truststore.type`` does. Raises KdeclareError.
    """
    content = _content("truststore", path)
    if is_pem(content):
        return pem_text(content)
    from cryptography.hazmat.primitives.serialization import Encoding  # 40 ms that most have no use for

    store = _pkcs12(properties, "truststore", path, content)
    held = [item.certificate for item in (store.cert, *store.additional_certs) if item is not None]
    if not held:
        raise problem("ssl.truststore.location", f"{path} holds no certificates")
    return "".join(one.public_bytes(Encoding.PEM).decode() for one in held)


def identity(properties: Mapping[str, str], path: str) -> Identity | None:
    """The key and the chain of a key store; None where the file is PEM as it is. Raises KdeclareError."""
    content = _content("keystore", path)
    if is_pem(content):
        return None
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        PrivateFormat,
    )

    store = _pkcs12(properties, "keystore", path, content)
    if store.key is None or store.cert is None:
        raise problem("ssl.keystore.location", f"{path} holds no private key with its certificate")
    once = secrets.token_urlsafe(16)  # it is written to a file, though for a moment only
    key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(once.encode()))
    chain = (store.cert, *store.additional_certs)
    parts = (key, *(item.certificate.public_bytes(Encoding.PEM) for item in chain))
    return Identity(b"".join(parts).decode(), once)


def _content(store: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as exc:
        raise problem(f"ssl.{store}.location", f"{path}: {exc.strerror}") from exc


def _pkcs12(
    properties: Mapping[str, str], store: str, path: str, content: bytes
) -> "PKCS12KeyAndCertificates":
    name = f"ssl.{store}.location"
    if content[:4] in _JAVAS_OWN:
        raise _only_javas(name, path, _JAVAS_OWN[content[:4]])
    if not content.startswith(_SEQUENCE):
        raise problem(name, f"{path} is neither PEM nor PKCS12")
    from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

    password = properties.get(f"ssl.{store}.password")
    try:
        return load_pkcs12(content, password.encode() if password else None)
    except (ValueError, TypeError) as exc:
        what = "the password is wrong" if password else "there is none, and the store wants one"
        raise problem(
            f"ssl.{store}.password", f"{path} cannot be opened: {what}, or the store is damaged"
        ) from exc


def _only_javas(name: str, path: str, kind: str) -> KdeclareError:
    converted = Path(path).with_suffix(".p12")
    return problem(
        name,
        f"{path} is a {kind} store, which Java alone can read",
        hint=f"Convert it: keytool -importkeystore -srckeystore {path} -destkeystore {converted} "
        f"-deststoretype PKCS12. Then set {name}={converted}, and "
        f"{name.replace('location', 'type')}=PKCS12 for Kafka's own tools.",
    )
