"""The policies of a project, and the selectors that determine which resources a policy checks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

from kdeclare.core.diagnostics import SourcePosition, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.patterns import Pattern, is_pattern
from kdeclare.core.plans.plan import VerdictOutcome
from kdeclare.core.policies.policy_request import PolicyAction, PolicyRequest
from kdeclare.core.policies.policy_subjects import find_policy_words, format_kind, list_policy_kinds
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.kind import SpecProblem
from kdeclare.core.suggestions import format_alternatives, format_suggestion
from kdeclare.manifests.policies import TOPIC


@dataclass(frozen=True, slots=True)
class Selector:
    """Selects resources of one kind by name and label. Without names and labels, all resources are selected.

    Raises ValueError for an invalid regular expression. `find_bad_patterns` finds such expressions.

    names: exact names, or regular expressions (RE2) between slashes, which match whole names.
    labels: the labels that a resource must have.
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
        """Return whether the resource of a request is selected. Labels are read only if the name matches."""
        if self.names and not self._has_name(request.name):
            return False
        return not self.labels or self.labels.items() <= request.labels.items()

    def _has_name(self, name: str) -> bool:
        return name in self._exact or any(pattern.matches(name) for pattern in self._patterns)


def build_selector(names: Iterable[str], labels: Mapping[str, str], kind: str = TOPIC) -> Selector:
    """Return a selector for these names, labels and kind.

    If the selector selects all topics, return `EVERYTHING`, which is faster to evaluate.
    """
    return Selector(tuple(names), labels, kind) if names or labels or kind != TOPIC else EVERYTHING


def find_bad_patterns(names: Iterable[str], kind: str = TOPIC) -> Iterator[tuple[int, str]]:
    """Yield the index and the problem of each invalid name or regular expression."""
    words = find_policy_words(kind)
    for index, text in enumerate(names):
        if is_pattern(text):
            try:
                Pattern(text[1:-1])
            except ValueError as pattern_error:
                yield index, str(pattern_error)
        elif words is not None and not words.is_name(text):
            yield index, f"no {format_kind(kind)} can have this name, and regular expressions need slashes"


def check_selector_kind(kind: str, topics: Iterable[str]) -> SpecProblem | None:
    """Return the problem with the kind in a policy's selector, or None if the kind is valid.

    kind: the kind in the selector.
    topics: the topic names in the selector, which are allowed only for the kind Topic.
    The path of the problem begins with ``selector``.
    """
    policy_kinds = list_policy_kinds()
    if kind not in KINDS:
        hint = (
            format_suggestion(kind, policy_kinds)
            or f"Use a kind that policies support: {format_alternatives(policy_kinds)}."
        )
        diagnostic = error("unknown-kind", "Unknown kind", f"The kind '{kind}' does not exist.", hint=hint)
        return SpecProblem(("selector", "kind"), diagnostic)
    if kind not in policy_kinds:
        detail = (
            f"Policies cannot check resources of kind {kind}, because the provider of {kind} does not "
            "support policies."
        )
        hint = f"Use a kind that policies support: {format_alternatives(policy_kinds)}."
        diagnostic = error("kind-not-judged", "Kind not supported by policies", detail, hint=hint)
        return SpecProblem(("selector", "kind"), diagnostic)
    if kind != TOPIC and tuple(topics):
        detail = f"'topics' takes topic names, but this policy checks resources of kind {kind}."
        hint = "Use 'names' instead of 'topics'."
        diagnostic = error("not-topics", "Topic names in a policy for a different kind", detail, hint=hint)
        return SpecProblem(("selector", "topics"), diagnostic)
    return None


EVERYTHING = Selector()


EVERY_ACTION = frozenset(PolicyAction)


class Policy(Protocol):
    """A policy that can be evaluated: an instance of a policy class, or a CEL rule."""

    def validate(self, request: Any) -> None:
        """Return None if the request is allowed. Raise PolicyViolation if the request is denied."""

    def close(self) -> None:
        """Release the resources that ``validate`` acquired."""


class PolicyGroup(Protocol):
    """A group of policies that can be evaluated together."""

    def passes(self, policies: Sequence[Any], request: PolicyRequest) -> bool:
        """Return whether all these policies of the group allow the request.

        To find the policies that deny the request, evaluate each policy separately.
        """


@dataclass(frozen=True, slots=True)
class ConfiguredPolicy:
    """A policy of a project, with its configuration.

    outcome: the outcome of a violation: deny or warn.
    bounded: whether the evaluation always ends. If False, as for custom code, the evaluation has a time
        limit.
    group: the group of policies that can be evaluated together with this policy, or None.
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
        """The kind of resources that the policy checks."""
        return self.selector.kind

    def covers(self, request: PolicyRequest) -> bool:
        """Return whether the policy must be evaluated for a request about a resource of its kind."""
        if self.selector is not EVERYTHING and not self.selector.covers(request):
            return False
        return self.actions == EVERY_ACTION or request.action in self.actions


def group_by_kind(policies: Iterable[ConfiguredPolicy]) -> dict[str, list[ConfiguredPolicy]]:
    """Return the policies by kind, in the order in which providers list the kinds."""
    policies_by_kind: dict[str, list[ConfiguredPolicy]] = {}
    for item in policies:
        policies_by_kind.setdefault(item.kind, []).append(item)
    return {kind: policies_by_kind[kind] for kind in KINDS if kind in policies_by_kind}
