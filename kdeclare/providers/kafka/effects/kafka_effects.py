"""After a run, observe the effects on records and brokers that the plan predicted."""

import time
from collections.abc import Iterator

from kdeclare.core.plans.observed_effect import EffectRequest, ObservedEffect
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.effects.move_effects import observe_copied_bytes
from kdeclare.providers.kafka.effects.outage_effects import observe_outage_effects
from kdeclare.providers.kafka.effects.record_effects import observe_record_effects

_TIME_LIMIT_S = 10.0
"""The number of seconds after which kdeclare sends no more requests to observe the effects of a run."""


def observe_kafka_effects(request: EffectRequest) -> Iterator[ObservedEffect]:
    """Yield what happened to records, to moved replicas, and to partitions that depend on one broker.

    Other predictions, such as those about unread records and recent batches, cannot be checked after the run.
    """
    cluster = request.connections.get(KafkaConnection).cluster
    deadline = time.monotonic() + _TIME_LIMIT_S
    yield from observe_record_effects(cluster, request, deadline)
    yield from observe_copied_bytes(cluster, request, deadline)
    yield from observe_outage_effects(cluster, request, deadline)
