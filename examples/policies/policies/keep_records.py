"""A custom policy: shortening the retention of a topic deletes its older records."""

from collections.abc import Mapping
from math import inf
from typing import Any

from kdeclare.policy import PolicyViolation, RequestMetadata, TopicActionsPolicy, TopicState

RETENTION = "retention.ms"


class KeepRecords(TopicActionsPolicy):
    """Denies a shorter retention for a topic with more than ``records`` records (default: 0)."""

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
    """Return the retention in ms; Kafka's default if the topic does not set it."""
    value = int(state.configs.get(RETENTION, 7 * 24 * 3600 * 1000))
    return inf if value == -1 else value
