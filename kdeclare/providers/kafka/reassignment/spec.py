"""The spec of a Reassignment manifest, and its offline validation."""

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from kdeclare.core.diagnostics import error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.patterns import RE2_HINT, PatternError, compile_pattern, is_pattern
from kdeclare.core.resources.kind import SpecPath, SpecProblem
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.reassignment.pace import Pace, PaceSpec, build_pace
from kdeclare.providers.kafka.reassignment.placement_request import (
    PLACEMENT_DESCRIPTION,
    PlacementSpec,
    Strategy,
)

INT32 = 2**31 - 1

_TOPIC_RULE_FIELDS = ("topics", "drain", "targetBrokers", "rebalance", "placement")
EXCLUSIVE_FIELDS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(_TOPIC_RULE_FIELDS, frozenset({"partitions"})),
    "partitions": frozenset(_TOPIC_RULE_FIELDS),
    "drain": frozenset({"partitions", "targetBrokers"}),
    "targetBrokers": frozenset({"partitions", "drain"}),
}
"""See `Kind.exclusive_fields`."""

BrokerId = Annotated[int, Field(ge=0, le=INT32)]
BrokerIds = Annotated[list[BrokerId], Field(min_length=1)]


class PartitionSpec(BaseModel):
    """The requested replicas of a partition. If set, ``expectedReplicas`` must match the current replicas."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    topic: Annotated[str, Field(description="The name of the topic.")]
    partition: Annotated[int, Field(ge=0, le=INT32, description="The number of the partition, from 0.")]
    replicas: Annotated[
        BrokerIds, Field(description="The target brokers of the partition, preferred leader first.")
    ]
    expectedReplicas: Annotated[  # noqa: N815
        BrokerIds | None,
        Field(
            description="The brokers that must hold the replicas of the partition before the move. If other "
            "brokers hold the replicas, the partition is not moved."
        ),
    ] = None


class ReassignmentSpec(PaceSpec):
    """The ``spec`` of a Reassignment manifest: individual partitions, or topics with a rule.

    topics: names, or regular expressions (RE2) between slashes. An expression must match the whole name of a
        topic, and also matches internal topics.
    drain: brokers that must not hold replicas of the topics.
    targetBrokers: the only brokers that can hold replicas of the topics.
    rebalance: whether to spread replicas and preferred leaders evenly.
    """

    partitions: Annotated[
        Annotated[list[PartitionSpec], Field(min_length=1)] | None,
        Field(description="Individual partitions with their target replicas."),
    ] = None
    topics: Annotated[
        Annotated[list[str], Field(min_length=1)] | None,
        Field(
            description="Topic names, or regular expressions (RE2) in slashes. An expression must match the "
            "whole name of a topic."
        ),
    ] = None
    drain: Annotated[
        BrokerIds | None, Field(description="Brokers that must not hold replicas of the topics.")
    ] = None
    targetBrokers: Annotated[  # noqa: N815
        BrokerIds | None, Field(description="The only brokers that may hold replicas of the topics.")
    ] = None
    rebalance: Annotated[
        bool, Field(description="Whether to spread replicas and preferred leaders evenly.")
    ] = False
    placement: Annotated[PlacementSpec | None, Field(description=PLACEMENT_DESCRIPTION)] = None
    allowReplicationFactorChange: Annotated[  # noqa: N815
        bool, Field(description="Whether a move may change the replication factor (default: false).")
    ] = False


@dataclass(frozen=True, slots=True)
class Target:
    """The target replicas of one partition, in order, and the replicas that are required before the move."""

    partition: TopicPartition
    replicas: tuple[int, ...]
    expected: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class ReassignmentBody:
    """Declared replicas of partitions, or a declared rule for topics.

    topics: the names and patterns in the manifest. Either ``targets`` or ``topics`` is empty.
    """

    targets: tuple[Target, ...] = ()
    allow_replication_factor_change: bool = False
    topics: tuple[str, ...] = ()
    drain: frozenset[int] = frozenset()
    target_brokers: frozenset[int] = frozenset()
    rebalance: bool = False
    strategy: Strategy | None = None
    racks: tuple[str, ...] = ()
    pace: Pace = field(default_factory=Pace)

    @property
    def names(self) -> frozenset[str]:
        """The topics that are listed by name."""
        exact = {text for text in self.topics if not is_pattern(text)}
        return frozenset(exact.union(t.partition.topic for t in self.targets))

    @property
    def has_patterns(self) -> bool:
        """Whether the topics include patterns.

        The topics that a pattern matches are known only from a cluster.
        """
        return any(map(is_pattern, self.topics))

    def filter_topics(self, topics: Iterable[str]) -> list[str]:
        """Return the given topics that match a name or a pattern of the Reassignment, sorted by name."""
        patterns = [compile_pattern(text[1:-1]) for text in self.topics if is_pattern(text)]
        return sorted(t for t in topics if t in self.topics or any(p.matches(t) for p in patterns))

    def find_unmatched_patterns(self, topics: Iterable[str]) -> list[str]:
        """Return the regular expressions that match none of the topics."""
        names = list(topics)
        patterns = [text for text in self.topics if is_pattern(text)]
        return [text for text in patterns if not any(map(compile_pattern(text[1:-1]).matches, names))]


def parse_reassignment(name: str, spec: ReassignmentSpec) -> tuple[ReassignmentBody, tuple[SpecProblem, ...]]:
    """Return the body of a spec and the problems that can be found without a cluster."""
    problems = [_build_problem(name, path, text) for path, text in (*_check_shape(spec), *_check_lists(spec))]
    problems += _check_patterns(name, spec)
    placement = spec.placement
    body = ReassignmentBody(
        targets=tuple(_build_target(item) for item in spec.partitions or ()),
        allow_replication_factor_change=spec.allowReplicationFactorChange,
        topics=tuple(spec.topics or ()),
        drain=frozenset(spec.drain or ()),
        target_brokers=frozenset(spec.targetBrokers or ()),
        rebalance=spec.rebalance,
        strategy=placement.rule if placement else None,
        racks=tuple(placement.racks) if placement else (),
        pace=build_pace(spec),
    )
    return body, tuple(problems)


def _build_target(item: PartitionSpec) -> Target:
    expected = tuple(item.expectedReplicas) if item.expectedReplicas else None
    return Target(TopicPartition(item.topic, item.partition), tuple(item.replicas), expected)


def _check_shape(spec: ReassignmentSpec) -> Iterable[tuple[SpecPath, str]]:
    """Yield a problem for each missing or conflicting field."""
    rules = {
        "drain": spec.drain,
        "targetBrokers": spec.targetBrokers,
        "rebalance": spec.rebalance,
        "placement": spec.placement,
    }
    stated_rules = [field for field, value in rules.items() if value]
    if spec.partitions is None and spec.topics is None:
        yield (), "The spec has neither 'topics' nor 'partitions'. Exactly one of these fields is required."
    elif spec.partitions is not None and spec.topics is not None:
        yield ("topics",), "The spec has both 'topics' and 'partitions'. Only one of these fields is allowed."
    elif spec.partitions is not None and stated_rules:
        yield (
            (stated_rules[0],),
            f"'{stated_rules[0]}' requires 'topics' and cannot be combined with 'partitions'.",
        )
    elif spec.topics is not None and not stated_rules:
        yield (
            ("topics",),
            "'topics' requires a rule: 'drain', 'targetBrokers', 'rebalance' or 'placement'.",
        )
    if spec.drain and spec.targetBrokers:
        yield (
            ("targetBrokers",),
            "The spec has both 'drain' and 'targetBrokers'. Only one of these fields is allowed.",
        )
    if spec.placement and spec.placement.strategy in (Strategy.STATIC, Strategy.STATIC_IN_RACK):
        yield (
            ("placement", "strategy"),
            "The strategies 'static' and 'static-in-rack' are only allowed in a Topic manifest. To set the "
            "replicas of individual partitions here, use 'partitions'.",
        )


def _check_lists(spec: ReassignmentSpec) -> Iterable[tuple[SpecPath, str]]:
    """Yield a problem for each duplicate partition or replica."""
    seen_partitions: set[TopicPartition] = set()
    for n, item in enumerate(spec.partitions or ()):
        partition = TopicPartition(item.topic, item.partition)
        if partition in seen_partitions:
            yield ("partitions", n), f"Partition {partition} is listed twice."
        seen_partitions.add(partition)
        if len(set(item.replicas)) != len(item.replicas):
            yield ("partitions", n, "replicas"), f"The replicas of {partition} list a broker twice."


def _check_patterns(name: str, spec: ReassignmentSpec) -> Iterable[SpecProblem]:
    """Yield a problem for each invalid regular expression, at the character that RE2 rejects."""
    for n, text in enumerate(spec.topics or ()):
        if not is_pattern(text):
            continue
        try:
            compile_pattern(text[1:-1])
        except PatternError as pattern_error:
            problem = _build_problem(
                name, ("topics", n), f"{text} is not a valid regular expression: {pattern_error.reason}."
            )
            diagnostic = replace(problem.diagnostic, hint=RE2_HINT)
            yield SpecProblem(
                problem.path, diagnostic, None if pattern_error.offset is None else pattern_error.offset + 1
            )


def _build_problem(name: str, path: SpecPath, text: str) -> SpecProblem:
    resource = f"Reassignment/{name}"
    return SpecProblem(path, error("invalid-reassignment", "Invalid reassignment", text, resource=resource))
