"""Owned configs: the values that were applied last, by key.

A state can contain thousands of owned configs. For speed, they are converted from and to JSON without a
validation library.
"""

from collections.abc import Mapping
from dataclasses import field
from functools import lru_cache
from typing import Self, TypeAlias

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonObject, JsonValue, as_texts
from kdeclare.core.operations.operation import Arguments
from kdeclare.core.resources.owned_record import CodedRecord, OwnedRecord, narrow_record
from kdeclare.core.secrets.secret_refs import SecretRef, bind_secret_ref, is_secret

CONFIGS = "configs"


@dataclass(frozen=True, slots=True)
class AppliedValue(Arguments):
    """The complete value that was applied to a key: a string, list elements, or None for "no override"."""

    value: str | tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class AppliedListPatch(Arguments):
    """A list patch that was applied to a key.

    append, subtract: the elements that the list must and must not contain.
    added: the elements of ``append`` that kdeclare added. The list already contained the other elements.
    """

    append: tuple[str, ...]
    subtract: tuple[str, ...]
    added: tuple[str, ...]


Applied: TypeAlias = AppliedValue | AppliedListPatch | SecretRef

_PATCH_FIELDS = ("append", "subtract", "added")


@dataclass(frozen=True, slots=True)
class ConfigsRecord(CodedRecord):
    """The owned configs of one resource."""

    configs: Mapping[str, Applied] = field(default_factory=dict)

    @classmethod
    def from_json(cls, json: JsonObject) -> Self:
        """See `CodedRecord`."""
        unknown = next((name for name in json if name != CONFIGS), None)
        if unknown is not None:
            raise ValueError(f"{unknown}: unknown field")
        return cls(bind_applied(json.get(CONFIGS, {})))

    def to_json(self) -> JsonObject:
        """See `CodedRecord`."""
        return {CONFIGS: dump_applied(self.configs)}


def get_applied(owned: OwnedRecord | None) -> Mapping[str, Applied]:
    """Return the configs in an ownership record. Raises TypeError if the record is not about configs."""
    record = narrow_record(owned, ConfigsRecord)
    return record.configs if record is not None else {}


def bind_applied(json: JsonValue) -> Mapping[str, Applied]:
    """Convert owned configs from JSON. Raises ValueError with the path of an invalid value."""
    if not isinstance(json, dict):
        raise ValueError(f"{CONFIGS}: not an object")
    return {key: _bind_one(key, value) for key, value in json.items()}


def _bind_one(key: str, json: JsonValue) -> Applied:
    if isinstance(json, dict):
        try:
            if len(json) == 1 and "value" in json:
                value = json["value"]
                return _make_value(value if value is None or isinstance(value, str) else as_texts(value))
            if is_secret(json):
                return bind_secret_ref(json)
            if json.keys() == set(_PATCH_FIELDS):
                append, subtract, added = (as_texts(json[name]) for name in _PATCH_FIELDS)
                return AppliedListPatch(append, subtract, added)
        except TypeError as problem:
            raise ValueError(f"{CONFIGS}.{key}: {problem}") from problem
    raise ValueError(f"{CONFIGS}.{key}: not a value, a list patch or a secret")


@lru_cache(maxsize=4096)
def _make_value(value: str | tuple[str, ...] | None) -> AppliedValue:
    return AppliedValue(value)


def dump_applied(configs: Mapping[str, Applied]) -> JsonObject:
    """Convert owned configs to JSON."""
    return {key: dump_one(applied) for key, applied in configs.items()}


def dump_one(applied: Applied) -> JsonObject:
    """Convert the owned value of one key to JSON."""
    if isinstance(applied, AppliedValue):
        value = applied.value
        return {"value": list(value) if isinstance(value, tuple) else value}
    if isinstance(applied, AppliedListPatch):
        return {name: list(getattr(applied, name)) for name in _PATCH_FIELDS}
    return applied.as_json()


def get_own_elements(applied: Applied | None) -> tuple[str, ...]:
    """Return the owned list elements: all elements or, for a list patch, the elements that kdeclare added."""
    if isinstance(applied, AppliedListPatch):
        return applied.added
    value = applied.value if isinstance(applied, AppliedValue) else None
    return value if isinstance(value, tuple) else ()
