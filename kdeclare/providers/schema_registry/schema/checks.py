"""Checks of all declared schemas together, without a registry."""

from collections.abc import Iterator, Sequence

from kdeclare.core.diagnostics import Diagnostic, warning
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.suggestions import format_suggestion
from kdeclare.providers.schema_registry.schema.spec import SchemaBody

TOPIC = "Topic"
"""The name of the kind of topics, which is also their object type in footprints."""
_SUFFIXES = ("-value", "-key")
"""The suffixes that the TopicNameStrategy, the default of serializers, adds to the name of a topic."""


def check_declared_schemas(desired: Sequence[DesiredResource]) -> Iterator[Diagnostic]:
    """Yield a warning for each subject that is named after a topic that no manifest declares.

    Registries accept any subject. If the project declares no topics, there are no warnings.
    """
    topics = {item.id.name for item in desired if item.id.kind == TOPIC}
    if not topics:
        return
    for item in desired:
        if not isinstance(item.body, SchemaBody):
            continue
        topic = find_topic(item.body.subject)
        if topic is not None and topic not in topics:
            yield _warn_without_topic(item, item.body.subject, topic, topics)


def find_topic(subject: str) -> str | None:
    """Return the topic of a subject that follows the TopicNameStrategy; None for any other subject."""
    suffix = next((item for item in _SUFFIXES if subject.endswith(item)), None)
    return subject.removesuffix(suffix) if suffix is not None and subject != suffix else None


def _warn_without_topic(desired: DesiredResource, subject: str, topic: str, topics: set[str]) -> Diagnostic:
    return warning(
        "schema-without-topic",
        "Schema without a topic",
        f"{desired.id} declares subject '{subject}'. Serializers use this subject for the records of topic "
        f"'{topic}', which no manifest declares.",
        hint=format_suggestion(topic, topics) or "Check the name of the subject, or declare the topic.",
        place=desired.source,
        resource=str(desired.id),
        subject=topic,
    )
