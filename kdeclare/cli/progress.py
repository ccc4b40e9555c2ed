"""Show the progress of slow work: a progress bar on a terminal, or lines in a log."""

import sys
import threading
import time
from typing import TYPE_CHECKING

from kdeclare.cli.terminal_text import sanitize_for_terminal

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from kdeclare.core.plans.run import MoveProgress

_PATIENCE_S = 0.4
"""How long work must take, in seconds, before a progress bar is shown."""
_LOG_INTERVAL_S = 10.0


class ProgressBars:
    """A `core.progress.Progress` that draws one bar at a time, for the current activity."""

    def __init__(self, *, is_shown: bool, use_color: bool, log_lines: bool = False) -> None:
        """is_shown: whether to draw bars. log_lines: whether to log long work, line by line."""
        self._is_shown = is_shown
        self._log_lines = log_lines
        self._use_color = use_color
        self._lock = threading.RLock()
        self._timer: threading.Timer | None = None
        self._display: Progress | None = None
        self._task: TaskID | None = None
        self._current = ("", 0, 0, "")
        self._logged_at: float | None = None
        self._down_members: set[int] = set()

    def __call__(self, what: str, done: int, total: int, moves: "MoveProgress | None" = None) -> None:
        """Show the progress of the current activity.

        done, total: the amount of finished work and of all work; 0 if unknown. moves: the progress of replica
        moves, which is shown instead of ``done`` and ``total``.
        """
        if moves is not None and (self._is_shown or self._log_lines):
            from kdeclare.report.run.status_text import format_progress

            text = format_progress(moves)
            self._log_line(f"{what}: {text}", {member for item in moves.waiting for member in item.down})
            self._current = (what, moves.bytes or done, moves.bytes_total or total, text)
        if not self._is_shown:
            return
        with self._lock:
            if moves is None:
                self._current = (what, done, total, "")
            if self._display is not None:
                self._draw()
            elif self._timer is None:
                self._timer = threading.Timer(_PATIENCE_S, self._start_display)
                self._timer.daemon = True
                self._timer.start()

    def _log_line(self, text: str, down_members: set[int]) -> None:
        """Log a line every 10 seconds, so that readers of a log see that the work continues.

        When the set of unavailable members of the system changes, log a line immediately.
        """
        now = time.monotonic()
        has_changed, self._down_members = down_members != self._down_members, down_members
        if not self._log_lines or not (
            has_changed or self._logged_at is None or now - self._logged_at >= _LOG_INTERVAL_S
        ):
            return
        if has_changed or self._logged_at is not None:
            print(sanitize_for_terminal(text), file=sys.stderr, flush=True)
        self._logged_at = now

    def hide(self) -> None:
        """Remove the bar, so that text can be written. The next progress report shows the bar again."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if self._display is not None:
                self._display.stop()
                self._display = self._task = None

    def _start_display(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        with self._lock:
            if self._timer is None:  # hide() was called before the timer fired
                return
            console = Console(stderr=True, no_color=not self._use_color)
            self._display = Progress(
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
            self._display.start()

    def _draw(self) -> None:
        assert self._display is not None
        what, done, total, count_text = self._current
        count = count_text or (f"{done:,}/{total:,}" if total else f"{done:,}" if done else "")
        current_task = next((task for task in self._display.tasks if task.description == what), None)
        if current_task is None:
            for task_id in self._display.task_ids:
                self._display.remove_task(task_id)
            self._task = self._display.add_task(what, total=total or None, completed=done, count=count)
        else:
            self._display.update(current_task.id, total=total or None, completed=done, count=count)
