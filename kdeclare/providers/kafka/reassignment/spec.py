"""What a Reassignment manifest can say, and what is wrong with it whatever the cluster has."""

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
"""See `Kind.exclusive`."""

BrokerId = Annotated[int, Field(ge=0, le=INT32)]
BrokerIds = Annotated[list[BrokerId], Field(min_length=1)]


class PartitionSpec(BaseModel):
    """One partition's wish; ``expectedReplicas`` makes it a compare-and-set."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    topic: Annotated[str, Field(description="The topic's name.")]
    partition: Annotated[int, Field(ge=0, le=INT32, description="Its number, from 0.")]
    replicas: Annotated[
        BrokerIds, Field(description="The brokers that are to hold it, preferred leader first.")
    ]
    expectedReplicas: Annotated[  # noqa: N815
        BrokerIds | None,
        Field(description="The brokers that hold it now; if others do, nothing is done."),
    ] = None


class ReassignmentSpec(PaceSpec):
    """``spec`` of a Reassignment manifest: partitions one by one, or topics and what is to be so for them.

    topics: names, or regular expressions (RE2) between slashes that match whole names, internal ones too.
    drain: brokers that are to hold none of their replicas. targetBrokers: the only ones that may.
    rebalance: replicas and preferred leaders are to be spread evenly.
    """

    partitions: Annotated[
        Annotated[list[PartitionSpec], Field(min_length=1)] | None,
        Field(description="Partitions one by one, with their replicas."),
    ] = None
    topics: Annotated[
        Annotated[list[str], Field(min_length=1)] | None,
        Field(description="Names, or regular expressions (RE2) between slashes that match whole names."),
    ] = None
    drain: Annotated[
        BrokerIds | None, Field(description="Brokers that are to hold no replica of the topics.")
    ] = None
    targetBrokers: Annotated[  # noqa: N815
        BrokerIds | None, Field(description="The only brokers that may hold replicas of the topics.")
    ] = None
    rebalance: Annotated[
        bool, Field(description="Whether replicas and preferred leaders are spread evenly.")
    ] = False
    placement: Annotated[PlacementSpec | None, Field(description=PLACEMENT_DESCRIPTION)] = None
    allowReplicationFactorChange: Annotated[  # noqa: N815
        bool, Field(description="Whether a partition may get more or fewer replicas (else refused).")
    ] = False


@dataclass(frozen=True, slots=True)
class Target:
    """The replicas that one partition is to have, in order, and those that it must have before."""

    partition: TopicPartition
    replicas: tuple[int, ...]
    expected: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class ReassignmentBody:
    """Declared replicas of partitions, or a declared rule for topics.

    topics: as written. targets and topics exclude each other.
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
        """The topics that are named one by one."""
        exact = {text for text in self.topics if not is_pattern(text)}
        return frozenset(exact.union(t.partition.topic for t in self.targets))

    @property
    def has_patterns(self) -> bool:
        """Whether only the cluster knows which topics it is about."""
        return any(map(is_pattern, self.topics))

    def filter_topics(self, topics: Iterable[str]) -> list[str]:
        """Those of the topics that it is about, in order."""
        patterns = [compile_pattern(text[1:-1]) for text in self.topics if is_pattern(text)]
        return sorted(t for t in topics if t in self.topics or any(p.matches(t) for p in patterns))

    def find_unmatched_patterns(self, topics: Iterable[str]) -> list[str]:
        """The regular expressions that match none of the topics."""
        names = list(topics)
        patterns = [text for text in self.topics if is_pattern(text)]
        return [text for text in patterns if not any(map(compile_pattern(text[1:-1]).matches, names))]


def parse_reassignment(name: str, spec: ReassignmentSpec) -> tuple[ReassignmentBody, tuple[SpecProblem, ...]]:
    """The body of a spec, and what is wrong with it; offline."""
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
    """What does not go together."""
    rules = {
        "drain": spec.drain,
        "targetBrokers": spec.targetBrokers,
        "rebalance": spec.rebalance,
        "placement": spec.placement,
    }
    stated_rules = [field for field, value in rules.items() if value]
    if spec.partitions is None and spec.topics is None:
        yield (), "It names neither 'topics' nor 'partitions'."
    elif spec.partitions is not None and spec.topics is not None:
        yield ("topics",), "It takes 'topics' or 'partitions', not both."
    elif spec.partitions is not None and stated_rules:
        yield (
            (stated_rules[0],),
            f"'{stated_rules[0]}' is about 'topics'; 'partitions' say where they are to be.",
        )
    elif spec.topics is not None and not stated_rules:
        yield (
            ("topics",),
            "Say what is to be: 'drain', 'targetBrokers', 'rebalance' or 'placement'.",
        )
    if spec.drain and spec.targetBrokers:
        yield (
            ("targetBrokers",),
            "It takes 'drain' or 'targetBrokers', not both.",
        )
    if spec.placement and spec.placement.strategy in (Strategy.STATIC, Strategy.STATIC_IN_RACK):
        yield (
            ("placement", "strategy"),
            "What is static is for one topic: declare it there, or 'partitions'.",
        )


def _check_lists(spec: ReassignmentSpec) -> Iterable[tuple[SpecPath, str]]:
    """What is wrong within the lists."""
    seen_partitions: set[TopicPartition] = set()
    for n, item in enumerate(spec.partitions or ()):
        partition = TopicPartition(item.topic, item.partition)
        if partition in seen_partitions:
            yield ("partitions", n), f"{partition} is named twice."
        seen_partitions.add(partition)
        if len(set(item.replicas)) != len(item.replicas):
            yield ("partitions", n, "replicas"), f"{partition} names a broker twice."


def _check_patterns(name: str, spec: ReassignmentSpec) -> Iterable[SpecProblem]:
    """What is no regular expression, at the character that RE2 does not take."""
    for n, text in enumerate(spec.topics or ()):
        if not is_pattern(text):
            continue
        try:
            compile_pattern(text[1:-1])
        except PatternError as pattern_error:
            problem = _build_problem(
                name, ("topics", n), f"{text} is no regular expression: {pattern_error.reason}."
            )
            diagnostic = replace(problem.diagnostic, hint=RE2_HINT)
            yield SpecProblem(
                problem.path, diagnostic, None if pattern_error.offset is None else pattern_error.offset + 1
            )


def _build_problem(name: str, path: SpecPath, text: str) -> SpecProblem:
    resource = f"Reassignment/{name}"
    return SpecProblem(path, error("invalid-reassignment", "Invalid reassignment", text, resource=resource))
