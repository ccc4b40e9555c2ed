"""Convert the JSON responses of Connect's REST API to values, and its error responses to Faults.

Responses contain secrets that this process does not know: a worker resolves the placeholders of config
providers before it validates a config, and its messages quote the resolved values. This module replaces the
resolved values with the raw values.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, TypeAdapter

from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.core.secrets.scrubber import MIN_SECRET_LENGTH, SCRUBBED, SCRUBBER
from kdeclare.core.secrets.secret_refs import is_sensitive_key
from kdeclare.http.client import HttpResponse
from kdeclare.providers.connect.client.connectors_port import (
    CONNECTOR_EXISTS,
    CONNECTOR_MISSING,
    INVALID_CONNECTOR,
    NOT_STOPPED,
    SERVER_ERROR,
    TIMED_OUT,
    ClusterInfo,
    ConfigDefinition,
    ConfigValidation,
    ConnectorConfig,
    ConnectorOffset,
    ConnectorOffsets,
    LiveConnector,
    PluginClass,
    TaskStatus,
)
from kdeclare.providers.connect.client.port import BAD_ANSWER, LOST, NOT_AUTHORIZED, NOT_READY
from kdeclare.providers.connect.client.responses import (
    Response,
    parse_error_message,
    parse_response,
    shorten,
)
from kdeclare.providers.connect.worker_state import is_placeholder


def _drop_nulls(value: object) -> object:
    return (
        {key: item for key, item in value.items() if item is not None} if isinstance(value, dict) else value
    )


_Config = Annotated[dict[str, str], BeforeValidator(_drop_nulls)]
"""A config without null values.

