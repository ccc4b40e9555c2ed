"""Prefixes of broker config keys: ``listener.name.<listener>.`` and, for SASL, ``<mechanism>.`` after it.

Brokers take and store any key with such a prefix; they read only those that Kafka documents for it
(AbstractConfig.valuesWithPrefixOverride, SaslChannelBuilder, SocketServer). Listeners and mechanisms are in
lower case there: a key with an upper-case one is never read.
"""

import re
from collections.abc import Collection, Iterator

_LISTENER = re.compile(r"(?P<prefix>listener\.name\.[^.]+\.)(?P<rest>.+)")
_MECHANISM = re.compile(r"(?P<prefix>[a-z0-9_-]+\.)(?P<rest>.+)")

CLUSTER_WIDE_WITH_LISTENER = frozenset(
    {"max.connection.creation.rate", "max.connections", "num.network.threads"}
)
"""With a listener's prefix, the only keys that the cluster-wide default takes (DynamicBrokerConfig)."""

_WITH_LISTENER = CLUSTER_WIDE_WITH_LISTENER | {"connections.max.reauth.ms", "principal.builder.class"}
_OF_ALL_MECHANISMS = ("sasl.enabled.mechanisms", "sasl.mechanism.")


def strip_prefix(key: str, known: Collection[str]) -> str | None:
    """The key of ``known`` that ``key`` is for one listener; None where Kafka documents no such key."""
    match = _LISTENER.fullmatch(key)
    if match is None or match["prefix"] != match["prefix"].lower():
        return None
    plain = match["rest"]
    if plain in known:
        return plain if plain in _WITH_LISTENER or plain.startswith(("ssl.", "sasl.")) else None
    match = _MECHANISM.fullmatch(plain)
    if match is None or match["rest"] not in known:
        return None
    return match["rest"] if _is_of_one_mechanism(match["rest"]) else None


def _is_of_one_mechanism(plain: str) -> bool:
    is_sasl = plain.startswith("sasl.") and not plain.startswith(_OF_ALL_MECHANISMS)
    return is_sasl or plain == "connections.max.reauth.ms"


def split_prefix(key: str) -> Iterator[tuple[str, str]]:
    """Each way to take ``key`` for a prefix, in lower case, and a key after it; the shortest prefix first."""
    match = _LISTENER.fullmatch(key)
    if match is None:
        return
    prefix, rest = match["prefix"].lower(), match["rest"]
    yield prefix, rest
    mechanism, dot, plain = rest.partition(".")
    if dot and plain:
        yield f"{prefix}{mechanism.lower()}.", plain
