"""The operation type `quota.alter` and its arguments."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue, as_number
from kdeclare.core.live.collector import Selections
from kdeclare.core.live.faults import Result
from kdeclare.core.operations.argument_binding import OMIT_FALSE, get_arguments
from kdeclare.core.operations.footprint import Access, Footprint, FootprintEntry
from kdeclare.core.operations.operation import Arguments, Operation, UndoResult
from kdeclare.core.operations.operation_type import View, with_inverse
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.resources.changes import Action, Change, FieldChange, FieldOp, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.secrets.secret_refs import SecretSource, ValuePath
from kdeclare.providers.kafka.client_quota.collector import QuotaSelection, QuotaState, require_visible
from kdeclare.providers.kafka.client_quota.entity import QuotaEntity
from kdeclare.providers.kafka.client_quota.spec import LIMIT_FIELD_PREFIX
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.operations.kafka_operation_type import KafkaOperationType

EntityField = Annotated[str, Field(pattern="^(user|clientId|ip)$")]
LimitArgument = int | float | Literal["inf", "nan"]
"""A limit. ``inf`` and ``nan``, which brokers accept, are strings, because JSON has no such numbers."""


@dataclass(frozen=True, slots=True)
class QuotaOpArgs(Arguments):
    """The change to one limit. value: the new limit, or None for DELETE."""

    key: str
    op: Literal["SET", "DELETE"]
    value: LimitArgument | None


@dataclass(frozen=True, slots=True)
class AlterQuotaArgs(Arguments):
    """All changes to the limits of one entity. Brokers apply the changes atomically.

    entity: the names by type. The name None means the default entity.
    whole: whether the entity has no limits before the changes, or no limits after them.
    """

    entity: Annotated[Mapping[EntityField, str | None], Field(min_length=1)]
    ops: Annotated[tuple[QuotaOpArgs, ...], Field(min_length=1)]
    whole: Annotated[bool, OMIT_FALSE] = False

    @property
    def quota_entity(self) -> QuotaEntity:
        """The entity whose limits change."""
        return QuotaEntity.from_json(self.entity)

    @property
    def numbers(self) -> dict[str, float | None]:
        """The new limits by key, as in AlterClientQuotas requests. None removes a limit."""
        return {op.key: None if op.value is None else float(op.value) for op in self.ops}


def make_quota_op(key: str, value: JsonValue) -> QuotaOpArgs:
    """Return the change that sets a limit or, if ``value`` is None, removes it."""
    return (
        QuotaOpArgs(key, "DELETE", None)
        if value is None
        else QuotaOpArgs(key, "SET", _to_limit_argument(value))
    )


def _to_limit_argument(value: JsonValue) -> LimitArgument:
    if value == "inf":
        return "inf"
    if value == "nan":
        return "nan"
    return as_number(value)


QUOTA = "kafka.quota"
"""The object type of quotas in footprints. The name of an object is the key of the quota entity."""


class AlterQuota(KafkaOperationType):
    """The operation type that changes the limits of one entity."""

    name = "quota.alter"
    done_label = ("quota changed", "quotas changed")
    arguments = AlterQuotaArgs
    validates = True
    deletion_risk = Risk.SAFE

    def find_created_resource(self, op: Operation) -> ResourceId | None:
        """Return the resource if its entity had no limits before the operation; otherwise None."""
        return op.resource if _get_args(op).whole and _get_args(op).ops[0].op == "SET" else None

    def find_deleted_resource(self, op: Operation) -> ResourceId | None:
        """Return the resource if the operation removes all limits of its entity; otherwise None."""
        return op.resource if _get_args(op).whole and _get_args(op).ops[0].op == "DELETE" else None

    def find_right(self, op: Operation) -> str:
        """Return the permission that the operation requires: AlterConfigs on the cluster."""
        return "AlterConfigs on the cluster"

    def describe_target(self, op: Operation) -> tuple[str, str]:
        """Return the label ``entity``, and the entity whose limits change."""
        return "entity", str(_get_args(op).quota_entity)

    def compute_footprint(self, op: Operation) -> Footprint:
        """Return a footprint that lists the limits of the entity as updated."""
        return [FootprintEntry(QUOTA, _get_args(op).quota_entity.key, Access.UPDATE)]

    def find_subjects(self, op: Operation) -> frozenset[ResourceId]:
        """Return the ClientQuota as the only policy subject, because quotas do not belong to topics."""
        return frozenset({op.resource})

    def find_changed_resources(self, op: Operation) -> frozenset[ResourceId]:
        """Return the resource of the operation."""
        return frozenset({op.resource})

    def is_confined(self, op: Operation) -> bool:
        """Return whether the operation belongs to a ClientQuota."""
        return op.resource.kind == "ClientQuota"

    def select(self, op: Operation) -> Selections:
        """Select the limits of the entity."""
        return (QuotaSelection(frozenset({_get_args(op).quota_entity})),)

    def compute_view(self, op: Operation, live: LiveState) -> View:
        """Return the live limits of the keys that the operation changes. None means no limit.

        Raises Fault if the principal is not permitted to describe quotas.
        """
        limits = require_visible(live.get(QuotaState)).of(_get_args(op).quota_entity)
        return {item.key: limits.get(item.key) for item in _get_args(op).ops}

    def expected_state(self, op: Operation) -> View:
        """Return the expected limits after the operation."""
        return {**op.expect, **{item.key: item.value for item in _get_args(op).ops}}

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """Return one field per changed limit."""
        return tuple(
            FieldChange(LIMIT_FIELD_PREFIX + item.key, FieldOp(item.op), op.expect.get(item.key), item.value)
            for item in _get_args(op).ops
        )

    def find_element(self, op: Operation, at: ValuePath) -> str:
        """Return the quota key of the limit at a path in the arguments."""
        if at[0] == "ops" and isinstance(at[1], int):
            return _get_args(op).ops[at[1]].key
        return super().find_element(op, at)

    def without_elements(self, op: Operation, elements: Set[str]) -> Operation | None:
        """Return the operation without the changes to these keys, or None if no change remains."""
        args = _get_args(op)
        remaining = tuple(item for item in args.ops if item.key not in elements)
        expect = {element: value for element, value in op.expect.items() if element not in elements}
        return replace(op, args=replace(args, ops=remaining), expect=expect) if remaining else None

    def claims(self, op: Operation) -> Mapping[str, str]:
        """Return one claim for each changed limit."""
        entity = _get_args(op).quota_entity.key
        return {item.key: f"quotas/{entity}/{item.key}" for item in _get_args(op).ops}

    def get_batch_key(self, op: Operation) -> str:
        """Return the key of the entity.

        A request must not contain an entity twice, because brokers would apply only the first entry.
        """
        return _get_args(op).quota_entity.key

    def list_produced_claims(self, op: Operation) -> frozenset[str]:
        """Return the claims of all changed limits."""
        return frozenset(self.claims(op).values())

    def execute(
        self,
        connections: Connections,
        ops: Sequence[Operation],
        secrets: SecretSource,
        *,
        validate_only: bool,
    ) -> Mapping[str, Result]:
        """Alter the limits with one AlterClientQuotas request."""
        limits_by_entity = {_get_args(op).quota_entity: _get_args(op).numbers for op in ops}
        results = connections.get(KafkaConnection).cluster.alter_quotas(
            limits_by_entity, validate_only=validate_only
        )
        return {op.id: results[_get_args(op).quota_entity] for op in ops}

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> UndoResult:
        """Return the changes that restore the earlier limits.

        A limit that another client changed after the operation is not restored, but reported as a conflict.
        """
        expected = self.expected_state(op)
        undo_ops: list[QuotaOpArgs] = []
        conflicts: list[str] = []
        for item in _get_args(op).ops:
            before, current = op.expect.get(item.key), now.get(item.key)
            if current == before:
                continue
            if current == expected[item.key]:
                undo_ops.append(make_quota_op(item.key, before))
            else:
                conflicts.append(item.key)
        is_whole = _get_args(op).whole and not conflicts
        args = replace(_get_args(op), ops=tuple(undo_ops), whole=is_whole) if undo_ops else None
        return UndoResult(self.name, args, tuple(conflicts))


_ALTER = AlterQuota()


def build_quota_operations(change: Change, entity: QuotaEntity) -> tuple[Operation, ...]:
    """Return the single operation of a change."""
    keys = [field.path.removeprefix(LIMIT_FIELD_PREFIX) for field in change.fields]
    op = Operation(
        id=f"{_ALTER.name}:{change.id}",
        verb=_ALTER.name,
        resource=change.id,
        args=AlterQuotaArgs(
            entity.to_json(),
            tuple(make_quota_op(key, field.after) for key, field in zip(keys, change.fields, strict=True)),
            change.action is not Action.UPDATE,
        ),
        expect={key: field.before for key, field in zip(keys, change.fields, strict=True)},
    )
    return (with_inverse(_ALTER, op),)


def _get_args(op: Operation) -> AlterQuotaArgs:
    return get_arguments(op, AlterQuotaArgs)
