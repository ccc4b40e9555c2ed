"""Rules for ``min.insync.replicas``, and for the racks of replicas."""

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
    """The settings of `MinInsyncReplicas`.

    min: the minimum value of ``min.insync.replicas``.
    """

    min: Annotated[int, Field(ge=1)] | None = None


class MinInsyncReplicas(StateRule[MinInsyncReplicasSettings]):
    """Requires ``min.insync.replicas`` to be lower than the replication factor.

    Otherwise, the failure of one broker blocks all producers with ``acks=all``. A topic that does not set
    this config is not checked. Use `RequiredConfigs` to require that the config is set.
    """

    settings_model = MinInsyncReplicasSettings

    def concerns(self, field: str) -> bool:
        """Return whether the field is ``min.insync.replicas`` or determines the replication factor."""
        return field in (_FIELD, "replicationFactor", "assignments")

    def find_violations(self, topic: str, state: TopicState) -> Iterator[Violation]:
        """Yield a violation if ``min.insync.replicas`` is too low or too high.

        The replication factor is read only if the config is set.
        """
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
    """The settings of `MinRacks`.

    racks: the minimum number of racks for the replicas of a partition.
    """

    racks: Annotated[int, Field(ge=1)]


class MinRacks(Rule[MinRacksSettings]):
    """Requires the replicas of every partition to be spread over a minimum number of racks.

    Brokers without a rack are ignored. A modification is checked only for new partitions, and for partitions
    whose brokers change.

    A request that lets Kafka place replicas is denied if Kafka might use too few racks. This is possible if
    the cluster has too few racks, or if too many replicas could be placed on brokers without a rack.
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
                    f"{format_partitions(changed_partitions)} of {request.topic} would have replicas "
                    f"on {format_count(rack_count, 'rack')}"
                )
                messages.append(f"{prefix}; at least {min_racks:,} are required.")
        return messages

    def _explain_unplaceable(self, request: RequestMetadata, post: TopicState) -> list[str]:
        min_racks, factor = self.settings.racks, post.replication_factor
        if factor < min_racks:
            return [
                f"{request.topic} would have a replication factor of {factor}; "
                f"its replicas must be on at least {format_count(min_racks, 'rack')}."
            ]
        racks = set(request.racks.values()) - {None}
        if len(racks) < min_racks:
            return [
                f"The brokers of the cluster are on {format_count(len(racks), 'rack')}, "
                f"but the replicas of {request.topic} must be on at least {min_racks:,}."
            ]
        rackless_count = sum(rack is None for rack in request.racks.values())
        if factor - rackless_count < min_racks:
            return [
                f"{request.topic} would have a replication factor of {factor}, and "
                f"{format_count(rackless_count, 'broker')} {'has' if rackless_count == 1 else 'have'} "
                f"no rack, so Kafka may place "
                f"its replicas on fewer than {format_count(min_racks, 'rack')}. Set 'assignments'."
            ]
        return []
