"""Which Kafka a cluster's metadata is that of: finalized feature ``metadata.version`` (KIP-778).

What brokers run may be newer: the level is raised by hand once all of them have been upgraded.
"""

METADATA_VERSION = "metadata.version"

_SINCE = {
    "3.3": 4,
    "3.4": 8,
    "3.5": 9,
    "3.6": 12,
    "3.7": 15,
    "3.8": 20,
    "3.9": 21,
    "4.0": 22,
    "4.1": 26,
    "4.2": 28,
    "4.3": 30,
}
"""The first level of each release (org.apache.kafka.server.common.MetadataVersion of 4.3.1)."""
_UNKNOWN = 31


def release(level: int) -> str:
    """The release that brought a level of ``metadata.version``; of an unknown one, the level itself."""
    known = [name for name, first in _SINCE.items() if first <= level < _UNKNOWN]
    return known[-1] if known else f"{METADATA_VERSION} {level}"
