"""Declared config values: parsing, validation against the catalog, and their JSON form."""

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from functools import cache, lru_cache
from typing import Any, Protocol, runtime_checkable

from kdeclare.core.diagnostics import (
    LITERAL_SECRET,
    UNKNOWN_SETTING,
    Diagnostic,
    Severity,
    SourcePosition,
    error,
    warning,
)
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import (
    JsonObject,
    JsonValue,
    as_bool,
    as_object,
    as_text,
    as_text_or_none,
    as_texts,
)
from kdeclare.core.resources.kind import DesiredResource, SpecPath, SpecProblem
from kdeclare.core.secrets.scrubber import SCRUBBER
from kdeclare.core.secrets.secret_refs import Referenced, Secret
from kdeclare.core.units import list_amount_units, parse_amount
from kdeclare.providers.kafka.config.catalog import Catalog, KeyInfo, load_catalog
from kdeclare.providers.kafka.config.catalog.prefixes import split_prefix
from kdeclare.providers.kafka.ids import ConfigScope

UNKNOWN_CONFIG = UNKNOWN_SETTING

_MAX_BYTES = 32767
_READ_ONLY = "read-only"


@dataclass(frozen=True, slots=True)
class Value:
    """A complete config value: a string, or the elements of a list.

    hidden: the value as a secret, which is used if the cluster hides the value. None if the value cannot be
        sensitive.
    """

    value: str | tuple[str, ...]
    hidden: Secret | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ListPatch:
    """The elements that a list must and must not contain. Other elements are left unchanged."""

    append: tuple[str, ...]
    subtract: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unset:
    """The declaration that a key has no override."""


ConfigValue = Value | ListPatch | Unset | Secret

CONFIGS_DESCRIPTION = (
    "Overrides by key: a value, a list, {append: [...], subtract: [...]} for part of a list, or null for no "
    "override. Times and sizes can have a unit, such as 7d or 50MiB."
)
UNMANAGED_DESCRIPTION = (
    "How to treat overrides that are neither declared nor owned by kdeclare: keep (the default) or remove."
)


@runtime_checkable
class HasDeclaredConfigs(Protocol):
    """The capability of bodies that declare configs."""

    @property
    def configs(self) -> Mapping[str, ConfigValue]:
        """The declared values by key."""


def get_declared_configs(desired: DesiredResource) -> Mapping[str, ConfigValue]:
    """Return the configs that a resource declares. Raises TypeError if its kind does not have configs."""
    if not isinstance(desired.body, HasDeclaredConfigs):
        raise TypeError(f"{desired.id} declares no configs")
    return desired.body.configs


def parse_config_values(
    resource: str, configs: Mapping[str, Any], catalog: Catalog
) -> tuple[dict[str, ConfigValue], tuple[SpecProblem, ...]]:
    """Parse a ``configs`` mapping. Return the values by key, and problems with paths relative to ``spec``."""
    config_values: dict[str, ConfigValue] = {}
    problems: list[SpecProblem] = []
    for key, raw in configs.items():
        info = catalog.get(key)
        if raw.__class__ is str and info is not None and info.mode != _READ_ONLY:
            plain_value = _parse_plain(info.type, raw)
            if plain_value is not None:
                config_values[key] = plain_value
                continue
        diagnostics = list(_check_key(resource, key, info, catalog.scope))
        config_value, value_diagnostics = _parse_value(resource, key, raw, info)
        diagnostics += value_diagnostics
        problems += [SpecProblem(("configs", key), item) for item in diagnostics]
        if config_value is not None:
            config_values[key] = _with_hidden_secret(key, config_value, catalog)
    return config_values, tuple(problems)


def _with_hidden_secret(key: str, config_value: ConfigValue, catalog: Catalog) -> ConfigValue:
    """Return the value and, if the cluster could hide it, the same value as a secret.

    A cluster can hide the value of a key that is not in the catalog. In a scope that accepts unknown keys and
    hides their values, every value from a secret reference is also kept as a secret.
    """
    if not isinstance(config_value, Value):
        return config_value
    if catalog.get(key) is None or (
        catalog.can_hide_unknown_keys and isinstance(config_value.value, Referenced)
    ):
        return replace(config_value, hidden=as_secret(config_value, doubtful=True))
    return config_value


