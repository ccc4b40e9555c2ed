"""The output of a command: data to stdout, everything else to stderr."""

import errno
import json
import logging
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from kdeclare.cli.options.option_groups import OutputOptions
from kdeclare.cli.progress import ProgressBars
from kdeclare.cli.terminal_text import TerminalFormatter, sanitize_for_terminal
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, Severity, error
from kdeclare.core.exit_codes import ExitCode
from kdeclare.report.elements.terminal import Style

if TYPE_CHECKING:
    from kdeclare.cli.pager import Pager
    from kdeclare.core.plans.plan import Plan
    from kdeclare.report.sarif import Checkout

_OUTPUT_NOT_WRITTEN = "output-not-written"


class Console:
    """Writes the output of one command to stdout and stderr.

    command: the command line as typed, without secrets; recorded in the history.
    width: the number of columns of the terminal; None if stdout is not a terminal.
    """

    def __init__(
        self, output_options: OutputOptions, output: str, command: str, pager: "Pager | None" = None
    ) -> None:
        """output: the format of stdout (``--format``). pager: the pager for output longer than the screen."""
        self.output_options = output_options
        self.quiet = output_options.quiet
        self.verbose = output_options.verbose
        self.output = output
        self.is_json = output == "json"
        self.is_text = output == "text"
        self.command = command
        self._pager = pager
        self._project: Path | None = None
        self._category: Callable[[], str | None] = lambda: None
        self.style = Style(_should_color(sys.stdout, output_options.no_color))
        self.width = _find_width(sys.stdout)
        self.err_style = Style(_should_color(sys.stderr, output_options.no_color))
        is_terminal = sys.stderr.isatty()
        self.progress = ProgressBars(
            is_shown=is_terminal and not output_options.quiet,
            use_color=self.err_style.on,
            log_lines=not is_terminal and not output_options.quiet,
        )
        _configure_logging(output_options)

    def out(self, text: str, *, pages: bool = True) -> None:
        """Write data to stdout. pages: whether the pager shows data that is longer than the screen."""
        self.progress.hide()
        if not (pages and self._pager and self._pager.shows(text)):
            _write_stream(sys.stdout, text)

    def write_document(self, value: object) -> None:
        """Write a document (a dataclass) to stdout as JSON."""
        from kdeclare.core.documents import dump_document

        self.write_json(dump_document(value))

    def write_json(self, document: Mapping[str, Any]) -> None:
        """Write a JSON document to stdout."""
        self.out(json.dumps(document, indent=2, ensure_ascii=False) + "\n")

    def note(self, text: str) -> None:
        """Write a line to stderr, unless --quiet was given."""
        if not self.quiet:
            self.say(text)

    def say(self, text: str, end: str = "\n") -> None:
        """Write a line to stderr, even if --quiet was given."""
        self.progress.hide()
        with suppress(KdeclareError):
            _write_stream(sys.stderr, text + end)

    def notices(self, diagnostics: Iterable[Diagnostic], *, asking: bool = False) -> None:
        """Write diagnostics to stderr, unless --quiet was given.

        asking: whether a confirmation prompt follows. If so, --quiet suppresses only diagnostics of severity
        INFO, not warnings and errors.
        """
        from kdeclare.report.elements.diagnostics_text import render_diagnostics

        if self.quiet:
            diagnostics = [d for d in diagnostics if asking and d.severity is not Severity.INFO]
        text = render_diagnostics(diagnostics, self.err_style)
        if text:
            self.say(text.rstrip("\n"))

    def concerns(self, project: Path | None, category: Callable[[], str | None] | None = None) -> None:
        """Set the project file and the category for SARIF logs.

        project: the project file given on the command line. Findings that are not about a file are attached
        to the project file. category: a function that returns the category, or None if the category is
        unknown. The function is called only if the command fails.
        """
        self._project = project
        self._category = category or self._category

    def checkout(self) -> "Checkout":
        """Return the git checkout that contains the current folder; outside of git, the current folder."""
        from kdeclare.manifests.project import PROJECT_FILE
        from kdeclare.report.sarif import Checkout

        folder = Path.cwd()
        root = next((above for above in (folder, *folder.parents) if (above / ".git").exists()), folder)
        project = self._project or Path(PROJECT_FILE)
        return Checkout(str(root), str(folder), str(project) if project.is_file() else "")

    def fail(self, diagnostics: Iterable[Diagnostic], exit_code: ExitCode) -> ExitCode:
        """Report why the command failed, in the format chosen with ``--format``. Return ``exit_code``."""
        items = tuple(diagnostics)
        output = "text" if any(d.code == _OUTPUT_NOT_WRITTEN for d in items) else self.output
        if output == "json":
            from kdeclare.report.run.views import ProblemDocument

            self.write_document(ProblemDocument("error", int(exit_code), items))
        elif output == "sarif":
            from kdeclare.report.sarif import PROBLEM_CATEGORY, build_problem_sarif

            self.write_json(build_problem_sarif(items, self.checkout(), self._category() or PROBLEM_CATEGORY))
        elif output == "markdown":
            from kdeclare.report.plan.plan_markdown import render_problem_markdown

            self.out(render_problem_markdown(items))
        else:
            from kdeclare.report.elements.diagnostics_text import render_diagnostics

            self.say(render_diagnostics(items, self.err_style), end="")
        return exit_code

    def write_page(self, html: str) -> None:
        """Write an HTML page to stdout, never through a pager."""
        self.out(html, pages=False)

    def write_plan(self, plan: "Plan") -> None:
        """Write a plan to stdout as JSON, in the same format as a plan file."""
        from datetime import UTC, datetime

        from kdeclare.engine.planning.planfile import render_plan_file

        self.out(render_plan_file(plan, datetime.now(UTC))[0])


