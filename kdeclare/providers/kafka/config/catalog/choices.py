"""The values of config keys that take one of a few words (the validators in Kafka's TopicConfig and its kin).

No broker tells them, so they are written down here, for those who type; Kafka itself judges what is typed.
"""

from collections.abc import Mapping

from kdeclare.providers.kafka.config.catalog import Catalog

_CLEANUP = ("delete", "compact")
_COMPRESSION = ("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd")
_STORE_TYPES = ("JKS", "PKCS12", "PEM")
_TIMESTAMP = ("CreateTime", "LogAppendTime")
_TLS = ("TLSv1.2", "TLSv1.3")

_WORDS: Mapping[str, tuple[str, ...]] = {
    "cleanup.policy": _CLEANUP,
    "compression.type": _COMPRESSION,
    "log.cleanup.policy": _CLEANUP,
    "log.message.timestamp.type": _TIMESTAMP,
    "message.timestamp.type": _TIMESTAMP,
    "sasl.enabled.mechanisms": ("GSSAPI", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"),
    "ssl.client.auth": ("required", "requested", "none"),
    "ssl.enabled.protocols": _TLS,
    "ssl.keystore.type": _STORE_TYPES,
    "ssl.protocol": _TLS,
    "ssl.truststore.type": _STORE_TYPES,
}
_LISTENER_PREFIXED = tuple(f".{key}" for key in _WORDS if key.startswith(("sasl.", "ssl.")))


def choices(catalog: Catalog, key: str) -> tuple[str, ...]:
    """The values that a key can have, as words; of a list, its elements. Nothing where they are not few."""
    info = catalog.get(key)
    if info is None:
        return ()
    if info.type == "BOOLEAN":
        return ("true", "false")
    plain = next((end[1:] for end in _LISTENER_PREFIXED if key.endswith(end)), key)
    return _WORDS.get(plain, ())
