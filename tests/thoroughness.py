"""How many of many similar cases the tests try: some by default, and all in ``make test-thorough``."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeVar

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet

_T = TypeVar("_T")


def is_thorough() -> bool:
    """Return whether the tests try all cases (``--hypothesis-profile=thorough``)."""
    return settings.get_current_profile_name() == "thorough"


def pick(some: _T, all_: _T) -> _T:
    """Return ``all_`` if the tests try all cases, otherwise ``some``."""
    return all_ if is_thorough() else some


def mark_rest(values: Iterable[_T], count: int) -> "list[_T | ParameterSet]":
    """Return parameters of a test, of which all after the first ``count`` have the marker ``thorough``."""
    return [
        value if number < count else pytest.param(value, marks=pytest.mark.thorough)
        for number, value in enumerate(values)
    ]
