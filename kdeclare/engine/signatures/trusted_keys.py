"""Read the public keys whose signatures a project trusts.

The lines have the format of OpenSSH's public keys (``TYPE KEY NAME``) or of its allowed signers
(``NAME OPTIONS TYPE KEY``, see ssh-keygen(1)). Ed25519 keys can also be in PEM.
"""

import base64
import binascii
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from fnmatch import fnmatchcase

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.engine.signatures.sshsig import build_ed25519_blob, compute_fingerprint, find_key_type

_KEY_TYPE = re.compile(r"(ssh|sk-ssh|ecdsa|sk-ecdsa|rsa)-[a-z0-9-]+(@openssh\.com)?")
_OPTION = re.compile(r'(?P<name>[a-z-]+)(?:="(?P<value>[^"]*)")?(?:,|$)', re.IGNORECASE)
_WORD = re.compile(r'(?:"[^"]*"|[^\s"])+')
_TIME = re.compile(r"(\d{8})(?:(\d{4})(\d{2})?)?(Z?)")
_PEM = re.compile(r"-----BEGIN PUBLIC KEY-----.*?-----END PUBLIC KEY-----", re.DOTALL)


@dataclass(frozen=True, slots=True)
class TrustedKey:
    """A public key whose signatures are trusted.

    name: the owner, as the list of keys names it. public_key: the key in the encoding of the SSH protocol.
    valid_after, valid_before: the period in which the key is trusted. namespaces: patterns for the namespaces
    of signatures; None allows all.
    """

    name: str
    public_key: bytes
    valid_after: datetime | None = None
    valid_before: datetime | None = None
    namespaces: tuple[str, ...] | None = None

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the key."""
        return compute_fingerprint(self.public_key)

    def explain_refusal(self, namespace: str, now: datetime) -> str | None:
        """Return why the key cannot be used for this purpose at this time, or None if it can."""
        if self.namespaces is not None and not any(fnmatchcase(namespace, p) for p in self.namespaces):
            return f"is not trusted for the namespace '{namespace}'"
        if self.valid_after is not None and now < self.valid_after:
            return f"is valid only after {self.valid_after.isoformat()}"
        if self.valid_before is not None and now > self.valid_before:
            return f"expired at {self.valid_before.isoformat()}"
        return None


def parse_trusted_keys(text: str) -> tuple[TrustedKey, ...]:
    """Return the keys in a text.

    Raises ValueError, with the line and the reason, if the text is malformed.
    """
    blocks = [block[0] for block in _PEM.finditer(text)]
    keys = [_parse_pem(block) for block in blocks]
    rest = _PEM.sub(lambda block: "\n" * block[0].count("\n"), text)
    for number, line in enumerate(rest.splitlines(), start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            try:
                keys.append(_parse_line(line))
            except ValueError as problem:
                raise ValueError(f"line {number}: {problem}") from None
    return tuple(keys)


def _parse_line(line: str) -> TrustedKey:
    words = _WORD.findall(line)
    types = [number for number, word in enumerate(words) if _KEY_TYPE.fullmatch(word)]
    if not types or len(words) <= types[0] + 1 or types[0] > 2:
        raise ValueError("it is not an OpenSSH public key, such as 'ssh-ed25519 AAAA… name'")
    number = types[0]
    public_key = _decode_key(words[number], words[number + 1])
    if number == 0:
        name = " ".join(words[2:])
        return TrustedKey(name or compute_fingerprint(public_key), public_key)
    options = dict(_parse_options(words[1])) if number == 2 else {}
    return TrustedKey(
        words[0].strip('"'),
        public_key,
        _parse_time(options.get("valid-after")),
        _parse_time(options.get("valid-before")),
        tuple(options["namespaces"].split(",")) if "namespaces" in options else None,
    )


def _decode_key(key_type: str, text: str) -> bytes:
    if "-cert-" in key_type:
        raise ValueError("certificates are not supported; list the key itself")
    try:
        public_key = base64.b64decode(text, validate=True)
        is_of_type = find_key_type(public_key) == key_type
    except (binascii.Error, ValueError):
        is_of_type = False
    if not is_of_type:
        raise ValueError(f"the text after '{key_type}' is not a key of this type")
    return public_key


def _parse_options(text: str) -> Iterator[tuple[str, str]]:
    offset = 0
    while offset < len(text):
        option = _OPTION.match(text, offset)
        if option is None:
            raise ValueError(f"the options '{text}' are malformed")
        name = option["name"].lower()
        if name not in ("namespaces", "valid-after", "valid-before") or option["value"] is None:
            raise ValueError(f"the option '{name}' is not supported")
        yield name, option["value"]
        offset = option.end()


def _parse_time(text: str | None) -> datetime | None:
    """Parse a time in the format ``YYYYMMDD[HHMM[SS]][Z]`` of ssh-keygen. Without ``Z``, it is local time."""
    if text is None:
        return None
    parts = _TIME.fullmatch(text)
    if parts is None:
        raise ValueError(f"'{text}' is not a time of the form YYYYMMDD[HHMM[SS]][Z]")
    day, minute, second, zone = parts.groups()
    moment = datetime.strptime(day + (minute or "0000") + (second or "00") + "+0000", "%Y%m%d%H%M%S%z")
    return moment if zone else moment.replace(tzinfo=None).astimezone(UTC)


def _parse_pem(text: str) -> TrustedKey:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(text.encode())
    except (ValueError, UnsupportedAlgorithm):
        raise ValueError("a public key in PEM format is malformed") from None
    if not isinstance(key, Ed25519PublicKey):
        raise ValueError("a public key in PEM format is not an Ed25519 key; list it in OpenSSH format")
    public_key = build_ed25519_blob(key.public_bytes_raw())
    return TrustedKey(compute_fingerprint(public_key), public_key)
