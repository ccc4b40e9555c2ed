"""The arguments of operations on quotas."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from kdeclare.core.arguments import Arguments
from kdeclare.core.jsontypes import Json
from kdeclare.providers.kafka.client_quota.entity import QuotaEntity

EntityField = Annotated[str, Field(pattern="^(user|clientId|ip)$")]
LimitArgument = int | float | Literal["inf", "nan"]
"""A limit; brokers also take the texts, which are numbers that JSON does not know."""


@dataclass(frozen=True, slots=True)
class QuotaOpArgs(Arguments):
    """One key. value: None for DELETE."""

    key: str
    op: Literal["SET", "DELETE"]
    value: LimitArgument | None


@dataclass(frozen=True, slots=True)
class AlterQuotaArgs(Arguments):
    """All ops on one entity, made all or none. entity: names by type; None is the default."""

    entity: Annotated[Mapping[EntityField, str | None], Field(min_length=1)]
    ops: Annotated[tuple[QuotaOpArgs, ...], Field(min_length=1)]

    @property
    def quota_entity(self) -> QuotaEntity:
        """The entity, as the cluster knows it."""
        return QuotaEntity.from_json(self.entity)

    @property
    def numbers(self) -> dict[str, float | None]:
        """The limits as requests hold them."""
        return {op.key: None if op.value is None else float(op.value) for op in self.ops}


def make_quota_op(key: str, value: Json) -> QuotaOpArgs:
    """Return the op that gives a key this value; None removes its limit."""
    return QuotaOpArgs(key, "DELETE" if value is None else "SET", value)
