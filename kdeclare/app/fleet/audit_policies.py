"""Evaluate policies for live objects in an audit, and detect changes to the policies of a project."""

import json
import os
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import fields
from functools import partial
from pathlib import Path

from kdeclare.app.fleet.cluster_locator import ClusterLocator
from kdeclare.app.policies import open_active_policies
from kdeclare.core.live.faults import Fault
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.policies.policy_subjects import Review, ReviewInputs, find_snapshot_subject
from kdeclare.core.provider.registry import CODECS
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.fleet.cluster_pass import (
    NO_KNOWN_RESOURCES,
    ClusterEvaluation,
    ClusterEvaluator,
    KnownResources,
    LabelsByResource,
)
from kdeclare.manifests.policies import PolicyEntry
from kdeclare.policy.cel.manifest import PolicyBody
from kdeclare.policy.configured_policy import ConfiguredPolicy, group_by_kind
from kdeclare.policy.plain_requests import PlainSubjects
from kdeclare.policy.resource_checks import check_existing
from kdeclare.policy.subjects import get_policy_subjects


def make_evaluator(locator: ClusterLocator, name: str) -> ClusterEvaluator | None:
    """Return a function that evaluates the policies of one cluster's project."""

    def evaluate(
        live: LiveState,
        objects: Sequence[ResourceId],
        labels: LabelsByResource,
        known_resources: KnownResources,
    ) -> ClusterEvaluation:
        with locator.files(), open_active_policies(locator.workspace(name)) as active_policies:
            return evaluate_objects(active_policies.policies, live, objects, labels, known_resources)

    return evaluate


def evaluate_objects(
    policies: Sequence[ConfiguredPolicy],
    live: LiveState,
    objects: Sequence[ResourceId],
    labels: LabelsByResource,
    known_resources: KnownResources = NO_KNOWN_RESOURCES,
) -> ClusterEvaluation:
    """Evaluate policies for live objects of a snapshot.

    objects: the ids of the resources whose live objects are evaluated.
    """
    results: list[ClusterEvaluation] = []
    for kind, kind_policies in group_by_kind(policies).items():
        labels_by_name = {item.name: mine for item, mine in labels.items() if item.kind == kind}
        names = [item.name for item in objects if item.kind == kind]
        snapshot_judge, subjects = find_snapshot_subject(kind), get_policy_subjects(kind)
        start_review: Callable[[], Review]
        if kind in known_resources.unread:
            results.append(ClusterEvaluation(unread=[policy.name for policy in kind_policies]))
            continue
        if snapshot_judge is not None:
            start_review = partial(snapshot_judge.start_snapshot_review, live, names, labels_by_name)
        elif isinstance(subjects, PlainSubjects) and kind in CODECS:
            desired, owned = known_resources.find_desired(kind), known_resources.find_owned(kind)
            names = subjects.find_existing(names, desired, live, owned)
            inputs = ReviewInputs(
                Connections(), live=live, labels=labels_by_name, desired=desired, owned=owned
            )
            start_review = partial(subjects.review_snapshot, inputs)
        else:
            results.append(ClusterEvaluation(open=[policy.name for policy in kind_policies]))
            continue
        if names:
            results.append(_evaluate_policies(kind_policies, kind, start_review, names))
    return _merge_results(results)


def _evaluate_policies(
    policies: Sequence[ConfiguredPolicy], kind: str, start_review: Callable[[], Review], names: Sequence[str]
) -> ClusterEvaluation:
    """Evaluate all policies together, or one by one if a policy needs data that snapshots lack."""
    try:
        verdict_groups = check_existing(policies, kind, names, start_review())
        return ClusterEvaluation([verdict for verdicts in verdict_groups for verdict in verdicts])
    except Fault:
        if len(policies) == 1:
            return ClusterEvaluation(open=[policies[0].name])
    return _merge_results([_evaluate_policies((policy,), kind, start_review, names) for policy in policies])


def _merge_results(results: Sequence[ClusterEvaluation]) -> ClusterEvaluation:
    return ClusterEvaluation(
        [verdict for found in results for verdict in found.verdicts],
        [policy for found in results for policy in found.open],
        [policy for found in results for policy in found.unread],
    )


def describe_policies(
    policies: Sequence[ConfiguredPolicy],
    entries: Sequence[PolicyEntry],
    rules: Sequence[DesiredResource],
    folder: Path,
) -> str | None:
    """Return everything that determines the verdicts of the policies, as text.

    Return None if a policy runs custom code. Such code can depend on the time, on files or on other systems,
    so that its verdicts can change even if the project stays the same.

    policies: the loaded policies. entries, rules: their declarations in the project file and in manifests.
    folder: the folder of the project. Tasks on other machines have a copy of it in a temporary folder.
    """
    if not all(policy.bounded for policy in policies):
        return None
    described: list[object] = [_list_values(entry) for entry in entries]
    for desired in rules:
        body, source = desired.get_body(PolicyBody), desired.source
        # messages contain the position of the rule
        position = (
            () if source is None else (os.path.relpath(source.file, folder), source.line, source.column)
        )
        described.append([desired.id.name, _list_values(body), position])
    return json.dumps(described, sort_keys=True, default=_encode_value) if described else ""


def _list_values(declared: PolicyEntry | PolicyBody) -> dict[str, object]:
    """Return the fields of a declared policy that `==` compares: all except positions."""
    return {item.name: getattr(declared, item.name) for item in fields(declared) if item.compare}


def _encode_value(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Set):
        return sorted(value, key=repr)
    return repr(value)  # YAML has types that JSON lacks, such as dates
