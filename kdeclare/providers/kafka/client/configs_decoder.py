"""DescribeConfigs responses, kept down to the entries that were asked for.

Describing a topic in full gives some 35 entries, of which a plan wants the few that are set on the
topic itself. All others are the same bytes for every topic of a response: so they are compared with
those of an earlier topic and skipped, a whole run of them at once, instead of being decoded.
"""

import sys
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Any, NamedTuple

from kdeclare.core.frozen import dataclass
from kdeclare.providers.kafka.client.wire_format import (
    RawResponse,
    decode_all,
    read_count,
    read_end,
    read_string,
    skip_tags,
)
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import ConfigEntry, ConfigSource, ConfigType
from kdeclare.providers.kafka.port import ConfigQuery

RESOURCE_TYPES = {ConfigScope.TOPIC: 2, ConfigScope.BROKER: 4}
"""org.apache.kafka.common.config.ConfigResource.Type"""

_SCOPES = {code: scope for scope, code in RESOURCE_TYPES.items()}
_SOURCES = {
    1: ConfigSource.TOPIC,
    2: ConfigSource.BROKER,
    3: ConfigSource.CLUSTER,
    4: ConfigSource.STATIC,
    5: ConfigSource.DEFAULT,
    6: ConfigSource.BROKER_LOGGER,
}
"""org.apache.kafka.common.requests.DescribeConfigsResponse.ConfigSource"""

# The fewest bytes of what is repeated: fixed fields, a byte for each text, list and set of tags.
_RESULT_BYTES = 7
_ENTRY_BYTES = 9
_SYNONYM_BYTES = 4

_MOST_ENTRIES = 2000
"""A topic has some 35 entries, a broker some 350."""

_MOST_OTHERS = 8
"""Values of one key that are recognised: more of them take longer to compare than one to decode."""

_TYPES = {7: ConfigType.LIST, 9: ConfigType.PASSWORD}
"""org.apache.kafka.common.requests.DescribeConfigsResponse.ConfigType"""


@dataclass(frozen=True, slots=True)
class Described:
    """The answer for one resource. ``error_code`` 0 is success."""

    resource: ConfigResource
    error_code: int
    message: str | None
    entries: Mapping[str, ConfigEntry]


class _Synonym(NamedTuple):
    """One layer of an entry, named as kafka-python names it; the strongest layer comes first."""

    name: str
    value: str | None
    source: int


class _Entry(NamedTuple):
    """One entry as decoded: its key, what it says, and whether it is set on the resource itself."""

    key: str
    value: ConfigEntry
    own: bool


def read_configs(response: Any, queries: Mapping[ConfigResource, ConfigQuery]) -> list[Described]:
    """Decode a response to ``queries``, from bytes or from kafka-python's own objects.

    Raises MalformedResponse, also for an answer about what was not asked.
    """
    if isinstance(response, RawResponse):
        return decode_all(lambda: _from_bytes(response.body, queries))
    return list(_from_objects(response, queries))


def _own_source(resource: ConfigResource) -> ConfigSource:
    """Where an entry comes from that is set on the resource itself."""
    if resource.scope is ConfigScope.TOPIC:
        return ConfigSource.TOPIC
    return ConfigSource.BROKER if resource.name else ConfigSource.CLUSTER


def _beneath(key: str, source: ConfigSource, synonyms: Iterable[Any]) -> str | None:
    """What would hold without an override on a broker id. Other keys can mean other units: not those."""
    if source is not ConfigSource.BROKER:
        return None
    layers = (s.value for s in synonyms if s.name == key and _SOURCES.get(s.source) is not source)
    return next(layers, None)


def _from_objects(response: Any, queries: Mapping[ConfigResource, ConfigQuery]) -> Iterable[Described]:
    for result in response.results:
        resource = ConfigResource(_SCOPES[result.resource_type], result.resource_name)
        query, own = queries[resource], _own_source(resource)
        entries = {}
        for config in result.configs or ():
            source = _SOURCES.get(config.config_source, ConfigSource.UNKNOWN)
            if config.name in query.keys or (query.overrides and source is own):
                entries[config.name] = ConfigEntry(
                    config.value,
                    source,
                    _TYPES.get(config.config_type, ConfigType.SCALAR),
                    config.is_sensitive,
                    config.read_only,
                    _beneath(config.name, source, config.synonyms or ()),
                )
        yield Described(resource, result.error_code, result.error_message, entries)


def _from_bytes(data: bytes, queries: Mapping[ConfigResource, ConfigQuery]) -> Iterable[Described]:
    patterns: dict[ConfigSource, _Pattern] = {}
    count, pos = read_count(data, 4, _RESULT_BYTES)  # after throttle_time_ms
    for _ in range(count):
        error_code = int.from_bytes(data[pos : pos + 2], "big", signed=True)
        message, pos = read_string(data, pos + 2)
        scope = _SCOPES[data[pos]]
        name, pos = read_string(data, pos + 1)
        resource = ConfigResource(scope, name or "")
        own = _own_source(resource)
        pattern = patterns.get(own)
        if pattern is None:
            pattern = patterns[own] = _Pattern(own)
        entries, pos = pattern.read(data, pos, queries[resource])
        pos = skip_tags(data, pos)
        yield Described(resource, error_code, message, entries)
    read_end(data, pos)


