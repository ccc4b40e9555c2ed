"""Restrictions of managed clusters that the in-memory cluster can simulate."""

from collections.abc import Mapping
from dataclasses import field

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.error_names import (
    CLUSTER_AUTHORIZATION_FAILED,
    POLICY_VIOLATION,
    TOPIC_AUTHORIZATION_FAILED,
    UNSUPPORTED_VERSION,
)
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.request_values import NewTopic


@dataclass(frozen=True, slots=True)
class Restrictions:
    """Which requests the brokers refuse, and what they hide. By default, they refuse and hide nothing.

    refused: the methods of `Cluster` that brokers refuse, each with the name of the error that they return.
    refused_configs: the resource types whose configs brokers refuse to describe, such as BROKER.
    hidden_keys: the config keys that brokers omit from descriptions. Clients can set them.
    fixed_keys: the topic configs that clients cannot set.
    replication_factor: the only replication factor of new topics; None if all are permitted.
    hides_racks: whether the brokers report no racks.
    """

    refused: Mapping[str, str] = field(default_factory=dict)
    refused_configs: frozenset[ConfigScope] = frozenset()
    hidden_keys: frozenset[str] = frozenset()
    fixed_keys: frozenset[str] = frozenset()
    replication_factor: int | None = None
    hides_racks: bool = False

    def supports(self, method: str) -> bool:
        """Return whether the brokers support the requests of a method."""
        return self.refused.get(method) != UNSUPPORTED_VERSION

    def check_method(self, method: str) -> None:
        """Raise Fault if the brokers refuse all requests of a method."""
        error = self.refused.get(method)
        if error == UNSUPPORTED_VERSION:
            raise Fault(error, "The brokers do not support this request.")
        if error is not None:
            raise Fault(error, "Cluster authorization failed.")

    def find_description_fault(self, resource: ConfigResource) -> Fault | None:
        """Return the fault for a request to describe a resource's configs; None if it is permitted."""
        if resource.scope not in self.refused_configs:
            return None
        is_topic = resource.scope is ConfigScope.TOPIC
        error = TOPIC_AUTHORIZATION_FAILED if is_topic else CLUSTER_AUTHORIZATION_FAILED
        return Fault(error, "the request needs DescribeConfigs")

    def check_keys(self, resource: ConfigResource, keys: frozenset[str]) -> None:
        """Raise Fault if clients are not allowed to set one of the config keys."""
        fixed = sorted(keys & self.fixed_keys) if resource.scope is ConfigScope.TOPIC else []
        if fixed:
            raise Fault(POLICY_VIOLATION, f"Altering {', '.join(fixed)} is not allowed.")

    def check_new_topic(self, topic: NewTopic) -> None:
        """Raise Fault if the policy of the service refuses a new topic."""
        self.check_keys(ConfigResource(ConfigScope.TOPIC, topic.topic), frozenset(topic.configs))
        factor = len(topic.assignments[0]) if topic.assignments else topic.replication_factor
        if self.replication_factor is not None and factor not in (None, self.replication_factor):
            raise Fault(
                POLICY_VIOLATION, f"The replication factor must be {self.replication_factor}, not {factor}."
            )


MANAGED = Restrictions(
    refused=dict.fromkeys(
        (
            "acls",
            "alter_quotas",
            "alter_scram_users",
            "config_resources",
            "create_acls",
            "delete_acls",
            "elect_leaders",
            "log_dirs",
            "move_log_dirs",
            "moves",
            "quotas",
            "reassign",
            "scram_users",
        ),
        UNSUPPORTED_VERSION,
    ),
    refused_configs=frozenset({ConfigScope.BROKER}),
    hides_racks=True,
)
"""A managed cluster on which clients can only manage topics, their configs and groups."""
