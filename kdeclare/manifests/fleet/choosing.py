"""Some clusters of a fleet, by name and by label."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.suggest import did_you_mean
from kdeclare.manifests.fleet.spec import unknown_labels
from kdeclare.manifests.fleet.values import Fleet


def chosen(fleet: Fleet, names: Sequence[str], selector: Mapping[str, str]) -> Fleet:
    """The fleet with only the clusters of these names and with these labels; of none: with all.

    Raises KdeclareError for names and labels that no cluster has, and where none has both.
    """
    known = [entry.name for entry in fleet.clusters]
    problems = [
        error(
            "unknown-cluster",
            "No such cluster",
            f"The fleet '{fleet.name}' has no cluster '{name}'.",
            hint=did_you_mean(name, known) or f"It has {', '.join(known[:10])}{', …' * (len(known) > 10)}.",
            subject=name,
        )
        for name in dict.fromkeys(names)
        if name not in known
    ]
    wrong = unknown_labels(selector, [entry.labels for entry in fleet.clusters])
    problems += [wrong] if wrong is not None else []
    clusters = tuple(
        entry
        for entry in fleet.clusters
        if (not names or entry.name in names) and selector.items() <= entry.labels.items()
    )
    if not clusters and not problems:
        detail = f"None of {', '.join(names)} has the labels {_labels(selector)}."
        problems.append(error("unknown-cluster", "No such cluster", detail))
    if problems:
        raise KdeclareError(*problems)
    left_out = tuple(name for name in known if name not in {entry.name for entry in clusters})
    return replace(fleet, clusters=clusters, left_out=left_out)


def _labels(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in labels.items())
