"""A person at the prompt, line by line; lines are kept from one use of the shell to the next."""

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
    """Where they are kept: among the person's state, which is not for others to read."""
    return platformdirs.user_state_path("kdeclare") / "history"


class LineHistory(FileHistory):
    """All lines but those that begin with a space; into the file only what holds no secret.

    unwritable: why the last line could not be written, if it could not.
    """

    def __init__(self, file: Path) -> None:
        """Make the file where there is none; where that fails too, lines are kept for this use only."""
        super().__init__(str(file))
        self.write_error: OSError | None = None
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(file, os.O_CREAT | os.O_APPEND | os.O_WRONLY, _PRIVATE_MODE))
            file.chmod(_PRIVATE_MODE)
        except OSError as problem:
            self.write_error = problem

    def load_history_strings(self) -> Iterable[str]:
        """What was kept, the latest first."""
        try:
            return list(super().load_history_strings())
        except OSError as problem:
            self.write_error = problem
            return []

    def append_string(self, string: str) -> None:
        """Keep a line that has just been typed."""
        if string.strip() and not string[:1].isspace():
            super().append_string(string)

    def store_string(self, string: str) -> None:
        """Write a line into the file."""
        if is_secret_line(string) or self.write_error:
            return
        try:
            super().store_string(string)
        except OSError as problem:
            self.write_error = problem


def is_secret_line(line: str) -> bool:
    """Whether a line holds what is to stand in no file; also one whose quotes are not right."""
    return has_secret([word.text for word in split_words(line)])


_MAX_NAME_LENGTH = 40


def build_prompt(shell: ShellContext, *, colours: bool) -> StyleAndTextTuples:
    """The prompt, for prompt_toolkit; made for each line, as the project file may have changed."""
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
    """A cluster's name, short enough for a prompt: of several addresses the first."""
    first, *others = (part.strip() for part in servers.split(","))
    shortened = first if len(first) <= _MAX_NAME_LENGTH else f"{first[: _MAX_NAME_LENGTH - 1]}…"
    return f"{shortened},…" if others else shortened


_GREETING = 'Tab completes, "help" helps, Ctrl-D leaves.'


def _open_output() -> Output | None:
    """Where the prompt goes: stdout, or stderr where only that is a terminal; None is for prompt_toolkit to
    choose, which treats a dumb terminal as such only then.
    """
    return None if is_dumb_terminal() else create_output(always_prefer_tty=True)


class Session:
    """One use of the shell."""

    def __init__(
        self,
        shell: ShellContext,
        console: Console,
        terminal_input: Input | None = None,
        output: Output | None = None,
    ) -> None:
        """given, output: in place of the terminal."""
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
            complete_in_thread=True,  # the cluster may be slow
            complete_while_typing=False,
            enable_suspend=True,
            input=terminal_input,
            output=output or _open_output(),
            multiline=Condition(lambda: is_continued(self._prompts.default_buffer.text)),
            prompt_continuation="  ",
            color_depth=None if console.style.on else ColorDepth.DEPTH_1_BIT,
        )

    def run(self) -> ExitCode:
        """Until the person leaves."""
        Thread(target=build_grammar, name="grammar", daemon=True).start()  # the first Tab would wait for it
        self._console.note(_GREETING)
        self._warn_unwritable_history()
        while True:
            try:
                self._run_next_line()
            except KeyboardInterrupt:  # at the prompt: the line is dropped
                continue
            except (EOFError, ShellExit):
                return ExitCode.OK

    def _run_next_line(self) -> None:
        line = self._prompts.prompt(build_prompt(self._shell, colours=self._console.style.on))
        if is_secret_line(line):
            self._console.note("This line is not written into the history: it holds what is to be secret.")
        self._runner.run(line)
        self._names.forget()
        gc.collect()  # main lets garbage lie, as a process with one command ends soon

    def _warn_unwritable_history(self) -> None:
        problem = self._history.write_error
        if problem is not None:
            self._console.notices(
                [
                    warning(
                        "no-history",
                        "Lines are kept for this session only",
                        f"{get_history_path()}: {problem.strerror or problem}.",
                    )
                ]
            )
