"""What a command says: data to stdout, everything else to stderr."""

import json
import logging
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from kdeclare.cli.options import Talk
from kdeclare.cli.progress import Bars
from kdeclare.cli.terminal_text import TerminalFormatter, sanitize_for_terminal
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, Severity, error
from kdeclare.core.exit_codes import ExitCode
from kdeclare.report.elements.terminal import Style

if TYPE_CHECKING:
    from kdeclare.cli.pager import Pager
    from kdeclare.core.plans.plan import Plan
    from kdeclare.report.sarif import Checkout

_UNWRITTEN = "output-not-written"


class Console:
    """The two streams of one command.

    command: what the person typed, for the history.
    width: of the terminal that stdout is, in columns; None where it is none.
    """

    def __init__(self, talk: Talk, output: str, command: str, pager: "Pager | None" = None) -> None:
        """output: what stdout is for, the value of ``--format``. pager: for what no screen holds."""
        self.talk = talk
        self.quiet = talk.quiet
        self.verbose = talk.verbose
        self.output = output
        self.is_json = output == "json"
        self.is_text = output == "text"
        self.command = command
        self._pager = pager
        self._project: Path | None = None
        self._category: Callable[[], str | None] = lambda: None
        self.style = Style(_colours(sys.stdout, talk.no_color))
        self.width = _width(sys.stdout)
        self.err_style = Style(_colours(sys.stderr, talk.no_color))
        seen = sys.stderr.isatty()
        self.progress = Bars(
            shown=seen and not talk.quiet, colours=self.err_style.on, lines=not seen and not talk.quiet
        )
        _log_to_stderr(talk)

    def out(self, text: str, *, pages: bool = True) -> None:
        """Data. pages: whether it can wait for a person to leaf through it."""
        self.progress.hide()
        if not (pages and self._pager and self._pager.shows(text)):
            _write(sys.stdout, text)

    def out_document(self, value: object) -> None:
        """Print a dataclass that is a document."""
        from kdeclare.core.documents import dump_document

        self.out_json(dump_document(value))

    def out_json(self, document: Mapping[str, Any]) -> None:
        """Data for scripts."""
        self.out(json.dumps(document, indent=2, ensure_ascii=False) + "\n")

    def note(self, text: str) -> None:
        """A line that is nice to know."""
        if not self.quiet:
            self.say(text)

    def say(self, text: str, end: str = "\n") -> None:
        """A line that must be seen, even by who wants it quiet."""
        self.progress.hide()
        with suppress(KdeclareError):
            _write(sys.stderr, text + end)

    def notices(self, diagnostics: Iterable[Diagnostic], *, asking: bool = False) -> None:
        """What was found on the way. asking: a question comes next, and what warns must be seen before it."""
        from kdeclare.report.elements.diagnostics_text import diagnostics_text

        if self.quiet:
            diagnostics = [d for d in diagnostics if asking and d.severity is not Severity.INFO]
        text = diagnostics_text(diagnostics, self.err_style)
        if text:
            self.say(text.rstrip("\n"))

    def concerns(self, project: Path | None, category: Callable[[], str | None] | None = None) -> None:
        """What logs of findings are about.

        project: the file that was given, at which findings are shown that are about no file. category: what
        the log of a failure is a run of; asked for only if there is one, and None where it is not known.
        """
        self._project = project
        self._category = category or self._category

    def checkout(self) -> "Checkout":
        """The checkout that one stands in; a folder is one of its own where there is none."""
        from kdeclare.manifests.project import PROJECT_FILE
        from kdeclare.report.sarif import Checkout

        folder = Path.cwd()
        root = next((above for above in (folder, *folder.parents) if (above / ".git").exists()), folder)
        project = self._project or Path(PROJECT_FILE)
        return Checkout(str(root), str(folder), str(project) if project.is_file() else "")

    def fail(self, diagnostics: Iterable[Diagnostic], exit_code: ExitCode) -> ExitCode:
        """Say why the command as a whole failed."""
        items = tuple(diagnostics)
        output = "text" if any(d.code == _UNWRITTEN for d in items) else self.output
        if output == "json":
            from kdeclare.report.run.views import Problem

            self.out_document(Problem("error", int(exit_code), items))
        elif output == "sarif":
            from kdeclare.report.sarif import PROBLEM, problem_sarif

            self.out_json(problem_sarif(items, self.checkout(), self._category() or PROBLEM))
        elif output == "markdown":
            from kdeclare.report.plan.plan_markdown import problem_markdown

            self.out(problem_markdown(items))
        else:
            from kdeclare.report.elements.diagnostics_text import diagnostics_text

            self.say(diagnostics_text(items, self.err_style), end="")
        return exit_code

    def out_page(self, html: str) -> None:
        """One HTML page, which nobody leafs through."""
        self.out(html, pages=False)

    def out_plan(self, plan: "Plan") -> None:
        """A plan for scripts, the very text that a plan file would hold."""
        from datetime import UTC, datetime

        from kdeclare.engine.planning.planfile import plan_file_text

        self.out(plan_file_text(plan, datetime.now(UTC))[0])


def _colours(stream: TextIO, no_color: bool) -> bool:
    unwanted = no_color or bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return stream.isatty() and not unwanted


def _width(stream: TextIO) -> int | None:
    return shutil.get_terminal_size().columns if stream.isatty() else None


def _write(stream: TextIO, text: str) -> None:
    """All of it; a reader who has gone away (``| head``) is no reason to fail. Raises KdeclareError."""
    try:
        stream.write(sanitize_for_terminal(text))
        stream.flush()
    except OSError as problem:
        with suppress(OSError, ValueError), open(os.devnull, "w") as nowhere:  # noqa: PTH123
            os.dup2(nowhere.fileno(), stream.fileno())  # or the flush at the end would fail again
        if not isinstance(problem, BrokenPipeError):
            raise KdeclareError(
                error(_UNWRITTEN, "Output cannot be written", f"{problem.strerror or problem}.")
            ) from None


def _log_to_stderr(talk: Talk) -> None:
    """Warnings, and with -v what goes on; never more, as Kafka's DEBUG shows requests, secrets and all."""
    handler = logging.StreamHandler()
    logger = logging.getLogger("kdeclare")
    logger.handlers = [handler]
    logger.propagate = False
    if talk.verbose:
        handler.setFormatter(TerminalFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        logger.setLevel(logging.INFO)
        kafka = logging.getLogger("kafka")
        kafka.handlers = [handler]
        kafka.setLevel(logging.INFO)
    else:
        handler.setFormatter(TerminalFormatter("warning: %(message)s"))
        logger.setLevel(logging.ERROR if talk.quiet else logging.WARNING)
