"""Programs that start their own Spark, each in a separate process."""

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.startup_cache import spark_variables

SHORT_LIVED = spark_variables()
"""Variables for a Spark that runs only briefly."""

_REPOSITORY = Path(__file__).parents[2]
_START = f"import sys; sys.path.insert(0, {str(_REPOSITORY)!r})\n"


def run_program(
    folder: Path, program: str, environ: Mapping[str, str] | None = None, *arguments: str
) -> "subprocess.CompletedProcess[str]":
    """Run a program in a folder; temporary files go to ``folder/tmp``, for later checks."""
    return wait_for_program(start_program(folder, program, environ, *arguments))


def start_program(
    folder: Path, program: str, environ: Mapping[str, str] | None = None, *arguments: str
) -> "subprocess.Popen[str]":
    """Start a program that runs in parallel with the tests until `wait_for_program`."""
    (folder / "tmp").mkdir(exist_ok=True)
    file = folder / "program.py"
    file.write_text(_START + textwrap.dedent(program))
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))}
    return subprocess.Popen(
        [sys.executable, str(file), *arguments],
        cwd=folder,
        env=clean | SHORT_LIVED | {"TMPDIR": str(folder / "tmp")} | dict(environ or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_program(program: "subprocess.Popen[str]") -> "subprocess.CompletedProcess[str]":
    """Wait for a program, and kill it if it hangs."""
    with program:
        try:
            said, errors = program.communicate(timeout=900)
        finally:
            program.kill()
    return subprocess.CompletedProcess(program.args, program.returncode, said, errors)


def read_json_output(done: "subprocess.CompletedProcess[str]") -> Any:
    """Return the JSON that is the only output of a program."""
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)
