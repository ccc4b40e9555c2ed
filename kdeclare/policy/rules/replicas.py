"""What replicas are good for: how many must have a record, and over how many racks they are spread."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

from pydantic import Field

from kdeclare.policy.interface import Action, PolicyViolation, RequestMetadata, TopicState
from kdeclare.policy.rules.base import (
    Rule,
    Settings,
    StateRule,
    Violation,
    format_count,
    format_partitions,
    format_setting,
)
from kdeclare.policy.rules.configs import parse_number

_MIN_ISR = "min.insync.replicas"
_FIELD = f"configs.{_MIN_ISR}"


class MinInsyncReplicasSettings(Settings):
    """min: the least value that a topic may set."""

    min: Annotated[int, Field(ge=1)] | None = None


class MinInsyncReplicas(StateRule[MinInsyncReplicasSettings]):
    """Where ``min.insync.replicas`` is set, it is below the replication factor.

    Otherwise one broker that is down stops everybody who writes with acks=all. A topic that does not set
    it is not judged; `RequiredConfigs` makes it be set.
    """

    settings_model = MinInsyncReplicasSettings

    def concerns(self, field: str) -> bool:
        """The config, and what the factor follows from."""
        return field in (_FIELD, "replicationFactor", "assignments")

    def find_violations(self, topic: str, state: TopicState) -> Iterator[Violation]:
        """Too few, and not below the factor; the factor is looked at only where the config is set."""
        text = state.configs.get(_MIN_ISR)
        if text is None:
            return
        value, minimum = parse_number(text), self.settings.min
        prefix = f"{topic} would have {format_setting(_MIN_ISR, text)}"
        if value is None:
            yield Violation(_FIELD, f"{prefix}; it must be a number.")
            return
        if minimum is not None and value < minimum:
            yield Violation(_FIELD, f"{prefix}; it must be at least {minimum}.")
        factor = state.replication_factor
        if value >= factor:
            yield Violation(_FIELD, f"{prefix} with a replication factor of {factor}; it must be lower.")


class MinRacksSettings(Settings):
    """racks: over how many the replicas of a partition must be spread."""

    racks: Annotated[int, Field(ge=1)]


class MinRacks(Rule[MinRacksSettings]):
    """The replicas of every partition lie on at least so many racks.

    Brokers without a rack lie on none. Partitions that Kafka is to place are denied where it may not spread
    them so: with fewer replicas, beside those that brokers without a rack may get, or with fewer racks in
    the cluster. A modification is denied for the partitions
    whose brokers it changes and for those that it adds.
    """

    settings_model = MinRacksSettings

    def validate(self, request: RequestMetadata) -> None:
        """See `TopicActionsPolicy.validate`."""
        post = request.post_request_state
        if post is None:
            return
        changed = request.changed
        if request.action is Action.MODIFY and changed.isdisjoint(
            ("partitions", "replicationFactor", "assignments")
        ):
            return
        assignments = post.replicas_assignments
        messages = self._find_badly_placed(request, assignments)
        adds_partitions = request.action is Action.CREATE or "partitions" in changed
        if adds_partitions and (not assignments or len(assignments) < post.num_partitions):
            messages += self._explain_unplaceable(request, post)
        if messages:
            raise PolicyViolation(" ".join(messages))

    def _find_badly_placed(
        self, request: RequestMetadata, assignments: Mapping[int, Sequence[int]]
    ) -> list[str]:
        if not assignments:
            return []
        racks, min_racks = request.racks, self.settings.racks
        partitions_by_rack_count: dict[int, list[int]] = {}
        for partition, brokers in assignments.items():
            rack_count = len({racks.get(broker) for broker in brokers} - {None})
            if rack_count < min_racks:
                partitions_by_rack_count.setdefault(rack_count, []).append(partition)
        if not partitions_by_rack_count:
            return []
        pre = request.pre_request_state
        old_assignments = pre.replicas_assignments if pre is not None else {}
        messages = []
        for rack_count, numbers in sorted(partitions_by_rack_count.items()):
            changed_partitions = [
                n
                for n in numbers
                if n not in old_assignments or set(old_assignments[n]) != set(assignments[n])
            ]
            if changed_partitions:
                prefix = (
                    f"{format_partitions(changed_partitions)} of {request.topic} would lie "
                    f"on {format_count(rack_count, 'rack')}"
                )
                pronoun = "they" if len(changed_partitions) > 1 else "it"
                messages.append(f"{prefix}; {pronoun} must lie on at least {min_racks:,}.")
        return messages

    def _explain_unplaceable(self, request: RequestMetadata, post: TopicState) -> list[str]:
        min_racks, factor = self.settings.racks, post.replication_factor
        if factor < min_racks:
            return [
                f"{request.topic} would have a replication factor of {factor}; "
                f"its replicas must lie on at least {format_count(min_racks, 'rack')}."
            ]
        racks = set(request.racks.values()) - {None}
        if len(racks) < min_racks:
            return [
                f"The brokers of the cluster lie on {format_count(len(racks), 'rack')}, "
                f"and {request.topic} must lie on at least {min_racks:,}."
            ]
        rackless_count = sum(rack is None for rack in request.racks.values())
        if factor - rackless_count < min_racks:
            return [
                f"{request.topic} would have a replication factor of {factor}, and "
                f"{format_count(rackless_count, 'broker')} {'has' if rackless_count == 1 else 'have'} "
                f"no rack: Kafka may place "
                f"it on fewer than {format_count(min_racks, 'rack')}. State 'assignments'."
            ]
        return []
