"""Load the policies of a project: policy classes that the project file names, and Policy manifests."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import Any

from kdeclare.core.diagnostics import Diagnostic, SourcePosition, error, warning
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.plans.plan import VerdictOutcome
from kdeclare.core.policies.policy_request import ResourcePolicy
from kdeclare.core.resources.kind import DesiredResource, SpecProblem
from kdeclare.manifests.policies import TOPIC, PolicyEntry
from kdeclare.manifests.project import Project
from kdeclare.policy.cel.manifest import PolicyBody, PolicyKind, PolicySpec
from kdeclare.policy.cel.rule import RuleError
from kdeclare.policy.configured_policy import (
    ConfiguredPolicy,
    build_selector,
    check_selector_kind,
    find_bad_patterns,
)
from kdeclare.policy.deprecated import AnyPolicy, adapt_policy, find_interfaces
from kdeclare.policy.interface import Action, TopicActionsPolicy
from kdeclare.policy.isolation import format_exception
from kdeclare.policy.loading.module_finder import make_importable
from kdeclare.policy.loading.policy_classes import (
    UnusablePolicy,
    configure_policy,
    get_module_name,
    make_policy,
)

_RULES = "kdeclare.policy.rules."
_UNBOUNDED_RULE = "kdeclare.policy.rules.lifelong"
"""The module of the only ready-made rule that runs custom code."""

_KEY_PROBLEMS = frozenset({"unknown-field", "bad-key"})
"""The codes of diagnostics that point to a key in the project file, not to the value of the key."""


def load_policies(
    project: Project, rules: Sequence[DesiredResource], kind: PolicyKind
) -> tuple[tuple[ConfiguredPolicy, ...], tuple[Diagnostic, ...]]:
    """Return the policies that could be loaded, and the diagnostics of all policies.

    The policies in the project file come first. Errors that were already reported when the manifests were
    loaded are not repeated. The caller must close the policies, even if some of the diagnostics are errors.

    rules: the Policy manifests.
    """
    loader = _PolicyLoader()
    if project.policies:
        with make_importable(
            project.folder, [m for entry in project.policies for m in _collect_modules(entry)]
        ):
            for entry in project.policies:
                loader.entry(entry)
    for desired in rules:
        loader.add_manifest(desired, kind)
    loader.diagnostics += _check_duplicate_names(project.policies, rules)
    loader.diagnostics += _check_conflicts(loader.old, loader.new)
    return tuple(loader.policies), tuple(loader.diagnostics)


@dataclass(frozen=True, slots=True)
class _NamedPolicy:
    """The name and position of a policy, for messages. Also used for policies that cannot be loaded."""

    name: str
    place: SourcePosition | None


@dataclass(slots=True)
class _PolicyLoader:
    """Loads policies, and collects the policies and their diagnostics.

    old: the topic policies that implement a deprecated interface.
    new: the topic policies that implement the current interface.
    """

    policies: list[ConfiguredPolicy] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    old: list[_NamedPolicy] = field(default_factory=list)
    new: list[_NamedPolicy] = field(default_factory=list)

    def entry(self, entry: PolicyEntry) -> None:
        """Load a policy of the project file, and add it to the loaded policies."""
        problems = list(_check_selector(entry))
        try:
            made = make_policy(entry.class_name)
            self._record_interface(entry, made)
            problems += _check_class_kind(entry, made)
            configure_policy(made, entry.class_name, entry.config)
        except UnusablePolicy as unusable:
            problems += unusable.problems
        self.diagnostics += [_locate_problem(problem, entry) for problem in problems]
        if not problems:
            self.policies.append(_build_policy(entry, made))

    def add_manifest(self, desired: DesiredResource, kind: PolicyKind) -> None:
        """Add the policy that a manifest declares to the loaded policies."""
        body = desired.get_body(PolicyBody)
        if body.kind == TOPIC:
            self.new.append(_NamedPolicy(desired.id.name, desired.source))
        try:
            self.policies.append(kind.configured(desired))
        except (RuleError, ValueError, LookupError) as e:
            if not _is_already_reported(desired, kind):
                self.diagnostics.append(_build_unusable_error(desired, e))

    def _record_interface(self, entry: PolicyEntry, policy: AnyPolicy) -> None:
        class_position = entry.where(("class",))
        interfaces = find_interfaces(type(policy))
        if ResourcePolicy in interfaces:
            return  # KIP-201 covers topics only
        is_new = TopicActionsPolicy in interfaces
        (self.new if is_new else self.old).append(_NamedPolicy(entry.name, class_position))
        if not is_new:
            self.diagnostics.append(_build_deprecated_warning(entry, policy, class_position))


def _build_policy(entry: PolicyEntry, policy: AnyPolicy) -> ConfiguredPolicy:
    return ConfiguredPolicy(
        entry.name,
        adapt_policy(policy),
        VerdictOutcome(entry.severity),
        frozenset(map(Action, entry.actions)),
        build_selector((*entry.topics, *entry.names), entry.labels, entry.kind),
        entry.where(("name",)),
        bounded=_is_bounded(type(policy)),
    )


def _is_bounded(cls: type) -> bool:
    """Return whether a class is a ready-made rule of kdeclare that runs no custom code."""
    module = str(cls.__module__)
    module_names = vars(sys.modules[module]) if module.startswith(_RULES) and module in sys.modules else {}
    return module_names.get(cls.__name__) is cls and module != _UNBOUNDED_RULE


def _is_already_reported(desired: DesiredResource, kind: PolicyKind) -> bool:
    """Return whether the errors of a policy were already reported when its manifest was loaded."""
    body = desired.get_body(PolicyBody)
    names = {"topics": list(body.topics), "names": list(body.names)}
    selector = {"labels": dict(body.labels), "kind": body.kind} | {key: n for key, n in names.items() if n}
    spec = PolicySpec.model_validate(
        {"rule": body.rule, "actions": sorted(body.actions), "selector": selector}
    )
    return any(p.diagnostic.is_error for p in kind.parse(desired.id.name, spec)[1])


def _build_unusable_error(desired: DesiredResource, e: Exception) -> Diagnostic:
    return error(
        "policy-failed",
        "Policy cannot be loaded",
        f"Policy '{desired.id.name}' cannot be loaded: {format_exception(e)}.",
        hint="Correct the rule or the selector in the manifest of the policy.",
        place=desired.source,
        resource=str(desired.id),
        subject=desired.id.name,
    )


def _collect_modules(entry: PolicyEntry) -> Iterator[str]:
    """Yield the module of a policy class, and the modules of the policy classes that its settings name."""
    config: Any = {"class": entry.class_name, "config": entry.config}
    while isinstance(config, dict) and isinstance(config.get("class"), str):
        yield get_module_name(config["class"])
        config = config.get("config")


def _locate_problem(problem: SpecProblem, entry: PolicyEntry) -> Diagnostic:
    diagnostic = problem.diagnostic
    place = entry.where(problem.path, key=diagnostic.code in _KEY_PROBLEMS)
    return replace(diagnostic, detail=f"Policy '{entry.name}': {diagnostic.detail}", place=place)


def _check_selector(entry: PolicyEntry) -> Iterator[SpecProblem]:
    wrong_kind = check_selector_kind(entry.kind, entry.topics)
    if wrong_kind is not None:
        yield wrong_kind
        return
    for field_name, names in (("topics", entry.topics), ("names", entry.names)):
        for index, reason in find_bad_patterns(names, entry.kind):
            detail = f"'{names[index]}' is not valid: {reason}."
            diagnostic = error(
                "bad-pattern", "Invalid name or regular expression", detail, subject=names[index]
            )
            yield SpecProblem(("selector", field_name, index), diagnostic)


def _check_class_kind(entry: PolicyEntry, policy: AnyPolicy) -> Iterator[SpecProblem]:
    """Yield an error if the policy class does not support the kind in the selector."""
    is_resource_policy = ResourcePolicy in find_interfaces(type(policy))
    if is_resource_policy and entry.kind == TOPIC:
        detail = f"'{entry.class_name}' is a ResourcePolicy, which checks kinds other than Topic."
        hint = "Set 'selector.kind' to the kind to check. To check topics, inherit from TopicActionsPolicy."
        diagnostic = error("policy-of-another-kind", "Policy class for a different kind", detail, hint=hint)
        yield SpecProblem(("class",), diagnostic)
    if not is_resource_policy and entry.kind != TOPIC:
        detail = f"'{entry.class_name}' checks topics, but 'selector.kind' is {entry.kind}."
        hint = "Remove 'selector.kind', or use a class that inherits from ResourcePolicy."
        diagnostic = error("policy-of-another-kind", "Policy class for a different kind", detail, hint=hint)
        yield SpecProblem(("selector", "kind"), diagnostic)


def _check_duplicate_names(
    entries: Sequence[PolicyEntry], rules: Sequence[DesiredResource]
) -> Iterator[Diagnostic]:
    places = {entry.name: entry.where(("name",)) for entry in entries}
    for desired in rules:
        name = desired.id.name
        if name in places:
            yield error(
                "duplicate-policy",
                "Duplicate policy name",
                f"The policy at {places[name]} is also named '{name}'.",
                hint="Give each policy a unique name.",
                place=desired.source,
                resource=str(desired.id),
                subject=name,
            )


def _build_deprecated_warning(
    entry: PolicyEntry, policy: AnyPolicy, class_position: SourcePosition | None
) -> Diagnostic:
    interface = " and ".join(found.__name__ for found in find_interfaces(type(policy)))
    return warning(
        "deprecated-policy",
        "Deprecated policy interface",
        f"Policy '{entry.name}': '{entry.class_name}' is a {interface}, which KIP-201 deprecates.",
        hint="Inherit from TopicActionsPolicy, which also gets the state of the topic before and after "
        "every change.",
        place=class_position,
        subject=entry.name,
    )


def _check_conflicts(
    deprecated_policies: Sequence[_NamedPolicy], current_policies: Sequence[_NamedPolicy]
) -> Iterator[Diagnostic]:
    """Yield errors if a project mixes deprecated topic policy interfaces with the current interface.

    There is one error for each deprecated policy, and one for the first policy with the current interface.
    """
    if not deprecated_policies or not current_policies:
        return
    pairs = [(named, current_policies[0]) for named in deprecated_policies] + [
        (current_policies[0], deprecated_policies[0])
    ]
    for policy, other_policy in pairs:
        yield error(
            "policy-conflict",
            "Mixed policy interfaces",
            f"Policy '{policy.name}' cannot be combined with '{other_policy.name}' ({other_policy.place}). "
            "KIP-201 does not allow deprecated and current policy interfaces together.",
            hint="Rewrite the policies that use a deprecated interface: implement TopicActionsPolicy.",
            place=policy.place,
            subject=policy.name,
        )
