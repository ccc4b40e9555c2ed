"""Observe topics that exist although brokers do not show them yet.

A broker answers from a metadata image that trails the controller, under load by minutes. A topic that is
expected and not shown is either absent or *pending*; the controller knows which.
"""

from collections.abc import Collection

from kdeclare.core.collector import Sighting
from kdeclare.core.visibility import Patience
from kdeclare.providers.kafka.existence import find_existing
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.observe import observe
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.selection import KafkaSelection

WAITING = "Waiting for brokers to show topics"

_FIRST_STEP_S = 0.1
_LONGEST_STEP_S = 2.0


def observe_expected(
    cluster: Cluster,
    query: KafkaSelection,
    expected: Collection[str],
    patience: Patience,
    *,
    all_topics: bool = False,
    await_unsettled: bool = False,
) -> Sighting:
    """Observe until brokers show every expected topic that exists, or patience ends.

    await_unsettled: wait also where nobody can tell whether a topic exists. Raises Fault.
    """
    begun, step = patience.monotonic(), _FIRST_STEP_S
    cluster.await_committed(patience)
    while True:
        live = observe(cluster, query, all_topics=all_topics)
        # of a hidden topic, no broker will ever show more
        missing = [n for n in expected if n not in live.hidden and not _is_shown(n, query, live)]
        said = find_existing(cluster, missing)
        awaited = said.exists | said.unsettled if await_unsettled else said.exists
        if not awaited or patience.monotonic() - begun >= patience.limit_s:
            return Sighting(live, said.exists, said.unsettled)
        patience.progress(WAITING, len(expected) - len(awaited), len(expected))
        patience.sleep(step)
        step = min(2 * step, _LONGEST_STEP_S)


def _is_shown(name: str, query: KafkaSelection, live: KafkaState) -> bool:
    """Whether brokers show it whole: another broker answers for its configs, and can trail further."""
    resource = ConfigResource(ConfigScope.TOPIC, name)
    return name in live.topics and (resource not in query.configs or resource in live.configs)
