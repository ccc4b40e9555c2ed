"""Spark Connect: sessions on a Spark server that this process reaches over gRPC, without a JVM of its own."""

import ipaddress
import logging
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from pyspark import SparkConf
from pyspark.sql import SparkSession

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.suggestions import format_alternatives
from kdeclare.fleet.spark.settings import (
    FIXED_SETTINGS,
    NETWORK_SETTINGS,
    REMOTE_SETTING,
    SESSION_DEFAULTS,
    reject_unprotected_server,
)
from kdeclare.fleet.spark.spark_errors import translate_spark_errors

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession as ConnectSession

_log = logging.getLogger(__name__)

_SCHEME = "sc://"
_DEFAULT_PORT = 15002
REMOTE_VARIABLE = "SPARK_REMOTE"
"""The environment variable that PySpark defines for the address of a Spark Connect server."""
TOKEN_VARIABLE = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
"""The environment variable that PySpark defines for the token of a Spark Connect server."""

CONNECT_VARIABLES = {"SPARK_CONNECT_MODE_ENABLED": "1"}
"""Environment variables that make PySpark build queries for a server instead of a JVM of this process."""

_FIRST_RETRIES = 4
"""The maximum number of times that the first request to the server is repeated, over about 5 s.

The time is short, so that a command with a wrong address fails soon.
"""
_RETRIES = 7
"""The maximum number of times that a later request is repeated, over about 2 min.

The time is longer, so that a command survives a short network failure.
"""

_URL_HINT = (
    "Use sc://HOST:PORT/;use_ssl=true. Percent-encode special characters in values, such as %3D for =."
)


def find_connect_url(master: str | None, conf: Mapping[str, str], environ: Mapping[str, str]) -> str | None:
    """Return the address of the Spark Connect server; None if the command does not use Spark Connect.

    master: the option ``--master``, which takes precedence over the setting ``spark.remote`` and over
        ``SPARK_REMOTE``.
    """
    url = master or conf.get(REMOTE_SETTING) or environ.get(REMOTE_VARIABLE) or ""
    return url if url.startswith(_SCHEME) else None


@dataclass(frozen=True, slots=True)
class ConnectServer:
    """The address of a Spark Connect server.

    has_token: whether requests carry a token. The token itself is not stored, so that it cannot be shown.
    """

    host: str
    port: int
    use_ssl: bool
    has_token: bool

    @property
    def url(self) -> str:
        """The address without parameters, for messages."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{_SCHEME}{host}:{self.port}"

    @property
    def is_encrypted(self) -> bool:
        """Whether PySpark uses TLS. It also uses TLS for requests with a token, except to ``localhost``."""
        return self.use_ssl or (self.has_token and self.host != "localhost")

    @property
    def is_loopback(self) -> bool:
        """Whether the address is on this machine: the server itself, or the end of a tunnel to the server."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def parse_connect_url(url: str, environ: Mapping[str, str]) -> ConnectServer:
    """Parse the address of a Spark Connect server.

    Raises KdeclareError ``bad-master``. The error shows no values of parameters, because they can be secrets.
    """
    authority, _, parameters = url.removeprefix(_SCHEME).partition("/")
    values: dict[str, str] = {}
    for number, part in enumerate(parameters.split(";")):
        key, separator, value = part.partition("=")
        if number == 0 and not part:
            continue
        if number == 0 or not key or not separator or "=" in value:
            raise _build_url_error("its parameters are not in the form ;NAME=VALUE")
        values[key] = unquote(value)
    if ";" in authority or "@" in authority:
        raise _build_url_error("parameters must follow the address after a slash and a semicolon")
    try:
        parts = urlsplit(f"//{authority}")
        host, port = parts.hostname, parts.port or _DEFAULT_PORT
    except ValueError:
        raise _build_url_error("the host or the port is invalid") from None
    if not host:
        raise _build_url_error("it has no host")
    has_token = "token" in values or TOKEN_VARIABLE in environ
    return ConnectServer(host, port, values.get("use_ssl", "").lower() == "true", has_token)


def _build_url_error(reason: str) -> KdeclareError:
    return KdeclareError(
        error(
            "bad-master",
            "Invalid Spark master",
            f"The address of the Spark Connect server is invalid: {reason}.",
            hint=_URL_HINT,
        )
    )


def build_remote_setting_error() -> KdeclareError:
    """Return the error about a setting ``spark.remote`` in a place where kdeclare does not support it."""
    return KdeclareError(
        error(
            "bad-master",
            "Invalid Spark master",
            "Spark's own settings contain the address of a Spark Connect server (spark.remote). kdeclare "
            f"reads this address only from --master, --conf and {REMOTE_VARIABLE}.",
            hint=f"Pass the address with --master, or set {REMOTE_VARIABLE}.",
        )
    )


