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
    Place,
    Severity,
    error,
    warning,
)
from kdeclare.core.frozen import dataclass
from kdeclare.core.jsontypes import (
    JsonObject,
    JsonValue,
    as_bool,
    as_object,
    as_text,
    as_text_or_none,
    as_texts,
)
from kdeclare.core.resources.kind import Desired, Problem
from kdeclare.core.secrets.scrubber import SCRUBBER
from kdeclare.core.secrets.secret_refs import Referenced, Secret
from kdeclare.core.units import as_bare_number
from kdeclare.providers.kafka.config.catalog import Catalog, KeyInfo, catalog
from kdeclare.providers.kafka.config.catalog.prefixes import split_prefix
from kdeclare.providers.kafka.ids import ConfigScope

UNKNOWN_CONFIG = UNKNOWN_SETTING

_MAX_BYTES = 32767
_READ_ONLY = "read-only"


@dataclass(frozen=True, slots=True)
class Whole:
    """The whole value: a text, or the elements of a list.

    hidden: what it is where the cluster turns out to hide it; for keys that nobody knows.
    """

    value: str | tuple[str, ...]
    hidden: Secret | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Parts:
    """What must be in a list and what must be out; the other elements belong to others."""

    append: tuple[str, ...]
    subtract: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unset:
    """No override."""


Wish = Whole | Parts | Unset | Secret

CONFIGS_DESCRIPTION = (
    "Overrides by key: a value, a list, {append: [...], subtract: [...]} for part of a list, or null for no "
    "override."
)
UNMANAGED_DESCRIPTION = (
    "What happens to overrides that are neither declared nor kdeclare's own: keep (the default) or remove."
)


@runtime_checkable
class DeclaresConfigs(Protocol):
    """A body with configs, whatever they are of."""

    @property
    def configs(self) -> Mapping[str, Wish]:
        """What it says of each key."""


def get_declared_configs(desired: Desired) -> Mapping[str, Wish]:
    """Return the configs that a resource declares. Raises TypeError where its kind has none."""
    if not isinstance(desired.body, DeclaresConfigs):
        raise TypeError(f"{desired.id} declares no configs")
    return desired.body.configs


def parse_wishes(
    resource: str, configs: Mapping[str, Any], known: Catalog
) -> tuple[dict[str, Wish], tuple[Problem, ...]]:
    """The wishes of a ``configs`` mapping by key, and what is wrong with it (paths within ``spec``)."""
    wishes: dict[str, Wish] = {}
    problems: list[Problem] = []
    for key, raw in configs.items():
        info = known.get(key)
        if raw.__class__ is str and info is not None and info.mode != _READ_ONLY:
            plain = _parse_plain(info.type, raw)
            if plain is not None:
                wishes[key] = plain
                continue
        found = list(_key_problems(resource, key, info, known.scope))
        wish, wrong = _parse_one(resource, key, raw, info)
        found += wrong
        problems += [Problem(("configs", key), item) for item in found]
        if wish is not None:
            wishes[key] = _with_secret(key, wish, known)
    return wishes, tuple(problems)


def _with_secret(key: str, wish: Wish, known: Catalog) -> Wish:
    """With the value as a secret beside it, where no key that the catalogue knows proves it to be open.

    Of a key that it takes for an open one, a reference may still be hidden by the cluster.
    """
    if not isinstance(wish, Whole):
        return wish
    if known.get(key) is None or (known.hides_unknown and isinstance(wish.value, Referenced)):
        return replace(wish, hidden=as_secret(wish, doubtful=True))
    return wish


def _key_problems(resource: str, key: str, info: KeyInfo | None, scope: ConfigScope) -> Iterator[Diagnostic]:
    if info is None:
        near = _nearest(key, scope)
        hint = f"Did you mean '{near}'?" if near else "See the keys that Kafka documents for its version."
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
def _nearest(key: str, scope: ConfigScope) -> str | None:
    known = catalog(scope)
    splits = list(split_prefix(key)) if scope is ConfigScope.BROKER else []
    prefixed = [
        prefix + near
        for prefix, plain in splits
        for near in difflib.get_close_matches(plain, known.keys)
        if known.get(prefix + near) is not None
    ]
    if prefixed:
        return difflib.get_close_matches(key.lower(), prefixed, n=1, cutoff=0)[0]
    plains = [plain for _, plain in splits if plain in known.keys]
    return next(iter(plains or difflib.get_close_matches(key, known.keys, n=1)), None)


