"""Read and show the quotas and SCRAM credentials of users, client ids and IP addresses."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated

from pydantic import Field

from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import Diagnostic, warning
from kdeclare.core.documents import Diagnostics
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.parts import Connections
from kdeclare.providers.kafka.client_quota.collector import read_quotas
from kdeclare.providers.kafka.client_quota.entity import EntityType, LiveLimit, QuotaEntity, format_limit
from kdeclare.providers.kafka.commands.clients.client_query import ClientEntityQuery
from kdeclare.providers.kafka.connection import CONNECTION
from kdeclare.providers.kafka.scram_user.collector import read_scram_users
from kdeclare.report.elements.terminal import PLAIN, Column, Style, render_table
from kdeclare.report.elements.values import format_count, sanitize_for_terminal

_DEFAULT_NAME = "null for the default entity"


@dataclass(frozen=True, slots=True)
class QuotaPartView:
    """A user, a client id or an IP address."""

    schema_name = "QuotaPartDocument"

    type: Annotated[EntityType, Field(description="The type, as in Kafka's ClientQuotaEntity.")]
    name: Annotated[str | None, Field(description=f"The name; {_DEFAULT_NAME}.")]


@dataclass(frozen=True, slots=True)
class QuotaView:
    """The limits of one entity. limits: the limits by key, in Kafka's units."""

    schema_name = "QuotaDocument"

    entity: tuple[QuotaPartView, ...]
    limits: Annotated[
        Mapping[str, LiveLimit], Field(description="The limits by key; 'inf' and 'nan' are strings.")
    ]

    @property
    def quota_entity(self) -> QuotaEntity:
        """The entity."""
        return QuotaEntity(tuple((part.type, part.name) for part in self.entity))


@dataclass(frozen=True, slots=True)
class CredentialView:
    """One SCRAM credential. Kafka returns no other property of a credential."""

    schema_name = "CredentialDocument"

    user: str
    mechanism: str
    iterations: int


@dataclass(frozen=True, slots=True)
class ClientConfigsView:
    """Quotas, and SCRAM credentials of users. diagnostics: messages about data that could not be read."""

    schema_name = "ClientConfigsDocument"

    cluster: str
    quotas: tuple[QuotaView, ...]
    credentials: tuple[CredentialView, ...]
    diagnostics: Diagnostics = ()


def describe_clients(workspace: Workspace, query: ClientEntityQuery) -> ClientConfigsView:
    """Return the quotas of the entities and, for users, their SCRAM credentials. Raises KdeclareError."""
    with workspace.open_connections({"kafka": CONNECTION}) as connections:
        quotas, quota_problems = _read_quotas(connections, query)
        credentials, credential_problems = _read_credentials(connections, query)
    return ClientConfigsView(
        workspace.cluster_name, quotas, credentials, (*quota_problems, *credential_problems)
    )


def _read_quotas(
    connections: Connections, query: ClientEntityQuery
) -> tuple[tuple[QuotaView, ...], tuple[Diagnostic, ...]]:
    state = read_quotas(connections, query.list_entities() if query.has_names else None)
    if not state.is_visible:
        return (), (_warn_hidden("Quotas not visible", "quotas", "DescribeConfigs"),)
    entities = sorted((e for e in state.limits if query.includes(e)), key=lambda entity: entity.key)
    return tuple(_build_quota_view(entity, state.of(entity)) for entity in entities), ()


def _build_quota_view(entity: QuotaEntity, limits: Mapping[str, LiveLimit]) -> QuotaView:
    parts = tuple(QuotaPartView(type_, name) for type_, name in entity.parts)
    return QuotaView(parts, dict(sorted(limits.items())))


def _read_credentials(
    connections: Connections, query: ClientEntityQuery
) -> tuple[tuple[CredentialView, ...], tuple[Diagnostic, ...]]:
    users = query.find_users()
    if users is None:
        return (), ()
    state = read_scram_users(connections, sorted(set(users)) or None)
    if not state.is_visible:
        return (), (_warn_hidden("Credentials not visible", "SCRAM credentials", "Describe"),)
    return tuple(
        CredentialView(user, mechanism.value, iterations)
        for user, credentials in sorted(state.users.items())
        for mechanism, iterations in sorted(credentials.items())
    ), ()


def _warn_hidden(summary: str, noun: str, permission: str) -> Diagnostic:
    return warning(
        "not-visible",
        summary,
        f"Reading {noun} requires the {permission} permission on the cluster.",
        hint=f"Grant kdeclare the {permission} permission on the cluster.",
    )


_LIMIT_COLUMNS = (Column("LIMIT"), Column("VALUE"), Column("IN KAFKA'S UNIT", right=True))
_CREDENTIAL_COLUMNS = (Column("MECHANISM"), Column("ITERATIONS", right=True))


def render_clients(view: ClientConfigsView, width: int | None = None, style: Style = PLAIN) -> str:
    """Render quotas and credentials as text. width: the columns of the terminal; None for no limit."""
    blocks = [
        *_render_quotas(view.quotas, width, style),
        *_render_credentials(view.credentials, width, style),
    ]
    text = "\n".join("".join(f"{line}\n" for line in block) for block in blocks)
    return text or f"No quotas or SCRAM credentials to show for {sanitize_for_terminal(view.cluster)}.\n"


def _render_quotas(quotas: Iterable[QuotaView], width: int | None, style: Style) -> Iterator[list[str]]:
    for quota in quotas:
        entity = sanitize_for_terminal(str(quota.quota_entity))
        count = format_count(len(quota.limits), "limit")
        rows = [_build_limit_row(key, value) for key, value in quota.limits.items()]
        table = render_table(_LIMIT_COLUMNS, rows, width, style, "  ")
        yield [f"{style.bold(f'{entity[:1].upper()}{entity[1:]}')}: {count}", *table]


def _build_limit_row(key: str, value: LiveLimit) -> tuple[str, str, str]:
    shown = format_limit(key, value)
    is_same = shown.split(" ")[0] == f"{value:,}" if not isinstance(value, str) else True
    return sanitize_for_terminal(key), shown, "" if is_same else str(value)


def _render_credentials(
    credentials: Iterable[CredentialView], width: int | None, style: Style
) -> Iterator[list[str]]:
    by_user: dict[str, list[tuple[str, str]]] = {}
    for item in credentials:
        by_user.setdefault(item.user, []).append((item.mechanism, f"{item.iterations:,}"))
    for user, rows in by_user.items():
        title = style.bold(f"User '{sanitize_for_terminal(user)}'")
        count = format_count(len(rows), "SCRAM credential")
        yield [f"{title}: {count}", *render_table(_CREDENTIAL_COLUMNS, rows, width, style, "  ")]
