"""Connector configs: secrets, masked values, and the keys that have their own fields in the spec."""

import re
from collections.abc import Collection, Mapping

from kdeclare.core.jsontypes import JsonValue, as_object, as_text, as_text_or_none
from kdeclare.core.secrets.scrubber import SCRUBBER
from kdeclare.core.secrets.secret_hashes import hash_like, mark_hash, mark_value
from kdeclare.core.secrets.secret_refs import SENSITIVE_MASK, Referenced, Secret, SecretRef, is_sensitive_key
from kdeclare.core.whole_number import parse_whole_number
from kdeclare.providers.connect.worker_state import is_placeholder

CONNECTOR = "Connector"
"""The name of the kind, which is also the type of connectors in footprints and snapshots."""

NAME = "name"
CLASS = "connector.class"
TASKS_MAX = "tasks.max"
FIELD_KEYS = frozenset({NAME, CLASS, TASKS_MAX})
"""The keys whose values are fields of the manifest (``name``, ``class`` and ``tasksMax``)."""

CONFIG_FIELD_PREFIX = "config."
STATE_PATH = "state"
"""The path of the state of a connector in changes."""
_PATHS = {CLASS: "class", TASKS_MAX: "tasksMax"}
_KEYS = {path: key for key, path in _PATHS.items()}

Setting = str | Secret
"""A declared value. The value of a kdeclare reference is always a secret."""

MASKED = "********"
"""The mask in place of a live value that kdeclare cannot read, such as a secret in a snapshot."""

_MASK = re.compile(r"[*•]+")
_PLACEHOLDER = re.compile(r"\$\{[^{}]*?:[^{}]*?\}")
_JAAS_OPTION = re.compile(r"""([\w.-]+)\s*=\s*("[^"]*"|'[^']*'|[^\s;]*)""")


def find_path(key: str) -> str:
    """Return the path of a config key in changes and views: ``class``, ``tasksMax`` or ``config.KEY``."""
    return _PATHS.get(key, CONFIG_FIELD_PREFIX + key)


def find_key(path: str) -> str | None:
    """Return the config key of a path; None if the path does not belong to the config."""
    if path.startswith(CONFIG_FIELD_PREFIX):
        return path.removeprefix(CONFIG_FIELD_PREFIX)
    return _KEYS.get(path)


def is_config_path(path: str) -> bool:
    """Whether a path belongs to a config key, such as ``config.topics``, and not to any other field."""
    return path.startswith(CONFIG_FIELD_PREFIX) and find_key(path) not in ("", *FIELD_KEYS)


def is_sensitive_setting(key: str) -> bool:
    """Whether the name of a config key indicates that its value must be hidden.

    The names of connector keys often differ from Kafka's, for example ``aws.secret.access.key``.
    """
    return key not in FIELD_KEYS and (is_sensitive_key(key) or key.lower().endswith("key"))


def is_public(key: str, text: str) -> bool:
    """Whether the value of a sensitive key can be displayed, because it contains only placeholders.

    Workers resolve the placeholders of Connect's config providers. A JAAS config is public if all of its
    secret options are placeholders.
    """
    if is_placeholder(text) or not text:
        return True
    if not key.endswith("jaas.config"):
        return False
    options = _JAAS_OPTION.findall(_PLACEHOLDER.sub("", text))
    return bool(options) and not any(
        is_sensitive_setting(name) and value.strip("\"'") for name, value in options
    )


def is_masked(text: str | None) -> bool:
    """Whether a live value consists only of mask characters, so that the real value is unknown."""
    return text is not None and _MASK.fullmatch(text) is not None


def is_hidden(key: str, text: str | None, password_keys: Collection[str] = ()) -> bool:
    """Whether a live value of this key must be hidden in output.

    password_keys: the keys that the connector class defines as PASSWORD.
    """
    return (
        text is not None
        and (is_sensitive_setting(key) or key in password_keys)
        and (is_masked(text) or not is_public(key, text))
    )


def to_shown_value(key: str, text: str | None) -> JsonValue:
    """Convert a value to the form in plans and policies: ``tasks.max`` is an integer if possible."""
    if key == TASKS_MAX and text is not None and parse_whole_number(text.removeprefix("-")) is not None:
        return int(text)
    return text


def redact_setting(key: str, text: str | None, password_keys: Collection[str] = ()) -> JsonValue:
    """Return a live value for display. If the value is hidden or unknown, return a mask instead."""
    if is_hidden(key, text, password_keys) or is_masked(text):
        return SENSITIVE_MASK
    return to_shown_value(key, text)


def mark_setting(
    location: str,
    key: str,
    text: str | None,
    stated: str | SecretRef | None,
    was: str | SecretRef | None,
    hidden_keys: Collection[str] = (),
) -> JsonValue:
    """Return a live value for views. A secret is replaced with a string that contains a part of its hash.

    location: the connector. stated: the value that the operation sets. was: the value that the operation
        replaces; for a secret, its reference and hash. hidden_keys: keys whose values are secrets although
        their names do not indicate it.

    If the operation replaces a secret with a plain value, or a plain value with a secret, both values are
    replaced with hashes, so that the views of the operation and of its inverse are the same.

    If the live value equals a plain value that the operation sets, it is not a secret, even if its key is
    hidden.

    A masked value is treated as if the operation had already set it, because its real value is unknown.
    Raises KdeclareError if the hashes were made with a secret key that is not available.
    """
    if stated is not None and (is_masked(text) or text == stated):
        return mark_stated(stated, was)
    known_hashes = [item.secret for item in (stated, was) if isinstance(item, SecretRef)]
    if text is not None and (known_hashes or is_hidden(key, text, hidden_keys)):
        return mark_value(location, key, text, known_hashes)
    return text


def mark_stated(stated: str | SecretRef, was: str | SecretRef | None) -> JsonValue:
    """Return the value that an operation sets, in the form that views use. was: see `mark_setting`."""
    if isinstance(stated, SecretRef):
        return mark_hash(stated.secret)
    stated_hash = hash_like(was.secret, stated) if isinstance(was, SecretRef) else None
    return stated if stated_hash is None else mark_hash(stated_hash)


def to_argument(setting: Setting) -> str | SecretRef:
    """Convert a declared value to the form that operation arguments and ownership records use."""
    return setting.ref if isinstance(setting, Secret) else setting


def redact_config(config: Mapping[str, str], password_keys: Collection[str] = ()) -> dict[str, JsonValue]:
    """Return a live config for display, without the keys that are fields of the manifest."""
    return {
        key: redact_setting(key, text, password_keys) for key, text in config.items() if key not in FIELD_KEYS
    }


def bind_setting(value: JsonValue) -> Setting:
    """Restore a declared value from plain data. If it is a secret, the result has a hash, but no value."""
    if isinstance(value, str):
        return value
    fields = as_object(value)
    return Secret("", as_text_or_none(fields["reference"]), as_text(fields["secret"]))


def parse_setting(key: str, text: str) -> Setting:
    """Return the declared value of a key. References and sensitive values are secrets."""
    if isinstance(text, Referenced):
        SCRUBBER.register(str(text))
        return Secret(str(text), text.reference)
    if not is_sensitive_setting(key) or is_public(key, text):
        return str(text)
    SCRUBBER.register(text)
    return Secret(text, None)