def _parse_one(
    resource: str, key: str, raw: Any, info: KeyInfo | None
) -> tuple[Wish | None, tuple[Diagnostic, ...]]:
    if raw is None:
        return Unset(), ()
    if isinstance(raw, Mapping):
        return _parse_parts(resource, key, raw, info)
    if isinstance(raw, list | tuple):
        return _parse_list(resource, key, raw, info)
    return _parse_scalar(resource, key, raw, info)


def _parse_scalar(
    resource: str, key: str, raw: Any, info: KeyInfo | None
) -> tuple[Wish | None, tuple[Diagnostic, ...]]:
    text = config_text(raw)
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        return None, (_wrong(resource, key, "holds bytes that are no UTF-8 text."),)
    size = len(text.encode())
    if size > _MAX_BYTES:  # the broker would only close the connection
        return None, (_wrong(resource, key, f"has {size} bytes; Kafka takes {_MAX_BYTES}."),)
    if info is not None and info.is_secret:
        secret = as_secret(Whole(text))
        return secret, (literal_secret(resource, key),) if secret.reference is None else ()
    if info is not None and info.is_list:
        return Whole(tuple(part.strip() for part in text.split(",") if part.strip())), ()
    wrong = info is not None and _type_problem(text, info.type)
    if wrong:
        shown, hint = text, ""
        if isinstance(text, Referenced):
            shown = text.reference
        elif (number := as_bare_number(key, text)) is not None:
            hint = f"Kafka takes no units: {shown} is {number}."
        return None, (_wrong(resource, key, f"takes {wrong}, not '{shown}'.", hint=hint),)
    return Whole(text), ()


@lru_cache(maxsize=4096)  # most topics of a project say the same
def _parse_plain(type_name: str, text: str) -> Whole | None:
    """The wish that a text is for a key of a known type, if nothing is odd about it; no reference is."""
    if type_name in ("PASSWORD", "LIST") or not text.isascii() or len(text) > _MAX_BYTES:
        return None
    return None if _type_problem(text, type_name) else Whole(text)


def as_secret(wish: Whole, *, doubtful: bool = False) -> Secret:
    """What a wish is where its value must not be seen, not sealed yet; a list is one text then."""
    text = wish.value if isinstance(wish.value, str) else ",".join(wish.value)
    reference = text.reference if isinstance(text, Referenced) else None
    if not doubtful:
        SCRUBBER.register(str(text))
    return Secret(str(text), reference, doubtful=doubtful)


def may_be_secret(key: str, wish: Wish, known: Catalog) -> bool:
    """Whether only the cluster can tell if a value is sensitive, and it may well be."""
    if known.get(key) is not None or not isinstance(wish, Whole):
        return False
    return known.hides_unknown or isinstance(wish.value, Referenced)


def literal_secret(resource: str, key: str, place: Place | None = None) -> Diagnostic:
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
) -> tuple[Wish | None, tuple[Diagnostic, ...]]:
    if info is not None and not info.is_list:
        return None, (_wrong(resource, key, "takes one value, not a list."),)
    elements, wrong = _elements(resource, key, raw)
    return (None if wrong else Whole(elements)), wrong


def _parse_parts(
    resource: str, key: str, raw: Mapping[Any, Any], info: KeyInfo | None
) -> tuple[Wish | None, tuple[Diagnostic, ...]]:
    unknown = sorted(str(k) for k in raw if k not in ("append", "subtract"))
    if unknown or not raw:
        named = ", ".join(f"'{name}'" for name in unknown) or "nothing"
        return None, (_wrong(resource, key, f"takes 'append' and 'subtract', not {named}."),)
    if info is not None and not info.is_list:
        detail = f"is no list, so nothing can be appended to it or subtracted from it (it is a {info.type})."
        return None, (_wrong(resource, key, detail, hint="Write the value itself."),)
    append, wrong_append = _elements(resource, key, raw.get("append") or ())
    subtract, wrong_subtract = _elements(resource, key, raw.get("subtract") or ())
    wrong = wrong_append + wrong_subtract
    both = sorted(set(append) & set(subtract))
    if both:
        wrong += (_wrong(resource, key, f"is to have and not to have {', '.join(both)}."),)
    if not append and not subtract and not wrong:
        wrong += (_wrong(resource, key, "names no element to append or subtract."),)
    return (None if wrong else Parts(append, subtract)), wrong


