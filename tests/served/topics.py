"""Answer requests that create, change and delete topics and partitions."""

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

import kafka.protocol.admin as admin
import kafka.protocol.consumer as consumer

from kdeclare.core.live.faults import CreatedObject, Fault, Outcome
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.request_values import MAX_TIMESTAMP, ActiveProducers, NewPartitions, NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.served.results import ConnectionLost, get_code, get_message, send_items

_NO_ID = UUID(int=0)


class TopicApis:
    """The answers of one broker to requests about topics, partitions and replicas."""

    def __init__(self, memory: MemoryCluster, broker: int) -> None:
        self._memory, self._broker = memory, broker
        self.answers: dict[int, Callable[[Any], Any]] = {
            2: self._list_offsets,
            19: self._create_topics,
            20: self._delete_topics,
            34: self._move_log_dirs,
            35: self._describe_log_dirs,
            37: self._create_partitions,
            43: self._elect_leaders,
            45: self._reassign,
            46: self._list_moves,
            61: self._describe_producers,
        }

    def _create_topics(self, request: Any) -> Any:
        new = [_read_new_topic(topic) for topic in request.topics]
        results = send_items(
            [topic.topic for topic in new],
            lambda: self._memory.create_topics(new, validate_only=request.validate_only),
        )
        kind = admin.CreateTopicsResponse
        return kind(
            throttle_time_ms=0,
            topics=[
                kind.CreatableTopicResult(
                    name=name,
                    topic_id=_get_created_id(result),
                    error_code=get_code(result),
                    error_message=get_message(result),
                    num_partitions=-1,
                    replication_factor=-1,
                    configs=[],
                )
                for name, result in results.items()
            ],
        )

    def _delete_topics(self, request: Any) -> Any:
        kind = admin.DeleteTopicsResponse
        if request.API_VERSION < 6:
            named: dict[str, str | None] = dict.fromkeys(request.topic_names)
            return kind(throttle_time_ms=0, responses=self._delete(named, {}))
        topics = self._memory.elsewhere().topics()
        names = {topic.topic_id: name for name, topic in topics.items()}
        ids = [str(topic.topic_id) for topic in request.topics if topic.name is None]
        targets = {topic.name: None for topic in request.topics if topic.name is not None}
        by_id = {names[id_]: id_ for id_ in ids if id_ in names}
        unknown = Fault("UNKNOWN_TOPIC_ID", "This server does not host this topic ID.")
        missing = [_build_deletion(None, UUID(id_), unknown) for id_ in ids if id_ not in names]
        return kind(throttle_time_ms=0, responses=self._delete({**targets, **by_id}, by_id) + missing)

    def _delete(self, targets: Mapping[str, str | None], ids: Mapping[str, str]) -> list[Any]:
        if not targets:
            return []
        results = send_items(targets, lambda: self._memory.delete_topics(targets))
        return [
            _build_deletion(name, UUID(ids[name]) if name in ids else _NO_ID, result)
            for name, result in results.items()
        ]

    def _create_partitions(self, request: Any) -> Any:
        items = [
            NewPartitions(
                topic.name,
                topic.count,
                None
                if topic.assignments is None
                else tuple(tuple(item.broker_ids) for item in topic.assignments),
            )
            for topic in request.topics
        ]
        results = send_items(
            [item.topic for item in items],
            lambda: self._memory.create_partitions(items, validate_only=request.validate_only),
        )
        kind = admin.CreatePartitionsResponse
        return kind(
            throttle_time_ms=0,
            results=[
                kind.CreatePartitionsTopicResult(
                    name=name, error_code=get_code(result), error_message=get_message(result)
                )
                for name, result in results.items()
            ],
        )

    def _reassign(self, request: Any) -> Any:
        targets = {
            TopicPartition(topic.name, partition.partition_index): None
            if partition.replicas is None
            else tuple(partition.replicas)
            for topic in request.topics
            for partition in topic.partitions
        }
        is_guardable = request.API_VERSION >= 1
        results = send_items(
            targets,
            lambda: self._memory.reassign(
                targets,
                allow_replication_factor_change=not is_guardable or request.allow_replication_factor_change,
                unguarded=not is_guardable,
            ),
        )
        kind = admin.AlterPartitionReassignmentsResponse
        topic_kind = kind.ReassignableTopicResponse
        return kind(
            throttle_time_ms=0,
            allow_replication_factor_change=True,
            error_code=0,
            error_message=None,
            responses=[
                topic_kind(
                    name=name,
                    partitions=[
                        topic_kind.ReassignablePartitionResponse(
                            partition_index=index,
                            error_code=get_code(result),
                            error_message=get_message(result),
                        )
                        for index, result in by_index.items()
                    ],
                )
                for name, by_index in _group_by_topic(results).items()
            ],
        )

    def _list_moves(self, request: Any) -> Any:
        kind = admin.ListPartitionReassignmentsResponse
        topic_kind = kind.OngoingTopicReassignment
        try:
            moves = self._memory.moves()
        except Fault as fault:
            return kind(
                throttle_time_ms=0,
                error_code=get_code(fault),
                error_message=get_message(fault),
                topics=[],
            )
        return kind(
            throttle_time_ms=0,
            error_code=0,
            error_message=None,
            topics=[
                topic_kind(
                    name=name,
                    partitions=[
                        topic_kind.OngoingPartitionReassignment(
                            partition_index=index,
                            replicas=list(move.replicas),
                            adding_replicas=list(move.adding),
                            removing_replicas=list(move.removing),
                        )
                        for index, move in by_index.items()
                    ],
                )
                for name, by_index in _group_by_topic(moves).items()
            ],
        )

    def _elect_leaders(self, request: Any) -> Any:
        asked = [
            TopicPartition(topic.topic, index)
            for topic in request.topic_partitions
            for index in topic.partitions
        ]
        results = send_items(asked, lambda: self._memory.elect_leaders(asked))
        kind = admin.ElectLeadersResponse
        topic_kind = kind.ReplicaElectionResult
        return kind(
            throttle_time_ms=0,
            error_code=0,
            replica_election_results=[
                topic_kind(
                    topic=name,
                    partition_result=[
                        topic_kind.PartitionResult(
                            partition_id=index,
                            error_code=get_code(result),
                            error_message=get_message(result),
                        )
                        for index, result in by_index.items()
                    ],
                )
                for name, by_index in _group_by_topic(results).items()
            ],
        )

    def _describe_log_dirs(self, request: Any) -> Any:
        kind = admin.DescribeLogDirsResponse
        names = None if request.topics is None else [topic.topic for topic in request.topics]
        try:
            dirs = self._memory.log_dirs(names).get(self._broker)
        except Fault as fault:
            return kind(throttle_time_ms=0, error_code=get_code(fault), results=[])
        if dirs is None:
            raise ConnectionLost
        results = []
        for log_dir in dirs:
            sizes = [(False, log_dir.sizes), (True, log_dir.arriving)]
            by_topic: dict[str, list[Any]] = {}
            for is_future, size_by_partition in sizes:
                for (topic, index), size in size_by_partition.items():
                    by_topic.setdefault(topic, []).append(
                        kind.DescribeLogDirsResult.DescribeLogDirsTopic.DescribeLogDirsPartition(
                            partition_index=index, partition_size=size, offset_lag=0, is_future_key=is_future
                        )
                    )
            results.append(
                kind.DescribeLogDirsResult(
                    error_code=get_code(Fault(log_dir.error, "") if log_dir.error else None),
                    log_dir=log_dir.path,
                    topics=[
                        kind.DescribeLogDirsResult.DescribeLogDirsTopic(name=name, partitions=partitions)
                        for name, partitions in by_topic.items()
                    ],
                    total_bytes=-1 if log_dir.total is None else log_dir.total,
                    usable_bytes=-1 if log_dir.usable is None else log_dir.usable,
                )
            )
        return kind(throttle_time_ms=0, error_code=0, results=results)

    def _move_log_dirs(self, request: Any) -> Any:
        targets = {
            (TopicPartition(topic.name, index), self._broker): log_dir.path
            for log_dir in request.dirs
            for topic in log_dir.topics
            for index in topic.partitions
        }
        results = send_items(targets, lambda: self._memory.move_log_dirs(targets))
        kind = admin.AlterReplicaLogDirsResponse
        topic_kind = kind.AlterReplicaLogDirTopicResult
        by_topic = _group_by_topic({where: result for (where, _), result in results.items()})
        return kind(
            throttle_time_ms=0,
            results=[
                topic_kind(
                    topic_name=name,
                    partitions=[
                        topic_kind.AlterReplicaLogDirPartitionResult(
                            partition_index=index, error_code=get_code(result)
                        )
                        for index, result in by_index.items()
                    ],
                )
                for name, by_index in by_topic.items()
            ],
        )

    def _list_offsets(self, request: Any) -> Any:
        kind = consumer.ListOffsetsResponse
        topics = []
        for topic in request.topics:
            partitions = []
            for item in topic.partitions:
                where = TopicPartition(topic.name, item.partition_index)
                offset, timestamp, error = self._find_offset(where, item.timestamp)
                partitions.append(
                    kind.ListOffsetsTopicResponse.ListOffsetsPartitionResponse(
                        partition_index=item.partition_index,
                        error_code=get_code(error),
                        timestamp=timestamp,
                        offset=offset,
                        leader_epoch=-1,
                    )
                )
            topics.append(kind.ListOffsetsTopicResponse(name=topic.name, partitions=partitions))
        return kind(throttle_time_ms=0, topics=topics)

    def _find_offset(self, where: TopicPartition, at: int) -> tuple[int, int, Fault | None]:
        """Return the offset and the timestamp of the record at a time."""
        try:
            if at == MAX_TIMESTAMP:
                last_write = self._memory.find_last_writes([where.topic]).get(where)
                return 0 if last_write is not None else -1, -1 if last_write is None else last_write, None
            positions = self._memory.list_positions({where.topic: [at]})
        except Fault as fault:
            return -1, -1, fault
        if where not in positions:
            return -1, -1, Fault("UNKNOWN_TOPIC_OR_PARTITION", "")
        return *positions[where][0], None

    def _describe_producers(self, request: Any) -> Any:
        kind = admin.DescribeProducersResponse
        producer_class = kind.TopicResponse.PartitionResponse.ProducerState
        topics = []
        for topic in request.topics:
            partitions = []
            for number in topic.partition_indexes:
                where = TopicPartition(topic.name, number)
                found: ActiveProducers = ()
                try:
                    unknown = Fault("UNKNOWN_TOPIC_OR_PARTITION", "")
                    answer = self._memory.list_producers([topic.name]).get(where, unknown)
                    found, error = ((), answer) if isinstance(answer, Fault) else (answer, None)
                except Fault as fault:
                    error = fault
                partitions.append(
                    kind.TopicResponse.PartitionResponse(
                        partition_index=number,
                        error_code=get_code(error),
                        error_message=get_message(error),
                        active_producers=[
                            producer_class(
                                producer_id=each.id,
                                producer_epoch=0,
                                last_sequence=0,
                                last_timestamp=each.last_written_ms,
                                coordinator_epoch=0,
                                current_txn_start_offset=0 if each.in_transaction else -1,
                            )
                            for each in found
                        ],
                    )
                )
            topics.append(kind.TopicResponse(name=topic.name, partitions=partitions))
        return kind(throttle_time_ms=0, topics=topics)


def _read_new_topic(topic: Any) -> NewTopic:
    return NewTopic(
        topic.name,
        None if topic.num_partitions == -1 else topic.num_partitions,
        None if topic.replication_factor == -1 else topic.replication_factor,
        {item.partition_index: tuple(item.broker_ids) for item in topic.assignments} or None,
        {config.name: config.value for config in topic.configs},
    )


def _get_created_id(result: Outcome) -> UUID:
    return UUID(result.id) if isinstance(result, CreatedObject) and result.id else _NO_ID


def _build_deletion(name: str | None, topic_id: UUID, result: Outcome) -> Any:
    return admin.DeleteTopicsResponse.DeletableTopicResult(
        name=name, topic_id=topic_id, error_code=get_code(result), error_message=get_message(result)
    )


def _group_by_topic(items: Mapping[TopicPartition, Any]) -> dict[str, dict[int, Any]]:
    by_topic: dict[str, dict[int, Any]] = {}
    for (topic, index), item in items.items():
        by_topic.setdefault(topic, {})[index] = item
    return by_topic
