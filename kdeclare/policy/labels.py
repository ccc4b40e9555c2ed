"""The labels of topics that policies see: as declared, as recorded in a plan, or as last applied."""

from collections.abc import Iterable, Mapping

from kdeclare.core.ids import ResourceId
from kdeclare.core.jsontypes import Json
from kdeclare.core.judging import Labels
from kdeclare.core.kind import Desired
from kdeclare.core.plan import Ownership
from kdeclare.providers.kafka.ids import is_topic


def find_declared_labels(desired: Iterable[Desired], owned: Mapping[str, Json]) -> Labels:
    """Return the labels of topics: as declared, else as they were when last applied."""
    stated = {d.id.name: d.labels for d in desired if is_topic(d.id)}
    return {**find_owned_labels(owned), **stated}


def find_planned_labels(owned: Mapping[str, Json], ownership: Iterable[Ownership]) -> Labels:
    """Return the labels as the records of a plan have them, else those of the state."""
    planned = {str(item.id): item.after or item.before for item in ownership}
    return {**find_owned_labels(owned), **find_owned_labels(planned)}


def find_owned_labels(owned: Mapping[str, Json]) -> dict[str, Mapping[str, str]]:
    """Return the labels of topics as they were when last applied."""
    records = {ResourceId.parse(text): record or {} for text, record in owned.items()}
    return {id_.name: record.get("labels", {}) for id_, record in records.items() if is_topic(id_)}
