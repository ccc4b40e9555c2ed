"""Decode only the requested entries of DescribeConfigs responses.

The full description of a topic has about 35 entries, but a plan needs only the few that are overrides. The
bytes of most other entries are the same for every topic in a response. The decoder therefore compares many
entries at once with the bytes of an earlier topic, and skips the entries that are equal.
"""

import sys
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Any, NamedTuple

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.providers.kafka.client.decoding.wire_format import (
    RawResponse,
    decode_all,
    read_count,
    read_string,
    require_end,
    skip_tags,
)
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import ConfigEntry, ConfigSource, ConfigType, get_own_source
from kdeclare.providers.kafka.request_values import ConfigQuery

RESOURCE_TYPES = {
    ConfigScope.TOPIC: 2,
    ConfigScope.BROKER: 4,
    ConfigScope.CLIENT_METRICS: 16,
    ConfigScope.GROUP: 32,
}
"""The codes of the resource types (org.apache.kafka.common.config.ConfigResource.Type)."""

_SCOPES = {code: scope for scope, code in RESOURCE_TYPES.items()}
_SOURCES = {
    1: ConfigSource.TOPIC,
    2: ConfigSource.BROKER,
    3: ConfigSource.CLUSTER,
    4: ConfigSource.STATIC,
    5: ConfigSource.DEFAULT,
    6: ConfigSource.BROKER_LOGGER,
    7: ConfigSource.CLIENT_METRICS,
    8: ConfigSource.GROUP,
}
"""The config sources by code (org.apache.kafka.common.requests.DescribeConfigsResponse.ConfigSource)."""

# Minimum sizes of repeated items in bytes: the fixed fields, and one byte per string, array and tag section.
_MIN_RESULT_BYTES = 7
_MIN_ENTRY_BYTES = 9
_MIN_SYNONYM_BYTES = 4

_MAX_ENTRIES = 2000
"""The maximum number of entries in an `_EntryTemplate`. A topic has about 35 entries, a broker about 350."""

_MAX_VARIANTS = 8
"""The maximum number of overrides to remember per key. With more, comparing is slower than decoding."""

_TYPES = {7: ConfigType.LIST, 9: ConfigType.PASSWORD}
"""The config types by code (org.apache.kafka.common.requests.DescribeConfigsResponse.ConfigType)."""


@dataclass(frozen=True, slots=True)
class DescribeConfigsResult:
    """The response for one resource. ``error_code`` 0 means success."""

    resource: ConfigResource
    error_code: int
    message: str | None
    entries: Mapping[str, ConfigEntry]


class _Synonym(NamedTuple):
    """One synonym of a config entry. The field names are the same as in kafka-python."""

    name: str
    value: str | None
    source: int


class _DecodedEntry(NamedTuple):
    """One decoded entry: its key, its value, and whether it is an override on the resource."""

    key: str
    value: ConfigEntry
    own: bool


def decode_configs(
    response: Any, queries: Mapping[ConfigResource, ConfigQuery]
) -> list[DescribeConfigsResult]:
    """Decode a DescribeConfigs response to ``queries``, from bytes or from kafka-python's objects.

    Raises MalformedResponse if the response is invalid or contains a resource that was not requested.
    """
    if isinstance(response, RawResponse):
        return decode_all(lambda: _decode_bytes(response.body, queries))
    return list(_decode_objects(response, queries))


def _find_value_beneath(key: str, source: ConfigSource, synonyms: Iterable[Any]) -> str | None:
    """Return the value that would apply to a broker if this broker had no override.

    Return None if there is no override or no other value. Synonyms whose key is not ``key`` are ignored,
    because their values can have different units.
    """
    if source is not ConfigSource.BROKER:
        return None
    values = (s.value for s in synonyms if s.name == key and _SOURCES.get(s.source) is not source)
    return next(values, None)


def _decode_objects(
    response: Any, queries: Mapping[ConfigResource, ConfigQuery]
) -> Iterable[DescribeConfigsResult]:
    for result in response.results:
        resource = ConfigResource(_SCOPES[result.resource_type], result.resource_name)
        query, own_source = queries[resource], get_own_source(resource)
        entries = {}
        for config in result.configs or ():
            source = _SOURCES.get(config.config_source, ConfigSource.UNKNOWN)
            if config.name in query.keys or (query.overrides and source is own_source):
                entries[config.name] = ConfigEntry(
                    config.value,
                    source,
                    _TYPES.get(config.config_type, ConfigType.SCALAR),
                    config.is_sensitive,
                    config.read_only,
                    _find_value_beneath(config.name, source, config.synonyms or ()),
                )
        yield DescribeConfigsResult(resource, result.error_code, result.error_message, entries)


def _decode_bytes(
    data: bytes, queries: Mapping[ConfigResource, ConfigQuery]
) -> Iterable[DescribeConfigsResult]:
    templates: dict[ConfigSource, _EntryTemplate] = {}
    count, pos = read_count(data, 4, _MIN_RESULT_BYTES)  # after throttle_time_ms
    for _ in range(count):
        error_code = int.from_bytes(data[pos : pos + 2], "big", signed=True)
        message, pos = read_string(data, pos + 2)
        scope = _SCOPES[data[pos]]
        name, pos = read_string(data, pos + 1)
        resource = ConfigResource(scope, name or "")
        own_source = get_own_source(resource)
        template = templates.get(own_source)
        if template is None:
            template = templates[own_source] = _EntryTemplate(own_source)
        entries, pos = template.read(data, pos, queries[resource])
        pos = skip_tags(data, pos)
        yield DescribeConfigsResult(resource, error_code, message, entries)
    require_end(data, pos)


