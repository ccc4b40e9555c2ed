"""Files of Kafka client properties, and ``${env.NAME}``, ``${file.PATH}``, ``${command.LINE}`` in them."""

import re
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from kdeclare.core.connecting import References
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error

_REFERENCE = re.compile(r"\$\{(env|file|command)\.([^{}]+)\}")
"""All else is Kafka's: ``${provider:path:key}``, and a password that only looks like a reference."""
_BEGUN = re.compile(r"\$\{(env|file|command)\.")
_JAAS = "sasl.jaas.config"
_COMMAND_TIMEOUT_S = 30.0


def read_client_config(file: Path, references: References, environ: Mapping[str, str]) -> dict[str, str]:
    """The properties of a file, references resolved; a path in one is relative to the file's folder.

    environ: what commands run with. Raises KdeclareError when the file cannot be read or a reference leads
    nowhere; no message holds what a reference stands for.
    """
    from kdeclare.providers.kafka.client import read_properties  # most commands meet no cluster

    resolving = _Resolving(file, references, environ)
    return {name: resolving.value(name, value) for name, value in read_properties(file).items()}


class _Resolving:
    def __init__(self, file: Path, references: References, environ: Mapping[str, str]) -> None:
        self._file = file
        self._references = references
        self._environ = environ

    def value(self, name: str, text: str) -> str:
        """The value of a property."""

        def one(match: re.Match[str]) -> str:
            found = self._resolved(name, match)
            # there it stands between quotes, and a quote of its own would end them
            return re.sub(r'(["\'\\])', r"\\\1", found) if name == _JAAS else found

        if left := _BEGUN.search(_REFERENCE.sub("", text)):  # before any command is run
            raise KdeclareError(_no_reference(f"{self._file}, {name}", left[1]))
        return _REFERENCE.sub(one, text)

    def _resolved(self, name: str, match: re.Match[str]) -> str:
        try:
            if match[1] == "command":
                return _output(match[2], self._environ)
            return self._references.resolve_beside(self._file, match[0])
        except KdeclareError as problem:
            found = problem.diagnostics[0]
            hint = (
                "It is relative to the folder of the client properties." if match[1] == "file" else found.hint
            )
            detail = f"{self._file}, {name}: {found.detail}"
            raise KdeclareError(replace(found, detail=detail, hint=hint)) from None


def _output(line: str, environ: Mapping[str, str]) -> str:
    """What a command prints, without its last end of line. What it says on stderr, the person sees."""
    try:
        words = shlex.split(line)
        if not words:
            raise KdeclareError(_failed(line, "there is no command"))
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env=dict(environ),
            timeout=_COMMAND_TIMEOUT_S,
            check=False,
        )
        if done.returncode:
            raise KdeclareError(_failed(line, f"it ended with {done.returncode}"))
        return done.stdout.decode().removesuffix("\n").removesuffix("\r")
    except OSError as problem:
        raise KdeclareError(_failed(line, (problem.strerror or "it cannot be run").lower())) from problem
    except subprocess.TimeoutExpired as problem:
        raise KdeclareError(_failed(line, f"it did not end within {_COMMAND_TIMEOUT_S:.0f} s")) from problem
    except UnicodeDecodeError as problem:
        raise KdeclareError(_failed(line, "what it prints is not UTF-8 text")) from problem
    except ValueError as problem:
        raise KdeclareError(_failed(line, str(problem).lower())) from problem


def _no_reference(where: str, kind: str) -> Diagnostic:
    """Or it would be sent as it stands there, to whoever asks for a password."""
    return error(
        "bad-reference",
        "Reference cannot be read",
        f"{where}: what begins with '${{{kind}.' has no end, nothing or braces in it.",
        hint="There are no braces inside of a reference; put the command into a script."
        if kind == "command"
        else f"Write ${{{kind}.…}} with a name and without braces in it.",
    )


def _failed(line: str, why: str) -> Diagnostic:
    return error(
        "command-failed",
        "A command that is to give a secret failed",
        f"'${{command.{line}}}': {why}.",
        hint="It is run without a shell; run it by hand to see more.",
    )
