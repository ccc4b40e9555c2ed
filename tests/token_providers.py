"""Unsecured tokens, commands that print them, and an installed package with a token provider."""

import base64
import inspect
import json
import sys
import time
from pathlib import Path


def build_token(user: str, lives_s: int) -> str:
    """Return an unsecured token (RFC 7515, alg none), which expires in ``lives_s`` seconds."""
    now = int(time.time())
    parts = ({"alg": "none"}, {"sub": user, "iat": now - 120, "exp": now + lives_s})
    return "".join(base64.urlsafe_b64encode(json.dumps(p).encode()).decode().rstrip("=") + "." for p in parts)


_SOURCE = f"import base64, json, time\n\n\n{inspect.getsource(build_token)}"
"""The source of a module with `build_token`."""


def write_token_command(folder: Path, user: str, lives_s: int) -> tuple[str, Path]:
    """Write a program that prints a new token. Return its command line and the file that counts its runs."""
    program, runs = folder / "print_token.py", folder / "runs"
    program.write_text(
        f"{_SOURCE}\nopen({str(runs)!r}, 'a').write('.')\nprint(build_token({user!r}, {lives_s}))\n"
    )
    return f"{sys.executable} {program}", runs


def install_token_provider(folder: Path, name: str, body: str) -> None:
    """Install a package in a folder on the import path, with a token provider in its only module."""
    module = f"{name}_tokens"
    about = folder / f"{module}-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1\n")
    (about / "entry_points.txt").write_text(f"[kdeclare.token_providers]\n{name} = {module}:fetch_token\n")
    (folder / f"{module}.py").write_text(
        f"{_SOURCE}\n"
        "from kdeclare.providers.kafka.client.tokens.token import Token\n\n\n"
        f"def fetch_token(request):\n    {body}\n"
    )
