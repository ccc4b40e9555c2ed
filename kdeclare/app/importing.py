"""A live cluster as manifests, so that the next plan says "No changes."."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from kdeclare.app.workspace import Workspace
from kdeclare.core.capabilities import export_manifests
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.ids import ResourceId
from kdeclare.core.parts import LiveState
from kdeclare.core.patterns import RE2_HINT, Pattern, PatternError, compile_pattern
from kdeclare.core.registry import KINDS
from kdeclare.manifests.files import file_name
from kdeclare.providers.kafka.broker_config import CLUSTER_DEFAULT, CLUSTER_DEFAULTS, HELD_BY_CLUSTER
from kdeclare.providers.kafka.config.config_diff import NEVER_RESET
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.observe import observe
from kdeclare.providers.kafka.operations.alter_configs import own_source
from kdeclare.providers.kafka.port import ConfigQuery
from kdeclare.providers.kafka.selection import KafkaSelection


@dataclass(frozen=True, slots=True)
class Imported:
    """One resource as the text of its manifest, and the file that it belongs in."""

    id: ResourceId
    file: Path
    text: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What was seen and is in no manifest, counted.

    internal: topics of Kafka's own. throttles: configs that belong to moves. hidden: configs whose value
    Kafka shows to nobody, a comment in their manifest. held: configs that the cluster itself holds.
    foreign: topics outside the project's scope.
    """

    internal: int = 0
    throttles: int = 0
    hidden: int = 0
    held: int = 0
    foreign: int = 0


def import_cluster(
    workspace: Workspace, match: str | None = None, tell: Callable[[LeftOut], None] = lambda left_out: None
) -> tuple[Imported, ...]:
    """Manifests of all that the cluster has, or of the topics whose whole name ``match`` matches.

    match: a regular expression (RE2). Internal topics are left out. tell: is told all that was.
    Raises KdeclareError for a ``match`` that is none, and where the cluster cannot be read.
    """
    wanted, scope = _pattern(match), workspace.project.scope
    with workspace.cluster() as cluster:
        info = cluster.describe()
        topics = [topic for topic in cluster.topics().values() if wanted.matches(topic.name)]
        own = [topic.name for topic in topics if not topic.internal]
        names = [name for name in own if scope.permits(ResourceId("Topic", name))]
        brokers = [] if match else ["", *(str(broker.id) for broker in info.brokers)]
        brokers = [
            id_ for id_ in brokers if scope.permits(ResourceId("BrokerConfig", id_ or CLUSTER_DEFAULT))
        ]
        queries = [
            *(ConfigQuery(ConfigResource(ConfigScope.TOPIC, n), overrides=True) for n in names),
            *(ConfigQuery(ConfigResource(ConfigScope.BROKER, n), overrides=True) for n in brokers),
        ]
        live = observe(cluster, KafkaSelection(frozenset(names), {q.resource: q for q in queries}))
    counts = Counter(internal=len(topics) - len(own), foreign=len(own) - len(names))
    tell(_left_out(live, counts))
    return tuple(_manifests(live))


def write_manifests(imported: Iterable[Imported], folder: Path) -> None:
    """Write them below ``folder``, overwriting nothing. Raises KdeclareError."""
    items = list(imported)
    there = [folder / item.file for item in items if (folder / item.file).exists()]
    if there:
        raise KdeclareError(
            error(
                "file-exists",
                "Manifests are there already",
                f"{len(there)} files would be overwritten, {there[0]} among them.",
                hint="Choose an empty folder with --out, or take them away first.",
            )
        )
    try:
        for item in items:
            target = folder / item.file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(item.text, encoding="utf-8")
    except OSError as problem:
        raise KdeclareError(
            error("not-written", "Manifests cannot be written", f"{folder}: {problem.strerror}.")
        ) from None


def _manifests(live: KafkaState) -> Iterable[Imported]:
    for kind in KINDS.values():
        for name, text in sorted(export_manifests(kind, LiveState(live)).items()):
            resource = ResourceId(kind.name, name)
            yield Imported(resource, Path(f"{kind.name.lower()}s", file_name(resource)), text)


def _left_out(live: KafkaState, counts: Counter[str]) -> LeftOut:
    """Return what is left out: ``counts``, and what of the configs of imported resources."""
    for entity, entries in live.configs.items():
        for key, entry in entries.items():
            if entry.source is not own_source(entity):
                continue
            if key in NEVER_RESET:
                counts["throttles"] += 1
            elif entity == CLUSTER_DEFAULTS and key in HELD_BY_CLUSTER:
                counts["held"] += 1
            elif entry.sensitive or entry.value is None:
                counts["hidden"] += 1
    return LeftOut(**counts)


def _pattern(match: str | None) -> Pattern:
    try:
        return compile_pattern(match or ".*")
    except PatternError as wrong:
        raise KdeclareError(
            error(
                "bad-pattern",
                "Not a regular expression",
                f"--match '{match}': {wrong.located_reason}.",
                hint=f"For one topic, give its name; for a prefix, give it with '.*' behind it. {RE2_HINT}",
            )
        ) from None
