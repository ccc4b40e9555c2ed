"""What a provider examines for `doctor`: how its system is reached, what one may do there, what it lacks."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from pydantic import BaseModel

from kdeclare.core.connecting import Surroundings
from kdeclare.core.diagnostics import KdeclareError, gist
from kdeclare.core.kind import Desired

_Settings = TypeVar("_Settings", bound=BaseModel)


class Standing(StrEnum):
    """How one thing stands, from good to bad."""

    OK = "ok"
    SKIPPED = "skipped"  # not looked at, or not in use here
    WARNING = "warning"  # something can not be done that one may want to do
    FAILED = "failed"  # nothing can be done until it is repaired


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.

    name: what it is. what: how it was found. why: what it is needed for. hint: what a person can do.
    """

    name: str
    standing: Standing
    what: str
    why: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """Checks that belong together."""

    title: str
    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True)
class ExaminationRequest:
    """What is examined.

    settings: what the environment says of the system; None where the provider has no `ConnectionType`.
    surroundings: what leads to the system besides; None where the project file cannot be used, so that
        nothing can be looked at.
    desired: what the manifests declare, as far as they can be read.
    """

    settings: BaseModel | None = None
    surroundings: Surroundings | None = None
    desired: Sequence[Desired] = ()

    def settings_of(self, model: type[_Settings]) -> _Settings:
        """Return the settings, which are of the provider's own model."""
        if not isinstance(self.settings, model):
            raise TypeError(f"settings of {type(self.settings).__name__}, not {model.__name__}")
        return self.settings


@dataclass(frozen=True, slots=True)
class Examined:
    """What was found. system_id: what states are bound to; None where it was not seen, or there is none."""

    sections: tuple[Section, ...] = ()
    system_id: str | None = None


def check_of_error(name: str, standing: Standing, problem: KdeclareError, why: str = "") -> Check:
    """Return a failure as a check: what was wrong, and what its own hint says."""
    hint = next((found.hint for found in problem.diagnostics if found.is_error and found.hint), "")
    return Check(name, standing, gist(problem.diagnostics), why, hint)
