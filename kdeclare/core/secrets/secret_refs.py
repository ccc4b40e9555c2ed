"""Sensitive values, resolved references, and the data about secrets that plans and states store."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, fields, is_dataclass, replace
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Literal, Protocol, TypeGuard, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, GetPydanticSchema
from pydantic_core import PydanticCustomError, core_schema

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonObject, JsonValue, as_text
from kdeclare.core.operations.operation import Arguments
from kdeclare.core.secrets.scrubber import SCRUBBER


class Referenced(str):
    """A string that was resolved from ``${env.NAME}`` or ``${file.PATH}``.

    reference: the scalar in the manifest. If the field is sensitive, kdeclare writes only the reference and
        a hash of the value to plans and states.
    """

    __slots__ = ("reference",)
    reference: str

    def __new__(cls, value: str, reference: str) -> "Referenced":
        """Create the string ``value``, for which the manifest contains ``reference``."""
        self = super().__new__(cls, value)
        self.reference = reference
        return self

    def __reduce__(self) -> tuple[type["Referenced"], tuple[str, str]]:
        """Return the class and the arguments from which copy and pickle recreate the string."""
        return Referenced, (str(self), self.reference)

    def __repr__(self) -> str:
        return f"Referenced({self.reference!r})"


SENSITIVE_MASK = "(sensitive)"
"""The string that replaces a sensitive value in output and files."""

UNKNOWN_HASH = "untold"
"""The placeholder for the hash of a secret whose value kdeclare cannot read."""

EARLIER_ARGUMENT = "was"
"""The operation argument that stores the reference and the hash of the previous secret for a rollback.

The operation itself does not need the previous secret, which might be unavailable.
"""

HIDDEN_FIELD = "hidden"
"""The dataclass field that contains the value of a setting as a `Secret` if the setting can be sensitive.

