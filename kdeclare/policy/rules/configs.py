"""Rules for topic configs, and functions that compare config values."""

import difflib
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from math import inf, isfinite
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, field_validator, model_validator

from kdeclare.core.policies.policy_subjects import find_policy_words
from kdeclare.manifests.policies import TOPIC
from kdeclare.policy.interface import TopicState
from kdeclare.policy.rules.base import S, Settings, StateRule, Violation, as_text, format_list, format_setting

_SIMILARITY = 0.9
"""The minimum similarity (0 to 1) at which an unknown key counts as a misspelling of a known key."""


def _join_elements(raw: Any) -> Any:
    if isinstance(raw, list):
        elements = [as_text(element) for element in raw]
        return ",".join(elements) if all(isinstance(e, str) for e in elements) else raw
    return as_text(raw)


ConfigText = Annotated[
    str,
    BeforeValidator(_join_elements),
    Field(json_schema_extra={"type": ["string", "number", "boolean", "array"]}),
]
"""A config value as a string. The elements of a list are joined by commas."""


Number = int | Annotated[float, Field(allow_inf_nan=False)]
"""A finite number."""


def parse_number(text: str) -> int | float | None:
    """Convert a string to a number, or return None if the string is not a finite number."""
    for convert in (int, float):
        try:
            parsed = convert(text)
            return parsed if isfinite(parsed) else None
        except (ValueError, OverflowError):  # also for an integer that fits no float
            continue
    return None


def is_same_value(key: str, first: str, second: str) -> bool:
    """Return whether two config values are equal.

    Numbers are compared by value (``0.5`` equals ``0.50``), and the order of lists is ignored.
    """
    return first == second or _normalize_value(key, first) == _normalize_value(key, second)


def _normalize_value(key: str, value: str) -> object:
    value_type = _get_known_keys().get(key)
    if value_type is None:
        return value
    if value_type is list:
        return frozenset(part.strip() for part in value.split(",") if part.strip())
    if value_type is bool:
        return value.strip().lower()
    return value.strip() if value_type is str or parse_number(value) is None else parse_number(value)


def validate_keys(keys: Iterable[str]) -> None:
    """Raise ValueError if a key seems to be misspelled, because a rule for such a key would never apply.

    An unknown key that is not similar to a known key is accepted, because it can belong to a newer Kafka
    version.
    """
    known_keys = _get_known_keys()
    for key in keys:
        close_matches = (
            [] if key in known_keys else difflib.get_close_matches(key, known_keys, n=1, cutoff=_SIMILARITY)
        )
        if close_matches:
            raise ValueError(f"'{key}' is not a Kafka topic config (did you mean '{close_matches[0]}'?)")


def _get_known_keys() -> Mapping[str, type]:
    """Return the value type of each known topic config, by key."""
    words = find_policy_words(TOPIC)
    configs = words.fields["configs"] if words is not None else None
    return configs.keys() if configs is not None and configs.keys is not None else {}


_PREFIX = "configs."

_LOCAL_RETENTION = frozenset({"local.retention.ms", "local.retention.bytes"})
_RETENTION = _LOCAL_RETENTION | {"retention.ms", "retention.bytes"}
_NO_LIMIT, _AS_RETENTION = -1, -2


