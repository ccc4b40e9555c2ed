"""The ``spec`` of a ClientQuota manifest."""

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt, StrictStr

from kdeclare.core.diagnostics import error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import (
    JsonObject,
    JsonValue,
    as_bool,
    as_number,
    as_object,
    as_text_or_none,
    as_texts,
)
from kdeclare.core.resources.declared_absence import ResourceState
from kdeclare.core.resources.ignored_changes import ConfigsLifecycle, check_ignored_paths
from kdeclare.core.resources.kind import SpecPath, SpecProblem
from kdeclare.core.suggestions import format_alternatives
from kdeclare.providers.kafka.client_quota.entity import (
    LIMITS,
    EntityType,
    QuotaEntity,
    list_allowed_limits,
    parse_limit,
)

LIMIT_FIELD_PREFIX = "limits."
"""The prefix that the paths of limits have in plans."""

_CLOSED = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class DefaultEntity(BaseModel):
    """The default entity: all users, client ids or IP addresses without a limit of their own."""

    model_config = _CLOSED
    default: Annotated[
        Literal[True], Field(description="Apply to all entities of this type without a limit of their own.")
    ]


EntityName = StrictStr | DefaultEntity
Limit = StrictInt | StrictFloat | StrictStr | None


class EntitySpec(BaseModel):
    """A user, a client id, both, or an IP address."""

    model_config = _CLOSED
    user: Annotated[
        EntityName | None,
        Field(
            description="The name of the authenticated user without the prefix 'User:', or {default: true}."
        ),
    ] = None
    clientId: Annotated[  # noqa: N815
        EntityName | None, Field(description="The client.id of the clients, or {default: true}.")
    ] = None
    ip: Annotated[
        EntityName | None,
        Field(
            description="The IP address that clients connect from, or {default: true}. Cannot be combined "
            "with user or clientId."
        ),
    ] = None


class LimitsSpec(BaseModel):
    """Limits by quota key. Null declares that there is no limit."""

    model_config = _CLOSED
    producer_byte_rate: Annotated[
        Limit, Field(description="Bytes per second that producers may send to each broker, such as 10MiB.")
    ] = None
    consumer_byte_rate: Annotated[
        Limit, Field(description="Bytes per second that consumers may fetch from each broker, such as 10MiB.")
    ] = None
    request_percentage: Annotated[
        Limit,
        Field(
            description="Percentage of the time of one request handler thread on each broker; 200 means two "
            "threads."
        ),
    ] = None
    controller_mutation_rate: Annotated[
        Limit,
        Field(description="Partitions per second that may be created or deleted (KIP-599), such as 2.5."),
    ] = None
    connection_creation_rate: Annotated[
        Limit, Field(description="Connections per second that an IP address may open to each broker.")
    ] = None


class QuotaLifecycle(ConfigsLifecycle):
    """The lifecycle options of the limits of one entity."""

    state: ResourceState = "present"


class ClientQuotaSpec(BaseModel):
    """The ``spec`` of a ClientQuota manifest."""

    model_config = _CLOSED
    entity: Annotated[
        EntitySpec, Field(description="The entity that the limits apply to: user, clientId, both, or ip.")
    ]
    limits: Annotated[
        LimitsSpec, Field(description="Limits by Kafka's quota keys; null declares that there is no limit.")
    ] = LimitsSpec()
    unmanagedLimits: Annotated[  # noqa: N815
        Literal["keep", "remove"],
        Field(
            description="How to treat limits of the entity that are neither declared nor owned by kdeclare: "
            "keep (the default) or remove."
        ),
    ] = "keep"
    lifecycle: Annotated[
        QuotaLifecycle,
        Field(description="How to treat limits that kdeclare did not set, and whether to delete all limits."),
    ] = QuotaLifecycle()


@dataclass(frozen=True, slots=True)
class ClientQuotaBody:
    """The declared limits of one entity. None declares that there is no limit.

    is_partial: whether the body is only a part of a resource, as in ad hoc commands.
    ignored: the paths of limits that stay as they are once they have been set.
    """

    entity: QuotaEntity
    limits: Mapping[str, int | float | None] = field(default_factory=dict)
    remove_unmanaged: bool = False
    adopt: bool = False
    is_partial: bool = False
    ignored: tuple[str, ...] = ()

    @property
    def ignored_keys(self) -> frozenset[str]:
        """The keys of the ignored limits."""
        return frozenset(path.removeprefix(LIMIT_FIELD_PREFIX) for path in self.ignored)


