"""Regular expressions of Google's RE2: whatever is written, to match takes time in proportion to the text."""

import re
from functools import cache
from typing import Any

_CODE = "INVALID_ARGUMENT: "
_INVALID = "invalid regular expression: "
_TOO_LARGE = "regular expression too large"

# One character after another, with at most two repetitions among them: that is the same in Python's own
# `re`, cannot take long, and is ten times as fast, as CEL compiles an expression for every single match.
_ATOM = r"(?:[A-Za-z0-9_-]|\\[.-]|\.|\[\^?(?:[A-Za-z0-9_.](?:-[A-Za-z0-9])?)+-?\])"
_SIMPLE = re.compile(rf"(?:{_ATOM}*{_ATOM}[*+?]){{0,2}}{_ATOM}*")


class Pattern:
    """A regular expression that whole texts are held against.

    Raises ValueError with the reason when it is none.
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
            raise ValueError(reason)
        if why_invalid(self._whole) is not None:
            raise ValueError(r"\Q without \E")  # quoted the end of the group as well

    def matches(self, name: str) -> bool:
        """Whether all of ``name`` is what the expression describes."""
        if self._quick is not None:
            return self._quick.fullmatch(name) is not None
        return _found(name, self._whole) is True

    def __repr__(self) -> str:
        return f"Pattern({self.text!r})"


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
        found: bool | str = _expression().eval(data={"name": name, "pattern": pattern}).value()
    except (RuntimeError, TypeError, ValueError) as problem:  # half a character, say
        return str(problem)
    return found


@cache
def _expression() -> Any:
    from cel_expr_python import cel  # only who needs it waits for it

    env = cel.NewEnv(variables={"name": cel.Type.STRING, "pattern": cel.Type.STRING})
    return env.compile("name.matches(pattern)")
