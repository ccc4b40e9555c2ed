"""Compare compatibility levels with each other, and the live level of a subject with the declared level."""

from enum import StrEnum

from kdeclare.providers.schema_registry.client.port import (
    CompatibilityLevel,
    RegistryInfo,
    SubjectLevel,
)

_GUARANTEES = {
    CompatibilityLevel.NONE: frozenset(),
    CompatibilityLevel.BACKWARD: frozenset({"backward"}),
    CompatibilityLevel.FORWARD: frozenset({"forward"}),
    CompatibilityLevel.FULL: frozenset({"backward", "forward"}),
    CompatibilityLevel.BACKWARD_TRANSITIVE: frozenset({"backward", "all backward"}),
    CompatibilityLevel.FORWARD_TRANSITIVE: frozenset({"forward", "all forward"}),
    CompatibilityLevel.FULL_TRANSITIVE: frozenset({"backward", "all backward", "forward", "all forward"}),
}
"""What each level guarantees about a new version. A level is stricter if it has more guarantees."""


class LevelChange(StrEnum):
    """The result of comparing a new level with the current level."""

    SAME = "same"
    LOOSER = "looser"
    STRICTER = "stricter"
    OTHER = "other"  # neither stricter nor looser, such as from BACKWARD to FORWARD


def compare_levels(before: CompatibilityLevel, after: CompatibilityLevel) -> LevelChange:
    """Return how the level ``after`` compares with the level ``before``."""
    old, new = _GUARANTEES[before], _GUARANTEES[after]
    if old == new:
        return LevelChange.SAME
    if new < old:
        return LevelChange.LOOSER
    return LevelChange.STRICTER if new > old else LevelChange.OTHER


def is_implied(looser: CompatibilityLevel, stricter: CompatibilityLevel) -> bool:
    """Whether a version that is compatible at the stricter level is always compatible at the looser level."""
    return _GUARANTEES[stricter] >= _GUARANTEES[looser]


def find_storable_level(declared: CompatibilityLevel | None, info: RegistryInfo) -> CompatibilityLevel | None:
    """Return the level that a registry stores for a subject. None means no level of its own.

    Registries that do not distinguish a subject's own level from the inherited level remove the level of a
    subject instead of setting it to NONE.
    """
    is_removed = declared is CompatibilityLevel.NONE and not info.distinguishes_own_levels
    return None if is_removed else declared


def is_as_declared(declared: CompatibilityLevel | None, live: SubjectLevel, info: RegistryInfo) -> bool:
    """Whether the level of a subject is as declared. None declares that the subject has no level of its own.

    Some registries report an inherited level as if it were set on the subject. If such a level equals the
    declared level, the result is True, because setting the level would have no visible effect.
    """
    level = find_storable_level(declared, info)
    if level is None:
        return live.own is None
    if live.own is None and not info.distinguishes_own_levels:
        return level is info.level
    return live.own is level
