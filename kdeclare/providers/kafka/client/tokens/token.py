"""Tokens for SASL OAUTHBEARER, and the requests that installed token providers receive."""

import base64
import json
import math
import time
from collections.abc import Mapping
from dataclasses import field
from typing import NamedTuple

from kdeclare.core.frozen_dataclass import dataclass

DEFAULT_LIFETIME_S = 300.0
"""The lifetime, in seconds, that kdeclare assumes for a token that does not state its lifetime."""
MAX_TOKEN_BYTES = 1 << 20
"""The maximum length, in bytes, of a token or of a document that contains a token."""


class Token(NamedTuple):
    """A token, and its remaining lifetime in seconds."""

    text: str
    lifetime_s: float


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """A request for a token, which kdeclare passes to an installed token provider.

    options: the properties that start with ``kdeclare.token.provider.``, without this prefix.
    servers: the bootstrap addresses, as ``host:port``.
    """

    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    servers: tuple[str, ...] = ()


def read_jwt_lifetime_s(text: str) -> float | None:
    """Return the remaining lifetime of a JWT (RFC 7519) in seconds; None if the token does not state it.

    The signature is not verified: only brokers decide whether a token is valid.
    """
    parts = text.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        expires_at_s = float(claims["exp"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    return max(0.0, expires_at_s - time.time()) if math.isfinite(expires_at_s) else None


def parse_token(content: str) -> Token:
    """Parse the output of a command: a token, or JSON with ``access_token`` and ``expires_in`` (RFC 6749).

    Raises ValueError with a reason that does not contain the token.
    """
    text = content.strip()
    if len(text) > MAX_TOKEN_BYTES:
        raise ValueError(f"the output is longer than {MAX_TOKEN_BYTES} characters")
    if text.startswith("{"):
        return parse_token_document(text)
    if not text:
        raise ValueError("the output is empty")
    if len(text.split()) > 1:
        raise ValueError("the output is neither one token nor JSON with an access_token")
    lifetime_s = read_jwt_lifetime_s(text)
    return Token(text, DEFAULT_LIFETIME_S if lifetime_s is None else lifetime_s)


def parse_token_document(content: str | bytes) -> Token:
    """Parse JSON with ``access_token`` and optionally ``expires_in``, in seconds. Raises ValueError."""
    try:
        document = json.loads(content)
        text, stated_s = document["access_token"], document.get("expires_in")
        lifetime_s = float(stated_s) if stated_s else None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        raise ValueError("the response is not JSON with an access_token") from None
    if not isinstance(text, str) or not text.strip():
        raise ValueError("the access_token in the response is empty or not a string")
    if lifetime_s is None or not math.isfinite(lifetime_s):
        lifetime_s = read_jwt_lifetime_s(text)
    return Token(text, DEFAULT_LIFETIME_S if lifetime_s is None else lifetime_s)
