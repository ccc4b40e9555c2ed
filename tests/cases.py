"""Marks a test as one case of the conformance list; `tests/conformance` checks that no case is missing."""

from collections.abc import Callable
from typing import TypeVar

F = TypeVar("F", bound=Callable[..., object])


def case(_id: str) -> Callable[[F], F]:
    """Name the case that a test runs. It is found by reading the sources, so write the id as a literal."""
    return lambda test: test