def _should_color(stream: TextIO, no_color: bool) -> bool:
    is_disabled = no_color or bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return stream.isatty() and not is_disabled


def _find_width(stream: TextIO) -> int | None:
    return shutil.get_terminal_size().columns if stream.isatty() else None


def _is_closed_terminal(stream: TextIO, problem: OSError) -> bool:
    return problem.errno == errno.EIO and stat.S_ISCHR(os.fstat(stream.fileno()).st_mode)


def _write_stream(stream: TextIO, text: str) -> None:
    """Write the text to the stream. If the pipe (``| head``) or the terminal was closed, drop the text.

    Raises KdeclareError if writing fails for a different reason.
    """
    try:
        stream.write(sanitize_for_terminal(text))
        stream.flush()
    except OSError as problem:
        with suppress(OSError, ValueError), open(os.devnull, "w") as null_device:  # noqa: PTH123
            os.dup2(null_device.fileno(), stream.fileno())  # otherwise, flushing at exit would fail again
        if not isinstance(problem, BrokenPipeError) and not _is_closed_terminal(stream, problem):
            raise KdeclareError(
                error(
                    _OUTPUT_NOT_WRITTEN,
                    "Output cannot be written",
                    f"{problem.strerror or problem}.",
                    hint="Check that the destination of the output exists, is writable and has free space.",
                )
            ) from None


def _configure_logging(output_options: OutputOptions) -> None:
    """Log warnings and errors to stderr; with --quiet only errors, and with --verbose also INFO messages.

    DEBUG is never logged, because kafka-python would log requests with their secrets.
    """
    handler = logging.StreamHandler()
    logger = logging.getLogger("kdeclare")
    logger.handlers = [handler]
    logger.propagate = False
    if output_options.verbose:
        handler.setFormatter(TerminalFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        logger.setLevel(logging.INFO)
        kafka_logger = logging.getLogger("kafka")
        kafka_logger.handlers = [handler]
        kafka_logger.setLevel(logging.INFO)
    else:
        handler.setFormatter(TerminalFormatter("warning: %(message)s"))
        logger.setLevel(logging.ERROR if output_options.quiet else logging.WARNING)
