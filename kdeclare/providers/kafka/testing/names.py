"""Topic names: which are legal, and which are too much alike (org.apache.kafka.common.internals.Topic)."""

import re
from collections.abc import Iterable

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")
MAX_LENGTH = 249


def illegal(name: str) -> str | None:
    """What is wrong with a topic name, in Kafka's words; None if nothing is."""
    if not name:
        return "Topic name is invalid: the empty string is not allowed"
    if name in (".", ".."):
        return f"Topic name is invalid: '{name}' is not allowed"
    if len(name) > MAX_LENGTH:
        return (
            f"Topic name is invalid: the length of '{name}' is longer than the max allowed length "
            f"{MAX_LENGTH}"
        )
    if not _LEGAL.fullmatch(name):
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than ASCII "
            "alphanumerics, '.', '_' and '-'"
        )
    return None


def collision(name: str, existing: Iterable[str]) -> str | None:
    """Another existing topic whose metrics would have the same name (``.`` and ``_`` are one)."""
    same = name.replace(".", "_")
    if "." not in name and "_" not in name:
        return None
    return next(
        (other for other in sorted(existing) if other != name and other.replace(".", "_") == same), None
    )
