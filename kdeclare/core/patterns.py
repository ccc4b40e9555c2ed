"""Regular expressions in RE2 syntax. Matching takes time that is linear in the length of the string."""

import re
from functools import cache, lru_cache, partial
from typing import Protocol

# An expression of single characters with at most two repetitions has the same meaning in Python's `re` and
# cannot backtrack for long. Most expressions are like this, and need no import of RE2.
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


class _CompiledPattern(Protocol):
    """The interface that expressions compiled by RE2 and by Python's `re` have in common."""

    def fullmatch(self, string: str, /) -> object | None:
        """Return the match of the whole string, or None."""


class _Compiler(Protocol):
    """A function that compiles an expression."""

    def __call__(self, text: str, /) -> _CompiledPattern:
        """Compile an expression."""


class Pattern:
    """A regular expression that must match a whole string.

    Raises PatternError with the reason if the expression is invalid.
    """

    __slots__ = ("_compiled", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        if _SIMPLE.fullmatch(text):
            try:
                self._compiled: _CompiledPattern = re.compile(text)
                return
            except re.error:  # such as [z-a]; RE2 reports this error below
                pass
        reason = explain_invalid_pattern(text)
        if reason is not None:
            raise PatternError(reason, _find_offset(text, reason))
        whole = rf"\A(?:{text})\z"
        if explain_invalid_pattern(whole) is not None:  # an open \Q quotes the closing parenthesis, too
            raise PatternError(r"\Q without \E", text.rfind(r"\Q"))
        self._compiled = _compile(whole)

    def matches(self, name: str) -> bool:
        """Whether the expression matches the whole name."""
        try:
            return self._compiled.fullmatch(name) is not None
        except UnicodeEncodeError:  # a lone surrogate, which no name can contain
            return False

    def __repr__(self) -> str:
        return f"Pattern({self.text!r})"


@lru_cache(maxsize=1024)
def compile_pattern(text: str) -> Pattern:
    """Return the cached `Pattern` for a regular expression. Raises PatternError."""
    return Pattern(text)


def _find_offset(text: str, reason: str) -> int | None:
    """Return the offset of the invalid fragment that RE2 quotes in its error; None if RE2 quotes no fragment.

    The fragment can occur several times. To find the occurrence that causes the error, compile the
    expression up to the end of each occurrence, until RE2 reports the same error.
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
    import re2  # imported here because the import is slow and rarely needed

    try:
        _compile(text)
    except UnicodeEncodeError:
        return "not valid Unicode"
    except re2.error as problem:
        cause, _, fragment = problem.args[0].decode(errors="replace").partition(": ")
        if cause.startswith("pattern too large"):
            return "too large after expanding its repetitions"
        return f"{cause} in '{fragment}'" if fragment else cause
    return None


def _compile(text: str) -> _CompiledPattern:
    return _get_compiler()(text)


@cache
def _get_compiler() -> _Compiler:
    """Return RE2's compile function with type hints, which the RE2 package does not have."""
    import re2

    options = re2.Options()
    options.log_errors = False  # RE2 would write errors to stderr
    compiler: _Compiler = partial(re2.compile, options=options)
    return compiler


def is_pattern(text: str) -> bool:
    """Whether a name is written as a regular expression: ``/…/``."""
    return len(text) > 2 and text.startswith("/") and text.endswith("/")
