"""Connecting to a cluster: addresses, client properties and their references."""

import logging
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.core.operations.retry import RetryPolicy
from kdeclare.core.provider.connection import ConnectionContext, ConnectionType, References, SettingsFile
from kdeclare.core.secrets.scrubber import SCRUBBER
from kdeclare.core.secrets.secret_refs import is_sensitive_key
from kdeclare.providers.kafka.port import QUOTA_EXCEEDED, QUOTA_HINT, Cluster

_REFERENCE = re.compile(r"\$\{(env|file|command)\.([^{}]+)\}")
"""All else is Kafka's: ``${provider:path:key}``, and a password that only looks like a reference."""
_UNFINISHED_REFERENCE = re.compile(r"\$\{(env|file|command)\.")
_JAAS = "sasl.jaas.config"
_COMMAND_TIMEOUT_S = 30.0


def read_client_config(file: Path, references: References, environ: Mapping[str, str]) -> dict[str, str]:
    """The properties of a file, references resolved; a path in one is relative to the file's folder.

    environ: what commands run with. Raises KdeclareError when the file cannot be read or a reference leads
    nowhere; no message holds what a reference stands for.
    """
    from kdeclare.providers.kafka.client import read_properties  # most commands meet no cluster

    resolver = _ReferenceResolver(file, references, environ)
    return {name: resolver.value(name, value) for name, value in read_properties(file).items()}


class _ReferenceResolver:
    def __init__(self, file: Path, references: References, environ: Mapping[str, str]) -> None:
        self._file = file
        self._references = references
        self._environ = environ

    def value(self, name: str, text: str) -> str:
        """The value of a property."""

        def one(match: re.Match[str]) -> str:
            found = self._resolve_reference(name, match)
            # there it stands between quotes, and a quote of its own would end them
            return re.sub(r'(["\'\\])', r"\\\1", found) if name == _JAAS else found

        if left := _UNFINISHED_REFERENCE.search(_REFERENCE.sub("", text)):  # before any command is run
            raise KdeclareError(_report_bad_reference(f"{self._file}, {name}", left[1]))
        return _REFERENCE.sub(one, text)

    def _resolve_reference(self, name: str, match: re.Match[str]) -> str:
        try:
            if match[1] == "command":
                return _run_command(match[2], self._environ)
            return self._references.resolve_beside(self._file, match[0])
        except KdeclareError as problem:
            diagnostic = problem.diagnostics[0]
            hint = (
                "It is relative to the folder of the client properties."
                if match[1] == "file"
                else diagnostic.hint
            )
            detail = f"{self._file}, {name}: {diagnostic.detail}"
            raise KdeclareError(replace(diagnostic, detail=detail, hint=hint)) from None


def _run_command(line: str, environ: Mapping[str, str]) -> str:
    """What a command prints, without its last end of line. What it says on stderr, the person sees."""
    try:
        words = shlex.split(line)
        if not words:
            raise KdeclareError(_report_failed_command(line, "there is no command"))
        completed = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env=dict(environ),
            timeout=_COMMAND_TIMEOUT_S,
            check=False,
        )
        if completed.returncode:
            raise KdeclareError(_report_failed_command(line, f"it ended with {completed.returncode}"))
        return completed.stdout.decode().removesuffix("\n").removesuffix("\r")
    except OSError as problem:
        raise KdeclareError(
            _report_failed_command(line, (problem.strerror or "it cannot be run").lower())
        ) from problem
    except subprocess.TimeoutExpired as problem:
        raise KdeclareError(
            _report_failed_command(line, f"it did not end within {_COMMAND_TIMEOUT_S:.0f} s")
        ) from problem
    except UnicodeDecodeError as problem:
        raise KdeclareError(_report_failed_command(line, "what it prints is not UTF-8 text")) from problem
    except ValueError as problem:
        raise KdeclareError(_report_failed_command(line, str(problem).lower())) from problem


def _report_bad_reference(location: str, scheme: str) -> Diagnostic:
    """Or it would be sent as it stands there, to whoever asks for a password."""
    return error(
        "bad-reference",
        "Reference cannot be read",
        f"{location}: what begins with '${{{scheme}.' has no end, nothing or braces in it.",
        hint="There are no braces inside of a reference; put the command into a script."
        if scheme == "command"
        else f"Write ${{{scheme}.…}} with a name and without braces in it.",
    )


def _report_failed_command(line: str, reason: str) -> Diagnostic:
    return error(
        "command-failed",
        "A command that is to give a secret failed",
        f"'${{command.{line}}}': {reason}.",
        hint="It is run without a shell; run it by hand to see more.",
    )


_log = logging.getLogger(__name__)

_ATTEMPTS = 6
_QUOTED = re.compile(r'(?:password|secret|token)\w*\s*=\s*"((?:[^"\\]|\\.)*)"', re.IGNORECASE)

_STORE_LOCATIONS = re.compile(r"ssl\.(truststore|keystore)\.location")

SERVERS_OPTION = "bootstrap-server"
CONFIG_OPTION = "command-config"
"""The options of the command line that stand in place of settings, and beside them."""


