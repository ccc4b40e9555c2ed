"""Completion for prompt_toolkit."""

import logging
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait
from threading import Thread

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import has_completions
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from kdeclare.cli.interactive.candidates import Candidate, find_candidates
from kdeclare.cli.interactive.grammar import Command, parse_context
from kdeclare.cli.interactive.line_runner import PROGRAM
from kdeclare.cli.interactive.names import Names
from kdeclare.cli.interactive.words import Word, quote_word, split_words
from kdeclare.cli.terminal_text import sanitize_for_terminal

_LOG = logging.getLogger(__name__)

_MAX_KEY_DELAY_S = 0.3
"""The longest time, in seconds, that Tab blocks further keys. Slower completions appear later, in a menu."""


def complete_line(line: str, root: Command, names: Names) -> tuple[Word, list[Candidate]]:
    """Return the last word of a line, and the candidates that can replace the word."""
    line_words = split_words(line)
    last_words = [word for word in line_words[-1:] if word.end == len(line)]
    current_word = last_words[0] if last_words else Word("", len(line), len(line))
    previous_words = [word.text for word in line_words[: len(line_words) - len(last_words)]]
    if previous_words[:1] == [PROGRAM]:
        del previous_words[0]
    return current_word, find_candidates(parse_context(root, previous_words, current_word.text), names)


class LineCompleter(Completer):
    """Completes the names of commands and options, and the values of options and arguments."""

    def __init__(self, root: Callable[[], Command], names: Names) -> None:
        """root: a function that builds the grammar. The function is slow, and is called at the first Tab."""
        self._root = root
        self._names = names

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """See `Completer`. Never raises: a traceback would appear in the middle of the typed line."""
        text = document.text_before_cursor
        try:
            word, line_candidates = complete_line(text, self._root(), self._names)
        except Exception:  # noqa: BLE001  any error is logged
            _LOG.info("completion of %r failed", text, exc_info=True)
            return
        for candidate in line_candidates:
            yield Completion(
                quote_word(candidate.text, word.quote),
                start_position=word.start - len(text),
                display=sanitize_for_terminal(candidate.shown),
                display_meta=sanitize_for_terminal(candidate.about),
            )

    def only(self, document: Document, within_s: float) -> Completion | None:
        """Return the completion if exactly one is found within ``within_s`` seconds; otherwise None."""
        asked: Future[list[Completion]] = Future()

        def ask() -> None:
            try:
                asked.set_result(
                    list(self.get_completions(document, CompleteEvent(completion_requested=True)))
                )
            except Exception as bug:  # noqa: BLE001  prompt_toolkit completes again and shows the error
                asked.set_exception(bug)

        Thread(target=ask, name="complete", daemon=True).start()
        done = wait([asked], within_s).done
        found = asked.result() if done and not asked.exception() else []
        return found[0] if len(found) == 1 else None


def make_key_bindings(completer: LineCompleter) -> KeyBindings:
    """Return the key binding of Tab.

    If there is exactly one completion, Tab inserts it before further keys are read. If there are several
    completions, or if completion is slow, Tab opens a menu.
    """
    bindings = KeyBindings()

    @bindings.add("tab", filter=~has_completions)
    def complete_word(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        only_completion = completer.only(buffer.document, _MAX_KEY_DELAY_S)
        if only_completion is None:
            buffer.start_completion(insert_common_part=True)
        else:
            buffer.apply_completion(only_completion)

    return bindings
