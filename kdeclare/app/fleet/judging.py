"""The policies of a cluster's project, asked about all of its topics as a snapshot has them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from kdeclare.app.fleet.reach import Reach
from kdeclare.app.policies import policies_in_force
from kdeclare.cluster.port import Cluster, ConfigQuery, Fault
from kdeclare.fleet.rows import CLUSTER
from kdeclare.fleet.whole import Judge
from kdeclare.kinds.query import Query
from kdeclare.model.ids import ConfigResource, ConfigScope, ResourceId
from kdeclare.model.live import Snapshot
from kdeclare.model.plan import Verdict, VerdictOutcome
from kdeclare.policy.checking import check_live
from kdeclare.policy.configured import ConfiguredPolicy
from kdeclare.policy.requests.facts import Facts
from kdeclare.policy.requests.outlook import Labels


def judge_of(reach: Reach, name: str) -> Judge | None:
    """The judge of one cluster; for `fleet.spark.wide`, which calls it where the task runs."""
    workspace = reach.workspace(name)

    def judge(cluster: str, live: Snapshot, labels: Labels) -> Iterator[Verdict]:
        with policies_in_force(workspace) as in_force:
            yield from _verdicts(in_force.policies, cluster, live, labels)

    return judge


def _verdicts(
    policies: Sequence[ConfiguredPolicy], cluster: str, live: Snapshot, labels: Labels
) -> Iterable[Verdict]:
    """Of all policies at once; where one wants what no snapshot holds, of each alone."""
    if not policies:
        return ()
    try:
        return _asked(policies, live, labels)
    except Fault:
        if len(policies) == 1:
            return (_open(policies[0], cluster),)
        return (verdict for policy in policies for verdict in _verdicts((policy,), cluster, live, labels))


def _asked(policies: Sequence[ConfiguredPolicy], live: Snapshot, labels: Labels) -> tuple[Verdict, ...]:
    names = sorted(topic.name for topic in live.topics.values() if not topic.internal)
    resources = {ConfigResource(ConfigScope.TOPIC, name) for name in live.topics}
    known = Query(
        frozenset(live.topics), {r: ConfigQuery(r, overrides=True) for r in resources}, every_topic=True
    )
    facts = Facts(cast(Cluster, _OnlySnapshot()), names, live, known)
    topics = [ResourceId("Topic", name) for name in names]
    return check_live(policies, topics, facts, labels, lambda done: None).verdicts


def _open(policy: ConfiguredPolicy, cluster: str) -> Verdict:
    message = "it asks for what no snapshot holds; kdeclare policy check --live can tell."
    return Verdict(policy.name, f"{CLUSTER}/{cluster}", VerdictOutcome.WARN, message)


class _OnlySnapshot:
    """A cluster of which nothing more can be had."""

    def __getattr__(self, name: str) -> Callable[..., Mapping[str, Any]]:
        def refuse(*_: object, **__: object) -> Mapping[str, Any]:
            raise Fault("NOT_IN_SNAPSHOT", f"a snapshot has no answer to {name}")

        return refuse
