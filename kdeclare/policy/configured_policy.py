"""A policy as a project configured it, and which resources it is about."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

from kdeclare.core.diagnostics import SourcePosition, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.patterns import Pattern, is_pattern
from kdeclare.core.plans.plan import VerdictOutcome
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.kind import SpecProblem
from kdeclare.core.resources.policy_subjects import (
    PolicyAction,
    PolicyRequest,
    find_policy_words,
    format_kind,
    list_policy_kinds,
)
from kdeclare.core.suggestions import format_alternatives, format_suggestion
from kdeclare.manifests.policies import TOPIC


@dataclass(frozen=True, slots=True)
class Selector:
    """Resources of one kind by name and by label; nothing stated is everything.

    names: exact names, or regular expressions (RE2) between slashes that match whole names.
    labels: all of these must be there.

    Raises ValueError for what is no regular expression; `find_bad_patterns` tells beforehand.
    """

    names: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    kind: str = TOPIC
    _exact: frozenset[str] = field(init=False, repr=False, compare=False)
    _patterns: tuple[Pattern, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        exact = frozenset(text for text in self.names if not is_pattern(text))
        patterns = tuple(Pattern(text[1:-1]) for text in self.names if is_pattern(text))
        object.__setattr__(self, "_exact", exact)
        object.__setattr__(self, "_patterns", patterns)

    def covers(self, request: PolicyRequest) -> bool:
        """Whether the resource of a request is among them; looks at its labels only if some are stated."""
        if self.names and not self._has_name(request.name):
            return False
        return not self.labels or self.labels.items() <= request.labels.items()

    def _has_name(self, name: str) -> bool:
        return name in self._exact or any(pattern.matches(name) for pattern in self._patterns)


def build_selector(names: Iterable[str], labels: Mapping[str, str], kind: str = TOPIC) -> Selector:
    """Return the selector; the same one for all policies about every topic, as it costs nothing to ask."""
    return Selector(tuple(names), labels, kind) if names or labels or kind != TOPIC else EVERYTHING


def find_bad_patterns(names: Iterable[str], kind: str = TOPIC) -> Iterator[tuple[int, str]]:
    """Selector's names that are neither regular expressions nor names: their indices and the reasons."""
    words = find_policy_words(kind)
    for index, text in enumerate(names):
        if is_pattern(text):
            try:
                Pattern(text[1:-1])
            except ValueError as pattern_error:
                yield index, str(pattern_error)
        elif words is not None and not words.is_name(text):
            yield index, f"no {format_kind(kind)} has this name; a regular expression stands between slashes"


def check_selector_kind(kind: str, topics: Iterable[str]) -> SpecProblem | None:
    """What is wrong with the kind that a selector names; paths begin with ``selector``."""
    policy_kinds = list_policy_kinds()
    if kind not in KINDS:
        hint = (
            format_suggestion(kind, policy_kinds)
            or f"Policies can judge {format_alternatives(policy_kinds)}."
        )
        diagnostic = error("unknown-kind", "Unknown kind", f"There is no kind '{kind}'.", hint=hint)
        return SpecProblem(("selector", "kind"), diagnostic)
    if kind not in policy_kinds:
        detail = f"Policies cannot judge resources of kind {kind}: their provider does not support it."
        hint = f"They can judge {format_alternatives(policy_kinds)}."
        diagnostic = error("kind-not-judged", "Kind cannot be judged", detail, hint=hint)
        return SpecProblem(("selector", "kind"), diagnostic)
    if kind != TOPIC and tuple(topics):
        detail = f"'topics' are names of topics, and this policy is about {kind}."
        diagnostic = error("not-topics", "Names of another kind", detail, hint="Write 'names'.")
        return SpecProblem(("selector", "topics"), diagnostic)
    return None


EVERYTHING = Selector()


EVERY_ACTION = frozenset(PolicyAction)


class Policy(Protocol):
    """What can be asked: a class of other people's, or a rule."""

    def validate(self, request: Any) -> None:
        """Return if the request is in order. Raises PolicyViolation if it is not."""

    def close(self) -> None:
        """Let go of what ``validate`` took."""


class PolicyGroup(Protocol):
    """Policies that can be asked in one go."""

    def passes(self, policies: Sequence[Any], request: PolicyRequest) -> bool:
        """Whether none of these, which are of this group, has anything against a request.

        False means that they have to be asked one by one.
        """


@dataclass(frozen=True, slots=True)
class ConfiguredPolicy:
    """One policy of a project, ready to be asked.

    outcome: what its violations come to, deny or warn.
    bounded: whether it ends by itself, as an expression does; other people's code is given a time limit.
    group: those that it can be asked together with.
    """

    name: str
    policy: Policy
    outcome: VerdictOutcome = VerdictOutcome.DENY
    actions: frozenset[PolicyAction] = EVERY_ACTION
    selector: Selector = EVERYTHING
    place: SourcePosition | None = None
    bounded: bool = False
    group: PolicyGroup | None = None

    @property
    def kind(self) -> str:
        """The kind that it judges."""
        return self.selector.kind

    def covers(self, request: PolicyRequest) -> bool:
        """Whether it is to be asked about a request about its kind; looks at no more than it must."""
        if self.selector is not EVERYTHING and not self.selector.covers(request):
            return False
        return self.actions == EVERY_ACTION or request.action in self.actions


def group_by_kind(policies: Iterable[ConfiguredPolicy]) -> dict[str, list[ConfiguredPolicy]]:
    """Return policies by the kind that they judge, in the order in which kinds are listed."""
    policies_by_kind: dict[str, list[ConfiguredPolicy]] = {}
    for item in policies:
        policies_by_kind.setdefault(item.kind, []).append(item)
    return {kind: policies_by_kind[kind] for kind in list_policy_kinds() if kind in policies_by_kind}