class _EntryTemplate:
    """The entries of an earlier resource, for recognizing equal entries of the next resource.

    chunks: the bytes of each entry.
    joined: the concatenated chunks.
    starts: the offset of each chunk in ``joined``, followed by the length of ``joined``.
    variants: for each entry, the overrides of other resources and their bytes.

    Resources with more than `_MAX_ENTRIES` entries are decoded without a template, to save memory.
    """

    def __init__(self, own_source: ConfigSource) -> None:
        self._own_source = own_source
        self._entries: list[_DecodedEntry] = []
        self._chunks: list[bytes] = []
        self._joined = b""
        self._starts: list[int] = [0]
        self._variants: dict[int, list[tuple[bytes, _DecodedEntry]]] = {}
        self._positions: dict[str, int] = {}
        self._own_positions: list[int] = []

    def read(self, data: bytes, pos: int, query: ConfigQuery) -> tuple[dict[str, ConfigEntry], int]:
        """Return the requested entries of one resource, and the position after its last entry."""
        left, pos = read_count(data, pos, _MIN_ENTRY_BYTES)
        if left > _MAX_ENTRIES:
            return self._decode_without_template(data, pos, left, query)
        if not self._chunks:
            return self._decode_first(data, pos, left, query)
        keys, overrides = query.keys, query.overrides
        chunks, entries = self._chunks, self._entries
        found: dict[str, ConfigEntry] = {}
        place = 0
        size = len(chunks)
        whole = True  # whether to try comparing all remaining entries at once
        while left > 0:
            rest = self._starts[place]  # not cached across iterations: `_replace_entry` shifts offsets
            if whole and left == size - place and data.startswith(self._joined[rest:], pos):
                pos += self._starts[size] - rest
                self._collect_from(place, keys, overrides, found)
                break
            whole = False
            if place < size and data.startswith(chunks[place], pos):
                entry = entries[place]
                pos += len(chunks[place])
                place += 1
            elif (other := self._find_variant(data, pos, place)) is not None:
                entry = other[1]
                pos += len(other[0])
                place += 1
                whole = True
            else:
                start = pos
                entry, pos = self._decode_entry(data, pos)
                at = self._positions.get(entry.key)
                if at is not None:
                    place = at + 1
                    if entries[at].own and not entry.own:
                        self._replace_entry(at, entry, data[start:pos])
                    elif entry.own and len(others := self._variants.setdefault(at, [])) < _MAX_VARIANTS:
                        others.append((data[start:pos], entry))
                whole = True
            if entry.key in keys or (overrides and entry.own):
                found[entry.key] = entry.value
            left -= 1
        return found, pos

    def _find_variant(self, data: bytes, pos: int, position: int) -> tuple[bytes, _DecodedEntry] | None:
        for variant in self._variants.get(position, ()):
            if data.startswith(variant[0], pos):
                return variant
        return None

    def _decode_without_template(
        self, data: bytes, pos: int, count: int, query: ConfigQuery
    ) -> tuple[dict[str, ConfigEntry], int]:
        selected: dict[str, ConfigEntry] = {}
        for _ in range(count):
            entry, pos = self._decode_entry(data, pos)
            if entry.key in query.keys or (query.overrides and entry.own):
                selected[entry.key] = entry.value
        return selected, pos

    def _decode_first(
        self, data: bytes, pos: int, count: int, query: ConfigQuery
    ) -> tuple[dict[str, ConfigEntry], int]:
        selected: dict[str, ConfigEntry] = {}
        for _ in range(count):
            start = pos
            entry, pos = self._decode_entry(data, pos)
            self._positions[entry.key] = len(self._entries)
            self._entries.append(entry)
            self._chunks.append(data[start:pos])
            if entry.key in query.keys or (query.overrides and entry.own):
                selected[entry.key] = entry.value
        self._rebuild_index()
        return selected, pos

    def _replace_entry(self, position: int, entry: _DecodedEntry, chunk: bytes) -> None:
        """Replace an override in the template with the inherited entry, which most resources have."""
        self._entries[position] = entry
        self._chunks[position] = chunk
        self._rebuild_index()

    def _rebuild_index(self) -> None:
        self._joined = b"".join(self._chunks)
        self._starts = [0, *accumulate(map(len, self._chunks))]
        self._own_positions = [i for i, entry in enumerate(self._entries) if entry.own]

    def _collect_from(
        self, first_position: int, keys: frozenset[str], overrides: bool, selected: dict[str, ConfigEntry]
    ) -> None:
        for key in keys:
            position = self._positions.get(key, -1)
            if position >= first_position:
                selected[key] = self._entries[position].value
        if overrides:
            for position in self._own_positions:
                if position >= first_position:
                    selected[self._entries[position].key] = self._entries[position].value

    def _decode_entry(self, data: bytes, pos: int) -> tuple[_DecodedEntry, int]:
        key, pos = read_string(data, pos)
        value, pos = read_string(data, pos)
        read_only, source_code, sensitive = data[pos : pos + 3]
        count, pos = read_count(data, pos + 3, _MIN_SYNONYM_BYTES)
        synonyms = []
        for _ in range(count):
            synonym_name, pos = read_string(data, pos)
            synonym_value, pos = read_string(data, pos)
            synonyms.append(_Synonym(synonym_name or "", synonym_value, data[pos]))
            pos = skip_tags(data, pos + 1)
        type_code = data[pos]
        _, pos = read_string(data, pos + 1)  # documentation
        pos = skip_tags(data, pos)
        source = _SOURCES.get(source_code, ConfigSource.UNKNOWN)
        config_type = _TYPES.get(type_code, ConfigType.SCALAR)
        value_beneath = _find_value_beneath(key or "", source, synonyms)
        entry = ConfigEntry(value, source, config_type, bool(sensitive), bool(read_only), value_beneath)
        return _DecodedEntry(sys.intern(key or ""), entry, source is self._own_source), pos
