"""A person at the prompt, line by line."""

import gc
from threading import Thread

from prompt_toolkit import PromptSession
from prompt_toolkit.filters import Condition
from prompt_toolkit.input import Input
from prompt_toolkit.output import ColorDepth, Output
from prompt_toolkit.output.defaults import create_output
from prompt_toolkit.utils import is_dumb_terminal

from kdeclare.cli.console import Console
from kdeclare.cli.interactive.completer import LineCompleter, completing
from kdeclare.cli.interactive.grammar import grammar
from kdeclare.cli.interactive.history import LineHistory, history_file, is_secret
from kdeclare.cli.interactive.lines import Leaving, Lines
from kdeclare.cli.interactive.names import LiveNames
from kdeclare.cli.interactive.prompt import prompt
from kdeclare.cli.interactive.words import is_continued
from kdeclare.cli.line import Shared
from kdeclare.core.diagnostics import warning
from kdeclare.core.exits import ExitCode

_GREETING = 'Tab completes, "help" helps, Ctrl-D leaves.'


def _output() -> Output | None:
    """Where the prompt goes: stdout, or stderr where only that is a terminal; None is for prompt_toolkit to
    choose, which treats a dumb terminal as such only then.
    """
    return None if is_dumb_terminal() else create_output(always_prefer_tty=True)


class Session:
    """One use of the shell."""

    def __init__(
        self, shared: Shared, console: Console, given: Input | None = None, output: Output | None = None
    ) -> None:
        """given, output: in place of the terminal."""
        self._shared = shared
        self._console = console
        self._lines = Lines(shared, console)
        self._names = LiveNames(shared)
        self._history = LineHistory(history_file())
        completer = LineCompleter(grammar, self._names)
        self._prompts: PromptSession[str] = PromptSession(
            history=self._history,
            completer=completer,
            key_bindings=completing(completer),
            complete_in_thread=True,  # the cluster may be slow
            complete_while_typing=False,
            enable_suspend=True,
            input=given,
            output=output or _output(),
            multiline=Condition(lambda: is_continued(self._prompts.default_buffer.text)),
            prompt_continuation="  ",
            color_depth=None if console.style.on else ColorDepth.DEPTH_1_BIT,
        )

    def run(self) -> ExitCode:
        """Until the person leaves."""
        Thread(target=grammar, name="grammar", daemon=True).start()  # the first Tab would wait for it
        self._console.note(_GREETING)
        self._warn_of_history()
        while True:
            try:
                self._turn()
            except KeyboardInterrupt:  # at the prompt: the line is dropped
                continue
            except (EOFError, Leaving):
                return ExitCode.OK

    def _turn(self) -> None:
        line = self._prompts.prompt(prompt(self._shared, colours=self._console.style.on))
        if is_secret(line):
            self._console.note("This line is not written into the history: it holds what is to be secret.")
        self._lines.run(line)
        self._names.forget()
        gc.collect()  # main lets garbage lie, as a process with one command ends soon

    def _warn_of_history(self) -> None:
        problem = self._history.unwritable
        if problem is not None:
            self._console.notices(
                [
                    warning(
                        "no-history",
                        "Lines are kept for this session only",
                        f"{history_file()}: {problem.strerror or problem}.",
                    )
                ]
            )
