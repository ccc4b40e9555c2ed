"""The plug-in itself: it compiles without warnings, and the same sources produce the same jar."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kdeclare.providers.connect.client.plugin.jar import EXTENSION, compile_sources, get_jar_name
from kdeclare.sandbox.connect_jars import find_compiler
from kdeclare.sandbox.jars import ignore_progress

pytestmark = pytest.mark.kafka


def run_kdeclare(*words: str) -> "subprocess.CompletedProcess[str]":
    """Run one command line."""
    command = [sys.executable, "-c", "from kdeclare.cli.main import run; run()", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_plugin_compiles_without_warnings(tmp_path: Path) -> None:
    strict = ("-Xlint:all,-classfile,-processing", "-Werror")
    compile_sources(find_compiler(ignore_progress, os.environ), tmp_path, *strict)


def test_plugin_build_and_install_give_same_jar(tmp_path: Path) -> None:
    built = run_kdeclare("connect", "plugin", "build", "--out", str(tmp_path / "out"))
    assert (built.returncode, built.stdout) == (0, f"{tmp_path / 'out' / get_jar_name()}\n")
    installed = run_kdeclare("connect", "plugin", "install", "--plugin-path", str(tmp_path / "plugins"))
    assert installed.stdout.splitlines() == [
        f"plugin.path={tmp_path / 'plugins'}",
        f"rest.extension.classes={EXTENSION}",
        "kdeclare.worker.config.admins.file=/etc/connect/kdeclare-admins.properties",
    ]
    assert "kdeclare.worker.config.open=true" in installed.stderr
    jars = [(tmp_path / folder / get_jar_name()).read_bytes() for folder in ("out", "plugins")]
    assert jars[0] == jars[1]
