"""A broker with topics in this process, for shells in other processes."""

from collections.abc import Callable, Sequence
from typing import Any

from kafka.protocol.admin import DescribeClusterResponse, ListPartitionReassignmentsResponse
from kafka.protocol.metadata import MetadataResponse

from tests.fake_broker import FakeBroker

LIST_MOVES = 46
_METADATA, _DESCRIBE = 3, 60


class TopicBroker(FakeBroker):
    """A broker that answers the requests of ``kdeclare status`` and lists its topics."""

    def __init__(self, topics: Sequence[str], port: int = 0) -> None:
        self._topics = topics
        answers: dict[int, Callable[[Any], Any]] = {
            _METADATA: self._answer_metadata,
            LIST_MOVES: self._list_moves,
            _DESCRIBE: self._describe_cluster,
        }
        super().__init__(answers, port=port)

    def _answer_metadata(self, request: Any) -> Any:
        response = self.metadata(request)
        if request.topics is None:
            response.topics = [self._make_topic(name) for name in self._topics]
        return response

    def _make_topic(self, name: str) -> Any:
        kind = MetadataResponse.MetadataResponseTopic
        return kind(error_code=0, name=name, is_internal=False, partitions=[])

    def _list_moves(self, request: Any) -> Any:
        return ListPartitionReassignmentsResponse(
            throttle_time_ms=0, error_code=0, error_message=None, topics=[]
        )

    def _describe_cluster(self, request: Any) -> Any:
        kind = DescribeClusterResponse
        return kind(
            throttle_time_ms=0,
            error_code=0,
            error_message=None,
            endpoint_type=1,
            cluster_id="fake",
            controller_id=1,
            brokers=[
                kind.DescribeClusterBroker(
                    broker_id=1, host="127.0.0.1", port=self.port, rack=None, is_fenced=False
                )
            ],
        )


class SilentBroker(TopicBroker):
    """Accept the request for ongoing reassignments, and never respond."""

    def _list_moves(self, request: Any) -> Any:
        return ...