@contextmanager
def connect_session(
    url: str,
    conf: Mapping[str, str],
    environ: Mapping[str, str],
    check_settings: Callable[[SparkConf], None],
) -> Iterator[SparkSession]:
    """Provide a session on a Spark Connect server, and release it at the end of the ``with`` block.

    Call the function while `CONNECT_VARIABLES` are set.

    Raises KdeclareError: ``bad-master``, ``spark-connect-missing`` if Python packages are missing,
    ``spark-not-secured`` if the connection would not be encrypted, ``server-setting`` for settings that only
    the server can have, and the errors of `translate_spark_errors`.

    conf: the user's settings by key. A session can only have settings that start with ``spark.sql.``.
    check_settings: a function that is called with the settings of the server, before anything else is sent.
    """
    server = parse_connect_url(url, environ)
    reject_unprotected_server(server.url, is_protected=server.is_encrypted or server.is_loopback)
    session_settings = {key: value for key, value in conf.items() if key != REMOTE_SETTING}
    _reject_server_settings(session_settings)
    with warnings.catch_warnings(), translate_spark_errors():
        # The exception says the same.
        warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]", UserWarning)
        spark = _open_session(url)
        try:
            check_settings(_read_settings(spark, server))
            for key, value in {**SESSION_DEFAULTS, **session_settings, **FIXED_SETTINGS}.items():
                spark.conf.set(key, value)
            yield spark
        finally:
            with _silence_client():
                spark.stop()


def _open_session(url: str) -> SparkSession:
    client: Any = _import_session_class()
    session: ConnectSession = client(connection=url)
    from pyspark.sql.connect.client.retries import DefaultPolicy

    # By default, the client repeats requests to an address without a server for ten minutes.
    session.client.set_retry_policies([DefaultPolicy(max_retries=_FIRST_RETRIES)])
    with _silence_client():
        try:
            session.version  # noqa: B018  the first request
        except BaseException:
            session.client.close()
            raise
    session.client.set_retry_policies([DefaultPolicy(max_retries=_RETRIES)])
    client._set_default_and_active_session(session)
    result: Any = session  # it has the same methods, but not the same base class
    return result  # type: ignore[no-any-return]


def _import_session_class() -> "type[ConnectSession]":
    try:
        with warnings.catch_warnings(action="ignore", category=FutureWarning):  # about the version of pandas
            from pyspark.sql.connect.session import SparkSession as ConnectSession
    except ImportError as cause:
        name = _find_missing_package(cause)
        raise KdeclareError(
            error(
                "spark-connect-missing",
                "Packages for Spark Connect are missing",
                f"Spark Connect needs Python packages that are not installed, such as {name}.",
                hint="Install them with `pip install 'kdeclare[spark-connect]'`.",
            )
        ) from cause
    return ConnectSession


def _find_missing_package(cause: ImportError) -> str:
    match = re.search(r"\] (\S+) >=|No module named '([^']+)'", str(cause))
    return (match[1] or match[2]) if match else "grpcio"


@contextmanager
def _silence_client() -> Iterator[None]:
    """Disable the log output of PySpark's client in a ``with`` block. Exceptions contain the same details."""
    from pyspark.sql.connect.logging import logger

    previous, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = previous


def _reject_server_settings(conf: Mapping[str, str]) -> None:
    """Raise KdeclareError for settings that a session cannot have. Spark would ignore some of them."""
    rejected = sorted(key for key in conf if not key.startswith("spark.sql."))
    if rejected:
        raise KdeclareError(
            error(
                "server-setting",
                "Spark setting cannot be changed",
                f"{format_alternatives(rejected)} cannot be set in a Spark Connect session, because the "
                "Spark server is already running.",
                hint="Configure it when you start the Spark Connect server, not with --conf. Only settings "
                "that start with spark.sql. can be passed with --conf.",
            )
        )


def _read_settings(spark: SparkSession, server: ConnectServer) -> SparkConf:
    """Read from the server the settings that `settings.reject_unsecured_network` checks."""
    settings = SparkConf(loadDefaults=False)
    settings.set(REMOTE_SETTING, server.url)
    for key in ("spark.master", *NETWORK_SETTINGS):
        value = spark.conf.get(key, None)
        if value is not None:
            settings.set(key, value)
    return settings


def add_python_file(spark: SparkSession, name: str, data: bytes) -> None:
    """Send a Python file or ZIP file to the server, for the tasks of this session."""
    session: Any = spark
    with tempfile.TemporaryDirectory(prefix="kdeclare-") as folder:
        file = Path(folder, name)
        file.write_bytes(data)
        session.addArtifacts(str(file), pyfile=True)
