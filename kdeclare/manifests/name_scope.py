"""``spec.scope`` of a project file: the names that the project may declare, change or import."""

from collections.abc import Iterable, Iterator, Mapping

from yaml.nodes import Node

from kdeclare.core.capabilities import find_affected
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error, in_order
from kdeclare.core.kind import Desired, Kind
from kdeclare.core.name_scope import NameScope, out_of_scope
from kdeclare.core.patterns import RE2_HINT, PatternError, compile_pattern, is_pattern
from kdeclare.core.registry import KINDS
from kdeclare.core.suggest import did_you_mean
from kdeclare.manifests.nodes import find


def read_name_scope(stated: Mapping[str, list[str]], root: Node) -> NameScope:
    """Return the scope of a project file. Raises KdeclareError for kinds and patterns that do not exist."""
    problems = list(_find_problems(stated, root))
    if problems:
        raise KdeclareError(*in_order(problems))
    return NameScope({kind: tuple(entries) for kind, entries in stated.items()})


def check_scope(
    desired: Iterable[Desired], scope: NameScope, kinds: Mapping[str, Kind]
) -> Iterator[Diagnostic]:
    """Yield an error for each declared resource that is outside the scope, or is about one that is."""
    if not scope.entries:
        return
    for item in desired:
        forbidden = scope.find_forbidden({item.id, *find_affected(kinds[item.id.kind], item.body)})
        if forbidden:
            yield out_of_scope(item.id, forbidden, scope, item.source)


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
