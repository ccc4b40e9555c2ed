"""Regular expressions of Google's RE2: whatever is written, to match takes time in proportion to the text."""

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Protocol

_CODE = "INVALID_ARGUMENT: "
_INVALID = "invalid regular expression: "
_TOO_LARGE = "regular expression too large"

# One character after another, with at most two repetitions among them: that is the same in Python's own
# `re`, cannot take long, and is ten times as fast, as CEL compiles an expression for every single match.
_ATOM = r"(?:[A-Za-z0-9_-]|\\[.-]|\.|\[\^?(?:[A-Za-z0-9_.](?:-[A-Za-z0-9])?)+-?\])"
_SIMPLE = re.compile(rf"(?:{_ATOM}*{_ATOM}[*+?]){{0,2}}{_ATOM}*")


RE2_HINT = "They are RE2's, which have no look-around and no back-references."
"""What to say with a `PatternError`."""


class PatternError(ValueError):
    """A text is not a regular expression of RE2.

    reason: what is wrong with it. offset: of the character that it is about, from 0; None if it is about all.
    """

    def __init__(self, reason: str, offset: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.offset = offset

    def __reduce__(self) -> tuple[type["PatternError"], tuple[str, int | None]]:
        return PatternError, (self.reason, self.offset)

    @property
    def located_reason(self) -> str:
        """The reason with the position, for texts that are in no file."""
        return self.reason if self.offset is None else f"{self.reason} at character {self.offset + 1}"


class Pattern:
    """A regular expression that whole texts are held against.

    Raises PatternError with the reason when it is none.
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
            except re.error:  # [z-a]: said in RE2's words
                pass
        reason = explain_invalid_pattern(text)
        if reason is not None:
            raise PatternError(reason, _find_offset(text, reason))
        if explain_invalid_pattern(self._whole) is not None:  # it quoted the end of the group as well
            raise PatternError(r"\Q without \E", text.rfind(r"\Q"))

    def matches(self, name: str) -> bool:
        """Whether all of ``name`` is what the expression describes."""
        if self._quick is not None:
            return self._quick.fullmatch(name) is not None
        return _evaluate_match(name, self._whole) is True

    def __repr__(self) -> str:
        return f"Pattern({self.text!r})"


@lru_cache(maxsize=1024)
def compile_pattern(text: str) -> Pattern:
    """A `Pattern`, made once for all who ask for the same text. Raises PatternError."""
    return Pattern(text)


def _find_offset(text: str, reason: str) -> int | None:
    """Where the piece of ``text`` that a reason quotes begins: the text up to its end is refused alike."""
    piece = reason.partition(" in '")[2].removesuffix("'")
    first_start = start = text.find(piece) if piece else -1
    while start >= 0:
        if explain_invalid_pattern(text[: start + len(piece)]) == reason:
            return start
        start = text.find(piece, start + 1)
    return first_start if first_start >= 0 else None


def explain_invalid_pattern(text: str) -> str | None:
    """The reason why a text is no regular expression, or None if it is one."""
    result = _evaluate_match("", text)
    if isinstance(result, bool):
        return None
    message = result.removeprefix(_CODE)
    if message.startswith(_TOO_LARGE) or "pattern too large" in message:
        return "too large, once its repetitions are written out"
    if not message.startswith(_INVALID):
        return "no Unicode text"
    cause, _, fragment = message.removeprefix(_INVALID).partition(": ")
    return f"{cause} in '{fragment}'" if fragment else cause


def _evaluate_match(name: str, pattern: str) -> bool | str:
    try:
        result = _compile_expression().eval(data={"name": name, "pattern": pattern}).value()
    except (RuntimeError, TypeError, ValueError) as problem:  # half a character, say
        return str(problem)
    return result


class _Answer(Protocol):
    """What an expression evaluates to."""

    def value(self) -> bool | str:
        """Return it as Python has it."""


class _Expression(Protocol):
    """A compiled expression of CEL, whose library has no types."""

    def eval(self, *, data: Mapping[str, str]) -> _Answer:
        """Evaluate it."""


@cache
def _compile_expression() -> _Expression:
    from cel_expr_python import cel  # only who needs it waits for it

    env = cel.NewEnv(variables={"name": cel.Type.STRING, "pattern": cel.Type.STRING})
    compiled: _Expression = env.compile("name.matches(pattern)")
    return compiled


def is_pattern(text: str) -> bool:
    """Whether a name is given by a regular expression: ``/…/``."""
    return len(text) > 2 and text.startswith("/") and text.endswith("/")
