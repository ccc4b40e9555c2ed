"""The config keys that Kafka knows: type, default and how they can be changed.

`topic.json` and `broker.json` are written by `scripts/generate_catalog.py` from a running broker. They
serve offline checks only; a live cluster's own word wins over them.
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.provider.provider import TypedSetting
from kdeclare.providers.kafka.config.catalog.prefixes import CLUSTER_WIDE_WITH_LISTENER, strip_prefix
from kdeclare.providers.kafka.ids import ConfigScope

_INTEGER_TYPES = frozenset({"INT", "SHORT", "LONG"})


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """One config key.

    type: ConfigDef.Type by name. default: the key's own default, None where it has none.
    mode: of a broker key ``read-only``, ``per-broker``, ``per-listener`` (on a broker id, with a listener's
    prefix) or ``cluster-wide``; of a topic's ``topic``.
    """

    type: str
    default: str | None
    mode: str

    @property
    def is_list(self) -> bool:
        """Whether APPEND and SUBTRACT make sense."""
        return self.type == "LIST"

    @property
    def is_secret(self) -> bool:
        """Whether Kafka never shows the value."""
        return self.type == "PASSWORD"


@dataclass(frozen=True, slots=True)
class Catalog:
    """The keys of one scope by name."""

    scope: ConfigScope
    keys: Mapping[str, KeyInfo]

    @property
    def can_hide_unknown_keys(self) -> bool:
        """Whether Kafka takes keys that it does not know, and then shows no value of theirs to anybody."""
        return self.scope is ConfigScope.BROKER

    def get(self, key: str) -> KeyInfo | None:
        """What is known of ``key``, also with the prefix of a listener and of a mechanism.

        See `kdeclare.providers.kafka.config.catalog.prefixes`.
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
        """Whether Kafka never shows the value; an unknown key counts if it looks like such a key."""
        info = self.get(key)
        if info is not None:
            return info.is_secret
        secrets = (name for name, known in self.keys.items() if known.is_secret)
        return "password" in key.lower() or any(key.lower().endswith(f".{name}") for name in secrets)

    def get_default_elements(self, key: str) -> tuple[str, ...]:
        """Where APPEND and SUBTRACT start on a key that is unset: its own default (KIP-339)."""
        info = self.get(key)
        return split_list(info.default) if info and info.default else ()

    def normalize(self, key: str, text: str) -> str:
        """The one text for a value: Kafka describes what it parsed, not the text that it was given."""
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
        """Whether two texts are one value."""
        return a == b or self.normalize(key, a) == self.normalize(key, b)


def split_list(text: str) -> tuple[str, ...]:
    """Elements of a LIST value, untrimmed as Kafka matches them; empty ones are dropped."""
    return tuple(part for part in text.split(",") if part)


@cache
def load_catalog(scope: ConfigScope) -> Catalog:
    """The catalogue of one scope, read once."""
    text = files(__name__).joinpath(f"{scope.lower()}.json").read_text()
    keys = {
        name: KeyInfo(item["type"], item["default"], item["mode"])
        for name, item in json.loads(text)["keys"].items()
    }
    return Catalog(scope, keys)


def is_likely_secret_key(key: str) -> bool:
    """Whether Kafka keeps the value of a key secret; of a key that is in no scope, if it looks like one."""
    infos = [info for scope in ConfigScope if (info := load_catalog(scope).get(key))]
    if infos:
        return any(info.is_secret for info in infos)
    return any(load_catalog(scope).may_be_secret(key) for scope in ConfigScope)


def is_secret_setting(setting: TypedSetting) -> bool | None:
    """Whether Kafka keeps the value of a typed key secret, in any scope; None for a key that is in none.

    Arguments of commands are names, and no settings.
    """
    if not setting.option:
        return None
    infos = [info for scope in ConfigScope if (info := load_catalog(scope).get(setting.key))]
    return any(info.is_secret for info in infos) if infos else None