def _check_key(resource: str, key: str, info: KeyInfo | None, scope: ConfigScope) -> Iterator[Diagnostic]:
    """Validate the key of a topic config or broker config: whether it exists and can be changed."""
    if info is None:
        suggestion = _find_nearest_key(key, scope)
        hint = (
            f"Did you mean '{suggestion}'?"
            if suggestion
            else "Check the key in the Kafka documentation for the version of your brokers."
        )
        yield error(
            UNKNOWN_CONFIG,
            "Unknown config key",
            f"'{key}' is not a Kafka {scope.noun} config.",
            hint=hint,
            resource=resource,
            subject=key,
        )
    elif info.mode == _READ_ONLY:
        yield error(
            "read-only-config",
            "Config cannot be changed at run time",
            f"'{key}' is read-only: a broker reads the key from server.properties when it starts.",
            hint=f"Remove '{key}' from the manifest. To change the value, edit server.properties and restart "
            "the broker.",
            resource=resource,
            subject=key,
        )


@cache
def _find_nearest_key(key: str, scope: ConfigScope) -> str | None:
    catalog = load_catalog(scope)
    splits = list(split_prefix(key)) if scope is ConfigScope.BROKER else []
    prefixed = [
        prefix + near
        for prefix, plain in splits
        for near in difflib.get_close_matches(plain, catalog.keys)
        if catalog.get(prefix + near) is not None
    ]
    if prefixed:
        return difflib.get_close_matches(key.lower(), prefixed, n=1, cutoff=0)[0]
    base_keys = [plain for _, plain in splits if plain in catalog.keys]
    return next(iter(base_keys or difflib.get_close_matches(key, catalog.keys, n=1)), None)


def _parse_value(
    resource: str, key: str, raw: Any, info: KeyInfo | None
) -> tuple[ConfigValue | None, tuple[Diagnostic, ...]]:
    if raw is None:
        return Unset(), ()
    if isinstance(raw, Mapping):
        return _parse_list_patch(resource, key, raw, info)
    if isinstance(raw, list | tuple):
        return _parse_list(resource, key, raw, info)
    return _parse_scalar(resource, key, raw, info)


def _parse_scalar(
    resource: str, key: str, raw: Any, info: KeyInfo | None
) -> tuple[ConfigValue | None, tuple[Diagnostic, ...]]:
    text = to_config_text(raw)
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        return None, (_report_invalid_value(resource, key, "contains bytes that are not UTF-8 text."),)
    size = len(text.encode())
    if size > _MAX_BYTES:  # the broker would close the connection without an error response
        return None, (
            _report_invalid_value(resource, key, f"has {size} bytes; Kafka accepts at most {_MAX_BYTES}."),
        )
    if info is not None and info.is_secret:
        secret = as_secret(Value(text))
        return secret, (warn_literal_secret(resource, key),) if secret.reference is None else ()
    if info is not None and info.is_list:
        return Value(tuple(part.strip() for part in text.split(",") if part.strip())), ()
    converted = convert_amount(key, text, info)
    value = text if converted is None else converted
    expected = info is not None and _explain_type_mismatch(value, info.type)
    if expected:
        return None, (_report_type_mismatch(resource, key, expected, text, converted),)
    return Value(value), ()


def convert_amount(key: str, text: str, info: KeyInfo | None) -> str | None:
    """Convert an amount with a unit, such as ``7d``, to a number, because Kafka does not accept units.

    Return None if the string is not an amount, or if the key does not take times or sizes.
    """
    if info is None or info.type not in _INTEGER_BITS:
        return None
    number = parse_amount(key, text)
    return None if number is None else str(number)


def convert_config(path: SpecPath, text: str, catalog: Catalog) -> str | None:
    """Convert the value at ``path`` of a spec to a number if it has a unit, such as ``7d``.

    Return None if the path is not a config, or for the reasons of `convert_amount`.
    """
    match path:
        case ("configs", str(key)):
            return convert_amount(key, text, catalog.get(key))
    return None


def is_same_config(key: str, text: str, value: JsonValue, catalog: Catalog) -> bool:
    """Return whether ``text`` from a manifest, such as ``7d``, means the same config value as ``value``."""
    converted = convert_amount(key, text, catalog.get(key))
    sent = text if converted is None else converted
    return isinstance(value, str) and catalog.is_same_value(key, sent, value)


