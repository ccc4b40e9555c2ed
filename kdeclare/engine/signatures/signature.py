"""The signature of a plan file: its fields, the message that it covers, and the text of a signed file.

The signature covers the id of the plan and the two times in the file. The id is a hash of the plan's content,
so the signature covers everything in the file except the fields ``observations`` and ``unmanaged``, which are
only displayed. For all types of keys, the signature has the format of ``ssh-keygen -Y sign`` (OpenSSH,
PROTOCOL.sshsig).
"""

import base64
import binascii
import json
import re
from collections.abc import Callable
from datetime import datetime

from kdeclare.core.clock import format_second
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue, as_object, as_text, dump_canonical_json, parse_json
from kdeclare.engine.signatures.sshsig import compute_fingerprint, parse_sshsig

NAMESPACE = "kdeclare-plan"
"""The namespace of the signatures. Signatures for other purposes have other namespaces."""
FORMAT = "sshsig"

SIGNING_KEY_VARIABLE = "KDECLARE_SIGNING_KEY"
"""The environment variable for the key that signs plans, in CI jobs."""
PASSPHRASE_VARIABLE = "KDECLARE_SIGNING_PASSPHRASE"
"""The environment variable with the passphrase of the signing key."""

_MESSAGE_HEADER = "kdeclare plan signature v1\n"
_FIELDS = frozenset({"format", "key", "signed_at", "value"})
_HEADER = re.compile(r'\{\n"format_version": [^\n]*,\n"plan_id": [^\n]*,\n"created_at": [^\n]*,\n')
"""The first lines of a plan file, after which the signature is inserted."""


@dataclass(frozen=True, slots=True)
class Signature:
    """The field ``signature`` of a plan file.

    key: the fingerprint of the public key, as OpenSSH writes it. signed_at: the time in UTC, according to
    the signer.
    value: the signature with its public key, in OpenSSH format.
    """

    key: str
    signed_at: str
    value: bytes


@dataclass(frozen=True, slots=True)
class SignedContent:
    """The data that the signature of a plan file covers, and the signature itself.

    signature: None if the plan is not signed.
    """

    plan_id: str
    created_at: JsonValue
    signature: Signature | None = None


SignMessage = Callable[[bytes], bytes]
"""A function that signs a message, and returns the signature with its public key in OpenSSH format.

The function raises KdeclareError if it cannot sign the message.
"""


def build_message(plan_id: str, created_at: JsonValue, signed_at: str) -> bytes:
    """Return the message that the signature of a plan covers."""
    covered = {"plan_id": plan_id, "created_at": created_at, "signed_at": signed_at}
    return (_MESSAGE_HEADER + dump_canonical_json(covered) + "\n").encode("utf-8", "surrogatepass")


def parse_signature(raw: JsonValue) -> Signature:
    """Parse the field ``signature`` of a plan file.

    Raises ValueError, with the reason, if the signature is malformed.
    """
    try:
        document = as_object(raw)
        if document.keys() != _FIELDS or document["format"] != FORMAT:
            raise ValueError(f"it does not have exactly the fields {', '.join(sorted(_FIELDS))}")
        key, signed_at = as_text(document["key"]), as_text(document["signed_at"])
        text = as_text(document["value"])
        value = base64.b64decode(text, validate=True)
    except (TypeError, binascii.Error) as problem:
        raise ValueError(str(problem)) from None
    if base64.b64encode(value).decode() != text:  # the last character could have unused bits
        raise ValueError("its value is not canonical base64")
    if compute_fingerprint(parse_sshsig(value).public_key) != key:
        raise ValueError("it was made with a different key than the one that it names")
    return Signature(key, signed_at, value)


def sign_plan_text(text: str, sign: SignMessage, now: datetime) -> tuple[str, Signature]:
    """Return the text of a plan file with a signature, and the signature.

    Raises KdeclareError if signing fails.

    text: the text of a file that kdeclare wrote and that has no signature.
    """
    header = _HEADER.match(text)
    if header is None:
        raise ValueError("not the text of a plan file")
    fields = as_object(parse_json(header[0].rstrip(",\n") + "}"))
    signed_at = format_second(now)
    value = sign(build_message(as_text(fields["plan_id"]), fields["created_at"], signed_at))
    signature = Signature(compute_fingerprint(parse_sshsig(value).public_key), signed_at, value)
    document = {
        "format": FORMAT,
        "key": signature.key,
        "signed_at": signed_at,
        "value": base64.b64encode(value).decode(),
    }
    line = f'"signature": {json.dumps(document, sort_keys=True, separators=(",", ":"))},\n'
    return header[0] + line + text[header.end() :], signature
