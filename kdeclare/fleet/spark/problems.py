"""Spark's exceptions as errors for people: the gist in a sentence, and what can be done."""

import re
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.frozen import dataclass

_DEEP = 20
"""Causes looked at; a chain may bite its own tail."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One exception: its class with its package, and its message (empty if it has none)."""

    kind: str
    message: str


def causes(problem: BaseException) -> tuple[Cause, ...]:
    """The exception itself and what caused it, down to the root; Java's where it came from there."""
    # py4j and pyspark keep the Java exception under different names.
    raised: Any = getattr(problem, "java_exception", None) or getattr(problem, "_origin", None)
    if not isinstance(raised, JavaObject):
        return (Cause(type(problem).__name__, str(problem)),)
    found: list[Cause] = []
    try:
        while raised is not None and len(found) < _DEEP:
            found.append(Cause(raised.getClass().getName(), raised.getMessage() or ""))
            raised = raised.getCause()
    except (Py4JError, OSError):  # the JVM is gone: what it said before is all there is
        found = found or [Cause(type(problem).__name__, "")]  # its text too would be asked of the JVM
    return tuple(found)


def hide_passwords(text: str) -> str:
    """Without a password that somebody put into a URI."""
    return re.sub(r"//[^/@:\s]*:[^/@\s]*@", "//", text)


class SparkFailure(KdeclareError):
    """A failure of which Spark's log may tell more."""


@dataclass(frozen=True, slots=True)
class _Known:
    """A failure that is known by what Spark says; ``detail`` may hold the groups of ``said`` and ``root``."""

    said: re.Pattern[str]
    code: str
    summary: str
    detail: str
    hint: str


def _known(said: str, code: str, summary: str, detail: str, hint: str) -> _Known:
    return _Known(re.compile(said, re.DOTALL), code, summary, detail, hint)


_ACCESS = "Check the location, and that whoever runs Spark may read and write there."
_FILE = r"reading file (?P<file>\S.*?)\.\s"
_MEMORY = "Give Spark more memory (--conf spark.driver.memory=8g, spark.executor.memory), or smaller tasks."

_ALL_KNOWN = (
    _known(
        r"No space left on device|Disk quota exceeded|File too large",
        "disk-full",
        "No space left",
        "Spark could not write: {root}.",
        "Free some space where results go and where Spark keeps its own files (spark.local.dir).",
    ),
    _known(
        r"Permission denied|AccessControlException|AccessDeniedException|Status Code: 403"
        r"|Mkdirs failed to create|Read-only file system",
        "no-access",
        "Spark may not read or write there",
        "Spark was not let: {root}.",
        _ACCESS,
    ),
    _known(
        r"\[FAILED_READ_FILE\.FILE_NOT_EXIST\].*?" + _FILE,
        "cannot-read",
        "A file is not there",
        "{file} is not there any more.",
        "Was it deleted meanwhile? Run the command again.",
    ),
    _known(
        r"\[FAILED_READ_FILE[^]]*\].*?" + _FILE,
        "damaged-file",
        "A file is damaged",
        "{file} cannot be read as what it was written as: {root}.",
        "Restore the file, or delete the snapshot or audit that it belongs to.",
    ),
    _known(
        r"\[PATH_NOT_FOUND\] Path does not exist: (?P<file>\S.*?)\.\s",
        "cannot-read",
        "A file is not there",
        "There is nothing at {file}.",
        _ACCESS,
    ),
    _known(
        r"No FileSystem for scheme|ClassNotFoundException: (?:Class )?\S*FileSystem\b",
        "spark-no-file-system",
        "Spark does not know this kind of location",
        "Spark cannot reach the location: {root}.",
        "Add its connector, as with --conf spark.jars.packages=org.apache.hadoop:hadoop-aws:VERSION.",
    ),
    _known(
        r"PYTHON_VERSION_MISMATCH|Python in worker has different version",
        "python-mismatch",
        "Executors run another Python",
        "The executors' Python has another version than the one that runs kdeclare.",
        "Set PYSPARK_PYTHON to a Python of the same minor version, which is on every executor.",
    ),
    _known(
        r'Cannot run program "(?P<file>[^"]+)"',
        "python-missing",
        "Executors do not find Python",
        "There is no {file} where tasks run.",
        "Set PYSPARK_PYTHON to a Python with kdeclare's dependencies, which is on every executor.",
    ),
    _known(
        r"ModuleNotFoundError: No module named '(?P<file>[^']+)'",
        "python-missing",
        "Executors lack a Python package",
        "The Python of a task has no package {file}.",
        "Install kdeclare's dependencies there, or set PYSPARK_PYTHON to a Python that has them.",
    ),
    _known(
        r"This command uses the provider (?P<provider>'[^']+' \([^)]*\)), and the Python of a task "
        r"(?P<found>[^\n]*?)\.\s",
        "provider-missing",
        "A provider is missing where a task runs",
        "This command uses the provider {provider}, and the Python of a task {found}.",
        "Install the same version of its distribution on every executor, or uninstall it here.",
    ),
    _known(
        r"OutOfMemoryError|exceeds? (?:spark\.)?(?:driver\.)?maxResultSize",
        "out-of-memory",
        "Spark ran out of memory",
        "Spark ran out of memory: {root}.",
        _MEMORY,
    ),
    _known(
        r"Python worker exited unexpectedly|ExecutorLostFailure|Executor lost|exited caused by one of the",
        "worker-died",
        "A task's process died",
        "A task's Python process, or the executor around it, died before the task was done.",
        f"Most often the machine had no memory left. {_MEMORY}",
    ),
    _known(
        r"Could not parse Master URL|Master must either|Invalid master URL",
        "bad-master",
        "Spark does not know this master",
        "Spark does not know this master: {root}.",
        "Give local[*], spark://HOST:PORT, yarn or k8s://https://HOST:PORT.",
    ),
    _known(
        r"All masters are unresponsive|Connection refused|UnknownHostException|NoRouteToHost"
        r"|Failed to connect|stopped SparkContext|SparkContext was shut down",
        "spark-unreachable",
        "Spark cannot be reached",
        "Spark or its storage cannot be reached: {root}.",
        "Check the address of the master and of the location, and the network between.",
    ),
)