Connect accepts null values when a connector is created, so its responses can contain them. They are dropped
when a response is parsed.
"""


class _Root(Response):
    version: str = ""
    commit: str = ""
    kafka_cluster_id: str


class _Info(Response):
    name: str
    config: _Config
    type: str | None = None


class _State(Response):
    state: str
    worker_id: str | None = None
    trace: str | None = None


class _Task(_State):
    id: int


class _Status(Response):
    connector: _State
    tasks: tuple[_Task, ...] = ()
    type: str | None = None


class _Expanded(Response):
    info: _Info
    status: _Status


class _Plugin(Response):
    class_: str
    type: str
    version: str | None = None

    model_config = Response.model_config | {"alias_generator": lambda name: name.rstrip("_")}


class _Definition(Response):
    name: str
    type: str
    required: bool = False


class _Value(Response):
    name: str
    value: str | None = None
    errors: tuple[str, ...] = ()


class _ValidatedKey(Response):
    definition: _Definition | None = None
    value: _Value


class _Validation(Response):
    configs: tuple[_ValidatedKey, ...]


class _Offset(Response):
    partition: dict[str, Any]
    offset: dict[str, Any] | None


class _Offsets(Response):
    offsets: tuple[_Offset, ...]


_ROOT = TypeAdapter(_Root)
_NAMES: TypeAdapter[tuple[str, ...]] = TypeAdapter(tuple[str, ...])
_INFO = TypeAdapter(_Info)
_STATUS = TypeAdapter(_Status)
_LIST: TypeAdapter[dict[str, _Expanded]] = TypeAdapter(dict[str, _Expanded])
_PLUGINS: TypeAdapter[tuple[_Plugin, ...]] = TypeAdapter(tuple[_Plugin, ...])
_VALIDATION = TypeAdapter(_Validation)
_OFFSETS = TypeAdapter(_Offsets)


def parse_cluster_info(body: bytes) -> ClusterInfo:
    """Parse the response to ``GET /``. Raises Fault."""
    root = parse_response(_ROOT, body)
    return ClusterInfo(root.version, root.kafka_cluster_id, root.commit)


def parse_names(body: bytes) -> tuple[str, ...]:
    """Parse the response to ``GET /connectors``. Raises Fault."""
    return parse_response(_NAMES, body)


def parse_list(body: bytes) -> Mapping[str, LiveConnector]:
    """Parse the response to ``GET /connectors?expand=info&expand=status``. Raises Fault."""
    expanded = parse_response(_LIST, body)
    return {name: _build_connector(one.info, one.status) for name, one in expanded.items()}


def parse_connector(info: bytes, status: bytes | None) -> LiveConnector:
    """Parse the responses to ``GET /connectors/{name}`` and ``GET …/status``. Raises Fault.

    status: None if the connector has no status yet.
    """
    return _build_connector(
        parse_response(_INFO, info), None if status is None else parse_response(_STATUS, status)
    )


def parse_plugins(body: bytes) -> tuple[PluginClass, ...]:
    """Parse the response to ``GET /connector-plugins``. Raises Fault."""
    return tuple(
        PluginClass(plugin.class_, plugin.type, plugin.version or "")
        for plugin in parse_response(_PLUGINS, body)
    )


def parse_validation(body: bytes, config: ConnectorConfig) -> ConfigValidation:
    """Parse the response to ``PUT …/config/validate``. The result omits the resolved values. Raises Fault.

    config: the config of the request.
    """
    keys = parse_response(_VALIDATION, body).configs
    resolved = {key.value.name: key.value.value for key in keys}
    errors = {
        key.value.name: tuple(
            shorten(hide_resolved(message, config, resolved, key.value.name)) for message in key.value.errors
        )
        for key in keys
        if key.value.errors
    }
    definitions = {
        key.definition.name: ConfigDefinition(
            key.definition.name, key.definition.type, key.definition.required
        )
        for key in keys
        if key.definition is not None
    }
    return ConfigValidation(errors, definitions)


def parse_offsets(body: bytes) -> ConnectorOffsets:
    """Parse the response to ``GET …/offsets``. Raises Fault."""
    return tuple(ConnectorOffset(one.partition, one.offset) for one in parse_response(_OFFSETS, body).offsets)


def dump_offsets(offsets: Iterable[ConnectorOffset]) -> dict[str, JsonValue]:
    """Return the request body of ``PATCH …/offsets``."""
    return {"offsets": [{"partition": one.partition, "offset": one.offset} for one in offsets]}


def has_placeholders(config: ConnectorConfig) -> bool:
    """Whether a value of the config contains a placeholder that workers resolve."""
    return any("${" in value for value in config.values())


_INVALID_VALUE = re.compile(r"Invalid value (.*?) for configuration ([^\s:]+)", re.DOTALL)
"""Matches the start of a ConfigException's message, which quotes the resolved value."""


def hide_resolved(
    message: str, config: ConnectorConfig, resolved: Mapping[str, str | None] | None = None, key: str = ""
) -> str:
    """Replace the resolved values in a message with the raw values of the config.

    resolved: the known resolved values, by key. Values that cannot be parsed are missing.
    key: the key that the message is about; empty if the key is not known.
    """
    placeholders = {name: raw for name, raw in config.items() if "${" in raw}
    if not placeholders:
        return message
    replacements: dict[str, str] = {}
    for name, raw in placeholders.items():
        value = (resolved or {}).get(name)
        # a short value may also be an ordinary word
        if value and (name == key or len(value) >= MIN_SECRET_LENGTH):
            replacements[value] = raw
    quoted = _INVALID_VALUE.findall(message)
    for value, name in quoted:
        if value and value != "null" and name not in config.keys() - placeholders.keys():
            # Connect validates the overrides of a client under the names that the client uses.
            override = next((key for key in placeholders if key.endswith(f".override.{name}")), name)
            replacements.setdefault(value, placeholders.get(override, SCRUBBED))
    if key in placeholders and not quoted and (resolved or {}).get(key) is None:
        return f"The worker rejects the value of {placeholders[key]}."  # the message may contain the value
    replacements = {value: raw for value, raw in replacements.items() if value != raw}
    if not replacements:
        return message
    longest_first = sorted(replacements, key=len, reverse=True)
    return re.sub("|".join(map(re.escape, longest_first)), lambda match: replacements[match[0]], message)


