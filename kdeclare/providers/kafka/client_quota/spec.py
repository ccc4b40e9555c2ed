"""``spec`` of a ClientQuota manifest."""

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt, StrictStr

from kdeclare.core.diagnostics import error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonObject, JsonValue, as_bool, as_number, as_object, as_text_or_none
from kdeclare.core.resources.adoption import SettingsLifecycle
from kdeclare.core.resources.kind import SpecPath, SpecProblem
from kdeclare.core.suggestions import format_alternatives
from kdeclare.providers.kafka.client_quota.entity import (
    LIMITS,
    EntityType,
    QuotaEntity,
    list_allowed_limits,
    parse_limit,
)

_CLOSED = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class DefaultEntity(BaseModel):
    """All that have no limits of their own."""

    model_config = _CLOSED
    default: Annotated[Literal[True], Field(description="All that have no limit of their own.")]


EntityName = StrictStr | DefaultEntity
Limit = StrictInt | StrictFloat | StrictStr | None


class EntitySpec(BaseModel):
    """A user, a client id, both, or an IP address."""

    model_config = _CLOSED
    user: Annotated[
        EntityName | None,
        Field(description="The user as brokers authenticate it, without 'User:', or {default: true}."),
    ] = None
    clientId: Annotated[  # noqa: N815
        EntityName | None, Field(description="The client.id of clients, or {default: true}.")
    ] = None
    ip: Annotated[
        EntityName | None,
        Field(description="The address that clients connect from, or {default: true}; it stands alone."),
    ] = None


class LimitsSpec(BaseModel):
    """Limits by key; null declares that there is none."""

    model_config = _CLOSED
    producer_byte_rate: Annotated[
        Limit, Field(description="Bytes per second and broker that producers may send, as in 10MiB.")
    ] = None
    consumer_byte_rate: Annotated[
        Limit, Field(description="Bytes per second and broker that consumers may fetch, as in 10MiB.")
    ] = None
    request_percentage: Annotated[
        Limit,
        Field(
            description="The share of the time of one request thread of each broker, in percent: 200 is the "
            "time of two threads."
        ),
    ] = None
    controller_mutation_rate: Annotated[
        Limit,
        Field(description="Partitions per second that may be created or deleted (KIP-599), as in 2.5."),
    ] = None
    connection_creation_rate: Annotated[
        Limit, Field(description="Connections per second that an IP address may open to each broker.")
    ] = None


class ClientQuotaSpec(BaseModel):
    """``spec`` of a ClientQuota manifest."""

    model_config = _CLOSED
    entity: Annotated[
        EntitySpec, Field(description="Whom the limits are for: user, clientId, both of them, or ip.")
    ]
    limits: Annotated[
        LimitsSpec, Field(description="Limits by Kafka's keys; null declares that there is none.")
    ] = LimitsSpec()
    unmanagedLimits: Annotated[  # noqa: N815
        Literal["keep", "remove"],
        Field(
            description="What happens to limits of the entity that are neither declared nor kdeclare's own: "
            "keep (the default) or remove."
        ),
    ] = "keep"
    lifecycle: Annotated[
        SettingsLifecycle, Field(description="What may happen to limits that others set.")
    ] = SettingsLifecycle()


@dataclass(frozen=True, slots=True)
class ClientQuotaBody:
    """Declared limits of one entity; None declares that there is none."""

    entity: QuotaEntity
    limits: Mapping[str, int | float | None] = field(default_factory=dict)
    remove_unmanaged: bool = False
    adopt: bool = False


def parse_quota(name: str, spec: ClientQuotaSpec) -> tuple[ClientQuotaBody, tuple[SpecProblem, ...]]:
    """Return the body of a spec, and what is wrong with it that brokers would refuse."""
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
    body = ClientQuotaBody(entity, limits, spec.unmanagedLimits == "remove", spec.lifecycle.adopt)
    return body, tuple(problems)


def dump_quota(body: ClientQuotaBody) -> JsonObject:
    """Return the body as plain data; what is as by default is left out."""
    document: dict[str, JsonValue] = {"entity": body.entity.to_json(), "limits": dict(body.limits)}
    document |= {"removeUnmanaged": True} if body.remove_unmanaged else {}
    return document | ({"adopt": True} if body.adopt else {})


def bind_quota(json: JsonObject) -> ClientQuotaBody:
    """Return the body that `dump_quota` has written."""
    names = {field: as_text_or_none(name) for field, name in as_object(json["entity"]).items()}
    return ClientQuotaBody(
        QuotaEntity.from_json(names),
        {key: _bind_limit(limit) for key, limit in as_object(json["limits"]).items()},
        as_bool(json.get("removeUnmanaged", False)),
        as_bool(json.get("adopt", False)),
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
            "'entity' names nobody.",
            hint="Name a user, a clientId, both of them, or an ip; {default: true} in place of a name is all "
            "that have no limit of their own.",
        )
    elif entity.is_ip and len(entity.parts) > 1:
        yield _build_problem(
            ("entity", "ip"),
            resource,
            "illegal-entity",
            "An IP address has limits of its own, and cannot be combined with a user or a client id.",
            hint="Write a second ClientQuota for the user or client id.",
        )
    for part, name in (("user", spec.user), ("clientId", spec.clientId), ("ip", spec.ip)):
        if name == "":
            yield _build_problem(
                ("entity", part),
                resource,
                "illegal-entity",
                f"'entity.{part}' is empty.",
                hint="Write {default: true} for all that have no limit of their own.",
            )
    if isinstance(spec.ip, str) and not set("/*").isdisjoint(spec.ip):
        yield _build_problem(
            ("entity", "ip"),
            resource,
            "illegal-entity",
            f"'{spec.ip}' is a range; Kafka limits single IP addresses.",
            hint="Write one ClientQuota per address, or use {default: true}.",
        )


def _report_misplaced_limit(resource: str, key: str, entity: QuotaEntity) -> SpecProblem:
    limited_entities = "IP addresses" if LIMITS[key].is_for_ips else "users and client ids"
    allowed_keys = format_alternatives(list_allowed_limits(is_for_ips=entity.is_ip))
    return _build_problem(
        ("limits", key),
        resource,
        "misplaced-limit",
        f"'{key}' limits {limited_entities}, and 'entity' is {entity}.",
        key,
        hint=f"Use {allowed_keys}, or another entity.",
        summary="Limit set on the wrong entity",
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