The path of the secret is the path of the dataclass, without the name of this field.
"""

_SENSITIVE_KEY = re.compile(
    r"(password|passphrase|secret|token|credentials?|jaas\.config"
    r"|ssl\.keystore\.key|ssl\.keystore\.certificate\.chain|ssl\.truststore\.certificates)$",
    re.IGNORECASE,
)
"""Matches keys of configs with type PASSWORD (SslConfigs, SaslConfigs), and likely secrets of plug-ins."""

_NEVER_SECRET = frozenset({str, Referenced, int, bool, float, NoneType})

ValuePath = tuple[str | int, ...]
"""The path to a value within another value: field names, keys and indexes."""


@dataclass(frozen=True, slots=True)
class SecretRef(Arguments):
    """The data that plans and states store about a secret.

    secret: the salted hash of the secret.
    reference: the scalar in the manifest, which contains the reference; None for a literal secret.
    """

    secret: str
    reference: str | None

    def as_json(self) -> JsonObject:
        """Return the JSON form that files use."""
        return {"secret": self.secret, "reference": self.reference}


@dataclass(frozen=True, slots=True)
class Secret:
    """A sensitive value in memory.

    value: the value; empty if the secret was decoded from JSON.
    reference: the scalar in the manifest, which contains the reference; None for a literal secret.
    digest: the hash of the value; empty until the hashes for a plan are computed, because the salt depends on
        the state.
    stored: the hash in the state, if it was made from the same value; otherwise empty.
    doubtful: whether kdeclare needs the cluster to determine if the value is sensitive.
    """

    value: str = field(repr=False)
    reference: str | None
    digest: str = ""
    stored: str = ""
    doubtful: bool = False

    @property
    def stated(self) -> JsonObject:
        """The JSON form for comparisons. This form contains the hash from the state, if there is one."""
        return {"secret": self.stored or self.digest, "reference": self.reference}

    @property
    def ref(self) -> SecretRef:
        """The data that plans and states store about this secret. The hash must already be computed."""
        assert self.digest, "the hash of a secret was not computed"
        return SecretRef(self.digest, self.reference)

    def as_json(self) -> JsonObject:
        """Return the data that plans and states store, in JSON form. The hash must already be computed."""
        return self.ref.as_json()


def is_sensitive_key(key: str) -> bool:
    """Whether the name of a setting indicates that its value must be hidden."""
    return _SENSITIVE_KEY.search(key) is not None


def hide(value: str) -> Secret:
    """Wrap a secret that was read from a system, and register its value so that no output contains it."""
    SCRUBBER.register(value)
    return Secret(value, None)


class SecretSource(Protocol):
    """Resolves the values of secrets again while a plan is applied."""

    def reveal(self, secret: SecretRef) -> str:
        """Return the value of a secret.

        Raises KdeclareError if the value is unavailable or does not match the planned hash.
        """


_RECORD_KEYS = {"secret", "reference"}
"""The keys of the JSON object that stores data about a secret. An object with other keys is ordinary data."""


def is_secret(value: object) -> TypeGuard[JsonObject]:
    """Whether a value in a change or an ownership record represents a secret."""
    return isinstance(value, Mapping) and value.keys() == _RECORD_KEYS


def bind_secret_ref(value: JsonObject) -> SecretRef:
    """Convert the JSON form of a `SecretRef` to a `SecretRef`. The data must satisfy `is_secret`."""
    reference = value["reference"]
    return SecretRef(as_text(value["secret"]), None if reference is None else as_text(reference))


def find_records(value: object) -> Sequence[tuple[ValuePath, SecretRef]]:
    """Find the stored data about secrets in arguments or plain data. Return each `SecretRef` with its path.

    Data about previous secrets (under `EARLIER_ARGUMENT`) is not included.
    """
    records: list[tuple[ValuePath, SecretRef]] = []
    _collect_records(value, (), records)
    return records


def _collect_records(value: object, path: ValuePath, records: list[tuple[ValuePath, SecretRef]]) -> None:
    # A state is large and contains few secrets, so this function avoids recursive calls for most values.
    parts: Iterable[tuple[str | int, object]]
    if isinstance(value, SecretRef):
        records.append((path, value))
        return
    names = _list_argument_fields(value.__class__)
    if names is not None:
        parts = [(name, getattr(value, name)) for name in names]
    elif isinstance(value, dict):
        if value.keys() == _RECORD_KEYS:
            records.append((path, bind_secret_ref(value)))
            return
        parts = value.items()
    elif isinstance(value, list | tuple):
        parts = enumerate(value)
    elif not isinstance(value, Mapping):
        return
    elif value.keys() == _RECORD_KEYS:
        records.append((path, bind_secret_ref(value)))
        return
    else:
        parts = value.items()
    for step, inner in parts:
        if (
            inner.__class__ not in _NEVER_SECRET
            and _list_argument_fields(inner.__class__) != ()
            and step != EARLIER_ARGUMENT
        ):
            _collect_records(inner, (*path, step), records)


_argument_fields_by_type: dict[type, tuple[str, ...] | None] = {SecretRef: None}  # not searched any further


def _list_argument_fields(arguments: type) -> tuple[str, ...] | None:
    """Return the fields of a subclass of `Arguments` that can hold a `SecretRef`; None for other classes."""
    try:
        return _argument_fields_by_type[arguments]
    except KeyError:
        names = _list_secret_fields(arguments) if issubclass(arguments, Arguments) else None
        return _argument_fields_by_type.setdefault(arguments, names)


def replace_records(value: JsonValue, new: Mapping[ValuePath, SecretRef], path: ValuePath = ()) -> JsonValue:
    """Return a copy of plain data in which the data about the secrets at the paths in ``new`` is replaced.

    new: the new data about each secret, by path.
    """
    if path in new:
        return new[path].as_json()
    if isinstance(value, Mapping):
        return {key: replace_records(item, new, (*path, key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [replace_records(item, new, (*path, index)) for index, item in enumerate(value)]
    return value


def find_secrets(value: object) -> Iterator[tuple[ValuePath, Secret]]:
    """Yield the secrets within models, dataclasses, mappings and sequences, each with its path."""
    pending: list[tuple[ValuePath, object]] = [((), value)]
    while pending:
        path, item = pending.pop()
        if isinstance(item, Secret):
            yield path, item
            continue
        for step, inner in _list_parts(item):
            if inner.__class__ not in _NEVER_SECRET:  # skips most values, which are plain strings
                pending.append((path if step == HIDDEN_FIELD else (*path, step), inner))


def replace_secrets(value: object, new: Mapping[ValuePath, Secret]) -> object:
    """Return a copy of the value in which the secrets at these paths are replaced."""
    return _replace_below(value, new, ())


def _list_parts(value: object) -> Iterable[tuple[str | int, object]]:
    if isinstance(value, dict):
        return value.items()
    if isinstance(value, tuple | list):
        return enumerate(value)
    names = _list_secret_fields(value.__class__)
    if names:
        return [(name, getattr(value, name)) for name in names]
    return value.items() if isinstance(value, Mapping) else ()


def has_secret(value: object) -> bool:
    """Whether a value contains a secret that `find_secrets` would find."""
    if isinstance(value, Secret):
        return True
    if names := _list_secret_fields(value.__class__):
        inner = [found for name in names if (found := getattr(value, name)).__class__ not in _NEVER_SECRET]
    else:
        inner = [found for _, found in _list_parts(value) if found.__class__ not in _NEVER_SECRET]
    return any(map(has_secret, inner))


_secret_fields_by_type: dict[type, tuple[str, ...]] = {}


def _list_secret_fields(model: type) -> tuple[str, ...]:
    """Return the fields that can contain a secret or a `SecretRef`, according to their annotations."""
    names = _secret_fields_by_type.get(model)
    if names is None:
        names = _secret_fields_by_type[model] = _find_secret_field_names(model)
    return names


def _find_secret_field_names(model: type) -> tuple[str, ...]:
    if is_dataclass(model):
        try:
            hints = get_type_hints(model)
        except NameError:  # some names are imported only for type checkers, so any field may hold a secret
            hints = {}
        return tuple(item.name for item in fields(model) if _can_hold_secret(hints.get(item.name, object)))
    return tuple(model.model_fields) if issubclass(model, BaseModel) else ()


def _can_hold_secret(annotation: object) -> bool:
    if annotation is Secret:
        return True
    if isinstance(annotation, type) and not get_args(annotation):
        return not issubclass(annotation, (*_NEVER_SECRET, Enum))
    inner = [argument for argument in get_args(annotation) if argument is not Ellipsis]
    if get_origin(annotation) is Annotated:
        inner = inner[:1]
    return any(map(_can_hold_secret, inner)) if inner else get_origin(annotation) is not Literal


def _replace_below(value: object, new: Mapping[ValuePath, Secret], path: ValuePath) -> object:
    if isinstance(value, Secret):
        return new.get(path, value)
    changed: dict[str | int, object] = {}
    for step, inner in _list_parts(value):
        after = _replace_below(inner, new, path if step == HIDDEN_FIELD else (*path, step))
        if after is not inner:
            changed[step] = after
    if not changed:
        return value
    if isinstance(value, Mapping):
        return {**value, **changed}
    if isinstance(value, tuple | list):
        return type(value)(changed.get(index, inner) for index, inner in enumerate(value))
    if isinstance(value, BaseModel):
        return value.model_copy(update={str(name): after for name, after in changed.items()})
    assert is_dataclass(value)
    assert not isinstance(value, type)
    return replace(value, **{str(name): after for name, after in changed.items()})


@cache
def find_secret_fields(model: type[BaseModel]) -> frozenset[str]:
    """Return the names of the fields that hold a secret, in a model and all models nested in it."""
    field_names: set[str] = set()
    pending: list[object] = [model]
    visited: set[object] = set()
    while pending:
        current = pending.pop()
        if isinstance(current, type) and issubclass(current, BaseModel) and current not in visited:
            visited.add(current)
            for name, item in current.model_fields.items():
                leaves = set(_list_leaf_types(item.annotation))
                field_names |= {name, item.alias or name} if Secret in leaves else set()
                pending += leaves
    return frozenset(field_names)


def find_nested_secrets(model: type[BaseModel]) -> list[str]:
    """Return the fields of a model that hold secrets within lists, mappings or models."""
    field_names = []
    for name, item in model.model_fields.items():
        is_union = get_origin(item.annotation) in (Union, UnionType)
        alternatives = get_args(item.annotation) if is_union else (item.annotation,)
        inner = [part for part in map(_strip_metadata, alternatives) if part is not Secret]
        if any(_has_nested_secret(part) for part in inner):
            field_names.append(name)
    return field_names


def _strip_metadata(annotation: object) -> object:
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def _has_nested_secret(annotation: object) -> bool:
    leaves = set(_list_leaf_types(annotation))
    models = (leaf for leaf in leaves if isinstance(leaf, type) and issubclass(leaf, BaseModel))
    return Secret in leaves or any(find_secret_fields(model) for model in models)


def _list_leaf_types(annotation: object) -> Iterator[object]:
    arguments = get_args(annotation)
    for argument in arguments[:1] if get_origin(annotation) is Annotated else arguments:
        yield from _list_leaf_types(argument)
    if not arguments:
        yield annotation


def _parse_secret(value: object) -> Secret:
    if isinstance(value, Secret):
        return value
    if not isinstance(value, str):
        raise PydanticCustomError("string_type", "Input should be a valid string")
    SCRUBBER.register(str(value))
    return Secret(str(value), value.reference if isinstance(value, Referenced) else None)


SecretText = Annotated[
    Secret,
    GetPydanticSchema(
        lambda _source, _handler: core_schema.no_info_plain_validator_function(_parse_secret),
        lambda _schema, _handler: {"type": "string"},
    ),
]
"""The type of a spec field that holds a secret: a string in the manifest, a `Secret` after parsing.

No message about a manifest repeats the value of such a field.
"""
