"""Create a topic that stores states, and check the settings of an existing topic."""

import shlex
from collections.abc import Iterator, Mapping

from kdeclare.core.diagnostics import Diagnostic, KdeclareError
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.error_names import TOPIC_EXISTS
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import Topic
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.request_values import ConfigQuery, NewTopic
from kdeclare.providers.kafka.state_topic.problems import build_setting_problem

MAX_OBJECT_BYTES = 900_000
"""The maximum size of a value. With its key and the batch overhead, it fits into `_MIN_MESSAGE_BYTES`."""

_DEFAULT_FACTOR = 3
_MIN_MESSAGE_BYTES = 1_000_000
_DEFAULT_MESSAGE_BYTES = 1_048_588
_DAY_MS = 86_400_000
TOMBSTONE_AGE_S = _DAY_MS / 1000
"""The minimum time that a tombstone must be kept. A reader that pauses for longer can miss a deletion."""


@dataclass(frozen=True, slots=True)
class TopicRequirements:
    """The settings that a topic needs so that it never loses a record.

    replication_factor: the minimum replication factor. options: the options of ``kdeclare topic alter`` that
        select the cluster, for hints.
    """

    topic: str
    replication_factor: int
    options: tuple[str, ...] = ()

    def build_topic(self) -> NewTopic:
        """Return the topic to create.

        Segments are small, so that they are compacted soon: each command reads the whole topic, and Kafka
        does not compact a segment until it is full or a day old.
        """
        return NewTopic(
            self.topic,
            1,
            self.replication_factor,
            None,
            {
                "cleanup.policy": "compact",
                "min.insync.replicas": str(_compute_min_isr(self.replication_factor)),
                "unclean.leader.election.enable": "false",
                "delete.retention.ms": str(7 * _DAY_MS),
                "max.message.bytes": str(_DEFAULT_MESSAGE_BYTES),
                "segment.bytes": str(50 * 1024 * 1024),
                "segment.ms": str(_DAY_MS),
            },
        )

    def check(self, topic: Topic, configs: Mapping[str, str | None]) -> None:
        """Check the settings of the topic. Raises KdeclareError with a diagnostic for each wrong setting."""
        problems = tuple(self._find_problems(topic, configs))
        if problems:
            raise KdeclareError(*problems)

    def _find_problems(self, topic: Topic, configs: Mapping[str, str | None]) -> Iterator[Diagnostic]:
        if len(topic.partitions) != 1:
            yield self._build_problem(
                "partitions",
                str(len(topic.partitions)),
                "1",
                "Use another topic: the number of partitions cannot be reduced.",
            )
        factor = min(len(partition.replicas) for partition in topic.partitions)
        if factor < self.replication_factor:
            command = self._build_command("--replication-factor", str(self.replication_factor))
            yield self._build_problem(
                "replication factor", str(factor), f"at least {self.replication_factor}", f"Run `{command}`."
            )
        if configs.get("cleanup.policy") != "compact":
            yield self._build_config_problem(configs, "cleanup.policy", "compact", "compact")
        if configs.get("unclean.leader.election.enable") != "false":
            yield self._build_config_problem(configs, "unclean.leader.election.enable", "false", "false")
        min_isr = _compute_min_isr(max(factor, self.replication_factor))
        for name, least in (
            ("min.insync.replicas", min_isr),
            ("delete.retention.ms", _DAY_MS),
            ("max.message.bytes", _MIN_MESSAGE_BYTES),
        ):
            if int(configs.get(name) or 0) < least:
                value = _DEFAULT_MESSAGE_BYTES if name == "max.message.bytes" else least
                yield self._build_config_problem(configs, name, f"at least {least}", str(value))

    def _build_config_problem(
        self, configs: Mapping[str, str | None], name: str, expected: str, value: str
    ) -> Diagnostic:
        command = self._build_command("--config", f"{name}={value}")
        return self._build_problem(name, configs.get(name) or "", expected, f"Run `{command}`.")

    def _build_problem(self, name: str, value: str, expected: str, hint: str) -> Diagnostic:
        return build_setting_problem(self.topic, name, value, expected, hint)

    def _build_command(self, *arguments: str) -> str:
        return shlex.join(("kdeclare", "topic", "alter", self.topic, *arguments, *self.options))


def choose_replication_factor(cluster: Cluster, chosen: int | None) -> int:
    """Return the replication factor that a topic needs. Raises Fault. chosen: the option in the URL."""
    return chosen or min(_DEFAULT_FACTOR, len(cluster.describe().brokers))


def create_state_topic(cluster: Cluster, requirements: TopicRequirements) -> None:
    """Create the topic, unless another process has created it in the meantime. Raises Fault."""
    outcome = cluster.create_topics([requirements.build_topic()])[requirements.topic]
    if isinstance(outcome, Fault) and outcome.error != TOPIC_EXISTS:
        raise outcome


def check_state_topic(cluster: Cluster, requirements: TopicRequirements, topic: Topic) -> None:
    """Raise KdeclareError if the topic could lose records, and Fault if its settings cannot be read."""
    resource = ConfigResource(ConfigScope.TOPIC, requirements.topic)
    keys = frozenset(
        {
            "cleanup.policy",
            "unclean.leader.election.enable",
            "min.insync.replicas",
            "delete.retention.ms",
            "max.message.bytes",
        }
    )
    entries = cluster.configs([ConfigQuery(resource, keys)]).get(resource, {})
    requirements.check(topic, {name: entry.value for name, entry in entries.items()})


def _compute_min_isr(replication_factor: int) -> int:
    return max(1, replication_factor - 1)
