"""The few fields of a certificate that people ask for, read from its DER (RFC 5280, X.690).

The standard library decodes a certificate only once it has verified it, and an expired or foreign one is
just what is looked for here.
"""

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from kdeclare.providers.connect.worker_state import Certificate

_SEQUENCE = 0x30
_VERSION = 0xA0
_UTC_TIME = 0x17
_BMP_STRING = 0x1E
_UTF8_STRING = 0x0C
_NAMES = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_ESCAPED = frozenset(',+"\\<>;')


class _Element(NamedTuple):
    tag: int
    content: bytes


def certificate(der: bytes) -> Certificate:
    """The certificate. Raises ValueError for what is none."""
    try:
        return _read(der)
    except (IndexError, StopIteration, UnicodeDecodeError) as e:
        raise ValueError("not a certificate") from e


def _read(der: bytes) -> Certificate:
    whole = _only(der, _SEQUENCE)
    fields = list(_elements(next(_elements(whole)).content))
    if fields[0].tag == _VERSION:
        del fields[0]
    _serial, _algorithm, issuer, validity, subject, *_ = (field.content for field in fields)
    before, after = (_time(element) for element in _elements(validity))
    return Certificate(hashlib.sha256(der).hexdigest(), _name(subject), _name(issuer), before, after)


def _only(data: bytes, tag: int) -> bytes:
    first = next(_elements(data))
    if first.tag != tag:
        raise ValueError("not a certificate")
    return first.content


def _elements(data: bytes) -> Iterator[_Element]:
    """The elements of a constructed value, one after the other."""
    at = 0
    while at < len(data):
        tag, length, at = data[at], data[at + 1], at + 2
        if length & 0x80:
            octets = length & 0x7F
            length, at = int.from_bytes(data[at : at + octets], "big"), at + octets
        if at + length > len(data):
            raise ValueError("it is cut short")
        yield _Element(tag, data[at : at + length])
        at += length


def _time(element: _Element) -> datetime:
    text = element.content.decode("ascii")
    if element.tag == _UTC_TIME:  # two digits of the year, from 1950 to 2049
        text = ("19" if text[:2] >= "50" else "20") + text
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)


def _name(data: bytes) -> str:
    """A distinguished name as RFC 2253 writes it: the last part first."""
    parts = []
    for together in _elements(data):
        pairs = []
        for pair in _elements(together.content):
            kind, value = _elements(pair.content)
            oid = _oid(kind.content)
            pairs.append(f"{_NAMES.get(oid, oid)}={_escaped(_text(value))}")
        parts.append("+".join(pairs))
    return ",".join(reversed(parts))


def _text(element: _Element) -> str:
    encoding = {_UTF8_STRING: "utf-8", _BMP_STRING: "utf-16-be"}.get(element.tag, "latin-1")
    return element.content.decode(encoding)


def _escaped(text: str) -> str:
    return "".join(f"\\{letter}" if letter in _ESCAPED else letter for letter in text)


def _oid(data: bytes) -> str:
    numbers, number = [], 0
    for octet in data:
        number = number << 7 | octet & 0x7F
        if not octet & 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))
