"""Encoded rows for all states of a topic. The rows of a fleet are these rows with different names.

Hashes and canonical JSON contain no names and no topic ids. The only exception is the live body, which has a
placeholder for the id. Therefore, each row of a fleet costs only a look-up, although the rows are encoded
like real rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from itertools import product
from typing import Any, NoReturn

import pyarrow as pa

from benchmarks.synthetic.shapes import FACTOR, Shape, shapes
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.parts import LiveState, PlanContext
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.fleet.tables.row_builder import RowOrigin, build_declared_row, build_live_row
from kdeclare.fleet.tables.rows import DECLARED, LIVE
from kdeclare.providers.kafka.config.catalog import load_catalog
from kdeclare.providers.kafka.fleet.codec import build_topic_object
from kdeclare.providers.kafka.ids import ConfigScope
from kdeclare.providers.kafka.live import (
    Broker,
    ClusterInfo,
    ConfigEntry,
    ConfigSource,
    ConfigType,
    KafkaState,
    Partition,
    Topic,
)
from kdeclare.providers.kafka.reassignment.placement_request import (
    PlacementContext,
    PlacementRequest,
    Replicas,
)

TAKEN_AT = datetime(2026, 11, 1, tzinfo=UTC)
PLACEHOLDER = "A" * 22
BROKERS = 12
PLACEMENTS = 3
"""The number of placements for topics of one shape. Altered topics have a single placement."""


class Declared(StrEnum):
    """The state of a topic in manifests and in the recorded state."""

    APPLIED = "applied"  # declared as it was last applied
    EDITED = "edited"  # declared differently since
    NEW = "new"  # never applied
    DROPPED = "dropped"  # no longer declared


class Live(StrEnum):
    """The state of a topic in its cluster, compared with the last apply."""

    SAME = "same"
    ALTERED = "altered"  # one key has a different value
    CLEARED = "cleared"  # one key is no longer set
    WIDENED = "widened"  # it has more partitions


@dataclass(frozen=True, slots=True)
class Templates:
    """The encoded rows of all templates, and the positions of these rows in the two tables."""

    shapes: Sequence[Shape]
    declared: pa.Table
    declared_at: Mapping[tuple[int, Declared], int]
    live: pa.Table
    live_at: Mapping[tuple[int, Live, int, int], int]
    bodies: Sequence[str]

    @property
    def extras(self) -> int:
        """The number of available undeclared overrides."""
        return len(self.shapes[0].by_hand)


@cache
def templates(seed: int) -> Templates:
    """Encode all rows. Keys of ``live_at``: shape, state, undeclared override (0: none), placement."""
    every = shapes(seed)
    declared_keys = list(product(range(len(every)), Declared))
    declared = [_declared(every[number], how) for number, how in declared_keys]
    extras = range(len(every[0].by_hand) + 1)
    live_keys = [
        (number, how, extra, at)
        for number, how, extra, at in product(range(len(every)), Live, extras, range(PLACEMENTS))
        if how is Live.SAME or at == 0
    ]
    live = [_live(every[number], how, extra, at) for number, how, extra, at in live_keys]
    return Templates(
        every,
        pa.Table.from_pylist(declared, DECLARED),
        {key: at for at, key in enumerate(declared_keys)},
        pa.Table.from_pylist(live, LIVE),
        {key: at for at, key in enumerate(live_keys)},
        [row["body"] for row in live],
    )


def _declared(shape: Shape, how: Declared) -> dict[str, Any]:
    before = _desired(shape, shape.configs)
    owned = None if how is Declared.NEW else _owned(before)
    desired: DesiredResource | None = before
    if how is Declared.EDITED:
        desired = _desired(shape, shape.edited)
    elif how is Declared.DROPPED:
        desired = None
    return build_declared_row("", desired, before.id, owned)


def _desired(shape: Shape, configs: Mapping[str, JsonValue]) -> DesiredResource:
    kind = KINDS["Topic"]
    spec = {"partitions": shape.partitions, "replicationFactor": FACTOR, "configs": configs}
    body, problems = kind.parse("x", kind.spec.model_validate(spec))
    assert not problems, problems
    return DesiredResource(ResourceId("Topic", "x"), body, shape.labels)


def _owned(desired: DesiredResource) -> OwnedRecord | None:
    """Return the ownership record after a run that created the topic."""
    nothing = KafkaState(ClusterInfo("", ()))
    context = PlanContext(PlacementContext(_never_asked))
    return KINDS["Topic"].diff(desired.id, desired, LiveState(nothing), None, context).owned


def _never_asked(
    brokers: Sequence[Broker], current: Mapping[str, Sequence[Replicas]], request: PlacementRequest
) -> NoReturn:
    raise AssertionError("no topic here has a placement strategy")


def _live(shape: Shape, how: Live, extra: int, at: int) -> dict[str, Any]:
    values = dict(shape.configs)
    if how is Live.ALTERED:
        values = dict(shape.edited)
    elif how is Live.CLEARED:
        del values[next(key for key in shape.configs if shape.configs[key] != shape.edited[key])]
    entries = {key: _entry(key, value) for key, value in values.items()}
    if extra:
        key, value = shape.by_hand[extra - 1]
        entries[key] = _entry(key, value)
    count = shape.partitions * (2 if how is Live.WIDENED else 1)
    return build_live_row(
        RowOrigin(TAKEN_AT, "", None, {}), build_topic_object(_topic(count, at), entries, {})
    )


def _topic(partitions: int, at: int) -> Topic:
    placed = (
        tuple(1 + (BROKERS // PLACEMENTS * at + number + n) % BROKERS for n in range(FACTOR))
        for number in range(partitions)
    )
    return Topic("x", PLACEHOLDER, tuple(Partition(replicas) for replicas in placed))


def _entry(key: str, value: JsonValue) -> ConfigEntry:
    info = load_catalog(ConfigScope.TOPIC).get(key)
    assert info is not None, key
    text = ",".join(value) if isinstance(value, list) else str(value)
    return ConfigEntry(text, ConfigSource.TOPIC, ConfigType.LIST if info.is_list else ConfigType.SCALAR)
