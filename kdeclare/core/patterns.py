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
        reason = why_invalid(text)
        if reason is not None:
            raise PatternError(reason, _find_offset(text, reason))
        if why_invalid(self._whole) is not None:  # it quoted the end of the group as well
            raise PatternError(r"\Q without \E", text.rfind(r"\Q"))

    def matches(self, name: str) -> bool:
        """Whether all of ``name`` is what the expression describes."""
        if self._quick is not None:
            return self._quick.fullmatch(name) is not None
        return _found(name, self._whole) is True

    def __repr__(self) -> str:
        return f"Pattern({self.text!r})"


@lru_cache(maxsize=1024)
def compile_pattern(text: str) -> Pattern:
    """A `Pattern`, made once for all who ask for the same text. Raises PatternError."""
    return Pattern(text)


def _find_offset(text: str, reason: str) -> int | None:
    """Where the piece of ``text`` that a reason quotes begins: the text up to its end is refused alike."""
    piece = reason.partition(" in '")[2].removesuffix("'")
    first = at = text.find(piece) if piece else -1
    while at >= 0:
        if why_invalid(text[: at + len(piece)]) == reason:
            return at
        at = text.find(piece, at + 1)
    return first if first >= 0 else None


def why_invalid(text: str) -> str | None:
    """The reason why a text is no regular expression, or None if it is one."""
    found = _found("", text)
    if isinstance(found, bool):
        return None
    said = found.removeprefix(_CODE)
    if said.startswith(_TOO_LARGE) or "pattern too large" in said:
        return "too large, once its repetitions are written out"
    if not said.startswith(_INVALID):
        return "no Unicode text"
    what, _, where = said.removeprefix(_INVALID).partition(": ")
    return f"{what} in '{where}'" if where else what


def _found(name: str, pattern: str) -> bool | str:
    try:
        found = _expression().eval(data={"name": name, "pattern": pattern}).value()
    except (RuntimeError, TypeError, ValueError) as problem:  # half a character, say
        return str(problem)
    return found


class _Answer(Protocol):
    """What an expression evaluates to."""

    def value(self) -> bool | str:
        """Return it as Python has it."""


class _Expression(Protocol):
    """A compiled expression of CEL, whose library has no types."""

    def eval(self, *, data: Mapping[str, str]) -> _Answer:
        """Evaluate it."""


@cache
def _expression() -> _Expression:
    from cel_expr_python import cel  # only who needs it waits for it

    env = cel.NewEnv(variables={"name": cel.Type.STRING, "pattern": cel.Type.STRING})
    compiled: _Expression = env.compile("name.matches(pattern)")
    return compiled


def is_pattern(text: str) -> bool:
    """Whether a name is given by a regular expression: ``/…/``."""
    return len(text) > 2 and text.startswith("/") and text.endswith("/")
