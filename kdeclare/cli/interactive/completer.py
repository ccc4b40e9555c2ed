"""Completion for prompt_toolkit."""

import logging
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait
from threading import Thread

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import has_completions
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from kdeclare.cli.interactive.candidates import Candidate, candidates
from kdeclare.cli.interactive.grammar import Command, place_of
from kdeclare.cli.interactive.lines import PROGRAM
from kdeclare.cli.interactive.names import Names
from kdeclare.cli.interactive.words import Word, quoted, words
from kdeclare.cli.terminal_text import sanitize_for_terminal

_LOG = logging.getLogger(__name__)

_AT_ONCE_S = 0.3
"""How long keys may wait for a completion; what takes longer comes in when it does."""


def completed(line: str, root: Command, names: Names) -> tuple[Word, list[Candidate]]:
    """What could stand at the end of a line in place of the word that is there."""
    found = words(line)
    ends = [word for word in found[-1:] if word.end == len(line)]
    last = ends[0] if ends else Word("", len(line), len(line))
    before = [word.text for word in found[: len(found) - len(ends)]]
    if before[:1] == [PROGRAM]:
        del before[0]
    return last, candidates(place_of(root, before, last.text), names)


class LineCompleter(Completer):
    """Completes commands, options and their values."""

    def __init__(self, root: Callable[[], Command], names: Names) -> None:
        """root: gives the grammar; called at the first Tab, as it takes a while."""
        self._root = root
        self._names = names

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """As prompt_toolkit wants it. Never raises: a traceback would land in the line that is typed."""
        text = document.text_before_cursor
        try:
            word, found = completed(text, self._root(), self._names)
        except Exception:  # noqa: BLE001  whatever it is, the log has it
            _LOG.info("no completion for %r", text, exc_info=True)
            return
        for candidate in found:
            yield Completion(
                quoted(candidate.text, word.quote),
                start_position=word.start - len(text),
                display=sanitize_for_terminal(candidate.shown),
                display_meta=sanitize_for_terminal(candidate.about),
            )

    def only(self, document: Document, within_s: float) -> Completion | None:
        """The one completion there is, if it is known in time."""
        asked: Future[list[Completion]] = Future()

        def ask() -> None:
            try:
                asked.set_result(
                    list(self.get_completions(document, CompleteEvent(completion_requested=True)))
                )
            except Exception as bug:  # noqa: BLE001  the loop that asks again, without haste, shows it
                asked.set_exception(bug)

        Thread(target=ask, name="complete", daemon=True).start()
        done = wait([asked], within_s).done
        found = asked.result() if done and not asked.exception() else []
        return found[0] if len(found) == 1 else None


def completing(completer: LineCompleter) -> KeyBindings:
    """What Tab does: it completes at once where that can be, so that keys typed right after it meet the
    line that they are meant for; otherwise a menu opens when its time has come.
    """
    bindings = KeyBindings()

    @bindings.add("tab", filter=~has_completions)
    def complete(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        only = completer.only(buffer.document, _AT_ONCE_S)
        if only is None:
            buffer.start_completion(insert_common_part=True)
        else:
            buffer.apply_completion(only)

    return bindings