_GONE = error(
    "spark-died",
    "Spark's JVM has ended",
    "Spark's JVM ended in the middle of the work.",
    hint=f"Most often it had no memory left. {_MEMORY}",
)
_RAISED = re.compile(r"^\s*(?P<said>[A-Za-z_][\w.]*(?:: .*)?)$")


@contextmanager
def explained() -> Iterator[None]:
    """Turn an exception of Spark's in the block into a SparkFailure, whose cause it is.

    Codes: ``damaged-file``, ``cannot-read``, ``no-access``, ``disk-full``, ``spark-unreachable``,
    ``python-mismatch`` and more of the kind; ``internal-error`` for a bug in what tasks run.
    """
    try:
        yield
    except (PySparkException, Py4JError) as problem:
        raise SparkFailure(_diagnostic(problem)) from problem
    except ConnectionError as problem:
        if not _of_py4j(problem):
            raise
        raise SparkFailure(_GONE) from problem


def _of_py4j(problem: ConnectionError) -> bool:
    """Whether it is the JVM that cannot be connected to."""
    frames = traceback.extract_tb(problem.__traceback__)
    return bool(frames) and "py4j" in Path(frames[-1].filename).parts


def _diagnostic(problem: BaseException) -> Diagnostic:
    if isinstance(problem, Py4JError) and not isinstance(problem, Py4JJavaError):
        return _GONE
    chain = causes(problem)
    text = "\n".join(f"{cause.kind}: {cause.message}" for cause in chain)
    for known in _ALL_KNOWN:
        found = known.said.search(text)
        if found is not None:
            groups = {name: _path(value) for name, value in found.groupdict().items()}
            detail = known.detail.format(root=_root(chain), **groups)
            return error(known.code, known.summary, _plain(detail), hint=known.hint)
    raised = _raised_in_python(text)
    if raised is not None:
        what = f"This should not have happened: a task raised {raised}."
        return error("internal-error", "Internal error", _plain(what), hint="Please report it.")
    return error("spark-failed", "Spark failed", _plain(f"Spark failed: {_root(chain)}."))


def _root(chain: Sequence[Cause]) -> str:
    """What the deepest cause with a message says, in one line without Spark's own codes."""
    said = next((cause for cause in reversed(chain) if cause.message.strip()), chain[0])
    line = next((line.strip() for line in said.message.splitlines() if line.strip()), "")
    line = re.sub(r"^\[[A-Z_.]+\]\s*|\s*SQLSTATE: \w+;?$|\s*\(exists=.*\)$", "", line)
    return (line or said.kind.rpartition(".")[2]).rstrip(". ")


def _path(text: str) -> str:
    """What Spark has as a URI, as people write it."""
    return unquote(text) if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", text) else text


def _plain(text: str) -> str:
    """Paths of this machine as paths, and nobody's password."""
    return hide_passwords(re.sub(r"\bfile:/{1,3}", "/", text))


def _raised_in_python(text: str) -> str | None:
    """The last line of a task's Python traceback; None where there is none."""
    _, found, rest = text.rpartition("Traceback (most recent call last):")
    if not found:
        return None
    lines = [line for line in rest.splitlines() if line.strip() and not line.lstrip().startswith("SQLSTATE")]
    ends = [line.strip().rstrip(".") for line in lines if _RAISED.match(line) and "File " not in line]
    return ends[0] if ends else "an exception"
