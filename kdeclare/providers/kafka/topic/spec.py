"""The ``spec`` of a Topic manifest, and the checks that need no cluster."""

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from kdeclare.core.diagnostics import Diagnostic, error
from kdeclare.core.frozen_dataclass import dataclass
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
from kdeclare.core.resources.declared_absence import ResourceState
from kdeclare.core.resources.ignored_changes import IgnoredPaths
from kdeclare.core.resources.kind import NAME, SpecProblem
from kdeclare.core.resources.raw_text import RawText
from kdeclare.providers.kafka.config.catalog import load_catalog
from kdeclare.providers.kafka.config.catalog.key_docs import make_schema_extra
from kdeclare.providers.kafka.config.config_value import (
    CONFIGS_DESCRIPTION,
    UNMANAGED_DESCRIPTION,
    ConfigValue,
    bind_config_values,
    dump_config_values,
    parse_config_values,
)
from kdeclare.providers.kafka.config.ignored_configs import check_ignored_configs
from kdeclare.providers.kafka.ids import ConfigScope
from kdeclare.providers.kafka.reassignment.placement_request import (
    PLACEMENT_DESCRIPTION,
    PlacementSpec,
    Strategy,
)

INT32 = 2**31 - 1
"""The largest partition count and broker id in Kafka's protocol."""

_BESIDE_ASSIGNMENTS = ("partitions", "replicationFactor", "placement")
EXCLUSIVE_FIELDS: Mapping[str, frozenset[str]] = {
    "assignments": frozenset(_BESIDE_ASSIGNMENTS),
    **dict.fromkeys(_BESIDE_ASSIGNMENTS, frozenset({"assignments"})),
}
"""Mutually exclusive fields; see `Kind`. Only the strategy ``static`` can be combined with assignments."""

_IGNORABLE_FIELDS = ("partitions", "replicationFactor", "placement", "assignments")
"""The fields, besides configs, that ``ignoreChanges`` can list if the manifest declares no assignments."""

_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


class TopicLifecycle(BaseModel):
    """The ``lifecycle`` of a topic: adoption, protection from deletion, and ignored fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    preventDestroy: Annotated[  # noqa: N815
        bool, Field(description="Never delete the topic, not even with --allow-deletes.")
    ] = False
    adopt: Annotated[
        bool,
        Field(
            description="Take ownership of an existing topic that kdeclare has never applied, and change the "
            "topic to match the manifest."
        ),
    ] = False
    ignoreChanges: IgnoredPaths = ()  # noqa: N815
    state: ResourceState = "present"


class TopicSpec(BaseModel):
    """The ``spec`` of a Topic manifest."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    partitions: Annotated[
        Annotated[int, Field(ge=1, le=INT32)] | None,
        Field(
            description="Number of partitions. The number can be increased but not decreased. If omitted: "
            "the broker default."
        ),
    ] = None
    replicationFactor: Annotated[  # noqa: N815
        Annotated[int, Field(ge=1, le=32767)] | None,
        Field(description="Number of replicas of each partition. If omitted: the broker default."),
    ] = None
    assignments: Annotated[
        dict[int, list[Annotated[int, Field(ge=0, le=INT32)]]] | None,
        Field(
            description="The brokers of each partition's replicas, preferred leader first. Replaces "
            "partitions and replicationFactor."
        ),
    ] = None
    placement: Annotated[PlacementSpec | None, Field(description=PLACEMENT_DESCRIPTION)] = None
    configs: Annotated[
        dict[str, Any],
        RawText(may_be_secret=True),
        Field(description=CONFIGS_DESCRIPTION, json_schema_extra=make_schema_extra(ConfigScope.TOPIC)),
    ] = {}
    unmanagedConfigs: Annotated[  # noqa: N815
        Literal["keep", "remove"], Field(description=UNMANAGED_DESCRIPTION)
    ] = "keep"
    lifecycle: Annotated[
        TopicLifecycle, Field(description="Protection from deletion, and adoption of an existing topic.")
    ] = TopicLifecycle()


@dataclass(frozen=True, slots=True)
class TopicBody:
    """A declared topic. Fields that are not declared are None; a new topic then gets the broker defaults.

    ignored: the paths of fields that kdeclare leaves alone once the topic exists.
    """

    partitions: int | None = None
    replication_factor: int | None = None
    assignments: Mapping[int, tuple[int, ...]] | None = None
    strategy: Strategy | None = None
    racks: tuple[str, ...] = ()
    configs: Mapping[str, ConfigValue] = field(default_factory=dict)
    remove_unmanaged: bool = False
    prevent_destroy: bool = False
    adopt: bool = False
    ignored: tuple[str, ...] = ()


def parse_topic(name: str, spec: TopicSpec) -> tuple[TopicBody, tuple[SpecProblem, ...]]:
    """Convert a spec to a body. Also return the problems that can be found without a cluster."""
    resource = f"Topic/{name}"
    problems = [SpecProblem(NAME, item) for item in _check_name(resource, name)]
    config_values, config_problems = parse_config_values(
        resource, spec.configs, load_catalog(ConfigScope.TOPIC)
    )
    problems += config_problems
    assignments = None
    if spec.assignments is not None:
        problems += _check_assignments(resource, spec)
        assignments = {n: tuple(spec.assignments[n]) for n in sorted(spec.assignments)}
    problems += _check_placement(resource, spec)
    problems += check_ignored_configs(
        resource,
        spec.lifecycle.ignoreChanges,
        load_catalog(ConfigScope.TOPIC),
        spec.configs,
        ("assignments",) if spec.assignments is not None else _IGNORABLE_FIELDS,
    )
    body = TopicBody(
        partitions=len(assignments) if assignments else spec.partitions,
        replication_factor=spec.replicationFactor,
        assignments=assignments,
        strategy=spec.placement.rule if spec.placement else None,
        racks=tuple(spec.placement.racks) if spec.placement else (),
        configs=config_values,
        remove_unmanaged=spec.unmanagedConfigs == "remove",
        prevent_destroy=spec.lifecycle.preventDestroy,
        adopt=spec.lifecycle.adopt,
        ignored=tuple(spec.lifecycle.ignoreChanges),
    )
    return body, tuple(problems)


