"""Sensitive values, and what plans and states keep of them."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from functools import cache
from types import NoneType
from typing import Annotated, Literal, Protocol, get_args, get_origin, get_type_hints

from pydantic import BaseModel, GetPydanticSchema
from pydantic_core import PydanticCustomError, core_schema

from kdeclare.core.arguments import Arguments
from kdeclare.core.jsontypes import Json
from kdeclare.core.references import Referenced
from kdeclare.core.scrubber import SCRUBBER

SHOWN = "(sensitive)"
"""What stands for a sensitive value wherever people or files would see it."""

UNTOLD = "untold"
"""The hash of a secret of which nothing but its existence is known."""

EARLIER = "was"
"""The argument of an operation under which the record of an earlier secret is kept, for the way back.

Sending the operation does not need its value, which need not be there any more.
"""

BESIDE = "hidden"
"""The field of a value that has the same value as a `Secret`, in case the system turns out to hide it.

It has the place of the value that it stands beside.
"""

_SENSITIVE = re.compile(
    r"(password|passphrase|secret|token|credentials?|jaas\.config"
    r"|ssl\.keystore\.key|ssl\.keystore\.certificate\.chain|ssl\.truststore\.certificates)$",
    re.IGNORECASE,
)
"""Keys of type PASSWORD (SslConfigs, SaslConfigs), and what plug-ins are likely to call theirs."""

_NEVER = (str, Referenced, int, bool, float, NoneType)

Steps = tuple[str | int, ...]
"""Where in a value: names of fields, keys and indexes."""


@dataclass(frozen=True, slots=True)
class SecretRef(Arguments):
    """What plans and states keep of a secret.

    secret: its salted hash. reference: the scalar that it is resolved from, None for a literal.
    """

    secret: str
    reference: str | None

    def as_json(self) -> Json:
        """Return it as files hold it."""
        return {"secret": self.secret, "reference": self.reference}


@dataclass(frozen=True, slots=True)
class Secret:
    """A sensitive value in memory; of one that was decoded from JSON, ``value`` is empty.

    reference: the scalar as written, None for a literal.
    digest: its hash; empty until it is sealed (`engine.planning.sealing`), since a salt needs the state.
    stored: the state's own hash of it, where that was made of the same value; otherwise empty.
    doubtful: whether only the cluster can tell if it is sensitive at all.
    """

    value: str = field(repr=False)
    reference: str | None
    digest: str = ""
    stored: str = ""
    doubtful: bool = False

    @property
    def stated(self) -> Json:
        """What is sent to where it is compared, sealed or not: its hash as the state has it, if it does."""
        return {"secret": self.stored or self.digest, "reference": self.reference}

    @property
    def ref(self) -> SecretRef:
        """What plan and state keep. It must be sealed."""
        assert self.digest, "a secret that was not sealed"
        return SecretRef(self.digest, self.reference)

    def as_json(self) -> Json:
        """What plan and state keep, as files hold it. It must be sealed."""
        return self.ref.as_json()


def is_sensitive_key(key: str) -> bool:
    """Whether the value of a setting must not be seen, as far as its name tells."""
    return _SENSITIVE.search(key) is not None


def hide(value: str) -> Secret:
    """Return the secret that a system has; no message and no log repeats its value from here on."""
    SCRUBBER.register(value)
    return Secret(value, None)


class SecretSource(Protocol):
    """Gives the value of a secret again, at apply."""

    def reveal(self, secret: SecretRef) -> str:
        """The value. Raises KdeclareError when it cannot be had or its hash is not the planned one."""


_RECORD = {"secret", "reference"}
"""The keys of a record of a secret; a mapping with other keys has fields that are called so."""


def is_secret(value: Json) -> bool:
    """Whether a value of a change or of an owned record stands for a secret."""
    return isinstance(value, Mapping) and value.keys() == _RECORD


def read_secret_ref(value: Json) -> SecretRef:
    """Return what plain data, for which `is_secret` holds, keeps of a secret."""
    return SecretRef(value["secret"], value.get("reference"))


def find_records(value: object, at: Steps = ()) -> Iterator[tuple[Steps, SecretRef]]:
    """The records of secrets in arguments or plain data, each with where it is; no `EARLIER` ones."""
    if isinstance(value, SecretRef):
        yield at, value
    elif is_secret(value):
        yield at, read_secret_ref(value)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if key != EARLIER:
                yield from find_records(item, (*at, key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from find_records(item, (*at, index))
    elif isinstance(value, Arguments):
        for name in _argument_names(type(value)):
            yield from find_records(getattr(value, name), (*at, name))


_names_of_arguments: dict[type, tuple[str, ...]] = {}


def _argument_names(arguments: type) -> tuple[str, ...]:
    """The fields that `find_records` looks into."""
    names = _names_of_arguments.get(arguments)
    if names is None:
        found = fields(arguments) if is_dataclass(arguments) else ()
        names = _names_of_arguments[arguments] = tuple(f.name for f in found if f.name != EARLIER)
    return names


def replace_records(value: Json, new: Mapping[Steps, SecretRef], at: Steps = ()) -> Json:
    """Plain data with other records at these places, which `find_records` found."""
    if at in new:
        return new[at].as_json()
    if isinstance(value, Mapping):
        return {key: replace_records(item, new, (*at, key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [replace_records(item, new, (*at, index)) for index, item in enumerate(value)]
    return value


def find_secrets(value: object) -> Iterator[tuple[Steps, Secret]]:
    """The secrets in a value made of models, dataclasses, mappings and sequences, each with where it is."""
    waiting: list[tuple[Steps, object]] = [((), value)]
    while waiting:
        at, item = waiting.pop()
        if isinstance(item, Secret):
            yield at, item
            continue
        for step, inner in _parts(item):
            if inner.__class__ not in _NEVER:  # all of a fleet is looked through, and most of it are texts
                waiting.append((at if step == BESIDE else (*at, step), inner))


def replace_secrets(value: object, new: Mapping[Steps, Secret]) -> object:
    """The value with other secrets at these places."""
    return _replaced(value, new, ())


def _parts(value: object) -> Iterable[tuple[str | int, object]]:
    if isinstance(value, dict):
        return value.items()
    if isinstance(value, tuple | list):
        return enumerate(value)
    names = _names_of_fields.get(type(value))
    if names is None:
        names = _names_of_fields[type(value)] = _field_names(value)
    if names:
        return [(name, getattr(value, name)) for name in names]
    return value.items() if isinstance(value, Mapping) else ()


_names_of_fields: dict[type, tuple[str, ...]] = {}


def _field_names(value: object) -> tuple[str, ...]:
    """The fields that can hold a secret, by their annotations."""
    if is_dataclass(value):
        try:
            hints = get_type_hints(type(value))
        except NameError:  # of a name that only type checkers import: any field may hold one
            hints = {}
        return tuple(item.name for item in fields(value) if _can_hold_secret(hints.get(item.name, object)))
    return tuple(type(value).model_fields) if isinstance(value, BaseModel) else ()


def _can_hold_secret(annotation: object) -> bool:
    if annotation is Secret:
        return True
    if isinstance(annotation, type) and not get_args(annotation):
        return not issubclass(annotation, (*_NEVER, Enum))
    inner = [argument for argument in get_args(annotation) if argument is not Ellipsis]
    if get_origin(annotation) is Annotated:
        inner = inner[:1]
    return any(map(_can_hold_secret, inner)) if inner else get_origin(annotation) is not Literal


def _replaced(value: object, new: Mapping[Steps, Secret], at: Steps) -> object:
    if isinstance(value, Secret):
        return new.get(at, value)
    changed: dict[str | int, object] = {}
    for step, inner in _parts(value):
        after = _replaced(inner, new, at if step == BESIDE else (*at, step))
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
    """Return the names of the fields that hold a secret, in a model and in all models below it."""
    found: set[str] = set()
    waiting: list[object] = [model]
    seen: set[object] = set()
    while waiting:
        current = waiting.pop()
        if isinstance(current, type) and issubclass(current, BaseModel) and current not in seen:
            seen.add(current)
            for name, item in current.model_fields.items():
                leaves = set(_leaves_of(item.annotation))
                found |= {name, item.alias or name} if Secret in leaves else set()
                waiting += leaves
    return frozenset(found)


def _leaves_of(annotation: object) -> Iterator[object]:
    arguments = get_args(annotation)
    for argument in arguments[:1] if get_origin(annotation) is Annotated else arguments:
        yield from _leaves_of(argument)
    if not arguments:
        yield annotation


def _read_secret(value: object) -> Secret:
    if isinstance(value, Secret):
        return value
    if not isinstance(value, str):
        raise PydanticCustomError("string_type", "Input should be a valid string")
    SCRUBBER.register(str(value))
    return Secret(str(value), value.reference if isinstance(value, Referenced) else None)


SecretText = Annotated[
    Secret,
    GetPydanticSchema(
        lambda _source, _handler: core_schema.no_info_plain_validator_function(_read_secret),
        lambda _schema, _handler: {"type": "string"},
    ),
]
"""The type of a field of a spec that holds a secret: a text in the manifest, a `Secret` from then on.

No message about a manifest repeats what stands in such a field, whatever is wrong with it.
"""