class _Pattern:
    """The entries of an earlier resource, to recognise those of the next one by.

    chunks: the bytes of each entry; whole: all of them joined; starts[i]: where the i-th begins in it, and at
    last where all end. others[i]: what resources have set in place of the i-th, each with its bytes; many set
    the same. A resource with more entries than brokers have is decoded without a pattern: it would
    cost memory, and serve nothing.
    """

    def __init__(self, own: ConfigSource) -> None:
        self._own = own
        self._entries: list[_Entry] = []
        self._chunks: list[bytes] = []
        self._whole = b""
        self._starts: list[int] = [0]
        self._others: dict[int, list[tuple[bytes, _Entry]]] = {}
        self._places: dict[str, int] = {}
        self._own_places: list[int] = []

    def read(self, data: bytes, pos: int, query: ConfigQuery) -> tuple[dict[str, ConfigEntry], int]:
        """The entries of one resource that are asked for, and the position after them all."""
        left, pos = read_count(data, pos, _ENTRY_BYTES)
        if left > _MOST_ENTRIES:
            return self._read_plainly(data, pos, left, query)
        if not self._chunks:
            return self._learn(data, pos, left, query)
        keys, overrides = query.keys, query.overrides
        chunks, entries = self._chunks, self._entries
        found: dict[str, ConfigEntry] = {}
        place = 0
        size = len(chunks)
        whole = True  # whether it is worth comparing all that is left at once
        while left > 0:
            rest = self._starts[place]  # not kept over rounds: `_replace` shifts what follows
            if whole and left == size - place and data.startswith(self._whole[rest:], pos):
                pos += self._starts[size] - rest
                self._take_from(place, keys, overrides, found)
                break
            whole = False
            if place < size and data.startswith(chunks[place], pos):
                entry = entries[place]
                pos += len(chunks[place])
                place += 1
            elif (other := self._find_other(data, pos, place)) is not None:
                entry = other[1]
                pos += len(other[0])
                place += 1
                whole = True
            else:
                start = pos
                entry, pos = self._decode(data, pos)
                at = self._places.get(entry.key)
                if at is not None:
                    place = at + 1
                    if entries[at].own and not entry.own:
                        self._replace(at, entry, data[start:pos])
                    elif entry.own and len(others := self._others.setdefault(at, [])) < _MOST_OTHERS:
                        others.append((data[start:pos], entry))
                whole = True
            if entry.key in keys or (overrides and entry.own):
                found[entry.key] = entry.value
            left -= 1
        return found, pos

    def _find_other(self, data: bytes, pos: int, place: int) -> tuple[bytes, _Entry] | None:
        for other in self._others.get(place, ()):
            if data.startswith(other[0], pos):
                return other
        return None

    def _read_plainly(
        self, data: bytes, pos: int, left: int, query: ConfigQuery
    ) -> tuple[dict[str, ConfigEntry], int]:
        found: dict[str, ConfigEntry] = {}
        for _ in range(left):
            entry, pos = self._decode(data, pos)
            if entry.key in query.keys or (query.overrides and entry.own):
                found[entry.key] = entry.value
        return found, pos

    def _learn(
        self, data: bytes, pos: int, left: int, query: ConfigQuery
    ) -> tuple[dict[str, ConfigEntry], int]:
        found: dict[str, ConfigEntry] = {}
        for _ in range(left):
            start = pos
            entry, pos = self._decode(data, pos)
            self._places[entry.key] = len(self._entries)
            self._entries.append(entry)
            self._chunks.append(data[start:pos])
            if entry.key in query.keys or (query.overrides and entry.own):
                found[entry.key] = entry.value
        self._join()
        return found, pos

    def _replace(self, place: int, entry: _Entry, chunk: bytes) -> None:
        """Forget an override: what is inherited is what most resources have."""
        self._entries[place] = entry
        self._chunks[place] = chunk
        self._join()

    def _join(self) -> None:
        self._whole = b"".join(self._chunks)
        self._starts = [0, *accumulate(map(len, self._chunks))]
        self._own_places = [i for i, entry in enumerate(self._entries) if entry.own]

    def _take_from(
        self, place: int, keys: frozenset[str], overrides: bool, found: dict[str, ConfigEntry]
    ) -> None:
        """Note what is asked for among the entries from ``place`` on, which are just as before."""
        for key in keys:
            at = self._places.get(key, -1)
            if at >= place:
                found[key] = self._entries[at].value
        if overrides:
            for at in self._own_places:
                if at >= place:
                    found[self._entries[at].key] = self._entries[at].value

    def _decode(self, data: bytes, pos: int) -> tuple[_Entry, int]:
        key, pos = read_string(data, pos)
        value, pos = read_string(data, pos)
        read_only, source_code, sensitive = data[pos : pos + 3]
        count, pos = read_count(data, pos + 3, _SYNONYM_BYTES)
        synonyms = []
        for _ in range(count):
            other, pos = read_string(data, pos)
            text, pos = read_string(data, pos)
            synonyms.append(_Synonym(other or "", text, data[pos]))
            pos = skip_tags(data, pos + 1)
        type_code = data[pos]
        _, pos = read_string(data, pos + 1)  # documentation
        pos = skip_tags(data, pos)
        source = _SOURCES.get(source_code, ConfigSource.UNKNOWN)
        kind = _TYPES.get(type_code, ConfigType.SCALAR)
        beneath = _beneath(key or "", source, synonyms)
        entry = ConfigEntry(value, source, kind, bool(sensitive), bool(read_only), beneath)
        return _Entry(sys.intern(key or ""), entry, source is self._own), pos