def _report_type_mismatch(
    resource: str, key: str, expected: str, text: str, converted: str | None
) -> Diagnostic:
    """Return the error for a value of the wrong type. converted: the number, if the value is an amount."""
    stated = f"'{text.reference if isinstance(text, Referenced) else text}'"
    if converted is not None:
        return _report_invalid_value(resource, key, f"takes {expected}, not {stated}, which is {converted}.")
    units = list_amount_units(key)
    hint = f"Write a number, or an amount with one of the units {', '.join(units)}." if units else ""
    return _report_invalid_value(resource, key, f"takes {expected}, not {stated}.", hint=hint)


@lru_cache(maxsize=4096)  # most topics of a project declare the same values
def _parse_plain(type_name: str, text: str) -> Value | None:
    """Parse a literal string for a key of this type. Return None if the value requires full validation."""
    if type_name in ("PASSWORD", "LIST") or not text.isascii() or len(text) > _MAX_BYTES:
        return None
    return None if _explain_type_mismatch(text, type_name) else Value(text)


def as_secret(config_value: Value, *, doubtful: bool = False) -> Secret:
    """Return the value as a secret without a hash. List elements are joined into one string.

    doubtful: whether only the cluster can determine if the value is sensitive.
    """
    text = config_value.value if isinstance(config_value.value, str) else ",".join(config_value.value)
    reference = text.reference if isinstance(text, Referenced) else None
    if not doubtful:
        SCRUBBER.register(str(text))
    return Secret(str(text), reference, doubtful=doubtful)


def is_secrecy_unknown(key: str, config_value: ConfigValue, catalog: Catalog) -> bool:
    """Return whether only the cluster can determine if a value is sensitive."""
    if catalog.get(key) is not None or not isinstance(config_value, Value):
        return False
    return catalog.can_hide_unknown_keys or isinstance(config_value.value, Referenced)


def warn_literal_secret(resource: str, key: str, place: SourcePosition | None = None) -> Diagnostic:
    """Return the warning about a secret in plain text in a manifest."""
    return warning(
        LITERAL_SECRET,
        "Secret in a manifest",
        f"'{key}' is sensitive, but the manifest contains its value in plain text. A plan with such a value "
        "cannot be saved to a plan file.",
        hint="Replace the value with a secret reference, such as ${env.NAME} or ${file.PATH}.",
        place=place,
        resource=resource,
        subject=key,
    )


def _parse_list(
    resource: str, key: str, raw: list[Any] | tuple[Any, ...], info: KeyInfo | None
) -> tuple[ConfigValue | None, tuple[Diagnostic, ...]]:
    if info is not None and not info.is_list:
        return None, (_report_invalid_value(resource, key, "takes one value, not a list."),)
    elements, diagnostics = _parse_elements(resource, key, raw)
    return (None if diagnostics else Value(elements)), diagnostics


def _parse_list_patch(
    resource: str, key: str, raw: Mapping[Any, Any], info: KeyInfo | None
) -> tuple[ConfigValue | None, tuple[Diagnostic, ...]]:
    unknown_keys = sorted(str(k) for k in raw if k not in ("append", "subtract"))
    if unknown_keys or not raw:
        unknown_names = ", ".join(f"'{name}'" for name in unknown_keys) or "nothing"
        return None, (
            _report_invalid_value(resource, key, f"takes 'append' and 'subtract', not {unknown_names}."),
        )
    if info is not None and not info.can_be_patched:
        reason = "is replaced as a whole" if info.is_list else f"has type {info.type}, not LIST"
        detail = f"{reason}, so 'append' and 'subtract' are not supported."
        return None, (
            _report_invalid_value(resource, key, detail, hint="Declare the complete value instead."),
        )
    append, append_diagnostics = _parse_elements(resource, key, raw.get("append") or ())
    subtract, subtract_diagnostics = _parse_elements(resource, key, raw.get("subtract") or ())
    diagnostics = append_diagnostics + subtract_diagnostics
    conflicting = sorted(set(append) & set(subtract))
    if conflicting:
        diagnostics += (
            _report_invalid_value(resource, key, f"both appends and subtracts {', '.join(conflicting)}."),
        )
    if not append and not subtract and not diagnostics:
        diagnostics += (_report_invalid_value(resource, key, "lists no elements to append or subtract."),)
    return (None if diagnostics else ListPatch(append, subtract)), diagnostics