def _elements(resource: str, key: str, raw: Any) -> tuple[tuple[str, ...], tuple[Diagnostic, ...]]:
    if isinstance(raw, str):
        raw = raw.split(",")
    if not isinstance(raw, list | tuple) or any(isinstance(e, Mapping | list) or e is None for e in raw):
        return (), (_wrong(resource, key, "takes a list of plain values."),)
    elements = tuple(config_text(element).strip() for element in raw)
    if any("," in element or not element for element in elements):
        return (), (_wrong(resource, key, "has an element that is empty or holds a comma."),)
    twice = sorted({e for e in elements if elements.count(e) > 1})
    if twice:
        return (), (_wrong(resource, key, f"names {', '.join(twice)} twice."),)
    return elements, ()


def config_text(raw: Any) -> str:
    """A YAML scalar as the text that Kafka takes; booleans in lower case."""
    if isinstance(raw, bool):
        return str(raw).lower()
    return raw if isinstance(raw, str) else str(raw)


def joined(value: JsonValue) -> str:
    """A config value as Kafka takes it; the elements of a list are joined by commas."""
    return ",".join(value) if isinstance(value, list | tuple) else str(value)


_INTEGER_BITS = {"SHORT": 16, "INT": 32, "LONG": 64}


def _type_problem(text: str, type_name: str) -> str | None:
    """What the type takes, if ``text`` is not it (ConfigDef.parseType)."""
    text = text.strip()
    if type_name == "BOOLEAN":
        return None if text.lower() in ("true", "false") else "true or false"
    bits = _INTEGER_BITS.get(type_name)
    try:
        if bits is not None:
            fits = -(1 << (bits - 1)) <= int(text) < (1 << (bits - 1)) and "_" not in text
            return None if fits else f"a whole number of {bits} bits"
        if type_name == "DOUBLE":
            float(text)
    except ValueError:
        return "a whole number" if bits else "a number"
    return None


def _wrong(resource: str, key: str, what: str, *, hint: str = "") -> Diagnostic:
    return Diagnostic(
        Severity.ERROR,
        "invalid-config",
        "Invalid config value",
        f"'{key}' {what}",
        hint,
        resource=resource,
        subject=key,
    )


_UNSET = Unset()


def wishes_json(wishes: Mapping[str, Wish], known: Catalog) -> dict[str, JsonValue]:
    """A text, the elements of a list, parts ``{append, subtract}``, a secret's hash, or null for unset.

    Of a key that is unknown, what the cluster may hold secret is a hash, too. Parts never are: Kafka takes
    them for lists that it knows, and shows those. A hash is that of the state where it is of the same value,
    and empty where wishes were not sealed.
    """
    return {key: _encoded(key, wish, known) for key, wish in wishes.items()}


def wishes_from(stated: JsonObject) -> dict[str, Wish]:
    """The wishes again; secrets without their values."""
    return {key: _decoded(value) for key, value in stated.items()}


def _encoded(key: str, wish: Wish, known: Catalog) -> JsonValue:
    if isinstance(wish, Whole) and may_be_secret(key, wish, known):
        wish = replace(wish.hidden or as_secret(wish, doubtful=True), doubtful=True)
    if isinstance(wish, Unset):
        return None
    if isinstance(wish, Parts):
        return {"append": list(wish.append), "subtract": list(wish.subtract)}
    if isinstance(wish, Secret):
        return {**wish.stated, "doubtful": True} if wish.doubtful else wish.stated
    if isinstance(wish.value, tuple):
        return list(wish.value)
    return str(wish.value)


def _decoded(stated: JsonValue) -> Wish:
    if stated is None:
        return _UNSET
    if isinstance(stated, str):
        return Whole(stated)
    if isinstance(stated, list):
        return Whole(as_texts(stated))
    parts = as_object(stated)
    if "secret" in parts:
        reference, digest = as_text_or_none(parts["reference"]), as_text(parts["secret"])
        return Secret("", reference, digest, doubtful=as_bool(parts.get("doubtful", False)))
    return Parts(as_texts(parts["append"]), as_texts(parts["subtract"]))
