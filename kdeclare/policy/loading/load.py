"""The policies of a project: classes from its project file, and manifests of kind Policy."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import Any

from kdeclare.core.diagnostics import Diagnostic, Place, error, warning
from kdeclare.core.frozen import dataclass
from kdeclare.core.plans.plan import VerdictOutcome
from kdeclare.core.resources.kind import Desired, Problem
from kdeclare.core.resources.policy_subjects import ResourcePolicy
from kdeclare.manifests.policies import TOPIC, PolicyEntry
from kdeclare.manifests.project import Project
from kdeclare.policy.cel.manifest import PolicyBody, PolicyKind, PolicySpec
from kdeclare.policy.cel.rule import RuleError
from kdeclare.policy.configured import ConfiguredPolicy, find_wrong_kind, select, wrong_patterns
from kdeclare.policy.deprecated import AnyPolicy, adapted, interfaces_of
from kdeclare.policy.interface import Action, TopicActionsPolicy
from kdeclare.policy.isolation import told
from kdeclare.policy.loading.classes import Unusable, configure, make, module_of
from kdeclare.policy.loading.importable import importable

_RULES = "kdeclare.policy.rules."
_OTHERS_RULE = "kdeclare.policy.rules.lifelong"
"""The one ready-made rule that runs other people's code."""

_AT_KEY = frozenset({"unknown-field", "bad-key"})
"""What is wrong with a key, whatever its value."""


def load_policies(
    project: Project, rules: Sequence[Desired], kind: PolicyKind
) -> tuple[tuple[ConfiguredPolicy, ...], tuple[Diagnostic, ...]]:
    """The policies that can be used, those of the project file first, and what is wrong with all of them.

    rules: the Policy manifests. One with an error is left out; that has been said when it was read.
    Whoever asks for policies closes them, also if some of the diagnostics are errors.
    """
    found = _Found()
    if project.policies:
        with importable(project.folder, [m for entry in project.policies for m in _modules(entry)]):
            for entry in project.policies:
                found.entry(entry)
    for desired in rules:
        found.manifest(desired, kind)
    found.diagnostics += _same_names(project.policies, rules)
    found.diagnostics += _conflicts(found.old, found.new)
    return tuple(found.policies), tuple(found.diagnostics)


@dataclass(frozen=True, slots=True)
class _Named:
    """A policy for messages, usable or not."""

    name: str
    place: Place | None


@dataclass(slots=True)
class _Found:
    """What has been loaded so far; ``old`` are behind the deprecated interfaces."""

    policies: list[ConfiguredPolicy] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    old: list[_Named] = field(default_factory=list)
    new: list[_Named] = field(default_factory=list)

    def entry(self, entry: PolicyEntry) -> None:
        """Add a policy of the project file."""
        problems = list(_selector_problems(entry))
        try:
            made = make(entry.class_name)
            self._take_note(entry, made)
            problems += _other_kind(entry, made)
            configure(made, entry.class_name, entry.config)
        except Unusable as unusable:
            problems += unusable.problems
        self.diagnostics += [_placed(problem, entry) for problem in problems]
        if not problems:
            self.policies.append(_configured(entry, made))

    def manifest(self, desired: Desired, kind: PolicyKind) -> None:
        """Add the policy of a manifest."""
        body = desired.get_body(PolicyBody)
        if body.kind == TOPIC:
            self.new.append(_Named(desired.id.name, desired.source))
        try:
            self.policies.append(kind.configured(desired))
        except (RuleError, ValueError, LookupError) as e:
            if not _was_told(desired, kind):
                self.diagnostics.append(_unusable(desired, e))

    def _take_note(self, entry: PolicyEntry, made: AnyPolicy) -> None:
        where = entry.where(("class",))
        has = interfaces_of(type(made))
        if ResourcePolicy in has:
            return  # KIP-201 is about topics
        is_new = TopicActionsPolicy in has
        (self.new if is_new else self.old).append(_Named(entry.name, where))
        if not is_new:
            self.diagnostics.append(_deprecated(entry, made, where))


def _configured(entry: PolicyEntry, made: AnyPolicy) -> ConfiguredPolicy:
    return ConfiguredPolicy(
        entry.name,
        adapted(made),
        VerdictOutcome(entry.severity),
        frozenset(map(Action, entry.actions)),
        select((*entry.topics, *entry.names), entry.labels, entry.kind),
        entry.where(("name",)),
        bounded=_is_bounded(type(made)),
    )


def _is_bounded(cls: type) -> bool:
    """Whether it is one of the ready-made rules, and not only called so."""
    module = str(cls.__module__)
    there = vars(sys.modules[module]) if module.startswith(_RULES) and module in sys.modules else {}
    return there.get(cls.__name__) is cls and module != _OTHERS_RULE


