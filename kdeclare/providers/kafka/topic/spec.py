"""What a Topic manifest can say, and what is wrong with it whatever the cluster has."""

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from kdeclare.core.diagnostics import Diagnostic, error
from kdeclare.core.frozen import dataclass
from kdeclare.core.jsontypes import (
    JsonObject,
    JsonValue,
    as_bool,
    as_int_or_none,
    as_ints,
    as_object,
    as_text,
    as_texts,
)
from kdeclare.core.resources.kind import NAME, Problem
from kdeclare.core.resources.raw_text import RawText
from kdeclare.providers.kafka.config.catalog import catalog
from kdeclare.providers.kafka.config.catalog.hover import config_keys
from kdeclare.providers.kafka.config.wishes import (
    CONFIGS_DESCRIPTION,
    UNMANAGED_DESCRIPTION,
    Wish,
    parse_wishes,
    wishes_from,
    wishes_json,
)
from kdeclare.providers.kafka.ids import ConfigScope
from kdeclare.providers.kafka.reassignment.placement_request import (
    PLACEMENT_DESCRIPTION,
    PlacementSpec,
    Strategy,
)

INT32 = 2**31 - 1
"""The largest number of partitions, and broker id, that the protocol can carry."""

_BESIDE_ASSIGNMENTS = ("partitions", "replicationFactor", "placement")
EXCLUSIVE: Mapping[str, frozenset[str]] = {
    "assignments": frozenset(_BESIDE_ASSIGNMENTS),
    **dict.fromkeys(_BESIDE_ASSIGNMENTS, frozenset({"assignments"})),
}
"""See `Kind.exclusive`. A placement goes with assignments only where it says nothing more than they do."""

_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


class TopicLifecycle(BaseModel):
    """What must never happen to a topic, and what may."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    preventDestroy: Annotated[  # noqa: N815
        bool, Field(description="Whether nothing, not even --allow-deletes, deletes it.")
    ] = False
    adopt: Annotated[
        bool,
        Field(
            description="Whether a topic that exists, differs and was never applied is taken over and "
            "changed."
        ),
    ] = False


class TopicSpec(BaseModel):
    """``spec`` of a Topic manifest."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    partitions: Annotated[
        Annotated[int, Field(ge=1, le=INT32)] | None,
        Field(
            description="How many partitions. They can become more, never fewer. Not stated: Kafka's default."
        ),
    ] = None
    replicationFactor: Annotated[  # noqa: N815
        Annotated[int, Field(ge=1, le=32767)] | None,
        Field(description="How many replicas each partition has. Not stated: Kafka's default."),
    ] = None
    assignments: Annotated[
        dict[int, list[Annotated[int, Field(ge=0, le=INT32)]]] | None,
        Field(
            description="The brokers of each partition, preferred leader first; in place of partitions and "
            "replicationFactor."
        ),
    ] = None
    placement: Annotated[PlacementSpec | None, Field(description=PLACEMENT_DESCRIPTION)] = None
    configs: Annotated[
        dict[str, Any],
        RawText(may_be_secret=True),
        Field(description=CONFIGS_DESCRIPTION, json_schema_extra=config_keys(ConfigScope.TOPIC)),
    ] = {}
    unmanagedConfigs: Annotated[  # noqa: N815
        Literal["keep", "remove"], Field(description=UNMANAGED_DESCRIPTION)
    ] = "keep"
    lifecycle: Annotated[
        TopicLifecycle, Field(description="What must never happen to the topic, and what may.")
    ] = TopicLifecycle()


@dataclass(frozen=True, slots=True)
class TopicBody:
    """A declared topic. None is "not stated": Kafka's default at creation, left alone afterwards."""

    partitions: int | None = None
    replication_factor: int | None = None
    assignments: Mapping[int, tuple[int, ...]] | None = None
    strategy: Strategy | None = None
    racks: tuple[str, ...] = ()
    configs: Mapping[str, Wish] = field(default_factory=dict)
    remove_unmanaged: bool = False
    prevent_destroy: bool = False
    adopt: bool = False


def parse_topic(name: str, spec: TopicSpec) -> tuple[TopicBody, tuple[Problem, ...]]:
    """The body of a spec, and what is wrong with it; offline."""
    resource = f"Topic/{name}"
    problems = [Problem(NAME, item) for item in _name_problems(resource, name)]
    wishes, wrong = parse_wishes(resource, spec.configs, catalog(ConfigScope.TOPIC))
    problems += wrong
    assignments = None
    if spec.assignments is not None:
        problems += _assignment_problems(resource, spec)
        assignments = {n: tuple(spec.assignments[n]) for n in sorted(spec.assignments)}
    problems += _placement_problems(resource, spec)
    body = TopicBody(
        partitions=len(assignments) if assignments else spec.partitions,
        replication_factor=spec.replicationFactor,
        assignments=assignments,
        strategy=spec.placement.rule if spec.placement else None,
        racks=tuple(spec.placement.racks) if spec.placement else (),
        configs=wishes,
        remove_unmanaged=spec.unmanagedConfigs == "remove",
        prevent_destroy=spec.lifecycle.preventDestroy,
        adopt=spec.lifecycle.adopt,
    )
    return body, tuple(problems)


