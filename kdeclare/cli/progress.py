"""Progress bars on a terminal, for what takes long enough to wonder."""

import sys
import threading
import time
from typing import TYPE_CHECKING

from kdeclare.cli.terminal_text import sanitize_for_terminal

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from kdeclare.core.plans.run import MoveProgress

_PATIENCE_S = 0.4
"""What is over sooner shows no bar: drawing one, and importing what draws, would only delay it."""
_LINE_EVERY_S = 10.0


class Bars:
    """A `engine.planning.preflight.Progress` that draws. One bar at a time: what is done right now."""

    def __init__(self, *, shown: bool, colours: bool, lines: bool = False) -> None:
        """shown: False where nobody would see it. lines: tell in lines what goes on for long."""
        self._shown = shown
        self._lines = lines
        self._colours = colours
        self._lock = threading.RLock()
        self._timer: threading.Timer | None = None
        self._drawing: Progress | None = None
        self._task: TaskID | None = None
        self._now = ("", 0, 0, "")
        self._told_at: float | None = None
        self._down: set[int] = set()

    def __call__(self, what: str, done: int, total: int, moves: "MoveProgress | None" = None) -> None:
        """What is being done, how much of it is done and how much there is; 0 for "nobody knows"."""
        if moves is not None and (self._shown or self._lines):
            from kdeclare.report.run.status_text import progress_text

            text = progress_text(moves)
            self._tell(f"{what}: {text}", {member for item in moves.waiting for member in item.down})
            self._now = (what, moves.bytes or done, moves.bytes_total or total, text)
        if not self._shown:
            return
        with self._lock:
            if moves is None:
                self._now = (what, done, total, "")
            if self._drawing is not None:
                self._draw()
            elif self._timer is None:
                self._timer = threading.Timer(_PATIENCE_S, self._begin)
                self._timer.daemon = True
                self._timer.start()

    def _tell(self, text: str, down: set[int]) -> None:
        """A line now and then, for logs: whoever reads one wants to know that it goes on.

        At once where other members of the system are down than before.
        """
        now = time.monotonic()
        news, self._down = down != self._down, down
        if not self._lines or not (news or self._told_at is None or now - self._told_at >= _LINE_EVERY_S):
            return
        if news or self._told_at is not None:
            print(sanitize_for_terminal(text), file=sys.stderr, flush=True)
        self._told_at = now

    def hide(self) -> None:
        """Take the bar away, so that something can be written; the next call brings it back."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if self._drawing is not None:
                self._drawing.stop()
                self._drawing = self._task = None

    def _begin(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        with self._lock:
            if self._timer is None:  # hidden in the meantime
                return
            console = Console(stderr=True, no_color=not self._colours)
            self._drawing = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(bar_width=30),
                TextColumn("{task.fields[count]}"),
                TimeElapsedColumn(),
                console=console,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._draw()
            self._drawing.start()

    def _draw(self) -> None:
        assert self._drawing is not None
        what, done, total, text = self._now
        count = text or (f"{done:,}/{total:,}" if total else f"{done:,}" if done else "")
        known = next((task for task in self._drawing.tasks if task.description == what), None)
        if known is None:
            for task_id in self._drawing.task_ids:
                self._drawing.remove_task(task_id)
            self._task = self._drawing.add_task(what, total=total or None, completed=done, count=count)
        else:
            self._drawing.update(known.id, total=total or None, completed=done, count=count)
