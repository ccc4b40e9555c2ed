"""Read manifests from standard input (``-`` instead of a path)."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import typer

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen_dataclass import dataclass

if TYPE_CHECKING:
    from kdeclare.cli.invocation import Invocation

STREAM_ARGUMENT = "-"


@dataclass(frozen=True, slots=True)
class ManifestInput:
    """The manifests that are given on a command line.

    paths: the files and folders. stream: the content of standard input, if the command line contains ``-``.
    """

    paths: Sequence[Path]
    stream: bytes | None


def read_manifest_input(paths: Sequence[Path] | None, invocation: "Invocation") -> ManifestInput:
    """Return the given paths, and the content of standard input if one of the paths is ``-``.

    Raises BadParameter if ``-`` is given twice or in the kdeclare shell, and KdeclareError if standard input
    is a terminal or cannot be read.
    """
    files = [path for path in paths or () if str(path) != STREAM_ARGUMENT]
    count = len(paths or ()) - len(files)
    if not count:
        return ManifestInput(files, None)
    if count > 1:
        raise typer.BadParameter(
            "'-' (standard input) is given twice, but it can be read only once.", param_hint="PATH"
        )
    if invocation.shared is not None:
        raise typer.BadParameter(
            "'-' cannot be used in the kdeclare shell, which reads its own lines from standard input.",
            param_hint="PATH",
        )
    return ManifestInput(files, _read_standard_input())


def _read_standard_input() -> bytes:
    stream = sys.stdin
    if stream is None or stream.closed:
        raise _build_refusal("Standard input is closed.")
    if stream.isatty():
        raise _build_refusal("'-' reads manifests from standard input, which is a terminal.")
    try:
        buffer: BinaryIO | None = getattr(stream, "buffer", None)  # a program can replace stdin with a string
        return stream.read().encode() if buffer is None else buffer.read()
    except OSError as e:
        raise _build_refusal(
            f"Standard input cannot be read: {(e.strerror or 'it cannot be opened').lower()}."
        ) from None


def _build_refusal(detail: str) -> KdeclareError:
    return KdeclareError(
        error(
            "no-stream",
            "No manifests on standard input",
            detail,
            hint="Pass the output of another program to kdeclare, for example: helm template chart | "
            "kdeclare plan -",
        ),
        exit_code=ExitCode.USAGE,
    )
