"""Convert topic ids (KIP-516) to strings."""

from uuid import UUID

_ID_BYTES = 16
_NO_ID = UUID(int=0)
"""The id in responses for a topic without an id, which was created before Kafka 2.8."""
_NO_ID_BYTES = _NO_ID.bytes


def format_topic_id(topic_id: object) -> str:
    """Return a topic's id as a string; empty if the topic has no id."""
    return str(topic_id) if isinstance(topic_id, UUID) and topic_id != _NO_ID else ""


def read_topic_id(data: bytes, pos: int) -> tuple[str, int]:
    """Return the same string as `format_topic_id` for the id at this position, and the position after it."""
    end = pos + _ID_BYTES
    raw_id = data[pos:end]
    if raw_id == _NO_ID_BYTES:
        return "", end
    digits = raw_id.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}", end
