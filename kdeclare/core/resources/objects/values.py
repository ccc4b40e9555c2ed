"""The types of an object's spec, body, ownership record, operation arguments and field values."""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonObject, JsonValue
from kdeclare.core.operations.argument_binding import OMIT_EMPTY, get_arguments
from kdeclare.core.operations.operation import Arguments, Operation
from kdeclare.core.resources.declared_absence import ResourceState
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.ignored_changes import IgnoredPaths
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
"""The value of a field in the live state or in a body."""

Fields = Mapping[str, FieldValue]
"""The fields of an object."""

EXISTS = "exists"
"""The view element that shows whether the object exists."""


class Lifecycle(BaseModel):
    """The lifecycle options: whether kdeclare deletes or adopts an object, and fields to ignore."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    preventDestroy: bool = False  # noqa: N815
    adopt: bool = False
    ignoreChanges: IgnoredPaths = ()  # noqa: N815
    state: ResourceState = "present"


class ObjectSpec(BaseModel):
    """The base class of object specs.

    Fields have the same names as in the live state. A field that is None is left unchanged, unless kdeclare
    has applied a value to it before; the field is then reset.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    lifecycle: Lifecycle = Lifecycle()


@dataclass(frozen=True, slots=True)
class ObjectBody:
    """A declared object, with the fields that its manifest declares.

    ignored: the fields that kdeclare leaves alone after it has created the object.
    """

    fields: Fields
    prevent_destroy: bool = False
    adopt: bool = False
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ObjectWrite:
    """A request to a system: create an object, change some of its fields, or delete it.

    fields: plain values, including the values of secrets. A value of None resets the field. If ``fields``
        itself is None, the object is deleted.
    """

    id: ResourceId
    fields: JsonObject | None
    is_new: bool = False


ObjectValue: TypeAlias = Annotated[SecretRef | JsonValue, Field(union_mode="left_to_right")]
"""The value of a field in the arguments of an operation."""


@dataclass(frozen=True, slots=True)
class ObjectArgs(Arguments):
    """The arguments of `ObjectOperation`.

    set: the fields to write. If the operation deletes the object, the fields that are lost.
    was: the secrets that the operation replaces or deletes. A rollback needs these secrets.
    """

    set: Mapping[str, ObjectValue]
    was: Annotated[Mapping[str, SecretRef], OMIT_EMPTY] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ObjectRecord(OwnedRecord):
    """The fields that kdeclare owns, with the values that were last applied."""

    fields: Mapping[str, ObjectValue] = field(default_factory=dict)
    preventDestroy: bool = False  # noqa: N815


def is_same(expected: FieldValue | SecretRef, live: FieldValue) -> bool:
    """Whether a declared or owned value equals the live value. An unknown live secret counts as equal."""
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
    """Return the value of a field for output, with secrets masked."""
    return SENSITIVE_MASK if isinstance(value, Secret | SecretRef) or is_mark(value) else value


def get_object_args(op: Operation) -> ObjectArgs:
    return get_arguments(op, ObjectArgs)
