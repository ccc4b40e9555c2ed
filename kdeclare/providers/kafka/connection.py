"""Connect to a Kafka cluster.

Determine the addresses and client properties, and resolve secret references.
"""

import logging
import re
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
from kdeclare.core.secrets.secret_command import SecretCommandError, run_secret_command
from kdeclare.core.secrets.secret_refs import is_sensitive_key
from kdeclare.providers.kafka.error_names import QUOTA_EXCEEDED, QUOTA_HINT
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.property_names import TOKEN_COMMAND_KEY

_REFERENCE = re.compile(r"\$\{(env|file|command)\.([^{}]+)\}")
"""A reference that kdeclare resolves. Any other ``${…}`` is a Kafka placeholder or part of a password."""
_UNFINISHED_REFERENCE = re.compile(r"\$\{(env|file|command)\.")
_JAAS = "sasl.jaas.config"


def read_client_config(file: Path, references: References, environ: Mapping[str, str]) -> dict[str, str]:
    """Read a client properties file and resolve its references. Paths are relative to the folder of the file.

    environ: the environment variables for the commands of ``${command.…}`` references.

    Raises KdeclareError if the file cannot be read or a reference cannot be resolved. Messages do not contain
    resolved values.
    """
    from kdeclare.providers.kafka.client import read_properties  # Most commands do not connect to a cluster.

    resolver = _ReferenceResolver(file, references, environ)
    properties = read_properties(file)
    if "${" in properties.get(TOKEN_COMMAND_KEY, ""):
        raise KdeclareError(
            error(
                "client-properties",
                "Client property cannot be used",
                f"{file}, {TOKEN_COMMAND_KEY}: the command contains a reference, but all users of a machine "
                "can see the arguments of a command.",
                hint="Put the command into a script that reads the secret. The script inherits the "
                "environment variables of kdeclare.",
            )
        )
    return {name: resolver.value(name, value) for name, value in properties.items()}


class _ReferenceResolver:
    def __init__(self, file: Path, references: References, environ: Mapping[str, str]) -> None:
        self._file = file
        self._references = references
        self._environ = environ

    def value(self, name: str, text: str) -> str:
        """Return a property value with its references resolved."""

        def one(match: re.Match[str]) -> str:
            found = self._resolve_reference(name, match)
            # A JAAS value is quoted, so quotes and backslashes in the secret must be escaped
            return re.sub(r'(["\'\\])', r"\\\1", found) if name == _JAAS else found

        if left := _UNFINISHED_REFERENCE.search(_REFERENCE.sub("", text)):  # fail before any command runs
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
                "Check the path. It is relative to the folder of the client properties file."
                if match[1] == "file"
                else diagnostic.hint
            )
            detail = f"{self._file}, {name}: {diagnostic.detail}"
            raise KdeclareError(replace(diagnostic, detail=detail, hint=hint)) from None


def _run_command(line: str, environ: Mapping[str, str]) -> str:
    """Return the output of a command without the last newline. The command inherits stderr."""
    try:
        return run_secret_command(line, environ).removesuffix("\n").removesuffix("\r")
    except SecretCommandError as problem:
        raise KdeclareError(_report_failed_command(line, str(problem))) from problem


def _report_bad_reference(location: str, scheme: str) -> Diagnostic:
    """Report a malformed reference, which would otherwise be sent to the server as a literal password."""
    return error(
        "bad-reference",
        "Malformed reference",
        f"{location}: the reference that starts with '${{{scheme}.' is not closed, is empty, or contains "
        "braces.",
        hint="Close the reference with '}'. If the command itself contains braces, put it into a script."
        if scheme == "command"
        else f"Write ${{{scheme}.NAME}}, with a closing brace and with a name that contains no braces.",
    )


def _report_failed_command(line: str, reason: str) -> Diagnostic:
    return error(
        "command-failed",
        "Secret command failed",
        f"'${{command.{line}}}' failed: {reason}.",
        hint="Run the command in a terminal to see why it fails. kdeclare runs the command without a shell, "
        "so shell syntax such as pipes does not work.",
    )


_log = logging.getLogger(__name__)

_ATTEMPTS = 6
_QUOTED = re.compile(r'(?:password|secret|token)\w*\s*=\s*"((?:[^"\\]|\\.)*)"', re.IGNORECASE)

_STORE_LOCATIONS = re.compile(r"ssl\.(truststore|keystore)\.location")

SERVERS_OPTION = "bootstrap-server"
CONFIG_OPTION = "command-config"
"""The command-line option for a client properties file."""


