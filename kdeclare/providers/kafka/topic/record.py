"""What is owned of a topic."""

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Self

from kdeclare.core.frozen import dataclass
from kdeclare.core.jsontypes import (
    JsonObject,
    JsonValue,
    as_bool,
    as_int,
    as_ints,
    as_object,
    as_text,
)
from kdeclare.core.resources.owned_record import OwnedRecord, narrow_record
from kdeclare.providers.kafka.config.config_record import CONFIGS, ConfigsRecord, read_applied, write_applied


@dataclass(frozen=True, slots=True)
class TopicRecord(ConfigsRecord):
    """What was last applied to a topic; None is what was not declared.

    topicId: of the topic that it was applied to; None where it is not known yet. labels: policies judge the
    deletion by them.
    """

    preventDestroy: bool = False  # noqa: N815
    topicId: str | None = None  # noqa: N815
    labels: Mapping[str, str] = field(default_factory=dict)
    assignments: Mapping[str, tuple[int, ...]] | None = None
    partitions: int | None = None
    replicationFactor: int | None = None  # noqa: N815

    @classmethod
    def from_json(cls, json: JsonObject) -> Self:
        """See `CodedRecord`."""
        configs = read_applied(json.get(CONFIGS, {}))
        if not json.keys() <= _READERS.keys():
            raise ValueError(_explain(json))
        try:
            return cls(
                configs,
                as_bool(json.get("preventDestroy", False)),
                as_text(json["topicId"]) if "topicId" in json else None,
                _read_labels(json["labels"]) if "labels" in json else {},
                _read_assignments(json["assignments"]) if "assignments" in json else None,
                as_int(json["partitions"]) if "partitions" in json else None,
                as_int(json["replicationFactor"]) if "replicationFactor" in json else None,
            )
        except TypeError as problem:
            raise ValueError(_explain(json)) from problem

    def to_json(self) -> JsonObject:
        """See `CodedRecord`."""
        json: dict[str, JsonValue] = {
            CONFIGS: write_applied(self.configs),
            "preventDestroy": self.preventDestroy,
        }
        if self.topicId is not None:
            json["topicId"] = self.topicId
        if self.labels:
            json["labels"] = self.labels
        if self.assignments is not None:
            json["assignments"] = {number: list(replicas) for number, replicas in self.assignments.items()}
        if self.partitions is not None:
            json["partitions"] = self.partitions
        if self.replicationFactor is not None:
            json["replicationFactor"] = self.replicationFactor
        return json


def narrow_topic(owned: OwnedRecord | None) -> TopicRecord | None:
    """Return what is owned of a topic; None for None. Raises TypeError for a record of another kind."""
    return narrow_record(owned, TopicRecord)


def _read_labels(json: JsonValue) -> Mapping[str, str]:
    return {name: as_text(value) for name, value in as_object(json).items()}


def _read_assignments(json: JsonValue) -> Mapping[str, tuple[int, ...]]:
    return {number: as_ints(replicas) for number, replicas in as_object(json).items()}


_READERS: Mapping[str, Callable[[JsonValue], object]] = {
    CONFIGS: read_applied,
    "preventDestroy": as_bool,
    "topicId": as_text,
    "labels": _read_labels,
    "assignments": _read_assignments,
    "partitions": as_int,
    "replicationFactor": as_int,
}


def _explain(json: JsonObject) -> str:
    """What is wrong first with a record that cannot be read."""
    for name, value in json.items():
        if name not in _READERS:
            return f"{name}: no such field is known"
        try:
            _READERS[name](value)
        except TypeError as problem:
            return f"{name}: {problem}"
    raise AssertionError("nothing is wrong with this record")
