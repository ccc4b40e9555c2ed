"""What replicas are good for: how many must have a record, and over how many racks they are spread."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

from pydantic import Field

from kdeclare.policy.interface import Action, PolicyViolation, RequestMetadata, TopicState
from kdeclare.policy.rules.base import Rule, Settings, StateRule, Violation, counted, partitions, setting
from kdeclare.policy.rules.configs import number

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

    def violations(self, topic: str, state: TopicState) -> Iterator[Violation]:
        """Too few, and not below the factor; the factor is looked at only where the config is set."""
        text = state.configs.get(_MIN_ISR)
        if text is None:
            return
        value, least = number(text), self.settings.min
        has = f"{topic} would have {setting(_MIN_ISR, text)}"
        if value is None:
            yield Violation(_FIELD, f"{has}; it must be a number.")
            return
        if least is not None and value < least:
            yield Violation(_FIELD, f"{has}; it must be at least {least}.")
        factor = state.replication_factor
        if value >= factor:
            yield Violation(_FIELD, f"{has} with a replication factor of {factor}; it must be lower.")


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
        found = self._badly_placed(request, assignments)
        adds = request.action is Action.CREATE or "partitions" in changed
        if adds and (not assignments or len(assignments) < post.num_partitions):
            found += self._cannot_be_placed(request, post)
        if found:
            raise PolicyViolation(" ".join(found))

    def _badly_placed(self, request: RequestMetadata, assignments: Mapping[int, Sequence[int]]) -> list[str]:
        if not assignments:
            return []
        racks, wanted = request.racks, self.settings.racks
        by_racks: dict[int, list[int]] = {}
        for number_, brokers in assignments.items():
            size = len({racks.get(broker) for broker in brokers} - {None})
            if size < wanted:
                by_racks.setdefault(size, []).append(number_)
        if not by_racks:
            return []
        pre = request.pre_request_state
        before = pre.replicas_assignments if pre is not None else {}
        texts = []
        for size, numbers in sorted(by_racks.items()):
            moved = [n for n in numbers if n not in before or set(before[n]) != set(assignments[n])]
            if moved:
                where = f"{partitions(moved)} of {request.topic} would lie on {counted(size, 'rack')}"
                they = "they" if len(moved) > 1 else "it"
                texts.append(f"{where}; {they} must lie on at least {wanted:,}.")
        return texts

    def _cannot_be_placed(self, request: RequestMetadata, post: TopicState) -> list[str]:
        wanted, factor = self.settings.racks, post.replication_factor
        if factor < wanted:
            return [
                f"{request.topic} would have a replication factor of {factor}; "
                f"its replicas must lie on at least {counted(wanted, 'rack')}."
            ]
        racks = set(request.racks.values()) - {None}
        if len(racks) < wanted:
            return [
                f"The brokers of the cluster lie on {counted(len(racks), 'rack')}, "
                f"and {request.topic} must lie on at least {wanted:,}."
            ]
        without = sum(rack is None for rack in request.racks.values())
        if factor - without < wanted:
            return [
                f"{request.topic} would have a replication factor of {factor}, and "
                f"{counted(without, 'broker')} {'has' if without == 1 else 'have'} no rack: Kafka may place "
                f"it on fewer than {counted(wanted, 'rack')}. State 'assignments'."
            ]
        return []
