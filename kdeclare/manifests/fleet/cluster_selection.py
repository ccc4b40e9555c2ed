"""Select clusters of a fleet by name and label."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.suggestions import format_suggestion
from kdeclare.manifests.fleet.fleet_definition import Fleet


def select_clusters(fleet: Fleet, names: Sequence[str], selector: Mapping[str, str]) -> Fleet:
    """Return the fleet with only the clusters that have one of these names and all of these labels.

    names: the names of clusters. If empty, clusters with any name are selected.
    selector: the required labels. If empty, clusters with any labels are selected.
    Raises KdeclareError for a name or label that no cluster has, and if no cluster is selected.
    """
    cluster_names = [entry.name for entry in fleet.clusters]
    problems = [
        error(
            "unknown-cluster",
            "No such cluster",
            f"The fleet '{fleet.name}' has no cluster '{name}'.",
            hint=format_suggestion(name, cluster_names)
            or f"Use one of {', '.join(cluster_names[:10])}{', …' * (len(cluster_names) > 10)}.",
            subject=name,
        )
        for name in dict.fromkeys(names)
        if name not in cluster_names
    ]
    label_error = find_unknown_label(selector, [entry.labels for entry in fleet.clusters])
    problems += [label_error] if label_error is not None else []
    clusters = tuple(
        entry
        for entry in fleet.clusters
        if (not names or entry.name in names) and selector.items() <= entry.labels.items()
    )
    if not clusters and not problems:
        detail = f"None of the clusters {', '.join(names)} has all of the labels {_format_labels(selector)}."
        problems.append(error("unknown-cluster", "No such cluster", detail))
    if problems:
        raise KdeclareError(*problems)
    left_out = tuple(name for name in cluster_names if name not in {entry.name for entry in clusters})
    return replace(fleet, clusters=clusters, left_out=left_out)


def _format_labels(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in labels.items())


def find_unknown_label(
    selector: Mapping[str, str], clusters: Sequence[Mapping[str, str]]
) -> Diagnostic | None:
    """Return an error without a position if no cluster has all labels of a selector; otherwise None.

    If one of the labels does not occur in any cluster, its key is the subject of the error.

    clusters: the labels of each cluster.
    """
    if not selector or any(selector.items() <= labels.items() for labels in clusters):
        return None
    for key, value in selector.items():
        values = {labels[key]: None for labels in clusters if key in labels}
        if not values:
            known_keys = dict.fromkeys(key for labels in clusters for key in labels)
            return _build_unknown_label_error(
                f"No cluster of the fleet has a label '{key}'.", key, key, known_keys
            )
        if value not in values:
            return _build_unknown_label_error(
                f"No cluster of the fleet has the label {key}={value}.", key, value, values
            )
    label_texts = ", ".join(f"{key}={value}" for key, value in selector.items())
    detail = f"No cluster of the fleet has all of the labels {label_texts}."
    hint = "Check the labels of the clusters in 'spec.clusters'."
    return error("unknown-label", "No such cluster", detail, hint=hint)


def _build_unknown_label_error(detail: str, key: str, word: str, known_words: Iterable[str]) -> Diagnostic:
    words = sorted(known_words)
    hint = format_suggestion(word, words) or (f"Use one of {', '.join(words[:10])}." if words else "")
    return error("unknown-label", "No such label", detail, hint=hint, subject=key)
