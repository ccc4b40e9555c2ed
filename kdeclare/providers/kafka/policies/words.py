"""What rules about topics and broker configs can speak of."""

from collections.abc import Mapping
from functools import cache, partial
from operator import attrgetter

from kdeclare.core.policy_subjects import PolicyField, PolicyWords
from kdeclare.providers.kafka.config.catalog import catalog
from kdeclare.providers.kafka.ids import ConfigScope
from kdeclare.providers.kafka.policies.configs import find_key_types


@cache
def _find_keys(scope: ConfigScope) -> Mapping[str, type]:
    return find_key_types(catalog(scope))


TOPIC_WORDS = PolicyWords(
    fields={
        "partitions": PolicyField(int, attrgetter("num_partitions")),
        "replicationFactor": PolicyField(int, attrgetter("replication_factor")),
        "assignments": PolicyField(
            dict[int, list[int]], attrgetter("replicas_assignments"), elements="partitions"
        ),
        "configs": PolicyField(dict[str, str], attrgetter("configs"), partial(_find_keys, ConfigScope.TOPIC)),
    },
    subject="topic",
    before="pre",
    after="post",
)

BROKER_WORDS = PolicyWords(
    {"configs": PolicyField(dict[str, str], keys=partial(_find_keys, ConfigScope.BROKER))}
)
