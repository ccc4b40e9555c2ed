"""``spec.scope`` of a project file: the names that the project may declare, change or import."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from yaml.nodes import Node

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, Place, error, in_order
from kdeclare.core.ids import ResourceId
from kdeclare.core.kind import Desired, Kind
from kdeclare.core.patterns import RE2_HINT, PatternError, compile_pattern, is_pattern
from kdeclare.core.registry import KINDS
from kdeclare.manifests.nodes import find
from kdeclare.manifests.suggest import did_you_mean
from kdeclare.providers.kafka.collector import select_topics

OUT_OF_SCOPE = "out-of-scope"

_TOPIC = "Topic"
_NAMED = 5


@dataclass(frozen=True, slots=True)
class NameScope:
    """Names or ``/patterns/`` (RE2, of whole names) by kind; a kind without an entry is not limited."""

    entries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def permits(self, resource: ResourceId) -> bool:
        """Whether the project may declare, change or import the resource."""
        entries = self.entries.get(resource.kind)
        if entries is None:
            return True
        return any(
            compile_pattern(entry[1:-1]).matches(resource.name)
            if is_pattern(entry)
            else entry == resource.name
            for entry in entries
        )

    def find_forbidden(self, resource: ResourceId, topics: Iterable[str]) -> list[ResourceId]:
        """Return what of a resource, and of the topics that it is about, the project must not touch."""
        if not self.entries:
            return []
        about = dict.fromkeys([resource, *(ResourceId(_TOPIC, topic) for topic in sorted(topics))])
        return [id_ for id_ in about if not self.permits(id_)]


def read_name_scope(stated: Mapping[str, list[str]], root: Node) -> NameScope:
    """Return the scope of a project file. Raises KdeclareError for kinds and patterns that do not exist."""
    problems = list(_find_problems(stated, root))
    if problems:
        raise KdeclareError(*in_order(problems))
    return NameScope({kind: tuple(entries) for kind, entries in stated.items()})


def check_scope(
    desired: Iterable[Desired], scope: NameScope, kinds: Mapping[str, Kind]
) -> Iterator[Diagnostic]:
    """Yield an error for each declared resource that is outside the scope, or names a topic that is."""
    if not scope.entries:
        return
    for item in desired:
        topics = select_topics(kinds[item.id.kind].select(item.id.name, item.body, None))
        forbidden = scope.find_forbidden(item.id, topics)
        if forbidden:
            yield out_of_scope(item.id, forbidden, scope, item.source)


def out_of_scope(
    resource: ResourceId | None, forbidden: Iterable[ResourceId], scope: NameScope, place: Place | None = None
) -> Diagnostic:
    """Return the error about what a project must not touch; ``resource`` is what would touch it."""
    ids = list(forbidden)
    kind = ids[0].kind
    names = [str(id_) for id_ in ids if id_.kind == kind]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    allowed = ", ".join(scope.entries.get(kind, ())) or "none"
    detail = f"This project must not declare or change {', '.join(names[:_NAMED])}{more}"
    if resource is not None and resource not in ids:
        detail += f", which {resource} is about"
    return error(
        OUT_OF_SCOPE,
        "Outside the scope of the project",
        f"{detail}. Its scope for kind {kind}: {allowed}.",
        hint="Declare it in the project that it belongs to, or extend spec.scope in the project file.",
        place=place,
        resource=str(resource) if resource is not None else None,
    )


def _find_problems(stated: Mapping[str, list[str]], root: Node) -> Iterator[Diagnostic]:
    for kind, entries in stated.items():
        if kind not in KINDS:
            yield error(
                "unknown-kind",
                "Unknown kind",
                f"There is no kind '{kind}' whose names 'spec.scope' could limit.",
                hint=did_you_mean(kind, KINDS) or f"The kinds are {', '.join(KINDS)}.",
                place=find(root, ("spec", "scope", kind), key=True),
            )
        for n, entry in enumerate(entries):
            if not is_pattern(entry):
                continue
            try:
                compile_pattern(entry[1:-1])
            except PatternError as wrong:
                yield error(
                    "bad-pattern",
                    "Not a regular expression",
                    f"'spec.scope.{kind}' holds {entry}: {wrong.located_reason}.",
                    hint=RE2_HINT,
                    place=find(root, ("spec", "scope", kind, n)),
                )
