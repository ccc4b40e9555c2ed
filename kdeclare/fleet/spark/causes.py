"""What is behind an exception of Spark's, as Java and Python told it."""

import re
from dataclasses import dataclass
from typing import Any

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError

_DEEP = 20
"""Causes looked at; a chain may bite its own tail."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One exception: its class with its package, and its message (empty if it has none)."""

    kind: str
    message: str


def causes(problem: BaseException) -> tuple[Cause, ...]:
    """The exception itself and what caused it, down to the root; Java's where it came from there."""
    # py4j and pyspark keep the Java exception under different names.
    raised: Any = getattr(problem, "java_exception", None) or getattr(problem, "_origin", None)
    if not isinstance(raised, JavaObject):
        return (Cause(type(problem).__name__, str(problem)),)
    found: list[Cause] = []
    try:
        while raised is not None and len(found) < _DEEP:
            found.append(Cause(raised.getClass().getName(), raised.getMessage() or ""))
            raised = raised.getCause()
    except (Py4JError, OSError):  # the JVM is gone: what it said before is all there is
        found = found or [Cause(type(problem).__name__, "")]  # its text too would be asked of the JVM
    return tuple(found)


def shown(text: str) -> str:
    """Without a password that somebody put into a URI."""
    return re.sub(r"//[^/@:\s]*:[^/@\s]*@", "//", text)
