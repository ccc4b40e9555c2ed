"""Answers that kdeclare does not give to a policy, and keeps in mind that it did not."""

from typing import NoReturn


class Withheld(BaseException):
    """A policy asks for what is not there to be told. No policy is meant to catch this."""


class Withholding:
    """What was withheld from whoever reads a request; a policy that catches everything hides it."""

    def __init__(self) -> None:
        self._first: Withheld | None = None

    def withhold(self, what: Withheld) -> NoReturn:
        """Raise it, and keep it in mind."""
        self._first = self._first or what
        raise what

    def forget(self) -> None:
        """Begin anew: another policy is asked."""
        self._first = None

    def tell(self) -> None:
        """Raise again what was withheld first, if anything was."""
        if self._first is not None:
            raise self._first
