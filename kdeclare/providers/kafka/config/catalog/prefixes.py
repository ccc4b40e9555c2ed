"""Prefixes of broker config keys: ``listener.name.<listener>.``, followed by ``<mechanism>.`` for SASL keys.

Brokers accept and store any key with such a prefix, but use only the keys that Kafka documents for the prefix
(AbstractConfig.valuesWithPrefixOverride, SaslChannelBuilder, SocketServer). Listener and mechanism must be in
lower case: brokers never use a key whose prefix contains upper-case letters.
"""

import re
from collections.abc import Collection, Iterator

_LISTENER = re.compile(r"(?P<prefix>listener\.name\.[^.]+\.)(?P<rest>.+)")
_MECHANISM = re.compile(r"(?P<prefix>[a-z0-9_-]+\.)(?P<rest>.+)")

CLUSTER_WIDE_WITH_LISTENER = frozenset(
    {"max.connection.creation.rate", "max.connections", "num.network.threads"}
)
"""The only keys that the cluster-wide default accepts with a listener prefix (DynamicBrokerConfig)."""

_LISTENER_SPECIFIC = CLUSTER_WIDE_WITH_LISTENER | {"connections.max.reauth.ms", "principal.builder.class"}
_MECHANISM_INDEPENDENT = ("sasl.enabled.mechanisms", "sasl.mechanism.")


def strip_prefix(key: str, catalog_keys: Collection[str]) -> str | None:
    """Return the catalog key that ``key`` sets for one listener; None if Kafka documents no such key."""
    match = _LISTENER.fullmatch(key)
    if match is None or match["prefix"] != match["prefix"].lower():
        return None
    base_key = match["rest"]
    if base_key in catalog_keys:
        return base_key if base_key in _LISTENER_SPECIFIC or base_key.startswith(("ssl.", "sasl.")) else None
    match = _MECHANISM.fullmatch(base_key)
    if match is None or match["rest"] not in catalog_keys:
        return None
    return match["rest"] if _is_mechanism_specific(match["rest"]) else None


def _is_mechanism_specific(base_key: str) -> bool:
    is_sasl = base_key.startswith("sasl.") and not base_key.startswith(_MECHANISM_INDEPENDENT)
    return is_sasl or base_key == "connections.max.reauth.ms"


def split_prefix(key: str) -> Iterator[tuple[str, str]]:
    """Yield each way to split ``key`` into a lower-case prefix and a key, shortest prefix first."""
    match = _LISTENER.fullmatch(key)
    if match is None:
        return
    prefix, rest = match["prefix"].lower(), match["rest"]
    yield prefix, rest
    mechanism, dot, base_key = rest.partition(".")
    if dot and base_key:
        yield f"{prefix}{mechanism.lower()}.", base_key
