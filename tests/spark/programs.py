"""Programs that start Spark themselves, each in a process of its own."""

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_REPOSITORY = Path(__file__).parents[2]
_START = f"import sys; sys.path.insert(0, {str(_REPOSITORY)!r})\n"


def run_program(
    folder: Path, program: str, environ: Mapping[str, str] | None = None, *arguments: str
) -> "subprocess.CompletedProcess[str]":
    """Run a program in a folder; temporary files go to ``folder/tmp``, to be looked at afterwards."""
    (folder / "tmp").mkdir(exist_ok=True)
    file = folder / "program.py"
    file.write_text(_START + textwrap.dedent(program))
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))}
    return subprocess.run(
        [sys.executable, str(file), *arguments],
        cwd=folder,
        env=clean | {"TMPDIR": str(folder / "tmp")} | dict(environ or {}),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def told(done: "subprocess.CompletedProcess[str]") -> Any:
    """The JSON that a program printed and nothing else."""
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)
