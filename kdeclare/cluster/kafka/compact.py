"""Pieces of Kafka's flexible wire format (KIP-482): each reader gives a value and the position after it."""


def read_uvarint(data: bytes, pos: int) -> tuple[int, int]:
    """An unsigned varint and the position after it."""
    byte = data[pos]
    pos += 1
    if byte < 0x80:
        return byte, pos
    value, shift = byte & 0x7F, 7
    while True:
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, pos
        shift += 7


def read_string(data: bytes, pos: int) -> tuple[str | None, int]:
    """A compact nullable string: its length plus one, 0 for null."""
    size, pos = read_uvarint(data, pos)
    if size == 0:
        return None, pos
    end = pos + size - 1
    return data[pos:end].decode(), end


def skip_tags(data: bytes, pos: int) -> int:
    """The position after tagged fields, which this version does not know."""
    count, pos = read_uvarint(data, pos)
    for _ in range(count):
        _, pos = read_uvarint(data, pos)
        size, pos = read_uvarint(data, pos)
        pos += size
    return pos
