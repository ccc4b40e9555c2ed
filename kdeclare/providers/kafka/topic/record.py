"""The ownership record of a topic."""

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Self

from kdeclare.core.frozen_dataclass import dataclass
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
from kdeclare.providers.kafka.config.config_record import CONFIGS, ConfigsRecord, bind_applied, dump_applied


@dataclass(frozen=True, slots=True)
class TopicRecord(ConfigsRecord):
    """The fields of a topic that kdeclare applied last. Fields that were not declared are None.

    topicId: the id of the topic; None if the id is not known yet.
    labels: the labels in the manifest. Policies use these labels to evaluate a deletion.
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
        configs = bind_applied(json.get(CONFIGS, {}))
        if not json.keys() <= _BINDERS.keys():
            raise ValueError(_explain_invalid_record(json))
        try:
            return cls(
                configs,
                as_bool(json.get("preventDestroy", False)),
                as_text(json["topicId"]) if "topicId" in json else None,
                _bind_labels(json["labels"]) if "labels" in json else {},
                _bind_assignments(json["assignments"]) if "assignments" in json else None,
                as_int(json["partitions"]) if "partitions" in json else None,
                as_int(json["replicationFactor"]) if "replicationFactor" in json else None,
            )
        except TypeError as problem:
            raise ValueError(_explain_invalid_record(json)) from problem

    def to_json(self) -> JsonObject:
        """See `CodedRecord`."""
        json: dict[str, JsonValue] = {
            CONFIGS: dump_applied(self.configs),
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
    """Return the record as a TopicRecord; None if there is no record.

    Raises TypeError for a record of another kind.
    """
    return narrow_record(owned, TopicRecord)


def _bind_labels(json: JsonValue) -> Mapping[str, str]:
    return {name: as_text(value) for name, value in as_object(json).items()}


def _bind_assignments(json: JsonValue) -> Mapping[str, tuple[int, ...]]:
    return {number: as_ints(replicas) for number, replicas in as_object(json).items()}


_BINDERS: Mapping[str, Callable[[JsonValue], object]] = {
    CONFIGS: bind_applied,
    "preventDestroy": as_bool,
    "topicId": as_text,
    "labels": _bind_labels,
    "assignments": _bind_assignments,
    "partitions": as_int,
    "replicationFactor": as_int,
}


def _explain_invalid_record(json: JsonObject) -> str:
    for name, value in json.items():
        if name not in _BINDERS:
            return f"{name}: unknown field"
        try:
            _BINDERS[name](value)
        except TypeError as problem:
            return f"{name}: {problem}"
    raise AssertionError("the record is valid")
