"""The type of the functions that draw values from strategies."""

from typing import Protocol, TypeVar

from hypothesis.strategies import SearchStrategy

_T = TypeVar("_T")


class Draw(Protocol):
    """A function that draws one value: ``data.draw``, or the first argument of a composite strategy."""

    def __call__(self, strategy: SearchStrategy[_T], /) -> _T: ...
