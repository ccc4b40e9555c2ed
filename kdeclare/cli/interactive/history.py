"""The lines that were typed, kept from one use of the shell to the next."""

import os
from collections.abc import Iterable
from pathlib import Path

import platformdirs
from prompt_toolkit.history import FileHistory

from kdeclare.cli.interactive.words import words
from kdeclare.cli.redaction import holds_secret

_PRIVATE = 0o600


def history_file() -> Path:
    """Where they are kept: among the person's state, which is not for others to read."""
    return platformdirs.user_state_path("kdeclare") / "history"


class LineHistory(FileHistory):
    """All lines but those that begin with a space; into the file only what holds no secret.

    unwritable: why the last line could not be written, if it could not.
    """

    def __init__(self, file: Path) -> None:
        """Make the file where there is none; where that fails too, lines are kept for this use only."""
        super().__init__(str(file))
        self.unwritable: OSError | None = None
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(file, os.O_CREAT | os.O_APPEND | os.O_WRONLY, _PRIVATE))
            file.chmod(_PRIVATE)
        except OSError as problem:
            self.unwritable = problem

    def load_history_strings(self) -> Iterable[str]:
        """What was kept, the latest first."""
        try:
            return list(super().load_history_strings())
        except OSError as problem:
            self.unwritable = problem
            return []

    def append_string(self, string: str) -> None:
        """Keep a line that has just been typed."""
        if string.strip() and not string[:1].isspace():
            super().append_string(string)

    def store_string(self, string: str) -> None:
        """Write a line into the file."""
        if is_secret(string) or self.unwritable:
            return
        try:
            super().store_string(string)
        except OSError as problem:
            self.unwritable = problem


def is_secret(line: str) -> bool:
    """Whether a line holds what is to stand in no file; also one whose quotes are not right."""
    return holds_secret([word.text for word in words(line)])
