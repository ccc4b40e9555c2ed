"""How many of many similar cases the tests try: some by default, and all in ``make test-thorough``."""

from typing import TypeVar

from hypothesis import settings

_T = TypeVar("_T")


def is_thorough() -> bool:
    """Return whether the tests try all cases (``--hypothesis-profile=thorough``)."""
    return settings.get_current_profile_name() == "thorough"


def pick(some: _T, all_: _T) -> _T:
    """Return ``all_`` if the tests try all cases, otherwise ``some``."""
    return all_ if is_thorough() else some