def _was_told(desired: Desired, kind: PolicyKind) -> bool:
    """Whether its errors are among those of its manifest."""
    body = desired.get_body(PolicyBody)
    names = {"topics": list(body.topics), "names": list(body.names)}
    selector = {"labels": dict(body.labels), "kind": body.kind} | {key: n for key, n in names.items() if n}
    spec = PolicySpec.model_validate(
        {"rule": body.rule, "actions": sorted(body.actions), "selector": selector}
    )
    return any(p.diagnostic.is_error for p in kind.parse(desired.id.name, spec)[1])


def _unusable(desired: Desired, e: Exception) -> Diagnostic:
    return error(
        "policy-failed",
        "Policy failed",
        f"Policy '{desired.id.name}' cannot be used: {told(e)}.",
        place=desired.source,
        resource=str(desired.id),
        subject=desired.id.name,
    )


def _modules(entry: PolicyEntry) -> Iterator[str]:
    """The modules that an entry names, with those of policies within its settings."""
    config: Any = {"class": entry.class_name, "config": entry.config}
    while isinstance(config, dict) and isinstance(config.get("class"), str):
        yield module_of(config["class"])
        config = config.get("config")


def _placed(problem: Problem, entry: PolicyEntry) -> Diagnostic:
    found = problem.diagnostic
    place = entry.where(problem.path, key=found.code in _AT_KEY)
    return replace(found, detail=f"Policy '{entry.name}': {found.detail}", place=place)


def _selector_problems(entry: PolicyEntry) -> Iterator[Problem]:
    wrong_kind = find_wrong_kind(entry.kind, entry.topics)
    if wrong_kind is not None:
        yield wrong_kind
        return
    for field_name, names in (("topics", entry.topics), ("names", entry.names)):
        for index, reason in wrong_patterns(names, entry.kind):
            detail = f"'{names[index]}' is no regular expression: {reason}."
            wrong = error("bad-pattern", "No regular expression", detail, subject=names[index])
            yield Problem(("selector", field_name, index), wrong)


def _other_kind(entry: PolicyEntry, made: AnyPolicy) -> Iterator[Problem]:
    """What is wrong with a class about topics for another kind, and the other way round."""
    of_any = ResourcePolicy in interfaces_of(type(made))
    if of_any and entry.kind == TOPIC:
        detail = f"'{entry.class_name}' is a ResourcePolicy, and these judge other kinds than topics."
        hint = "Name the kind under 'selector.kind', or inherit from TopicActionsPolicy."
        wrong = error("policy-of-another-kind", "Policy of another kind", detail, hint=hint)
        yield Problem(("class",), wrong)
    if not of_any and entry.kind != TOPIC:
        detail = f"'{entry.class_name}' judges topics, and the selector names {entry.kind}."
        hint = "A class about other kinds inherits from ResourcePolicy."
        wrong = error("policy-of-another-kind", "Policy of another kind", detail, hint=hint)
        yield Problem(("selector", "kind"), wrong)


def _same_names(entries: Sequence[PolicyEntry], rules: Sequence[Desired]) -> Iterator[Diagnostic]:
    places = {entry.name: entry.where(("name",)) for entry in entries}
    for desired in rules:
        name = desired.id.name
        if name in places:
            yield error(
                "duplicate-policy",
                "Two policies of one name",
                f"'{name}' is the name of the policy at {places[name]}, too.",
                hint="Give each a name of its own.",
                place=desired.source,
                resource=str(desired.id),
                subject=name,
            )


def _deprecated(entry: PolicyEntry, made: AnyPolicy, where: Place | None) -> Diagnostic:
    interface = " and ".join(found.__name__ for found in interfaces_of(type(made)))
    return warning(
        "deprecated-policy",
        "Deprecated policy interface",
        f"Policy '{entry.name}': '{entry.class_name}' is a {interface}, which KIP-201 deprecates.",
        hint="A TopicActionsPolicy sees the same, and the topic before and after every change.",
        place=where,
        subject=entry.name,
    )


def _conflicts(old: Sequence[_Named], new: Sequence[_Named]) -> Iterator[Diagnostic]:
    """Old and new together, told at each old one and at the first new one."""
    if not old or not new:
        return
    pairs = [(named, new[0]) for named in old] + [(new[0], old[0])]
    for named, other in pairs:
        yield error(
            "policy-conflict",
            "Deprecated and new policies together",
            f"Policy '{named.name}' cannot be used together with '{other.name}' ({other.place}): "
            "one of the two has a deprecated interface, the other one has not.",
            hint="KIP-201 allows either kind: move the deprecated ones to TopicActionsPolicy.",
            place=named.place,
            subject=named.name,
        )
