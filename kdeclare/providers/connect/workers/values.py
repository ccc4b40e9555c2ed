"""Values of worker configs: which are secret, and what of those may be shown and kept.

A placeholder of Connect's own config providers (``${file:/etc/secrets:key}``) is no secret: it stands in the
topic as it is, and each worker resolves it (KIP-297). Any other value of a password is one.
"""

import re
from collections.abc import Sequence

from kdeclare.core.jsontypes import Json
from kdeclare.core.provider import TypedSetting
from kdeclare.core.secret_hashes import is_mark, mark_hash, mark_value
from kdeclare.core.secrets import SHOWN, SecretRef, is_sensitive_key

_PLACEHOLDER = re.compile(r"\$\{[^{}]*?:(?:[^{}]*?:)?[^{}]*?\}")
"""ConfigTransformer.DEFAULT_PATTERN: ``${provider:[path:]key}``."""
_COMMAND = ("connect", "worker-config")


def is_placeholder(text: str) -> bool:
    """Whether a text is placeholders and nothing else."""
    return bool(text) and not _PLACEHOLDER.sub("", text)


def is_secret_setting(setting: TypedSetting) -> bool | None:
    """Whether the value of a typed key is secret to workers; None where it is about something else.

    The keys of workers are arguments. Placeholders are no secrets.
    """
    if setting.option or setting.command[:2] != _COMMAND:
        return None
    return is_sensitive_key(setting.key) and not is_placeholder(setting.value)


def shown(key: str, raw: str | None) -> Json:
    """A raw value for people."""
    if raw is None or not is_sensitive_key(key) or is_placeholder(raw):
        return raw
    return SHOWN


def kept(place: str, key: str, raw: str | None, known: Sequence[str]) -> Json:
    """A raw value as views hold it: of a secret, a mark that tells it from other values.

    place: where it stands. known: hashes of what it may be, whose marks are to be the same.
    Raises KdeclareError where they were made with a key, and none is given.
    """
    if raw is None or shown(key, raw) != SHOWN:
        return raw
    return mark_value(place, key, raw, known)


def kept_of(value: str | SecretRef | None) -> Json:
    """The same of what an operation is to set."""
    return mark_hash(value.secret) if isinstance(value, SecretRef) else value


def shown_of(kept_value: Json) -> Json:
    """What a view holds, for people."""
    return SHOWN if is_mark(kept_value) else kept_value