class ConfigRule(StateRule[S]):
    """A rule that checks each config override of a topic separately."""

    def concerns(self, field: str) -> bool:
        """Return whether the field is a config that the rule checks."""
        return field.startswith(_PREFIX) and self.names(field.removeprefix(_PREFIX))

    def names(self, key: str) -> bool:
        """Return whether the rule checks this key."""
        return True

    def find_violations(self, topic: str, state: TopicState) -> Iterator[Violation]:
        """Yield the violations by a topic, at most one for each config."""
        for key, text in self.wrong(state.configs):
            yield Violation(_PREFIX + key, f"{topic} would {text}.")

    @abstractmethod
    def wrong(self, configs: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Yield each key that violates the rule, with the part of the message that follows ``TOPIC would``.

        An example of this part is ``not set KEY; …``.
        """


class RequiredConfigsSettings(Settings):
    """The settings of `RequiredConfigs`.

    configs: the required value of each config, by key. Null allows any value.
    """

    configs: Annotated[dict[str, ConfigText | None], Field(min_length=1)]

    @field_validator("configs")
    @classmethod
    def _validate_keys(cls, configs: dict[str, str | None]) -> dict[str, str | None]:
        validate_keys(configs)
        return configs


class RequiredConfigs(ConfigRule[RequiredConfigsSettings]):
    """Requires configs to be set, either to any value or to a particular value."""

    settings_model = RequiredConfigsSettings

    def names(self, key: str) -> bool:
        """Return whether the key is required."""
        return key in self.settings.configs

    def wrong(self, configs: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Yield the keys that are not set or do not have the required value."""
        for key, wanted in self.settings.configs.items():
            value = configs.get(key)
            if value is None:
                yield key, f"not set {key}; it must be set{f' to {wanted}' if wanted is not None else ''}"
            elif wanted is not None and not is_same_value(key, value, wanted):
                yield key, f"have {format_setting(key, value)}; it must be {wanted}"


class ForbiddenConfigsSettings(Settings):
    """The settings of `ForbiddenConfigs`.

    keys: the keys of the configs that must not be set.
    """

    keys: Annotated[list[str], Field(min_length=1)]

    @field_validator("keys")
    @classmethod
    def _validate_keys(cls, keys: list[str]) -> list[str]:
        validate_keys(keys)
        return keys


class ForbiddenConfigs(ConfigRule[ForbiddenConfigsSettings]):
    """Forbids overrides of particular configs, so that the broker defaults apply."""

    settings_model = ForbiddenConfigsSettings

    def names(self, key: str) -> bool:
        """Return whether the key is forbidden."""
        return key in self.settings.keys

    def wrong(self, configs: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Yield the forbidden keys that are set."""
        for key in sorted(configs.keys() & set(self.settings.keys)):
            yield key, f"have {format_setting(key, configs[key])}; this config must not be set"


class AllowedConfigsSettings(Settings):
    """The settings of `AllowedConfigs`.

    keys: the keys of the configs that can be set, in addition to the keys of ``configs``. If omitted, all
        configs can be set.
    configs: the allowed values of particular configs, by key. A list is one value: ``[[compact], [compact,
        delete]]`` allows these two values, but not ``[delete]``.
    """

    keys: list[str] | None = None
    configs: dict[str, Annotated[list[ConfigText], Field(min_length=1)]] = {}  # noqa: RUF012  frozen

    @model_validator(mode="after")
    def _validate_not_empty(self) -> "AllowedConfigsSettings":
        if self.keys is None and not self.configs:
            raise ValueError("set 'keys', 'configs' or both")
        validate_keys([*(self.keys or ()), *self.configs])
        return self


class AllowedConfigs(ConfigRule[AllowedConfigsSettings]):
    """Restricts the configs that can be set, and the values of particular configs."""

    settings_model = AllowedConfigsSettings

    def names(self, key: str) -> bool:
        """Return whether the rule checks this key. If ``keys`` is set, the rule checks all keys."""
        return self.settings.keys is not None or key in self.settings.configs

    def wrong(self, configs: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Yield the keys that must not be set, and the keys whose values are not allowed."""
        keys, values = self.settings.keys, self.settings.configs
        for key, value in sorted(configs.items()):
            if key in values:
                if not any(is_same_value(key, value, allowed) for allowed in values[key]):
                    yield (
                        key,
                        f"have {format_setting(key, value)}; it must be {format_list(values[key], 'or')}",
                    )
            elif keys is not None and key not in keys:
                known = sorted({*keys, *values})
                only = f"only {format_list(known)} may" if known else "no config may"
                yield key, f"have {format_setting(key, value)}; {only} be set"


class ValueBounds(Settings):
    """The bounds of a numeric config.

    min, max: inclusive bounds; at least one is required.
    """

    min: Number | None = None
    max: Number | None = None

    @model_validator(mode="after")
    def _validate_bounds(self) -> "ValueBounds":
        if self.min is None and self.max is None:
            raise ValueError("set 'min', 'max' or both")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"'min' ({self.min}) is greater than 'max' ({self.max})")
        return self


class BoundedConfigsSettings(Settings):
    """The settings of `BoundedConfigs`.

    configs: the bounds of the values, by key.
    """

    configs: Annotated[dict[str, ValueBounds], Field(min_length=1)]

    @field_validator("configs")
    @classmethod
    def _validate_keys(cls, configs: dict[str, ValueBounds]) -> dict[str, ValueBounds]:
        validate_keys(configs)
        return configs


class BoundedConfigs(ConfigRule[BoundedConfigsSettings]):
    """Requires the values of numeric configs to be within bounds. Configs that are not set are not checked.

    For ``retention.ms``, ``retention.bytes`` and their ``local.`` variants, -1 means "no limit" and is
    greater than any number. For the ``local.`` variants, -2 means "same as the config without ``local.``" and
    is not checked. Set bounds for the config without ``local.`` instead.
    """

    settings_model = BoundedConfigsSettings

    def names(self, key: str) -> bool:
        """Return whether the key has bounds."""
        return key in self.settings.configs

    def wrong(self, configs: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Yield the keys whose values are out of bounds."""
        for key, bounds in self.settings.configs.items():
            wanted = _explain_bounds(key, configs[key], bounds) if key in configs else None
            if wanted:
                unlimited = key in _RETENTION and parse_number(configs[key]) == _NO_LIMIT
                remark = " (no limit)" if unlimited else ""
                yield key, f"have {format_setting(key, configs[key])}{remark}; {wanted}"


def _explain_bounds(key: str, text: str, bounds: ValueBounds) -> str | None:
    value = parse_number(text)
    if value is None:
        return "it must be a number"
    if key in _RETENTION and value == _NO_LIMIT:
        value = inf
    elif key in _LOCAL_RETENTION and value == _AS_RETENTION:
        return None
    if bounds.min is not None and value < bounds.min:
        return f"it must be at least {bounds.min}"
    return f"it must be at most {bounds.max}" if bounds.max is not None and value > bounds.max else None
