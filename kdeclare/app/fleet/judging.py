"""The policies of a cluster's project, asked about its topics as a snapshot has them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from kdeclare.app.fleet.reach import Reach
from kdeclare.app.policies import policies_in_force
from kdeclare.core.faults import Fault
from kdeclare.core.ids import ResourceId
from kdeclare.core.judging import Labels
from kdeclare.core.parts import LiveState
from kdeclare.core.plan import Verdict
from kdeclare.fleet.whole import Judge, Judged
from kdeclare.manifests.policies import TOPIC
from kdeclare.policy.checking import check_existing
from kdeclare.policy.configured import ConfiguredPolicy
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, is_topic
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.policies.facts import Facts
from kdeclare.providers.kafka.policies.requests import Outlook, TopicReview
from kdeclare.providers.kafka.port import Cluster, ConfigQuery
from kdeclare.providers.kafka.selection import KafkaSelection


def judge_of(reach: Reach, name: str) -> Judge | None:
    """The judge of one cluster; for `fleet.spark.wide`, which calls it where the task runs."""

    def judge(
        live: LiveState, objects: Sequence[ResourceId], labels: Mapping[ResourceId, Mapping[str, str]]
    ) -> Judged:
        topics = [item for item in objects if is_topic(item)]
        of_topics = {item.name: mine for item, mine in labels.items() if is_topic(item)}
        with reach.files(), policies_in_force(reach.workspace(name)) as in_force:
            return judged(in_force.policies, live.get(KafkaState), topics, of_topics)

    return judge


def judged(
    policies: Sequence[ConfiguredPolicy], live: KafkaState, topics: Sequence[ResourceId], labels: Labels
) -> Judged:
    """All policies at once; where one wants what no snapshot holds, each alone.

    A snapshot holds topics: of other kinds, policies cannot say anything.
    """
    others = tuple(policy.name for policy in policies if policy.kind != TOPIC)
    asked = [policy for policy in policies if policy.kind == TOPIC]
    if not asked:
        return Judged(open=others)
    try:
        return Judged(_asked(asked, live, topics, labels), others)
    except Fault:
        if len(asked) == 1:
            return Judged(open=(asked[0].name, *others))
    each = [judged((policy,), live, topics, labels) for policy in policies]
    return Judged([v for found in each for v in found.verdicts], [p for found in each for p in found.open])


def _asked(
    policies: Sequence[ConfiguredPolicy], live: KafkaState, topics: Sequence[ResourceId], labels: Labels
) -> tuple[Verdict, ...]:
    resources = {ConfigResource(ConfigScope.TOPIC, name) for name in live.topics}
    known = KafkaSelection(
        frozenset(live.topics), {r: ConfigQuery(r, overrides=True) for r in resources}, every_topic=True
    )
    facts = _FactsOfSnapshot(cast(Cluster, _OnlySnapshot()), [topic.name for topic in topics], live, known)
    review = TopicReview(Outlook(facts, labels))
    found = check_existing(policies, TOPIC, [topic.name for topic in topics], review)
    return tuple(verdict for verdicts in found for verdict in verdicts)


class _FactsOfSnapshot(Facts):
    """Of a cluster that nobody asks for anything now."""

    @property
    def principal(self) -> str | None:
        """Not known: None would say that nobody is authenticated."""
        return self._read(self._cluster.describe).principal


class _OnlySnapshot:
    """A cluster of which nothing more can be had."""

    def __getattr__(self, name: str) -> Callable[..., Mapping[str, Any]]:
        def refuse(*_: object, **__: object) -> Mapping[str, Any]:
            raise Fault("NOT_IN_SNAPSHOT", f"a snapshot has no answer to {name}")

        return refuse