def is_legal_name(name: str) -> bool:
    """Return whether Kafka accepts the name for a topic (Topic.validate)."""
    return bool(_LEGAL_NAME.fullmatch(name)) and name not in (".", "..")


def _check_name(resource: str, name: str) -> list[Diagnostic]:
    if is_legal_name(name):
        return []
    return [
        error(
            "illegal-topic-name",
            "Illegal topic name",
            f"Kafka does not accept '{name}' as a topic name.",
            hint="Use 1 to 249 letters, digits, dots, underscores and hyphens. The names '.' and '..' are "
            "not allowed.",
            resource=resource,
        )
    ]


def _check_placement(resource: str, spec: TopicSpec) -> list[SpecProblem]:
    placement = spec.placement
    if placement is None:
        return []
    messages: list[tuple[tuple[str | int, ...], str]] = []
    is_static = placement.strategy == "static"
    if is_static and spec.assignments is None:
        messages.append(
            (("placement", "strategy"), "The strategy 'static' requires 'assignments', which are missing.")
        )
    if not is_static and spec.assignments is not None:
        messages.append((("placement",), "'assignments' can only be combined with the strategy 'static'."))
    needs_racks = placement.strategy == "static-in-rack"
    if needs_racks != bool(placement.racks):
        text = (
            "The strategy 'static-in-rack' requires 'racks' with one rack per partition. Other strategies do "
            "not accept 'racks'."
        )
        messages.append((("placement",), text))
    if not is_static and (spec.partitions is None or spec.replicationFactor is None):
        text = "'placement' requires 'partitions' and 'replicationFactor', unless the strategy is 'static'."
        messages.append((("placement",), text))
    return [
        SpecProblem(path, error("invalid-placement", "Invalid placement", text, resource=resource))
        for path, text in messages
    ]


def _check_assignments(resource: str, spec: TopicSpec) -> list[SpecProblem]:
    assignments = spec.assignments or {}
    messages: list[tuple[tuple[str | int, ...], str]] = []
    if spec.partitions is not None or spec.replicationFactor is not None:
        conflicting_field = "partitions" if spec.partitions is not None else "replicationFactor"
        messages.append(
            (
                (conflicting_field,),
                f"'assignments' already determines '{conflicting_field}'. Declare only one of the two.",
            )
        )
    if sorted(assignments) != list(range(len(assignments))) or not assignments:
        messages.append((("assignments",), "Partitions must be numbered 0, 1, 2 … without gaps."))
    if len({len(replicas) for replicas in assignments.values()}) > 1:
        messages.append((("assignments",), "All partitions must have the same number of replicas."))
    for n, replicas in assignments.items():
        if not replicas or len(set(replicas)) != len(replicas):
            text = f"Partition {n} must have at least one replica. All replicas must be on different brokers."
            messages.append((("assignments", n), text))
    return [
        SpecProblem(path, error("invalid-assignments", "Invalid assignments", text, resource=resource))
        for path, text in messages
    ]


def dump_topic(name: str, body: TopicBody) -> JsonObject:
    """See `Kind.to_json`. Undeclared fields and default values are omitted."""
    assignments = body.assignments
    stated_fields: dict[str, JsonValue] = {
        "partitions": body.partitions,
        "replicationFactor": body.replication_factor,
        "assignments": None if assignments is None else {str(n): list(r) for n, r in assignments.items()},
        "strategy": None if body.strategy is None else str(body.strategy),
        "racks": list(body.racks) or None,
        "removeUnmanaged": body.remove_unmanaged or None,
        "preventDestroy": body.prevent_destroy or None,
        "adopt": body.adopt or None,
        "ignoreChanges": list(body.ignored) or None,
    }
    configs = dump_config_values(body.configs, load_catalog(ConfigScope.TOPIC))
    return {
        "configs": configs,
        **{field: value for field, value in stated_fields.items() if value is not None},
    }


def bind_topic(json: JsonObject) -> TopicBody:
    """See `Kind.from_json`."""
    strategy = json.get("strategy")
    return TopicBody(
        partitions=as_int_or_none(json.get("partitions")),
        replication_factor=as_int_or_none(json.get("replicationFactor")),
        assignments=_bind_assignments(json.get("assignments")),
        strategy=None if strategy is None else Strategy(as_text(strategy)),
        racks=as_texts(json.get("racks", ())),
        configs=bind_config_values(as_object(json["configs"])),
        remove_unmanaged=as_bool(json.get("removeUnmanaged", False)),
        prevent_destroy=as_bool(json.get("preventDestroy", False)),
        adopt=as_bool(json.get("adopt", False)),
        ignored=as_texts(json.get("ignoreChanges", ())),
    )


def _bind_assignments(json: JsonValue) -> dict[int, tuple[int, ...]] | None:
    if json is None:
        return None
    assignments = as_object(json)
    return {n: as_ints(assignments[str(n)]) for n in sorted(map(int, assignments))}
