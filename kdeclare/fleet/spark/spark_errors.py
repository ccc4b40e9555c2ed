"""Convert Spark's exceptions to diagnostics with a short explanation and a hint."""

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
from kdeclare.core.frozen_dataclass import dataclass

_RPC_ERROR = re.compile(r'status = StatusCode\.(?P<status>\w+)\s+details = "(?P<details>.*)"')
"""Matches the text of an exception of Spark Connect that does not come from Spark, but from gRPC."""

_MAX_CAUSES = 20
"""The maximum number of causes to inspect. Without a limit, a cyclic chain of causes would never end."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One exception in a chain of causes: its qualified class name, and its message, which can be empty."""

    kind: str
    message: str


def list_causes(problem: BaseException) -> tuple[Cause, ...]:
    """Return an exception and its causes, the root cause last.

    For a Python exception that wraps a Java exception, return the Java exception and its causes. An exception
    of Spark Connect contains the Java exceptions of the server as text.
    """
    rpc_error = _RPC_ERROR.search(str(problem)) if isinstance(problem, PySparkException) else None
    if rpc_error is not None:
        return (Cause(rpc_error["status"], rpc_error["details"]),)
    server_trace: Any = getattr(problem, "_stacktrace", None)
    if isinstance(server_trace, str) and server_trace.strip():
        return _parse_server_trace(getattr(problem, "_message", None) or "", server_trace)
    # py4j and pyspark store the Java exception in attributes with different names.
    java_exception: Any = getattr(problem, "java_exception", None) or getattr(problem, "_origin", None)
    if not isinstance(java_exception, JavaObject):
        return (Cause(type(problem).__name__, str(problem)),)
    chain: list[Cause] = []
    try:
        while java_exception is not None and len(chain) < _MAX_CAUSES:
            chain.append(Cause(java_exception.getClass().getName(), java_exception.getMessage() or ""))
            java_exception = java_exception.getCause()
    except (Py4JError, OSError):  # the JVM has ended, so no further causes can be read
        chain = chain or [Cause(type(problem).__name__, "")]  # str() would also call the JVM
    return tuple(chain)


def _parse_server_trace(message: str, trace: str) -> tuple[Cause, ...]:
    """Return the exceptions in the stack trace of a Spark Connect server.

    message: the message of the first exception, which the trace does not contain.
    """
    first, *others = re.split(r"^Caused by: ", trace, flags=re.MULTILINE)
    chain = [Cause(first.split("\n", 1)[0].strip(), message)]
    for text in others[: _MAX_CAUSES - 1]:
        kind, _, cause_message = re.split(r"^\tat ", text, maxsplit=1, flags=re.MULTILINE)[0].partition(":")
        chain.append(Cause(kind.strip(), cause_message.strip()))
    return tuple(chain)


def mask_uri_passwords(text: str) -> str:
    """Remove the credentials from all URIs in a string."""
    return re.sub(r"//[^/@:\s]*:[^/@\s]*@", "//", text)


class SparkError(KdeclareError):
    """An error that Spark reported. The hint can refer to Spark's log."""


@dataclass(frozen=True, slots=True)
class _KnownFailure:
    """A failure that is recognized by the text of Spark's exception.

    said: the pattern that matches the text.
    detail: the detail of the diagnostic. Its placeholders are the named groups of ``said``, and ``{root}``
        for the message of the root cause.
    """

    said: re.Pattern[str]
    code: str
    summary: str
    detail: str
    hint: str


def _build_known_failure(pattern: str, code: str, summary: str, detail: str, hint: str) -> _KnownFailure:
    return _KnownFailure(re.compile(pattern, re.DOTALL), code, summary, detail, hint)


_ACCESS_HINT = "Check the location. The user who runs Spark must have permission to read and write there."
_FILE_PATTERN = r"reading file (?P<file>\S.*?)\.\s"
_MEMORY_HINT = (
    "Give Spark more memory, for example with --conf spark.driver.memory=8g or "
    "--conf spark.executor.memory=8g."
)

