"""Changing configs by hand: of topics, of brokers, and of all brokers by default."""

from collections.abc import Mapping, Sequence

from kdeclare.app.apply import How
from kdeclare.app.by_hand.references import resolved
from kdeclare.app.by_hand.run import Manners, by_hand
from kdeclare.app.by_hand.topics import alter_topics
from kdeclare.app.by_hand.wanted import Wanted, certain
from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.ids import ResourceId
from kdeclare.core.kind import Desired
from kdeclare.core.registry import KINDS
from kdeclare.manifests.substitution import Unresolved
from kdeclare.providers.kafka.broker_config import BrokerConfigSpec
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.topic.asked import Asked
from kdeclare.report.by_hand_views import HandView

_BROKERS = "BrokerConfig"


def alter_topic_configs(
    workspace: Workspace,
    names: Sequence[str],
    configs: Mapping[str, object],
    manners: Manners,
    how: How,
    *,
    if_exists: bool,
) -> HandView | None:
    """Change configs of topics; see `by_hand.topics.alter_topics`. Raises KdeclareError."""
    asked = [Asked(name, configs=configs) for name in names]
    return alter_topics(workspace, asked, manners, how, if_exists=if_exists)


def alter_broker_configs(
    workspace: Workspace,
    names: Sequence[str],
    configs: Mapping[str, object],
    manners: Manners,
    how: How,
) -> HandView | None:
    """Change dynamic configs (KIP-226) of brokers by id, or of ``cluster-default``. Raises KdeclareError."""
    kind = KINDS[_BROKERS]

    def ask(cluster: Cluster) -> Wanted:
        desired: list[Desired] = []
        failed: dict[str, tuple[Diagnostic, ...]] = {}
        diagnostics: list[Diagnostic] = []
        for name in dict.fromkeys(names):
            resource = ResourceId(_BROKERS, name)
            try:
                read = resolved(workspace, configs, str(resource))
            except Unresolved as problem:
                failed[str(resource)] = (problem.diagnostic,)
                continue
            body, problems = kind.parse(name, BrokerConfigSpec(configs=read))
            said = tuple(problem.diagnostic for problem in problems)
            wrong = certain(said)
            if wrong:
                failed[str(resource)] = wrong
                continue
            diagnostics += said
            desired.append(Desired(resource, body))
        return Wanted(tuple(desired), failed=failed, diagnostics=tuple(diagnostics))

    return by_hand(workspace, ask, manners, how)
