"""Keys that are made for one test."""

import subprocess
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)


def make_openssh_key(file: Path, key_type: str = "ed25519", passphrase: str = "") -> str:
    """Make a key with ssh-keygen, and return the line of its public key."""
    options = ["-b", "2048"] if key_type == "rsa" else []
    command = ["ssh-keygen", "-q", "-t", key_type, *options, "-N", passphrase, "-C", "alice", "-f", str(file)]
    subprocess.run(command, check=True)
    return file.with_suffix(".pub").read_text().strip()


def make_pem_key(file: Path, passphrase: str | None = None) -> str:
    """Write an Ed25519 key in PKCS#8, and return its public key in PEM."""
    key = Ed25519PrivateKey.generate()
    encryption = NoEncryption() if passphrase is None else BestAvailableEncryption(passphrase.encode())
    file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption))
    public_key = key.public_key()
    return public_key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
