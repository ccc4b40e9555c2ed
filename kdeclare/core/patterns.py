"""Regular expressions in RE2 syntax. Matching takes time that is linear in the length of the string."""

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Protocol

_CODE = "INVALID_ARGUMENT: "
_INVALID = "invalid regular expression: "
_TOO_LARGE = "regular expression too large"

# An expression of single characters with at most two repetitions has the same meaning in Python's `re` and
# cannot backtrack for long. Python matches such an expression ten times as fast as CEL, because CEL compiles
# the expression for every match.
_ATOM = r"(?:[A-Za-z0-9_-]|\\[.-]|\.|\[\^?(?:[A-Za-z0-9_.](?:-[A-Za-z0-9])?)+-?\])"
_SIMPLE = re.compile(rf"(?:{_ATOM}*{_ATOM}[*+?]){{0,2}}{_ATOM}*")


RE2_HINT = "Use RE2 syntax, which has no look-around and no back-references."
"""The hint for a `PatternError`."""


class PatternError(ValueError):
    """Raised if a string is not a valid RE2 regular expression.

    reason: a description of the error. offset: the index, from 0, at which the invalid part begins; None if
    the error is not at a particular position.
    """

    def __init__(self, reason: str, offset: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.offset = offset

    def __reduce__(self) -> tuple[type["PatternError"], tuple[str, int | None]]:
        return PatternError, (self.reason, self.offset)

    @property
    def located_reason(self) -> str:
        """The reason, followed by the error's position in the expression if the position is known."""
        return self.reason if self.offset is None else f"{self.reason} at character {self.offset + 1}"


class Pattern:
    """A regular expression that must match a whole string.

    Raises PatternError with the reason if the expression is invalid.
    """

    __slots__ = ("_quick", "_whole", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._whole = rf"\A(?:{text})\z"
        self._quick: re.Pattern[str] | None = None
        if _SIMPLE.fullmatch(text):
            try:
                self._quick = re.compile(text)
                return
            except re.error:  # such as [z-a]; RE2 reports this error below
                pass
        reason = explain_invalid_pattern(text)
        if reason is not None:
            raise PatternError(reason, _find_offset(text, reason))
        if explain_invalid_pattern(self._whole) is not None:  # an open \Q quotes the closing parenthesis, too
            raise PatternError(r"\Q without \E", text.rfind(r"\Q"))

    def matches(self, name: str) -> bool:
        """Whether the expression matches the whole name."""
        if self._quick is not None:
            return self._quick.fullmatch(name) is not None
        return _evaluate_match(name, self._whole) is True

    def __repr__(self) -> str:
        return f"Pattern({self.text!r})"


@lru_cache(maxsize=1024)
def compile_pattern(text: str) -> Pattern:
    """Return the cached `Pattern` for a regular expression. Raises PatternError."""
    return Pattern(text)


def _find_offset(text: str, reason: str) -> int | None:
    """Return the offset of the invalid fragment that RE2 quotes in its error; None if RE2 quotes no fragment.

    The fragment can occur several times. To find the occurrence that causes the error, RE2 compiles the
    expression up to the end of each occurrence, until it reports the same error.
    """
    piece = reason.partition(" in '")[2].removesuffix("'")
    first_start = start = text.find(piece) if piece else -1
    while start >= 0:
        if explain_invalid_pattern(text[: start + len(piece)]) == reason:
            return start
        start = text.find(piece, start + 1)
    return first_start if first_start >= 0 else None


def explain_invalid_pattern(text: str) -> str | None:
    """Return the reason why a string is not a valid regular expression; None if the string is valid."""
    result = _evaluate_match("", text)
    if isinstance(result, bool):
        return None
    message = result.removeprefix(_CODE)
    if message.startswith(_TOO_LARGE) or "pattern too large" in message:
        return "too large after expanding its repetitions"
    if not message.startswith(_INVALID):
        return "not valid Unicode"
    cause, _, fragment = message.removeprefix(_INVALID).partition(": ")
    return f"{cause} in '{fragment}'" if fragment else cause


def _evaluate_match(name: str, pattern: str) -> bool | str:
    try:
        result = _compile_expression().eval(data={"name": name, "pattern": pattern}).value()
    except (RuntimeError, TypeError, ValueError) as problem:  # for example, a lone surrogate
        return str(problem)
    return result


class _Answer(Protocol):
    """The result of evaluating an expression."""

    def value(self) -> bool | str:
        """Return the result as a Python value."""


class _Expression(Protocol):
    """The type of a compiled CEL expression. The CEL library itself has no type hints."""

    def eval(self, *, data: Mapping[str, str]) -> _Answer:
        """Evaluate the expression."""


@cache
def _compile_expression() -> _Expression:
    from cel_expr_python import cel  # imported here because the import is slow and rarely needed

    env = cel.NewEnv(variables={"name": cel.Type.STRING, "pattern": cel.Type.STRING})
    compiled: _Expression = env.compile("name.matches(pattern)")
    return compiled


def is_pattern(text: str) -> bool:
    """Whether a name is written as a regular expression: ``/…/``."""
    return len(text) > 2 and text.startswith("/") and text.endswith("/")