def parse_quota(name: str, spec: ClientQuotaSpec) -> tuple[ClientQuotaBody, tuple[SpecProblem, ...]]:
    """Return the body of a spec, and problems with values that brokers would reject."""
    resource = f"ClientQuota/{name}"
    entity = _parse_entity(spec.entity)
    problems = list(_check_entity(resource, spec.entity, entity))
    limits: dict[str, int | float | None] = {}
    for key in LIMITS:
        if key not in spec.limits.model_fields_set:
            continue
        raw_limit: int | float | str | None = getattr(spec.limits, key)
        try:
            limits[key] = None if raw_limit is None else parse_limit(key, raw_limit)
        except ValueError as reason:
            problems.append(
                _build_problem(("limits", key), resource, "bad-value", f"'limits.{key}' {reason}.", key)
            )
        if entity.parts and LIMITS[key].is_for_ips is not entity.is_ip:
            problems.append(_report_misplaced_limit(resource, key, entity))
    ignored = spec.lifecycle.ignoreChanges
    problems += check_ignored_paths(resource, ignored, [f"{LIMIT_FIELD_PREFIX}{key}" for key in LIMITS])
    body = ClientQuotaBody(
        entity, limits, spec.unmanagedLimits == "remove", spec.lifecycle.adopt, ignored=tuple(ignored)
    )
    return body, tuple(problems)


def dump_quota(body: ClientQuotaBody) -> JsonObject:
    """Return the body as plain data, without default values."""
    document: dict[str, JsonValue] = {"entity": body.entity.to_json(), "limits": dict(body.limits)}
    document |= {"removeUnmanaged": True} if body.remove_unmanaged else {}
    document |= {"ignoreChanges": list(body.ignored)} if body.ignored else {}
    return document | ({"adopt": True} if body.adopt else {})


def bind_quota(json: JsonObject) -> ClientQuotaBody:
    """Convert the result of `dump_quota` back to a body."""
    names = {field: as_text_or_none(name) for field, name in as_object(json["entity"]).items()}
    return ClientQuotaBody(
        QuotaEntity.from_json(names),
        {key: _bind_limit(limit) for key, limit in as_object(json["limits"]).items()},
        as_bool(json.get("removeUnmanaged", False)),
        as_bool(json.get("adopt", False)),
        ignored=as_texts(json.get("ignoreChanges", ())),
    )


def _bind_limit(limit: JsonValue) -> int | float | None:
    return None if limit is None else as_number(limit)


def _parse_entity(spec: EntitySpec) -> QuotaEntity:
    names_by_type = {EntityType.USER: spec.user, EntityType.CLIENT_ID: spec.clientId, EntityType.IP: spec.ip}
    return QuotaEntity.of(
        {
            type_: name if isinstance(name, str) else None
            for type_, name in names_by_type.items()
            if name is not None
        }
    )


def _check_entity(resource: str, spec: EntitySpec, entity: QuotaEntity) -> Iterator[SpecProblem]:
    if not entity.parts:
        yield _build_problem(
            ("entity",),
            resource,
            "illegal-entity",
            "'entity' names no user, client id or IP address.",
            hint="Declare user, clientId, both of them, or ip. Write {default: true} instead of a name for "
            "all entities without a limit of their own.",
        )
    elif entity.is_ip and len(entity.parts) > 1:
        yield _build_problem(
            ("entity", "ip"),
            resource,
            "illegal-entity",
            "An entity with an IP address cannot also have a user or a client id.",
            hint="Declare a second ClientQuota for the user or client id.",
        )
    for part, name in (("user", spec.user), ("clientId", spec.clientId), ("ip", spec.ip)):
        if name == "":
            yield _build_problem(
                ("entity", part),
                resource,
                "illegal-entity",
                f"'entity.{part}' is empty.",
                hint="Write a name, or {default: true} for all entities without a limit of their own.",
            )
    if isinstance(spec.ip, str) and not set("/*").isdisjoint(spec.ip):
        yield _build_problem(
            ("entity", "ip"),
            resource,
            "illegal-entity",
            f"'{spec.ip}' is a range, but a quota in Kafka applies to a single IP address.",
            hint="Declare one ClientQuota per address, or use {default: true} for all addresses.",
        )


def _report_misplaced_limit(resource: str, key: str, entity: QuotaEntity) -> SpecProblem:
    limited_entities = "IP addresses" if LIMITS[key].is_for_ips else "users and client ids"
    allowed_keys = format_alternatives(list_allowed_limits(is_for_ips=entity.is_ip))
    return _build_problem(
        ("limits", key),
        resource,
        "misplaced-limit",
        f"'{key}' applies to {limited_entities}, but 'entity' is {entity}.",
        key,
        hint=f"Use {allowed_keys}, or declare another entity.",
        summary="Limit on the wrong entity type",
    )


def _build_problem(
    path: SpecPath,
    resource: str,
    code: str,
    detail: str,
    subject: str | None = None,
    *,
    hint: str = "",
    summary: str = "Value not allowed",
) -> SpecProblem:
    return SpecProblem(path, error(code, summary, detail, hint=hint, resource=resource, subject=subject))
