"""Rules about topics by their labels."""

from collections.abc import Mapping

from kdeclare.policy.interface import RequestMetadata


def are_on(request: RequestMetadata, labels: Mapping[str, str]) -> bool:
    """Whether the topic has all of these labels."""
    return not labels or labels.items() <= request.labels.items()


def were_or_are_on(request: RequestMetadata, labels: Mapping[str, str]) -> bool:
    """Whether the topic has all of these labels, or had them before the request."""
    return are_on(request, labels) or labels.items() <= request.labels_before.items()


def topics_with(labels: Mapping[str, str]) -> str:
    """The topics with these labels, for a message."""
    named = ", ".join(f"{key}={value}" for key, value in sorted(labels.items()))
    return f"topics labelled {named}" if labels else "topics"