def is_legal_name(name: str) -> bool:
    """Whether Kafka takes it for a topic (Topic.validate)."""
    return bool(_LEGAL_NAME.fullmatch(name)) and name not in (".", "..")


def _name_problems(resource: str, name: str) -> list[Diagnostic]:
    if is_legal_name(name):
        return []
    return [
        error(
            "illegal-topic-name",
            "Illegal topic name",
            f"'{name}' cannot be a topic: Kafka takes 1 to 249 letters, digits, dots, underscores and "
            "dashes, and neither '.' nor '..'.",
            resource=resource,
        )
    ]


def _placement_problems(resource: str, spec: TopicSpec) -> list[Problem]:
    placement = spec.placement
    if placement is None:
        return []
    found: list[tuple[tuple[str | int, ...], str]] = []
    static = placement.strategy == "static"
    if static and spec.assignments is None:
        found.append((("placement", "strategy"), "'static' says what 'assignments' say; they are missing."))
    if not static and spec.assignments is not None:
        found.append((("placement",), "'assignments' say it all; only the strategy 'static' goes with them."))
    in_racks = placement.strategy == "static-in-rack"
    if in_racks != bool(placement.racks):
        text = "'static-in-rack' needs 'racks', the rack of each partition, and no other strategy takes them."
        found.append((("placement",), text))
    if not static and (spec.partitions is None or spec.replicationFactor is None):
        text = "A placement needs 'partitions' and 'replicationFactor', or a new topic could not be placed."
        found.append((("placement",), text))
    return [
        Problem(path, error("invalid-placement", "Invalid placement", text, resource=resource))
        for path, text in found
    ]


def _assignment_problems(resource: str, spec: TopicSpec) -> list[Problem]:
    assignments = spec.assignments or {}
    found: list[tuple[tuple[str | int, ...], str]] = []
    if spec.partitions is not None or spec.replicationFactor is not None:
        stated = "partitions" if spec.partitions is not None else "replicationFactor"
        found.append(((stated,), f"'{stated}' follows from 'assignments' and cannot be stated beside it."))
    if sorted(assignments) != list(range(len(assignments))) or not assignments:
        found.append((("assignments",), "Partitions must be numbered 0, 1, 2 … without a gap."))
    if len({len(replicas) for replicas in assignments.values()}) > 1:
        found.append((("assignments",), "All partitions must have the same number of replicas."))
    for n, replicas in assignments.items():
        if not replicas or len(set(replicas)) != len(replicas):
            found.append((("assignments", n), f"Partition {n} needs replicas, each broker once."))
    return [
        Problem(path, error("invalid-assignments", "Invalid assignments", text, resource=resource))
        for path, text in found
    ]


def topic_json(name: str, body: TopicBody) -> JsonObject:
    """See `Kind.to_json`; what is not stated, or as by default, is left out."""
    assignments = body.assignments
    stated: dict[str, JsonValue] = {
        "partitions": body.partitions,
        "replicationFactor": body.replication_factor,
        "assignments": None if assignments is None else {str(n): list(r) for n, r in assignments.items()},
        "strategy": None if body.strategy is None else str(body.strategy),
        "racks": list(body.racks) or None,
        "removeUnmanaged": body.remove_unmanaged or None,
        "preventDestroy": body.prevent_destroy or None,
        "adopt": body.adopt or None,
    }
    configs = wishes_json(body.configs, catalog(ConfigScope.TOPIC))
    return {"configs": configs, **{field: value for field, value in stated.items() if value is not None}}


def topic_from(json: JsonObject) -> TopicBody:
    """See `Kind.from_json`."""
    strategy = json.get("strategy")
    return TopicBody(
        partitions=as_int_or_none(json.get("partitions")),
        replication_factor=as_int_or_none(json.get("replicationFactor")),
        assignments=_read_assignments(json.get("assignments")),
        strategy=None if strategy is None else Strategy(as_text(strategy)),
        racks=as_texts(json.get("racks", ())),
        configs=wishes_from(as_object(json["configs"])),
        remove_unmanaged=as_bool(json.get("removeUnmanaged", False)),
        prevent_destroy=as_bool(json.get("preventDestroy", False)),
        adopt=as_bool(json.get("adopt", False)),
    )


def _read_assignments(json: JsonValue) -> dict[int, tuple[int, ...]] | None:
    if json is None:
        return None
    stated = as_object(json)
    return {n: as_ints(stated[str(n)]) for n in sorted(map(int, stated))}
