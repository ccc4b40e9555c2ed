"""What a manifest can say of one config key, checked against the catalogue, and the same as JSON."""

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
from kdeclare.core.resources.kind import DesiredResource, SpecProblem
from kdeclare.core.secrets.scrubber import SCRUBBER
from kdeclare.core.secrets.secret_refs import Referenced, Secret
from kdeclare.core.units import parse_amount
from kdeclare.providers.kafka.config.catalog import Catalog, KeyInfo, load_catalog
from kdeclare.providers.kafka.config.catalog.prefixes import split_prefix
from kdeclare.providers.kafka.ids import ConfigScope

UNKNOWN_CONFIG = UNKNOWN_SETTING

_MAX_BYTES = 32767
_READ_ONLY = "read-only"


@dataclass(frozen=True, slots=True)
class Value:
    """The whole value: a text, or the elements of a list.

    hidden: what it is where the cluster turns out to hide it; for keys that nobody knows.
    """

    value: str | tuple[str, ...]
    hidden: Secret | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ListPatch:
    """What must be in a list and what must be out; the other elements belong to others."""

    append: tuple[str, ...]
    subtract: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unset:
    """No override."""


ConfigValue = Value | ListPatch | Unset | Secret

CONFIGS_DESCRIPTION = (
    "Overrides by key: a value, a list, {append: [...], subtract: [...]} for part of a list, or null for no "
    "override."
)
UNMANAGED_DESCRIPTION = (
    "What happens to overrides that are neither declared nor kdeclare's own: keep (the default) or remove."
)


@runtime_checkable
class HasDeclaredConfigs(Protocol):
    """A body with configs, whatever they are of."""

    @property
    def configs(self) -> Mapping[str, ConfigValue]:
        """What it says of each key."""


def get_declared_configs(desired: DesiredResource) -> Mapping[str, ConfigValue]:
    """Return the configs that a resource declares. Raises TypeError where its kind has none."""
    if not isinstance(desired.body, HasDeclaredConfigs):
        raise TypeError(f"{desired.id} declares no configs")
    return desired.body.configs


def parse_config_values(
    resource: str, configs: Mapping[str, Any], catalog: Catalog
) -> tuple[dict[str, ConfigValue], tuple[SpecProblem, ...]]:
    """The wishes of a ``configs`` mapping by key, and what is wrong with it (paths within ``spec``)."""
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
    """With the value as a secret beside it, where no key that the catalogue knows proves it to be open.

    Of a key that it takes for an open one, a reference may still be hidden by the cluster.
    """
    if not isinstance(config_value, Value):
        return config_value
    if catalog.get(key) is None or (
        catalog.can_hide_unknown_keys and isinstance(config_value.value, Referenced)
    ):
        return replace(config_value, hidden=as_secret(config_value, doubtful=True))
    return config_value


