"""Run kdeclare in this process, for tests that do not need a separate process.

A separate process takes a third of a second only for its imports, and most tests run many commands.
"""

import io
import os
import sys
import threading
from collections.abc import Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from kdeclare.cli.main import main
from kdeclare.core.exit_codes import ExitCode


@dataclass(frozen=True)
class Ran:
    """The exit code and the output of a command."""

    code: ExitCode
    out: str
    err: str


def run_here(
    folder: Path, *arguments: str, stdin: str = "", environ: Mapping[str, str | None] | None = None
) -> Ran:
    """Run a command line in a folder, without a terminal.

    environ: changes to this process's variables; None unsets one. Not thread-safe: the streams, the folder
    and the environment belong to the whole process.
    """
    assert threading.current_thread() is threading.main_thread()
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, chdir(folder), redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "stdin", io.StringIO(stdin))
        for name, value in (environ or {}).items():
            if value is None:
                patch.delenv(name, raising=False)
            else:
                patch.setenv(name, os.fspath(value))
        code = main(arguments)
    assert "Traceback" not in err.getvalue(), err.getvalue()
    return Ran(ExitCode(code), out.getvalue(), err.getvalue())
