"""Programs that kdeclare starts do not get the secrets that only kdeclare needs."""

import os
import subprocess
from pathlib import Path

import pytest

from kdeclare.core.secrets.child_environ import OWN_SECRETS, build_child_environ
from kdeclare.java import find_java
from kdeclare.state_storage.git_process import build_git_environ

SECRET = "correct-horse-battery-staple"


def test_child_gets_everything_but_own_secrets() -> None:
    environ = dict.fromkeys(OWN_SECRETS, SECRET) | {"HOME": "/root", "KDECLARE_CACHE_DIR": "/cache"}
    assert build_child_environ(environ) == {"HOME": "/root", "KDECLARE_CACHE_DIR": "/cache"}


def test_git_gets_no_own_secret_but_its_login(tmp_path: Path) -> None:
    environ = dict.fromkeys(OWN_SECRETS, SECRET) | {"HOME": "/root"}
    assert SECRET not in build_git_environ(environ, tmp_path, "https://git.example.com/a.git").values()


@pytest.mark.slow
def test_java_gets_no_own_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in OWN_SECRETS:
        monkeypatch.setenv(name, SECRET)
    java = tmp_path / "java"
    java.write_text(f"#!/bin/sh\nenv > {tmp_path}/environ\necho 'openjdk version \"21.0.1\"'\n")
    java.chmod(0o755)
    assert subprocess.run([java, "-version"], check=True, capture_output=True).returncode == 0
    assert SECRET in (tmp_path / "environ").read_text()
    assert find_java({"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}) == str(java)
    assert SECRET not in (tmp_path / "environ").read_text()
