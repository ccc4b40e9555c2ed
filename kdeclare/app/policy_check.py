"""What the policies say of topics, declared or live, without any change being planned."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from kdeclare.app.plan import loaded_well
from kdeclare.app.policies import InForce, policies_in_force
from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import Place
from kdeclare.core.ids import ResourceId
from kdeclare.core.judging import Labels
from kdeclare.core.kind import Desired
from kdeclare.core.progress import Progress
from kdeclare.manifests.load import Loaded
from kdeclare.policy.checking import Checked, check_declared, check_live
from kdeclare.policy.labels import find_declared_labels
from kdeclare.policy.requests.facts import Facts
from kdeclare.providers.kafka.config.scope import find_config_scope
from kdeclare.providers.kafka.ids import ConfigScope
from kdeclare.providers.kafka.observe import observe
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.selection import KafkaSelection
from kdeclare.report.views import PolicyCheckView


def check_manifests(workspace: Workspace, paths: Sequence[Path]) -> PolicyCheckView:
    """The declared topics as if they were created now; no cluster is asked. Raises KdeclareError."""
    loaded = loaded_well(workspace, paths)
    with policies_in_force(workspace, loaded.rules) as in_force:
        found = check_declared(in_force.policies, loaded.desired)
    return _view(workspace, in_force, found, _topics(loaded.desired), _places(loaded.desired), live=False)


def check_cluster(workspace: Workspace, paths: Sequence[Path], progress: Progress) -> PolicyCheckView:
    """Every topic of the cluster that is not internal, as it is. Raises KdeclareError.

    Labels are those of the manifests, which there need not be any, else those that were last applied.
    """
    loaded = _loaded_if_any(workspace, paths)
    desired = loaded.desired if loaded else ()
    rules = loaded.rules if loaded else None
    with policies_in_force(workspace, rules) as in_force:
        if not in_force.policies:
            return _view(workspace, in_force, Checked(), 0, {}, live=True)
        state = workspace.store.read()
        labels = find_declared_labels(desired, state.resources if state else {})
        with workspace.cluster() as cluster:
            found, count = _check(cluster, in_force, labels, progress)
    return _view(workspace, in_force, found, count, _places(desired), live=True)


def _loaded_if_any(workspace: Workspace, paths: Sequence[Path]) -> Loaded | None:
    return loaded_well(workspace, paths) if paths or workspace.project.file is not None else None


def _check(cluster: Cluster, in_force: InForce, labels: Labels, progress: Progress) -> tuple[Checked, int]:
    """Raises Fault when the cluster does not answer."""
    progress("Reading the cluster", 0, 0)
    live = observe(cluster, KafkaSelection(), all_topics=True)
    names = sorted(topic.name for topic in live.topics.values() if not topic.internal)
    topics = [ResourceId("Topic", name) for name in names]
    found = check_live(
        in_force.policies,
        topics,
        Facts(cluster, names, live),
        labels,
        lambda done: progress("Asking the policies", done, len(topics)),
    )
    return found, len(topics)


def _topics(desired: Iterable[Desired]) -> int:
    return sum(find_config_scope(item.id.kind) is ConfigScope.TOPIC for item in desired)


def _places(desired: Iterable[Desired]) -> dict[str, Place]:
    return {str(item.id): item.source for item in desired if item.source is not None}


def _view(
    workspace: Workspace,
    in_force: InForce,
    found: Checked,
    topics: int,
    places: Mapping[str, Place],
    *,
    live: bool,
) -> PolicyCheckView:
    project = workspace.project
    return PolicyCheckView(
        project=project.name,
        env=project.environment.name,
        cluster=workspace.cluster_name if live else None,
        topics=topics,
        policies=tuple(item.name for item in in_force.policies),
        verdicts=found.verdicts,
        open=found.open,
        places=places,
        diagnostics=in_force.diagnostics,
    )
