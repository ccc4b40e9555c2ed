"""The catalog of Kafka's config keys: types, defaults, and how each key can be changed.

`scripts/generate_catalog.py` reads the keys from a running broker and writes one JSON file for each scope.
The catalog is for offline checks: data from a live cluster takes precedence.
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.providers.kafka.config.catalog.prefixes import CLUSTER_WIDE_WITH_LISTENER, strip_prefix
from kdeclare.providers.kafka.ids import ConfigScope

_INTEGER_TYPES = frozenset({"INT", "SHORT", "LONG"})


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """One config key.

    type: the name of the ConfigDef.Type.
    default: Kafka's built-in default (DEFAULT_CONFIG), regardless of broker configs; None if there is none.
    mode: for a broker key, ``read-only``, ``cluster-wide``, ``per-broker``, or ``per-listener`` (only for one
        broker, with a listener prefix). For keys of other scopes: ``topic``, ``group`` or ``client-metrics``.
    """

    type: str
    default: str | None
    mode: str

    @property
    def is_list(self) -> bool:
        """Whether the value is a list."""
        return self.type == "LIST"

    @property
    def can_be_patched(self) -> bool:
        """Whether the key supports APPEND and SUBTRACT. Kafka refuses them for lists of client metrics."""
        return self.is_list and self.mode != "client-metrics"

    @property
    def is_secret(self) -> bool:
        """Whether Kafka always hides the value."""
        return self.type == "PASSWORD"


@dataclass(frozen=True, slots=True)
class Catalog:
    """The config keys of one scope (topics, brokers, groups or client metrics subscriptions), by name."""

    scope: ConfigScope
    keys: Mapping[str, KeyInfo]

    @property
    def can_hide_unknown_keys(self) -> bool:
        """Whether resources of this scope accept unknown keys, whose values Kafka hides."""
        return self.scope is ConfigScope.BROKER

    def get(self, key: str) -> KeyInfo | None:
        """Return the entry for ``key``; None if the key is unknown.

        The key can have a listener prefix and a mechanism prefix; see
        `kdeclare.providers.kafka.config.catalog.prefixes`.
        """
        info = self.keys.get(key)
        if info is not None or self.scope is not ConfigScope.BROKER:
            return info
        base_key = strip_prefix(key, self.keys)
        if base_key is None:
            return None
        base_info = self.keys[base_key]
        mode = "cluster-wide" if base_key in CLUSTER_WIDE_WITH_LISTENER else "per-broker"
        return KeyInfo(base_info.type, base_info.default, mode)

    def may_be_secret(self, key: str) -> bool:
        """Return whether Kafka hides the value of a key.

        For an unknown key, return whether its name looks sensitive.
        """
        info = self.get(key)
        if info is not None:
            return info.is_secret
        secrets = (name for name, known in self.keys.items() if known.is_secret)
        return "password" in key.lower() or any(key.lower().endswith(f".{name}") for name in secrets)

    def get_default_elements(self, key: str) -> tuple[str, ...]:
        """Return the default elements of a list key.

        If the key is unset, APPEND and SUBTRACT start from these elements (KIP-339).
        """
        info = self.get(key)
        return split_list(info.default) if info and info.default else ()

    def normalize(self, key: str, text: str) -> str:
        """Convert a value to the form in which DescribeConfigs returns it, such as ``true`` for ``TRUE``."""
        info = self.get(key)
        try:
            if info is None:
                return text
            if info.type == "BOOLEAN":
                return text.strip().lower()
            if info.type in _INTEGER_TYPES:
                return str(int(text))
            return repr(float(text)) if info.type == "DOUBLE" else text
        except ValueError:
            return text

    def is_same_value(self, key: str, a: str, b: str) -> bool:
        """Return whether Kafka treats two strings as the same value."""
        return a == b or self.normalize(key, a) == self.normalize(key, b)


def split_list(text: str) -> tuple[str, ...]:
    """Split a LIST value into its non-empty elements. Keep spaces, because Kafka matches elements exactly."""
    return tuple(part for part in text.split(",") if part)


@cache
def load_catalog(scope: ConfigScope) -> Catalog:
    """Return the catalog of one scope. The file is read only once."""
    text = files(__name__).joinpath(f"{scope.lower()}.json").read_text()
    keys = {
        name: KeyInfo(item["type"], item["default"], item["mode"])
        for name, item in json.loads(text)["keys"].items()
    }
    return Catalog(scope, keys)


def is_likely_secret_key(key: str) -> bool:
    """Return whether Kafka hides the value of a key.

    For an unknown key, return whether its name looks sensitive.
    """
    infos = [info for scope in ConfigScope if (info := load_catalog(scope).get(key))]
    if infos:
        return any(info.is_secret for info in infos)
    return any(load_catalog(scope).may_be_secret(key) for scope in ConfigScope)


def is_secret_config(key: str) -> bool | None:
    """Return whether Kafka hides the value of a key in at least one scope; None for an unknown key."""
    infos = [info for scope in ConfigScope if (info := load_catalog(scope).get(key))]
    return any(info.is_secret for info in infos) if infos else None
