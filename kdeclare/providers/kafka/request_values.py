"""The values in requests to Kafka, and in the responses."""

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Annotated, NamedTuple

from pydantic import Field, GetPydanticSchema
from pydantic_core import core_schema

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.operation import Arguments
from kdeclare.core.resources.changes import FieldOp
from kdeclare.providers.kafka.ids import ConfigResource, TopicPartition
from kdeclare.providers.kafka.live import ConfigEntry
from kdeclare.providers.kafka.scram_user.credential import Mechanism

EARLIEST, LATEST = -2, -1
"""The timestamps that make ListOffsets return a log's first offset, and the offset of the next record."""

MAX_TIMESTAMP = -3
"""The timestamp that makes ListOffsets return the offset of the newest record by timestamp (KIP-734)."""


@dataclass(frozen=True, slots=True)
class ConfigQuery:
    """The config keys of one resource to describe.

    keys: the keys to describe, whether they are overrides or not.
    overrides: whether to add all overrides. Kafka must then describe all keys.
    optional: whether `observe` can omit the resource if its broker is fenced.
    """

    resource: ConfigResource
    keys: frozenset[str] = frozenset()
    overrides: bool = False
    optional: bool = False


def merge_config_queries(queries: Iterable[ConfigQuery]) -> dict[ConfigResource, ConfigQuery]:
    """Merge the queries for each resource into one query.

    A merged query is optional if all queries for the resource are optional.
    """
    merged: dict[ConfigResource, ConfigQuery] = {}
    for query in queries:
        earlier = merged.get(query.resource)
        if earlier is not None:
            query = ConfigQuery(
                query.resource,
                earlier.keys | query.keys,
                earlier.overrides or query.overrides,
                earlier.optional and query.optional,
            )
        merged[query.resource] = query
    return merged


# JSON keys are strings. Accepting only canonical numbers ensures that two keys never mean the same number.
_NUMBER_AS_KEY = core_schema.chain_schema(
    [core_schema.str_schema(pattern="^(0|[1-9][0-9]*)$"), core_schema.int_schema(strict=False)]
)
Count = Annotated[int, Field(ge=1)]
BrokerId = Annotated[int, Field(ge=0)]
Replicas = Annotated[tuple[BrokerId, ...], Field(min_length=1)]
PartitionNumber = Annotated[int, GetPydanticSchema(lambda _source, _handler: _NUMBER_AS_KEY)]


@dataclass(frozen=True, slots=True)
class TopicArgs(Arguments):
    """The base class of arguments for requests about a whole topic."""

    topic: str


@dataclass(frozen=True, slots=True)
class NewTopic(TopicArgs):
    """A topic to create, either with counts or with assignments. A count of None means the broker default.

    assignments: the replicas by partition.
    configs: the configs by key. A value is a string, or the elements of a list.
    """

    partitions: Count | None
    replication_factor: Count | None
    assignments: Mapping[PartitionNumber, Replicas] | None
    configs: Mapping[str, str | tuple[str, ...]]

    @property
    def count(self) -> int | None:
        """The number of partitions. None means the broker default."""
        return len(self.assignments) if self.assignments else self.partitions

    @property
    def config_texts(self) -> dict[str, str]:
        """The configs in the format of requests, with list elements separated by commas."""
        return {
            key: ",".join(value) if isinstance(value, tuple) else value for key, value in self.configs.items()
        }


@dataclass(frozen=True, slots=True)
class NewPartitions(TopicArgs):
    """The partitions to add to a topic.

    total: the new partition count.
    assignments: the replicas of the added partitions, in order, or None if Kafka places the replicas. Kafka
        rejects an empty tuple.
    """

    total: Count
    assignments: tuple[Replicas, ...] | None = None


@dataclass(frozen=True, slots=True)
class ScramUpsertion:
    """A new password. iterations: the PBKDF2 iterations of the salted hash that brokers store."""

    iterations: int
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ScramAlteration:
    """The change to one SCRAM credential. upsertion: None deletes the credential."""

    user: str
    mechanism: Mechanism
    upsertion: ScramUpsertion | None = None


@dataclass(frozen=True, slots=True)
class ConfigOp:
    """The change to one config key (KIP-339).

    value: the new value, None for DELETE, or comma-separated elements for APPEND and SUBTRACT.
    """

    key: str
    op: FieldOp
    value: str | None


@dataclass(frozen=True, slots=True)
class ConfigAlteration:
    """All changes to the configs of one resource. Kafka applies the changes atomically."""

    resource: ConfigResource
    ops: tuple[ConfigOp, ...]


@dataclass(frozen=True, slots=True)
class LogDir:
    """One log directory of one broker (DescribeLogDirs, KIP-113).

    sizes: the size in bytes of each replica in this directory.
    arriving: the size in bytes of each replica that is being moved into this directory.
    total: the total bytes of the volume (KIP-827), or None if the broker does not report them.
    usable: the usable bytes of the volume (KIP-827), or None if the broker does not report them.
    error: Kafka's error name if the directory is offline.
    """

    path: str
    sizes: Mapping[TopicPartition, int]
    arriving: Mapping[TopicPartition, int]
    total: int | None = None
    usable: int | None = None
    error: str | None = None


class LogPosition(NamedTuple):
    """The position of a record in a log.

    timestamp_ms: the timestamp of the record in milliseconds since 1970; -1 if there is no record, and for
        `EARLIEST` and `LATEST`.
    """

    offset: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class ActiveProducer:
    """A producer that wrote to a partition recently.

    last_written_ms: the timestamp of its last batch, in milliseconds since 1970.
    in_transaction: whether it has an open transaction.
    """

    id: int
    last_written_ms: int
    in_transaction: bool = False


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """The data that kdeclare reads about a batch of records. It never contains keys, values or headers.

    size: the bytes of the batch in the log, which brokers compare with ``max.message.bytes``.
    records: the number of records.
    inspected: how many of these records kdeclare inspected, starting with the first one.
    keyed: how many of the inspected records have a key.
    problem: why records were not inspected, such as a missing library for decompression; None if there is no
        problem. If a batch has too many records, kdeclare inspects only some of them, which is not a problem.
    """

    size: int
    records: int
    inspected: int = 0
    keyed: int = 0
    problem: str | None = None


ActiveProducers = tuple[ActiveProducer, ...]
"""The active producers of one partition."""


Configs = Mapping[str, ConfigEntry]
"""The configs of one resource, by key."""


def require_all_configs(
    results: Mapping[ConfigResource, Configs | Fault],
) -> Mapping[ConfigResource, Configs]:
    """Return the configs of all resources. Raises the first Fault among the results."""
    configs: dict[ConfigResource, Configs] = {}
    for resource, item in results.items():
        if isinstance(item, Fault):
            raise item
        configs[resource] = item
    return configs