def _check_key(resource: str, key: str, info: KeyInfo | None, scope: ConfigScope) -> Iterator[Diagnostic]:
    if info is None:
        suggestion = _find_nearest_key(key, scope)
        hint = (
            f"Did you mean '{suggestion}'?"
            if suggestion
            else "See the keys that Kafka documents for its version."
        )
        yield error(
            UNKNOWN_CONFIG,
            "Unknown config key",
            f"'{key}' is not a {scope.lower()} config of Kafka.",
            hint=hint,
            resource=resource,
            subject=key,
        )
    elif info.mode == _READ_ONLY:
        yield error(
            "read-only-config",
            "Config cannot be changed at run time",
            f"'{key}' can only be set in a broker's own properties file, with a restart.",
            hint="Take it out of the manifest.",
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
        return None, (_report_invalid_value(resource, key, "holds bytes that are no UTF-8 text."),)
    size = len(text.encode())
    if size > _MAX_BYTES:  # the broker would only close the connection
        return None, (_report_invalid_value(resource, key, f"has {size} bytes; Kafka takes {_MAX_BYTES}."),)
    if info is not None and info.is_secret:
        secret = as_secret(Value(text))
        return secret, (warn_literal_secret(resource, key),) if secret.reference is None else ()
    if info is not None and info.is_list:
        return Value(tuple(part.strip() for part in text.split(",") if part.strip())), ()
    expected = info is not None and _explain_type_mismatch(text, info.type)
    if expected:
        displayed, hint = text, ""
        if isinstance(text, Referenced):
            displayed = text.reference
        elif (number := parse_amount(key, text)) is not None:
            hint = f"Kafka takes no units: {displayed} is {number}."
        return None, (
            _report_invalid_value(resource, key, f"takes {expected}, not '{displayed}'.", hint=hint),
        )
    return Value(text), ()


@lru_cache(maxsize=4096)  # most topics of a project say the same
def _parse_plain(type_name: str, text: str) -> Value | None:
    """The wish that a text is for a key of a known type, if nothing is odd about it; no reference is."""
    if type_name in ("PASSWORD", "LIST") or not text.isascii() or len(text) > _MAX_BYTES:
        return None
    return None if _explain_type_mismatch(text, type_name) else Value(text)


def as_secret(config_value: Value, *, doubtful: bool = False) -> Secret:
    """What a wish is where its value must not be seen, not sealed yet; a list is one text then."""
    text = config_value.value if isinstance(config_value.value, str) else ",".join(config_value.value)
    reference = text.reference if isinstance(text, Referenced) else None
    if not doubtful:
        SCRUBBER.register(str(text))
    return Secret(str(text), reference, doubtful=doubtful)


def is_secrecy_unknown(key: str, config_value: ConfigValue, catalog: Catalog) -> bool:
    """Whether only the cluster can tell if a value is sensitive, and it may well be."""
    if catalog.get(key) is not None or not isinstance(config_value, Value):
        return False
    return catalog.can_hide_unknown_keys or isinstance(config_value.value, Referenced)


def warn_literal_secret(resource: str, key: str, place: SourcePosition | None = None) -> Diagnostic:
    """What to say of a secret that stands in a manifest."""
    return warning(
        LITERAL_SECRET,
        "Secret written into a manifest",
        f"'{key}' is sensitive, and its value stands in the manifest for everybody to read.",
        hint="Write ${env.NAME} or ${file.PATH} instead; a literal cannot be saved in a plan file either.",
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
    if info is not None and not info.is_list:
        detail = f"is no list, so nothing can be appended to it or subtracted from it (it is a {info.type})."
        return None, (_report_invalid_value(resource, key, detail, hint="Write the value itself."),)
    append, append_diagnostics = _parse_elements(resource, key, raw.get("append") or ())
    subtract, subtract_diagnostics = _parse_elements(resource, key, raw.get("subtract") or ())
    diagnostics = append_diagnostics + subtract_diagnostics
    conflicting = sorted(set(append) & set(subtract))
    if conflicting:
        diagnostics += (
            _report_invalid_value(resource, key, f"is to have and not to have {', '.join(conflicting)}."),
        )
    if not append and not subtract and not diagnostics:
        diagnostics += (_report_invalid_value(resource, key, "names no element to append or subtract."),)
    return (None if diagnostics else ListPatch(append, subtract)), diagnostics


def _parse_elements(resource: str, key: str, raw: Any) -> tuple[tuple[str, ...], tuple[Diagnostic, ...]]:
    if isinstance(raw, str):
        raw = raw.split(",")
    if not isinstance(raw, list | tuple) or any(isinstance(e, Mapping | list) or e is None for e in raw):
        return (), (_report_invalid_value(resource, key, "takes a list of plain values."),)
    elements = tuple(to_config_text(element).strip() for element in raw)
    if any("," in element or not element for element in elements):
        return (), (_report_invalid_value(resource, key, "has an element that is empty or holds a comma."),)
    duplicates = sorted({e for e in elements if elements.count(e) > 1})
    if duplicates:
        return (), (_report_invalid_value(resource, key, f"names {', '.join(duplicates)} twice."),)
    return elements, ()


def to_config_text(raw: Any) -> str:
    """A YAML scalar as the text that Kafka takes; booleans in lower case."""
    if isinstance(raw, bool):
        return str(raw).lower()
    return raw if isinstance(raw, str) else str(raw)


def join_elements(value: JsonValue) -> str:
    """A config value as Kafka takes it; the elements of a list are joined by commas."""
    return ",".join(value) if isinstance(value, list | tuple) else str(value)


_INTEGER_BITS = {"SHORT": 16, "INT": 32, "LONG": 64}


def _explain_type_mismatch(text: str, type_name: str) -> str | None:
    """What the type takes, if ``text`` is not it (ConfigDef.parseType)."""
    text = text.strip()
    if type_name == "BOOLEAN":
        return None if text.lower() in ("true", "false") else "true or false"
    bits = _INTEGER_BITS.get(type_name)
    try:
        if bits is not None:
            is_in_range = -(1 << (bits - 1)) <= int(text) < (1 << (bits - 1)) and "_" not in text
            return None if is_in_range else f"a whole number of {bits} bits"
        if type_name == "DOUBLE":
            float(text)
    except ValueError:
        return "a whole number" if bits else "a number"
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
    """A text, the elements of a list, parts ``{append, subtract}``, a secret's hash, or null for unset.

    Of a key that is unknown, what the cluster may hold secret is a hash, too. Parts never are: Kafka takes
    them for lists that it knows, and shows those. A hash is that of the state where it is of the same value,
    and empty where wishes were not sealed.
    """
    return {key: _dump_value(key, wish, catalog) for key, wish in config_values.items()}


def bind_config_values(json: JsonObject) -> dict[str, ConfigValue]:
    """The wishes again; secrets without their values."""
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
