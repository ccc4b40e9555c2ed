"""Run commands that print a secret to standard output."""

import os
import shlex
import subprocess
from collections.abc import Mapping

SECRET_COMMAND_TIMEOUT_S = 30.0
"""The maximum duration of a command, in seconds."""


class SecretCommandError(Exception):
    """Raised if a command failed. The message is the reason, without any output of the command."""


def run_secret_command(line: str, environ: Mapping[str, str] | None = None) -> str:
    """Run a command without a shell, and return its output. The command inherits stderr.

    environ: the environment variables of the command; by default, those of the process.

    Raises SecretCommandError.
    """
    try:
        words = shlex.split(line)
        if not words:
            raise SecretCommandError("the command is empty")
        completed = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env=dict(os.environ if environ is None else environ),
            timeout=SECRET_COMMAND_TIMEOUT_S,
            check=False,
        )
        output = completed.stdout.decode()
    except OSError as problem:
        raise SecretCommandError((problem.strerror or "the command cannot be run").lower()) from problem
    except subprocess.TimeoutExpired:
        reason = f"the command did not finish within {SECRET_COMMAND_TIMEOUT_S:.0f} s"
        # the cause would contain the output
        raise SecretCommandError(reason) from None
    except UnicodeDecodeError:
        raise SecretCommandError("the output of the command is not UTF-8 text") from None
    except ValueError as problem:
        raise SecretCommandError(str(problem).lower()) from problem
    if completed.returncode:
        raise SecretCommandError(f"the command exited with status {completed.returncode}")
    return output
