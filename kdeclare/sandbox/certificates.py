"""The certificates of a sandbox: a certificate authority, and keystores with certificates signed by it."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.sandbox.layout import AuthorityFiles
from kdeclare.sandbox.settings import HOST

if TYPE_CHECKING:  # slow to import, and most commands need no certificates
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.serialization import KeySerializationEncryption
    from cryptography.x509 import Certificate, CertificateBuilder, KeyUsage, Name

# Java requires a password for keystores. This password protects nothing, because it is public.
KEYSTORE_PASSWORD = "kdeclare-sandbox"

_AUTHORITY_DAYS = 3650
CERTIFICATE_DAYS = 365
_AUTHORITY_NAME = "kdeclare sandbox"


def create_authority(files: AuthorityFiles) -> None:
    """Create the certificate authority if it is missing. Raises KdeclareError ``sandbox-certificates``.

    The truststore is created last, so if it exists, all files exist.
    """
    if files.truststore.exists():
        return
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding, pkcs12

    key = _generate_key()
    name = _build_name(_AUTHORITY_NAME)
    certificate = _sign(
        _start_certificate(name, name, key, _AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_build_signing_usage(), critical=True),
        key,
    )
    trusted = [pkcs12.PKCS12Certificate(certificate, b"ca")]
    _write(files.authority, _build_keystore(b"ca", key, certificate))
    _write(files.authority_pem, certificate.public_bytes(Encoding.PEM))
    _write(files.truststore, pkcs12.serialize_java_truststore(trusted, _build_encryption()))


def issue_keystore(
    files: AuthorityFiles,
    keystore: Path,
    common_name: str,
    days: int = CERTIFICATE_DAYS,
    *,
    days_ago: int = 0,
) -> None:
    """Create a keystore with a new key and a certificate for 127.0.0.1 and localhost.

    The authority signs the certificate, which is valid for ``days`` days, starting ``days_ago`` days ago, and
    can also be used as a client certificate. The password of the keystore is `KEYSTORE_PASSWORD`. Raises
    KdeclareError ``sandbox-certificates``.
    """
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID

    authority_key, authority = _read_authority(files)
    key = _generate_key()
    usages = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    hosts = x509.SubjectAlternativeName([x509.IPAddress(ip_address(HOST)), x509.DNSName("localhost")])
    authority_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    builder = _start_certificate(_build_name(common_name), authority.subject, key, days, days_ago)
    for extension in (usages, hosts, authority_id):
        builder = builder.add_extension(extension, critical=False)
    certificate = _sign(builder, authority_key)
    _write(keystore, _build_keystore(b"server", key, certificate, authority))


def _generate_key() -> "EllipticCurvePrivateKey":
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _build_name(common_name: str) -> "Name":
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _build_signing_usage() -> "KeyUsage":
    from cryptography import x509

    return x509.KeyUsage(
        key_cert_sign=True,
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _start_certificate(
    subject: "Name", issuer: "Name", key: "EllipticCurvePrivateKey", days: int, days_ago: int = 0
) -> "CertificateBuilder":
    from cryptography import x509

    valid_from = datetime.now(UTC) - timedelta(days=days_ago)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(valid_from)
        .not_valid_after(valid_from + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _sign(builder: "CertificateBuilder", key: "EllipticCurvePrivateKey") -> "Certificate":
    from cryptography.hazmat.primitives import hashes

    return builder.sign(key, hashes.SHA256())


def _build_encryption() -> "KeySerializationEncryption":
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption

    return BestAvailableEncryption(KEYSTORE_PASSWORD.encode())


def _build_keystore(
    alias: bytes, key: "EllipticCurvePrivateKey", certificate: "Certificate", *issuers: "Certificate"
) -> bytes:
    from cryptography.hazmat.primitives.serialization import pkcs12

    return pkcs12.serialize_key_and_certificates(
        alias, key, certificate, issuers or None, _build_encryption()
    )


def _read_authority(files: AuthorityFiles) -> "tuple[EllipticCurvePrivateKey, Certificate]":
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.serialization import pkcs12

    try:
        key, certificate, _ = pkcs12.load_key_and_certificates(
            files.authority.read_bytes(), KEYSTORE_PASSWORD.encode()
        )
    except (OSError, ValueError) as problem:
        raise _build_error(f"{files.authority} could not be read: {problem}") from problem
    if not isinstance(key, EllipticCurvePrivateKey) or certificate is None:
        raise _build_error(f"{files.authority} does not contain the key and certificate of an authority.")
    return key, certificate


def _write(file: Path, content: bytes) -> None:
    temporary = file.with_name(file.name + ".new")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(content)
        temporary.replace(file)
    except OSError as problem:
        raise _build_error(f"{file} could not be written: {problem}") from problem


def _build_error(reason: str) -> KdeclareError:
    return KdeclareError(
        error(
            "sandbox-certificates",
            "Certificates could not be created",
            reason,
            hint="Check that the sandbox folder is writable, or delete the sandbox and start a new one.",
        )
    )
