"""The prompt of the shell, and the history of lines that sessions share."""

import gc
import os
from collections.abc import Iterable
from pathlib import Path
from threading import Thread

import platformdirs
from prompt_toolkit import PromptSession
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory
from prompt_toolkit.input import Input
from prompt_toolkit.output import ColorDepth, Output
from prompt_toolkit.output.defaults import create_output
from prompt_toolkit.utils import is_dumb_terminal

from kdeclare.cli.console import Console
from kdeclare.cli.interactive.completer import LineCompleter, make_key_bindings
from kdeclare.cli.interactive.grammar import build_grammar
from kdeclare.cli.interactive.line_runner import LineRunner, ShellExit
from kdeclare.cli.interactive.names import LiveNames
from kdeclare.cli.interactive.words import is_continued, split_words
from kdeclare.cli.invocation import Invocation, ShellContext
from kdeclare.cli.redaction import has_secret
from kdeclare.core.diagnostics import KdeclareError, warning
from kdeclare.core.exit_codes import ExitCode

_PRIVATE_MODE = 0o600


def get_history_path() -> Path:
    """Return the path of the history file in the user's state folder."""
    return platformdirs.user_state_path("kdeclare") / "history"


class LineHistory(FileHistory):
    """The history of typed lines, except lines that begin with a space.

    Lines that contain a secret are only remembered until the session ends. write_error: the error if the
    history file could not be read or written; otherwise None.
    """

    def __init__(self, file: Path) -> None:
        """Create the history file if it does not exist. If that fails, history lasts only for the session."""
        super().__init__(str(file))
        self.write_error: OSError | None = None
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(file, os.O_CREAT | os.O_APPEND | os.O_WRONLY, _PRIVATE_MODE))
            file.chmod(_PRIVATE_MODE)
        except OSError as problem:
            self.write_error = problem

    def load_history_strings(self) -> Iterable[str]:
        """Return the lines of the history file, latest first."""
        try:
            return list(super().load_history_strings())
        except OSError as problem:
            self.write_error = problem
            return []

    def append_string(self, string: str) -> None:
        """Add a typed line to the history, unless the line is blank or begins with a space."""
        if string.strip() and not string[:1].isspace():
            super().append_string(string)

    def store_string(self, string: str) -> None:
        """Write a line to the history file, unless the line contains a secret."""
        if is_secret_line(string) or self.write_error:
            return
        try:
            super().store_string(string)
        except OSError as problem:
            self.write_error = problem


def is_secret_line(line: str) -> bool:
    """Return whether a line contains a secret. The line may have unclosed quotes."""
    return has_secret([word.text for word in split_words(line)])


_MAX_NAME_LENGTH = 40


def build_prompt(shell: ShellContext, *, colours: bool) -> StyleAndTextTuples:
    """Build the prompt for the next line from the project file, which may have changed."""
    try:
        workspace = Invocation(shared=shell).workspace(shell.defaults)
    except KdeclareError:
        return [("bold" if colours else "", "kdeclare"), ("", "> ")]
    project = workspace.project
    location = f"{project.name}/{project.environment.name}" if project.file else "kdeclare"
    cluster = shorten_name(workspace.cluster_name)
    bold, dim = ("bold", "fg:ansibrightblack") if colours else ("", "")
    fragments: StyleAndTextTuples = [(bold, location)]
    if cluster not in (project.environment.name,):
        fragments += [("", " "), (dim, cluster)]
    return [*fragments, ("", "> ")]


def shorten_name(servers: str) -> str:
    """Shorten the name or bootstrap servers of a cluster to the first server and at most 40 characters."""
    first, *others = (part.strip() for part in servers.split(","))
    shortened = first if len(first) <= _MAX_NAME_LENGTH else f"{first[: _MAX_NAME_LENGTH - 1]}…"
    return f"{shortened},…" if others else shortened


_GREETING = 'Press Tab to complete, type "help" for help, press Ctrl-D to leave.'


def _open_output() -> Output | None:
    """Return the output for the prompt: stdout, or stderr if only stderr is a terminal.

    Return None on a dumb terminal, because prompt_toolkit recognizes a dumb terminal only if it chooses the
    output itself.
    """
    return None if is_dumb_terminal() else create_output(always_prefer_tty=True)


class Session:
    """One session of the shell."""

    def __init__(
        self,
        shell: ShellContext,
        console: Console,
        terminal_input: Input | None = None,
        output: Output | None = None,
    ) -> None:
        """terminal_input, output: the streams that tests use in place of a terminal."""
        self._shell = shell
        self._console = console
        self._runner = LineRunner(shell, console)
        self._names = LiveNames(shell)
        self._history = LineHistory(get_history_path())
        completer = LineCompleter(build_grammar, self._names)
        self._prompts: PromptSession[str] = PromptSession(
            history=self._history,
            completer=completer,
            key_bindings=make_key_bindings(completer),
            complete_in_thread=True,  # so that a slow cluster does not block typing
            complete_while_typing=False,
            enable_suspend=True,
            input=terminal_input,
            output=output or _open_output(),
            multiline=Condition(lambda: is_continued(self._prompts.default_buffer.text)),
            prompt_continuation="  ",
            color_depth=None if console.style.on else ColorDepth.DEPTH_1_BIT,
        )

    def run(self) -> ExitCode:
        """Read and run lines until the user leaves."""
        Thread(target=build_grammar, name="grammar", daemon=True).start()  # so that the first Tab is fast
        self._console.note(_GREETING)
        self._warn_unwritable_history()
        while True:
            try:
                self._run_next_line()
            except KeyboardInterrupt:  # Ctrl-C at the prompt: discard the line
                continue
            except (EOFError, ShellExit):
                return ExitCode.OK

    def _run_next_line(self) -> None:
        line = self._prompts.prompt(build_prompt(self._shell, colours=self._console.style.on))
        if is_secret_line(line):
            self._console.note("This line is not written to the history, because it contains a secret.")
        self._runner.run(line)
        self._names.forget()
        gc.collect()  # needed because the command raises the threshold for automatic garbage collection

    def _warn_unwritable_history(self) -> None:
        problem = self._history.write_error
        if problem is not None:
            self._console.notices(
                [
                    warning(
                        "no-history",
                        "History not saved",
                        f"The history of this session is not saved, because {get_history_path()} cannot be "
                        f"used: {problem.strerror or problem}.",
                        hint="Check the permissions of the file and its folder.",
                    )
                ]
            )
