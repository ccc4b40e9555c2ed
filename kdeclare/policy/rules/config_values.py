"""Values of topic configs: as rules are told them, and what they mean."""

import difflib
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from kdeclare.core.policy_subjects import find_policy_words
from kdeclare.manifests.policies import TOPIC
from kdeclare.policy.rules.base import as_text

_NEAR = 0.9
"""How alike two keys are when one of them is taken for a slip of the pen."""


def _joined(raw: Any) -> Any:
    if isinstance(raw, list):
        elements = [as_text(element) for element in raw]
        return ",".join(elements) if all(isinstance(e, str) for e in elements) else raw
    return as_text(raw)


ConfigValue = Annotated[
    str,
    BeforeValidator(_joined),
    Field(json_schema_extra={"type": ["string", "number", "boolean", "array"]}),
]
"""The whole value of a config, written as in a manifest; a list becomes its elements joined by commas."""


Number = int | Annotated[float, Field(allow_inf_nan=False)]
"""A finite number."""


def number(text: str) -> int | float | None:
    """The number that a text is; None where it is none, or not a finite one."""
    for read in (int, float):
        try:
            parsed = read(text)
        except (ValueError, OverflowError):
            continue
        return parsed if isfinite(parsed) else None
    return None


def same_value(key: str, one: str, other: str) -> bool:
    """Whether two values of a config mean the same: ``0.5`` and ``0.50``, lists in another order."""
    return one == other or _meaning(key, one) == _meaning(key, other)


def _meaning(key: str, value: str) -> object:
    known = _known_keys().get(key)
    if known is None:
        return value
    if known is list:
        return frozenset(part.strip() for part in value.split(",") if part.strip())
    if known is bool:
        return value.strip().lower()
    return value.strip() if known is str or number(value) is None else number(value)


def check_keys(keys: Iterable[str]) -> None:
    """Raises ValueError for a key that looks like a misspelt one, as its rule would never hold.

    One that is like no other is taken for one of a newer Kafka.
    """
    known = _known_keys()
    for key in keys:
        near = [] if key in known else difflib.get_close_matches(key, known, n=1, cutoff=_NEAR)
        if near:
            raise ValueError(f"'{key}' is not a topic config of Kafka (did you mean '{near[0]}'?)")


def _known_keys() -> Mapping[str, type]:
    """The configs that Kafka knows, with the types of their values."""
    words = find_policy_words(TOPIC)
    configs = words.fields["configs"] if words is not None else None
    return configs.keys() if configs is not None and configs.keys is not None else {}
