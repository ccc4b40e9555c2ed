"""Typical topics of a company: teams, purposes, numbers of partitions, configs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from kdeclare.core.jsontypes import JsonValue

# fmt: off
TEAMS = (
    "accounts", "billing", "catalogue", "checkout", "claims", "clickstream", "compliance", "customers",
    "delivery", "fraud", "fulfilment", "identity", "inventory", "invoices", "ledger", "loyalty",
    "marketing", "notifications", "orders", "payments", "pricing", "profiles", "recommendations",
    "returns", "risk", "search", "settlement", "shipping", "subscriptions", "warehouse",
)
# fmt: on
PURPOSES = ("events", "commands", "changelog", "audit", "dlq", "snapshots", "metrics", "internal")

FACTOR = 3
_PARTITIONS = (3, 3, 6, 6, 6, 12, 12, 24, 48)
_HOUR = 3_600_000
_CONFIGS: Mapping[str, Sequence[JsonValue]] = {
    "retention.ms": (6 * _HOUR, 24 * _HOUR, 72 * _HOUR, 336 * _HOUR, 720 * _HOUR),
    "cleanup.policy": ("delete", "compact", ["compact", "delete"]),
    "min.insync.replicas": (2, 1),
    "max.message.bytes": (262_144, 2_097_152, 5_242_880),
    "compression.type": ("zstd", "lz4", "producer"),
    "segment.bytes": (134_217_728, 268_435_456, 536_870_912),
    "retention.bytes": (1_073_741_824, 10_737_418_240),
    "delete.retention.ms": (_HOUR, 48 * _HOUR),
    "min.compaction.lag.ms": (60_000, _HOUR),
    "message.timestamp.type": ("LogAppendTime", "CreateTime"),
}
_BY_HAND: Sequence[tuple[str, str]] = (
    ("segment.ms", "3600000"),
    ("flush.messages", "10000"),
    ("max.compaction.lag.ms", "86400000"),
    ("unclean.leader.election.enable", "true"),
)
"""Undeclared overrides."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A declared topic without its name.

    edited: the same configs with a different value for one key.
    by_hand: additional overrides. A live topic can have one of these overrides.
    """

    team: str
    purpose: str
    partitions: int
    configs: Mapping[str, JsonValue]
    edited: Mapping[str, JsonValue]
    by_hand: Sequence[tuple[str, str]] = _BY_HAND

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of the topic."""
        return {"team": self.team, "tier": "gold" if self.partitions >= 12 else "silver"}


def shapes(seed: int) -> tuple[Shape, ...]:
    """Return one topic definition per team and purpose. The same seed returns the same definitions."""
    rng = Random(f"shapes {seed}")
    return tuple(_shape(rng, team, purpose) for team in TEAMS for purpose in PURPOSES)


def _shape(rng: Random, team: str, purpose: str) -> Shape:
    keys = rng.sample(list(_CONFIGS), rng.randint(2, 6))
    configs = {key: rng.choice(_CONFIGS[key]) for key in keys}
    key = rng.choice(keys)
    other = rng.choice([value for value in _CONFIGS[key] if value != configs[key]])
    return Shape(team, purpose, rng.choice(_PARTITIONS), configs, configs | {key: other})
