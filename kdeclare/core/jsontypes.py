"""JSON as Python types, and its canonical text."""

import hashlib
import json
from typing import Any, TypeAlias

Json: TypeAlias = Any
"""None, bool, int, float, str, list of Json or dict of str to Json; plain data only."""


def canonical_json(value: Json) -> str:
    """One text for one value: sorted keys, no white space, UTF-8 kept as it is."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def fingerprint(value: Json) -> str:
    """SHA-256, in hex, of the canonical text."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()