def _parse_elements(resource: str, key: str, raw: Any) -> tuple[tuple[str, ...], tuple[Diagnostic, ...]]:
    if isinstance(raw, str):
        raw = raw.split(",")
    if not isinstance(raw, list | tuple) or any(isinstance(e, Mapping | list) or e is None for e in raw):
        return (), (_report_invalid_value(resource, key, "takes a list of scalar values."),)
    elements = tuple(to_config_text(element).strip() for element in raw)
    if any("," in element or not element for element in elements):
        return (), (
            _report_invalid_value(resource, key, "has an element that is empty or contains a comma."),
        )
    duplicates = sorted({e for e in elements if elements.count(e) > 1})
    if duplicates:
        return (), (_report_invalid_value(resource, key, f"lists {', '.join(duplicates)} more than once."),)
    return elements, ()


def to_config_text(raw: Any) -> str:
    """Return a YAML scalar as a string for Kafka, with booleans in lower case."""
    if isinstance(raw, bool):
        return str(raw).lower()
    return raw if isinstance(raw, str) else str(raw)


def join_elements(value: JsonValue) -> str:
    """Return a config value as a string for Kafka. List elements are joined with commas."""
    return ",".join(value) if isinstance(value, list | tuple) else str(value)


_INTEGER_BITS = {"SHORT": 16, "INT": 32, "LONG": 64}


def _explain_type_mismatch(text: str, type_name: str) -> str | None:
    """Return None if the type accepts ``text``; otherwise, describe the values that the type accepts.

    The types are those of ConfigDef.parseType.
    """
    text = text.strip()
    if type_name == "BOOLEAN":
        return None if text.lower() in ("true", "false") else "true or false"
    bits = _INTEGER_BITS.get(type_name)
    try:
        if bits is not None:
            is_in_range = -(1 << (bits - 1)) <= int(text) < (1 << (bits - 1)) and "_" not in text
            return None if is_in_range else f"a {bits}-bit integer"
        if type_name == "DOUBLE":
            float(text)
    except ValueError:
        return "an integer" if bits else "a number"
    return None


def _report_invalid_value(resource: str, key: str, reason: str, *, hint: str = "") -> Diagnostic:
    return Diagnostic(
        Severity.ERROR,
        "invalid-config",
        "Invalid config value",
        f"'{key}' {reason}",
        hint,
        resource=resource,
        subject=key,
    )


_UNSET = Unset()


def dump_config_values(config_values: Mapping[str, ConfigValue], catalog: Catalog) -> dict[str, JsonValue]:
    """Convert each value to JSON: a string, list elements, ``{append, subtract}``, a secret's hash, or null.

    The value of an unknown key is hashed as well, because the cluster could hide it. A list patch is never
    hashed, because Kafka accepts patches only for known lists, whose values are visible. If the state
    contains a hash of the same value, that hash is reused. For a secret without a hash, the JSON contains an
    empty hash.
    """
    return {key: _dump_value(key, config_value, catalog) for key, config_value in config_values.items()}


def bind_config_values(json: JsonObject) -> dict[str, ConfigValue]:
    """Convert the result of `dump_config_values` back to values. The secrets have hashes, but no values."""
    return {key: _bind_value(value) for key, value in json.items()}


def _dump_value(key: str, config_value: ConfigValue, catalog: Catalog) -> JsonValue:
    if isinstance(config_value, Value) and is_secrecy_unknown(key, config_value, catalog):
        config_value = replace(config_value.hidden or as_secret(config_value, doubtful=True), doubtful=True)
    if isinstance(config_value, Unset):
        return None
    if isinstance(config_value, ListPatch):
        return {"append": list(config_value.append), "subtract": list(config_value.subtract)}
    if isinstance(config_value, Secret):
        return {**config_value.stated, "doubtful": True} if config_value.doubtful else config_value.stated
    if isinstance(config_value.value, tuple):
        return list(config_value.value)
    return str(config_value.value)


def _bind_value(json: JsonValue) -> ConfigValue:
    if json is None:
        return _UNSET
    if isinstance(json, str):
        return Value(json)
    if isinstance(json, list):
        return Value(as_texts(json))
    fields = as_object(json)
    if "secret" in fields:
        reference, digest = as_text_or_none(fields["reference"]), as_text(fields["secret"])
        return Secret("", reference, digest, doubtful=as_bool(fields.get("doubtful", False)))
    return ListPatch(as_texts(fields["append"]), as_texts(fields["subtract"]))