_KNOWN_FAILURES = (
    _build_known_failure(
        r"No space left on device|Disk quota exceeded|File too large",
        "disk-full",
        "No space left",
        "Spark could not write: {root}.",
        "Free up disk space in the output location and in Spark's temporary folder (spark.local.dir).",
    ),
    _build_known_failure(
        r"Permission denied|AccessControlException|AccessDeniedException|Status Code: 403"
        r"|Mkdirs failed to create|Read-only file system",
        "no-access",
        "Spark access denied",
        "Spark could not access the location: {root}.",
        _ACCESS_HINT,
    ),
    _build_known_failure(
        r"\[FAILED_READ_FILE\.FILE_NOT_EXIST\].*?" + _FILE_PATTERN,
        "cannot-read",
        "File not found",
        "{file} no longer exists. It may have been deleted while the command was running.",
        "Run the command again.",
    ),
    _build_known_failure(
        r"\[FAILED_READ_FILE[^]]*\].*?" + _FILE_PATTERN,
        "damaged-file",
        "Damaged file",
        "{file} cannot be decoded: {root}.",
        "Restore the file, or delete the snapshot or audit that contains the file.",
    ),
    _build_known_failure(
        r"\[PATH_NOT_FOUND\] Path does not exist: (?P<file>\S.*?)\.\s",
        "cannot-read",
        "File not found",
        "{file} does not exist.",
        _ACCESS_HINT,
    ),
    _build_known_failure(
        r"No FileSystem for scheme|ClassNotFoundException: (?:Class )?\S*FileSystem\b",
        "spark-no-file-system",
        "No connector for this location",
        "Spark has no connector for the location: {root}.",
        "Add the connector, for example --conf spark.jars.packages=org.apache.hadoop:hadoop-aws:VERSION.",
    ),
    _build_known_failure(
        r"PYTHON_VERSION_MISMATCH|Python in worker has different version",
        "python-mismatch",
        "Python version mismatch",
        "The executors do not run the same Python version as kdeclare.",
        "Set PYSPARK_PYTHON to a Python interpreter on the executors with the same minor version as "
        "kdeclare's Python.",
    ),
    _build_known_failure(
        r'Cannot run program "(?P<file>[^"]+)"',
        "python-missing",
        "Python not found on executors",
        "{file} does not exist on the machine that runs the task.",
        "Set PYSPARK_PYTHON to a Python with kdeclare's dependencies that is installed on every executor.",
    ),
    _build_known_failure(
        r"ModuleNotFoundError: No module named '(?P<file>[^']+)'",
        "python-missing",
        "Python package missing on Spark executors",
        "The Python on the executors does not have the package {file}.",
        "Install kdeclare's dependencies on the executors, or set PYSPARK_PYTHON to a Python that has them.",
    ),
    _build_known_failure(
        r"This command uses the provider (?P<provider>'[^']+' \([^)]*\)), but the Python environment of "
        r"a Spark task (?P<found>[^\n]*?)\.\s",
        "provider-missing",
        "Provider missing on a Spark executor",
        "This command uses the provider {provider}, but the Python environment of a Spark task {found}.",
        "Install the same version of the provider's package on all executors, or uninstall it locally.",
    ),
    _build_known_failure(
        r"OutOfMemoryError|exceeds? (?:spark\.)?(?:driver\.)?maxResultSize",
        "out-of-memory",
        "Spark ran out of memory",
        "A Spark process needs more memory: {root}.",
        _MEMORY_HINT,
    ),
    _build_known_failure(
        r"Python worker exited unexpectedly|ExecutorLostFailure|Executor lost|exited caused by one of the",
        "worker-died",
        "Task process died",
        "A task's Python process, or its executor, died before the task was done. "
        "The most common cause is a lack of memory.",
        _MEMORY_HINT,
    ),
    _build_known_failure(
        r"\[CANNOT_MODIFY_(?:STATIC_)?CONFIG\][^\"]*\"(?P<key>[^\"]+)\"",
        "server-setting",
        "Spark setting cannot be changed",
        "{key} cannot be set in a Spark Connect session, because the Spark server is already running.",
        "Configure it when you start the Spark Connect server, not with --conf.",
    ),
    _build_known_failure(
        r"(?:^|\n)(?:UNAUTHENTICATED|PERMISSION_DENIED): ",
        "spark-login-failed",
        "Spark login failed",
        "The Spark Connect server rejected the request: {root}.",
        "Check the token (;token=… in the address, or the variable SPARK_CONNECT_AUTHENTICATE_TOKEN).",
    ),
    _build_known_failure(
        r"(?:^|\n)(?:UNAVAILABLE|DEADLINE_EXCEEDED): ",
        "spark-unreachable",
        "Spark unreachable",
        "The Spark Connect server cannot be reached: {root}.",
        "Check the address and the network connection. If a private certificate authority signed the "
        "server's certificate, set GRPC_DEFAULT_SSL_ROOTS_FILE_PATH to a file with the certificates of this "
        "authority.",
    ),
    _build_known_failure(
        r"RESOURCE_EXHAUSTED: .*larger than max",
        "spark-message-too-large",
        "Fleet too large for Spark Connect",
        "The request that sends the fleet's files to the Spark Connect server is too large: {root}.",
        "Select fewer clusters with --cluster-selector, or pass another master (spark://…, yarn or k8s://…).",
    ),
    _build_known_failure(
        r"Could not parse Master URL|Master must either|Invalid master URL",
        "bad-master",
        "Invalid Spark master",
        "Spark does not accept this master: {root}.",
        "Use local[*], spark://HOST:PORT, yarn or k8s://https://HOST:PORT.",
    ),
    _build_known_failure(
        r"All masters are unresponsive|Connection refused|UnknownHostException|NoRouteToHost"
        r"|Failed to connect|stopped SparkContext|SparkContext was shut down",
        "spark-unreachable",
        "Spark unreachable",
        "Spark or its storage cannot be reached: {root}.",
        "Check the address of the Spark master and of the storage, and the network connection to both.",
    ),
)