class KafkaSettings(BaseModel):
    """The cluster settings of an environment. The path of the client properties file is already resolved."""

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
    """The address of a cluster and the client properties for connecting to it.

    servers: the broker addresses; empty if the property ``bootstrap.servers`` contains them.
    """

    servers: str
    config: tuple[tuple[str, str], ...] = field(repr=False)
    attempts: int = _ATTEMPTS

    def open(self, timeout_s: float) -> KafkaConnection:
        """See `Target`."""
        return KafkaConnection(connect_cluster(self.servers, dict(self.config), timeout_s, self.attempts))


def connect_cluster(servers: str, config: Mapping[str, str], timeout_s: float, attempts: int) -> Cluster:
    """Connect to real brokers and retry failed requests. Raises KdeclareError."""
    from kdeclare.providers.kafka.client import connect  # Most commands do not connect to a cluster.
    from kdeclare.providers.kafka.client.retrying_cluster import RetryingCluster, log_retry

    cluster = connect(servers, config, timeout_s=timeout_s)
    for diagnostic in cluster.diagnostics:
        _log.warning("%s", diagnostic.detail or diagnostic.summary)
    return RetryingCluster(cluster, RetryPolicy(attempts, on_retry=log_retry))


def find_servers(settings: KafkaSettings, surroundings: ConnectionContext) -> str | None:
    """Return the bootstrap addresses from the command line or, if not set, from the environment."""
    return surroundings.options.get(SERVERS_OPTION) or settings.bootstrap_servers


def read_client_properties(settings: KafkaSettings, surroundings: ConnectionContext) -> dict[str, str]:
    """Return the client properties of an environment. Properties from the command line take precedence.

    Raises KdeclareError if a file cannot be read or a reference in it cannot be resolved.
    """
    config = dict(settings.client_config)
    if TOKEN_COMMAND_KEY in config:
        raise KdeclareError(
            error(
                "client-properties",
                "Client property cannot be used",
                f"The project file sets {TOKEN_COMMAND_KEY}, which is allowed only in client properties "
                "files: every user who can change the project file could run commands on this machine.",
                hint="Move the property to a client properties file, and set clientConfigFile or pass "
                "--command-config.",
            )
        )
    config_option = surroundings.options.get(CONFIG_OPTION)
    for file in (settings.client_config_file, Path(config_option) if config_option is not None else None):
        if file is not None:
            config |= read_client_config(file, surroundings.references, surroundings.environ)
    for name, value in config.items():
        if is_sensitive_key(name):
            SCRUBBER.register(value)
            # an error message can contain the password without the rest of the value
            for quoted in _QUOTED.findall(value):
                SCRUBBER.register(quoted)
    return config


def locate_cluster(settings: KafkaSettings, surroundings: ConnectionContext) -> KafkaTarget:
    """Return the address and the client properties.

    Raises KdeclareError, for example if there is no address.
    """
    config = read_client_properties(settings, surroundings)
    servers = find_servers(settings, surroundings)
    if not (servers or config.get("bootstrap.servers")):
        raise KdeclareError(
            error(
                "no-bootstrap-server",
                "No cluster to connect to",
                f"Neither --bootstrap-server nor the environment '{surroundings.environment}' names a Kafka "
                "cluster.",
                hint="Pass --bootstrap-server HOST:PORT, or set bootstrapServers in the project file. If "
                "the project does not use Kafka, list its systems under 'providers' of the environment.",
            )
        )
    return KafkaTarget(servers or "", tuple(sorted(config.items())), surroundings.attempts or _ATTEMPTS)


def find_client_files(settings: KafkaSettings, options: Mapping[str, str]) -> Iterator[SettingsFile]:
    """Yield the client properties files, and the keystore and truststore files that they name.

    Raises KdeclareError.
    """
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
    """Return a diagnostic for a failed Kafka request, or None if the fault is not a Kafka error."""
    from kdeclare.providers.kafka.client.faults import is_error_name

    if not is_error_name(fault.error):
        return None
    if fault.error.endswith("AUTHORIZATION_FAILED"):
        return error(
            "not-authorized",
            "Not authorized",
            f"{name} does not permit this request: {fault.message or fault.error} ({fault.error}).",
            hint="Grant kdeclare the missing permission. Reading requires Describe and DescribeConfigs on "
            "the topics, on the groups and on the cluster.",
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
            "Cluster stopped responding",
            f"{name}: {fault.message or fault.error} ({fault.error}).",
            hint="Check that the brokers are running. Then run kdeclare status to see whether a run is "
            "unfinished.",
        )
    return error(
        "refused-by-cluster",
        "Cluster refused the request",
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
