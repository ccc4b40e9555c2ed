"""The checksum that reveals accidental damage to journals and states. It does not protect against forgery."""

import hashlib


def compute_checksum(data: bytes) -> bytes:
    """Return the first 16 hexadecimal digits of the SHA-256 digest."""
    return hashlib.sha256(data).hexdigest()[:16].encode()