def _build_connector(info: _Info, status: _Status | None) -> LiveConnector:
    type_ = info.type or (status.type if status else None) or "unknown"
    if status is None:
        return LiveConnector(info.name, type_, info.config)
    return LiveConnector(
        info.name,
        type_,
        info.config,
        status.connector.state,
        status.connector.worker_id or "",
        _read_trace(status.connector.trace, info.config),
        tuple(
            TaskStatus(task.id, task.state, task.worker_id or "", _read_trace(task.trace, info.config))
            for task in sorted(status.tasks, key=lambda task: task.id)
        ),
    )


def _read_trace(trace: str | None, config: ConnectorConfig) -> str:
    """Return the first line of a stack trace, without the config's secrets, whether literal or resolved."""
    line = hide_resolved((trace or "").strip().partition("\n")[0].strip(), config)
    for key, value in config.items():
        if len(value) >= MIN_SECRET_LENGTH and is_sensitive_key(key) and not is_placeholder(value):
            line = line.replace(value, SCRUBBED)
    return shorten(SCRUBBER.scrub(line))


_REQUEST_TIMED_OUT = "Request timed out"
_NO_SUCH_PATH = "HTTP 404 Not Found"
"""Connect's message for an unknown path. Responses about missing connectors have other messages."""
_NOT_STOPPED = "must be in the STOPPED state"
_NO_EFFECT = re.compile(
    "can be safely retried"  # the offsets of a sink whose tasks have not left their consumer group yet
    # Workers check this first. The status depends on the endpoint; for some reads, it is 500, not 409.
    r"|a rebalance is expected"
    # The leader has just ended, so the worker could not forward the request.
    r"|IO Error trying to forward REST request: [\w.]*\b(Connect|NoRouteToHost|UnknownHost)Exception"
)
"""Matches the message of a 500 response if the request had no effect and a retry may succeed."""
_EXISTS = re.compile(r"Connector .* already exists", re.DOTALL)


def build_refusal_fault(response: HttpResponse, *, is_change: bool) -> Fault:
    """Return the Fault for an error response. `connectors_port` lists the codes."""
    status, connect_message = response.status, _tidy(parse_error_message(response.body))
    message = connect_message or f"HTTP {status} {response.reason}".strip()
    if status in (401, 403):
        return Fault(NOT_AUTHORIZED, message)
    if status < 500 and connect_message in ("", _NO_SUCH_PATH):
        # The response is not from a worker. Despite a 404, the connector may exist.
        return Fault(BAD_ANSWER, f"it does not serve Connect's REST API ({message})")
    if status == 404:
        return Fault(CONNECTOR_MISSING, message)
    if status == 409:
        if _EXISTS.search(message):
            return Fault(CONNECTOR_EXISTS, message)
        return Fault(NOT_READY, message, FaultKind.RETRIABLE)
    if status >= 500:
        if _NO_EFFECT.search(message):
            return Fault(NOT_READY, message, FaultKind.RETRIABLE)
        return Fault(
            _classify_server_error(status, connect_message),
            message,
            FaultKind.UNKNOWN if is_change else FaultKind.RETRIABLE,
        )
    return Fault(NOT_STOPPED if _NOT_STOPPED in message else INVALID_CONNECTOR, message)


def _classify_server_error(status: int, connect_message: str) -> str:
    if status != 500 or not connect_message:  # a proxy in front of the worker
        return LOST
    return TIMED_OUT if connect_message.startswith(_REQUEST_TIMED_OUT) else SERVER_ERROR


_EXCEPTION_NAMES = re.compile(r"\A(?:[\w$]+\.[\w.$]+(?:Exception|Error): )+")
_PLUGIN_DESCRIPTION = re.compile(r"PluginDesc\{klass=class ([^,]+), [^}]*\}")
_POINTER = "\nYou can also find the above list of errors at the endpoint"


def _tidy(message: str) -> str:
    """Remove the names of Java exceptions from a message, and shorten plugin details to the class name."""
    message = _EXCEPTION_NAMES.sub("", message.partition(_POINTER)[0])
    return _PLUGIN_DESCRIPTION.sub(r"\1", message)
