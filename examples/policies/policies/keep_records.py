"""A rule of this company's own: whoever shortens retention deletes what is older than that."""

from collections.abc import Mapping
from math import inf
from typing import Any

from kdeclare.policy import PolicyViolation, RequestMetadata, TopicActionsPolicy, TopicState

RETENTION = "retention.ms"


class KeepRecords(TopicActionsPolicy):
    """The retention of a topic that holds more than ``records`` records (default: none) is not shortened."""

    def configure(self, configs: Mapping[str, Any]) -> None:
        self.records = int(configs.get("records", 0))

    def validate(self, request: RequestMetadata) -> None:
        pre, post = request.pre_request_state, request.post_request_state
        if pre is None or post is None or f"configs.{RETENTION}" not in request.changed:
            return
        if retention(post) < retention(pre) and request.record_count > self.records:
            raise PolicyViolation(
                f"{request.topic} holds up to {request.record_count:,} records, and those older than "
                f"{retention(post):,} ms would be deleted at once."
            )


def retention(state: TopicState) -> float:
    """In ms; as long as Kafka keeps records by default, where the topic does not say."""
    value = int(state.configs.get(RETENTION, 7 * 24 * 3600 * 1000))
    return inf if value == -1 else value
