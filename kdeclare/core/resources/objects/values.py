"""The types of an object: its spec, body, record and arguments, and the values of its fields."""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonObject, JsonValue
from kdeclare.core.operations.argument_binding import OMIT_EMPTY, get_arguments
from kdeclare.core.operations.operation import Arguments, Operation
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.core.secrets.secret_hashes import is_hash_of, is_mark, mark_hash
from kdeclare.core.secrets.secret_refs import (
    SENSITIVE_MASK,
    UNKNOWN_HASH,
    Secret,
    SecretRef,
    bind_secret_ref,
)

FieldValue: TypeAlias = Secret | JsonValue
"""The value of a field in live states and bodies."""

Fields = Mapping[str, FieldValue]
"""The fields of an object."""

EXISTS = "exists"
"""The element of a view that says whether the object is there."""


class Lifecycle(BaseModel):
    """What must never happen to an object, and what may."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    preventDestroy: bool = False  # noqa: N815
    adopt: bool = False


class ObjectSpec(BaseModel):
    """``spec`` of an object: its fields, named as in the live state. None leaves a field alone."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    lifecycle: Lifecycle = Lifecycle()


@dataclass(frozen=True, slots=True)
class ObjectBody:
    """A declared object. Fields that are not stated are not in it."""

    fields: Fields
    prevent_destroy: bool = False
    adopt: bool = False


@dataclass(frozen=True, slots=True)
class ObjectWrite:
    """What a system is asked to do: to create an object, to change some fields of it, or to delete it.

    fields: as plain values, secrets too; a field that is None is reset. None deletes the object.
    """

    id: ResourceId
    fields: JsonObject | None
    is_new: bool = False


ObjectValue: TypeAlias = Annotated[SecretRef | JsonValue, Field(union_mode="left_to_right")]
"""The value of a field in arguments."""


@dataclass(frozen=True, slots=True)
class ObjectArgs(Arguments):
    """The arguments of `ObjectOperation`.

    set: the fields to write; of a deletion, those that it takes away. was: the secrets that are replaced or
    deleted, for the way back.
    """

    set: Mapping[str, ObjectValue]
    was: Annotated[Mapping[str, SecretRef], OMIT_EMPTY] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ObjectRecord(OwnedRecord):
    """The fields that are kdeclare's, as they were last applied."""

    fields: Mapping[str, ObjectValue] = field(default_factory=dict)
    preventDestroy: bool = False  # noqa: N815


def is_same(expected: FieldValue | SecretRef, live: FieldValue) -> bool:
    """Whether a declared or owned value is what the system has."""
    if not isinstance(live, Secret):
        return bool(expected == live)
    if live.digest == UNKNOWN_HASH:
        return True
    if isinstance(expected, Secret) and expected.value:
        return expected.value == live.value
    digest = (
        expected.digest
        if isinstance(expected, Secret)
        else expected.secret
        if isinstance(expected, SecretRef)
        else ""
    )
    return bool(digest) and is_hash_of(digest, live.value)


def decode_secret(record: JsonObject) -> Secret:
    secret_ref = bind_secret_ref(record)
    return Secret("", secret_ref.reference, secret_ref.secret)


def to_argument(value: FieldValue) -> ObjectValue:
    return value.ref if isinstance(value, Secret) else value


def to_mark(value: ObjectValue) -> JsonValue:
    return mark_hash(value.secret) if isinstance(value, SecretRef) else value


def mask_secret(value: FieldValue | SecretRef) -> JsonValue:
    """A field's value for people."""
    return SENSITIVE_MASK if isinstance(value, Secret | SecretRef) or is_mark(value) else value


def get_object_args(op: Operation) -> ObjectArgs:
    return get_arguments(op, ObjectArgs)