_JVM_DIED = error(
    "spark-died",
    "Spark's JVM exited unexpectedly",
    "The JVM ended before the Spark job was complete. The most common cause is a lack of memory.",
    hint=_MEMORY_HINT,
)
_EXCEPTION_LINE = re.compile(r"^\s*(?P<said>[A-Za-z_][\w.]*(?:: .*)?)$")


@contextmanager
def translate_spark_errors() -> Iterator[None]:
    """Convert a Spark exception that is raised in the ``with`` block to a SparkError with a diagnostic.

    The codes include ``damaged-file``, ``cannot-read``, ``no-access``, ``disk-full``, ``spark-unreachable``
    and ``python-mismatch``. An unexpected exception in a task has the code ``internal-error``.
    """
    try:
        yield
    except (PySparkException, Py4JError) as problem:
        raise SparkError(_build_diagnostic(problem)) from problem
    except ConnectionError as problem:
        if not _is_py4j_error(problem):
            raise
        raise SparkError(_JVM_DIED) from problem


def _is_py4j_error(problem: ConnectionError) -> bool:
    """Whether the exception means that the connection to the JVM failed."""
    frames = traceback.extract_tb(problem.__traceback__)
    return bool(frames) and "py4j" in Path(frames[-1].filename).parts


def _build_diagnostic(problem: BaseException) -> Diagnostic:
    if isinstance(problem, Py4JError) and not isinstance(problem, Py4JJavaError):
        return _JVM_DIED
    chain = list_causes(problem)
    text = "\n".join(f"{cause.kind}: {cause.message}" for cause in chain)
    for failure in _KNOWN_FAILURES:
        match = failure.said.search(text)
        if match is not None:
            groups = {name: _decode_uri(value) for name, value in match.groupdict().items()}
            detail = failure.detail.format(root=_explain_root_cause(chain), **groups)
            return error(failure.code, failure.summary, _format_paths(detail), hint=failure.hint)
    exception = _find_python_exception(text)
    if exception is not None:
        detail_text = f"A Spark task raised an unexpected exception: {exception}."
        return error(
            "internal-error", "Internal error", _format_paths(detail_text), hint="Report this error as a bug."
        )
    return error(
        "spark-failed", "Spark failed", _format_paths(f"Spark failed: {_explain_root_cause(chain)}.")
    )


def _explain_root_cause(chain: Sequence[Cause]) -> str:
    """Return the first line of the root cause's message, without Spark's error codes.

    If the root cause has no message, use the message of the nearest cause that has one.
    """
    deepest_cause = next((cause for cause in reversed(chain) if cause.message.strip()), chain[0])
    line = next((line.strip() for line in deepest_cause.message.splitlines() if line.strip()), "")
    line = re.sub(r"^\[[A-Z_.]+\]\s*|\s*SQLSTATE: \w+;?$|\s*\(exists=.*\)$", "", line)
    return (line or deepest_cause.kind.rpartition(".")[2]).rstrip(". ")


def _decode_uri(text: str) -> str:
    """Decode a percent-encoded URI. Return other strings unchanged."""
    return unquote(text) if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", text) else text


def _format_paths(text: str) -> str:
    """Replace ``file:`` URIs with paths, and remove the credentials from other URIs."""
    return mask_uri_passwords(re.sub(r"\bfile:/{1,3}", "/", text))


def _find_python_exception(text: str) -> str | None:
    """Return the last line of a task's Python traceback; None if there is no traceback."""
    _, marker, traceback_text = text.rpartition("Traceback (most recent call last):")
    if not marker:
        return None
    lines = [
        line
        for line in traceback_text.splitlines()
        if line.strip() and not line.lstrip().startswith("SQLSTATE")
    ]
    exception_lines = [
        line.strip().rstrip(".") for line in lines if _EXCEPTION_LINE.match(line) and "File " not in line
    ]
    return exception_lines[0] if exception_lines else "an exception"