class KafkaSettings(BaseModel):
    """What an environment says of its cluster. The path of the file is ready to be opened."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    bootstrap_servers: str | None = Field(None, alias="bootstrapServers")
    client_config: Mapping[str, str] = Field({}, alias="clientConfig", repr=False)
    client_config_file: Path | None = Field(None, alias="clientConfigFile")


@dataclass(frozen=True, slots=True)
class KafkaConnection:
    """The connection to the Kafka cluster."""

    cluster: Cluster

    def check(self) -> None:
        """See `Keepable`."""
        self.cluster.describe()

    def close(self) -> None:
        """See `Closable`."""
        self.cluster.close()


@dataclass(frozen=True, slots=True)
class KafkaTarget:
    """A cluster at addresses, with client properties.

    servers: empty where the properties name them.
    """

    servers: str
    config: tuple[tuple[str, str], ...] = field(repr=False)
    attempts: int = _ATTEMPTS

    def open(self, timeout_s: float) -> KafkaConnection:
        """See `Target`."""
        return KafkaConnection(connect_cluster(self.servers, dict(self.config), timeout_s, self.attempts))


def connect_cluster(servers: str, config: Mapping[str, str], timeout_s: float, attempts: int) -> Cluster:
    """Connect to real brokers, with retries around what is asked of them. Raises KdeclareError."""
    from kdeclare.providers.kafka.client import connect  # most commands meet no cluster
    from kdeclare.providers.kafka.client.cluster import RetryingCluster, log_retry

    cluster = connect(servers, config, timeout_s=timeout_s)
    for diagnostic in cluster.diagnostics:
        _log.warning("%s", diagnostic.detail or diagnostic.summary)
    return RetryingCluster(cluster, RetryPolicy(attempts, on_retry=log_retry))


def find_servers(settings: KafkaSettings, surroundings: ConnectionContext) -> str | None:
    """Return the addresses that the command line or the environment names."""
    return surroundings.options.get(SERVERS_OPTION) or settings.bootstrap_servers


def read_client_properties(settings: KafkaSettings, surroundings: ConnectionContext) -> dict[str, str]:
    """Return the client properties of an environment, and over them those of the command line.

    Raises KdeclareError when a file cannot be read or a reference in it leads nowhere.
    """
    config = dict(settings.client_config)
    config_option = surroundings.options.get(CONFIG_OPTION)
    for file in (settings.client_config_file, Path(config_option) if config_option is not None else None):
        if file is not None:
            config |= read_client_config(file, surroundings.references, surroundings.environ)
    for name, value in config.items():
        if is_sensitive_key(name):
            SCRUBBER.register(value)
            for quoted in _QUOTED.findall(value):  # of a JAAS config, its password is what others repeat
                SCRUBBER.register(quoted)
    return config


def locate_cluster(settings: KafkaSettings, surroundings: ConnectionContext) -> KafkaTarget:
    """Return what leads to the cluster. Raises KdeclareError, also where nothing names one."""
    config = read_client_properties(settings, surroundings)
    servers = find_servers(settings, surroundings)
    if not (servers or config.get("bootstrap.servers")):
        raise KdeclareError(
            error(
                "no-bootstrap-server",
                "No cluster to connect to",
                f"Neither --bootstrap-server nor the environment '{surroundings.environment}' names one.",
                hint="Give --bootstrap-server HOST:PORT, or bootstrapServers in the project file. A project "
                "without Kafka names its own systems under 'providers' of the environment.",
            )
        )
    return KafkaTarget(servers or "", tuple(sorted(config.items())), surroundings.attempts or _ATTEMPTS)


def find_client_files(settings: KafkaSettings, options: Mapping[str, str]) -> Iterator[SettingsFile]:
    """Find the files of client properties, and the certificates that they name. Raises KdeclareError."""
    from kdeclare.providers.kafka.client import read_properties

    config_option = options.get(CONFIG_OPTION)
    property_sets = [dict(settings.client_config)]
    for file in (settings.client_config_file, Path(config_option) if config_option is not None else None):
        if file is not None and file.is_file():
            yield SettingsFile(file, holds_references=True)
            property_sets.append(read_properties(file))
    for properties in property_sets:
        for name, value in properties.items():
            if _STORE_LOCATIONS.fullmatch(name) and not Path(value).is_absolute():
                yield SettingsFile(Path(value))


def explain_fault(fault: Fault, name: str) -> Diagnostic | None:
    """Return what a cluster's refusal of a whole request means; None for what no broker answers."""
    from kdeclare.providers.kafka.client.faults import is_error_name

    if not is_error_name(fault.error):
        return None
    if fault.error.endswith("AUTHORIZATION_FAILED"):
        return error(
            "not-authorized",
            "Not permitted",
            f"{name} does not permit this: {fault.message or fault.error} ({fault.error}).",
            hint="Ask for the permission: reading wants Describe and DescribeConfigs on topics and cluster.",
        )
    if fault.error == QUOTA_EXCEEDED:
        return error(
            "quota-exceeded",
            "Mutation quota exceeded",
            f"{name}: {fault.message} ({fault.error}).",
            hint=QUOTA_HINT,
        )
    if fault.kind is not FaultKind.REFUSED:
        return error(
            "cluster-lost",
            "The cluster does not answer any more",
            f"{name}: {fault.message or fault.error} ({fault.error}).",
            hint="Look at its brokers; then kdeclare status says whether anything is left unfinished.",
        )
    return error(
        "refused-by-cluster",
        "The cluster refuses the request",
        f"{name}: {fault.message or 'no reason given'} ({fault.error}).",
    )


CONNECTION = ConnectionType(
    KafkaConnection,
    KafkaSettings,
    locate_cluster,
    environment_fields=frozenset({"bootstrapServers", "clientConfig", "clientConfigFile"}),
    is_always_needed=True,
    find_files=find_client_files,
    explain=explain_fault,
)
