"""`RestConnectCluster`, which implements `ConnectCluster` over HTTP and HTTPS."""

import json
from collections.abc import Mapping
from urllib.parse import quote

from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.faults import Fault
from kdeclare.http.client import MAX_RESPONSE_BYTES, HttpClient, Method, open_http_client
from kdeclare.http.target import HttpTarget
from kdeclare.providers.connect.client import connector_responses as responses
from kdeclare.providers.connect.client.connectors_port import (
    CONNECTOR_MISSING,
    INVALID_CONNECTOR,
    SERVER_ERROR,
    TIMED_OUT,
    ClusterInfo,
    ConfigValidation,
    ConnectorConfig,
    ConnectorOffsets,
    LiveConnector,
    PluginClass,
    TargetState,
    is_addressable,
)
from kdeclare.providers.connect.client.port import BAD_ANSWER, LOST, NOT_TRUSTED, UNREACHABLE, format_fault
from kdeclare.providers.connect.client.rest import CODES

_SLOW_S = 95.0
"""The time limit of changes and validations, in seconds.

Workers give up after 90 seconds, and their response then explains what they were waiting for.
"""
_MAX_LIST_BYTES = 64 << 20
"""The maximum size of responses about all connectors, in bytes. Each connector takes a few kilobytes."""
_ACTIONS: Mapping[TargetState, str] = {
    TargetState.RUNNING: "resume",
    TargetState.PAUSED: "pause",
    TargetState.STOPPED: "stop",
}
_NOT_SENT = frozenset({UNREACHABLE})
_NO_RESPONSE = frozenset({UNREACHABLE, LOST, TIMED_OUT, SERVER_ERROR})
_ABOUT_WORKER = frozenset({UNREACHABLE, NOT_TRUSTED, LOST, TIMED_OUT, BAD_ANSWER})
"""The codes of faults that concern a single worker. The messages of these faults name the worker's URL."""


def open_rest_cluster(target: HttpTarget, timeout_s: float = 10.0) -> "RestConnectCluster":
    """Return the Connect cluster of an endpoint without sending a request. Raises KdeclareError.

    timeout_s: how long to wait for the response to a read request, in seconds.
    """
    return RestConnectCluster(target.urls, open_http_client(target, timeout_s, CODES, keeps_connections=True))


class RestConnectCluster:
    """A Connect cluster, accessed through any of its workers. `open_rest_cluster` creates instances."""

    def __init__(self, urls: tuple[str, ...], client: HttpClient) -> None:
        """Create the object without connecting to a worker. urls: the URLs of the workers, at least one."""
        self._urls = urls
        self._client = client
        # The first worker to try. Without it, every request would first wait for a worker that is down. Any
        # thread may set this attribute at any time.
        self._preferred_url = urls[0]

    def identify(self) -> ClusterInfo:
        """See `ConnectCluster.identify`."""
        return responses.parse_cluster_info(self._read("/"))

    def list_connectors(self) -> Mapping[str, LiveConnector]:
        """See `ConnectCluster.list_connectors`."""
        listed = dict(
            responses.parse_list(
                self._read("/connectors?expand=info&expand=status", max_bytes=_MAX_LIST_BYTES)
            )
        )
        for name in responses.parse_names(self._read("/connectors", max_bytes=_MAX_LIST_BYTES)):
            if name not in listed and is_addressable(name):
                connector = self.describe_connector(name)
                if connector is not None:
                    listed[name] = connector
        return listed

    def describe_connector(self, name: str) -> LiveConnector | None:
        """See `ConnectCluster.describe_connector`."""
        info = self._read_unless_missing(_build_path(name))
        if info is None:
            return None
        return responses.parse_connector(info, self._read_unless_missing(_build_path(name, "/status")))

    def list_plugins(self) -> tuple[PluginClass, ...]:
        """See `ConnectCluster.list_plugins`."""
        return responses.parse_plugins(self._read("/connector-plugins"))

    def validate_config(self, name: str, config: ConnectorConfig) -> ConfigValidation:
        """See `ConnectCluster.validate_config`."""
        class_ = config.get("connector.class")
        if not class_:
            raise Fault(INVALID_CONNECTOR, "The config has no connector.class.")
        path = f"/connector-plugins/{_quote(class_)}/config/validate"
        try:
            body = self._send("PUT", path, {**config, "name": name}, is_change=False)
        except Fault as fault:
            if fault.error not in (SERVER_ERROR, INVALID_CONNECTOR):
                raise
            raise Fault(INVALID_CONNECTOR, responses.hide_resolved(fault.message, config)) from None
        return responses.parse_validation(body, config)

    def create_connector(
        self, name: str, config: ConnectorConfig, initial_state: TargetState | None = None
    ) -> None:
        """See `ConnectCluster.create_connector`."""
        _build_path(name)
        request: dict[str, JsonValue] = {"name": name, "config": {**config, "name": name}}
        if initial_state is not None:
            request["initial_state"] = initial_state.value
        self._send_config("POST", "/connectors", request, name, config)

    def replace_config(self, name: str, config: ConnectorConfig) -> bool:
        """See `ConnectCluster.replace_config`."""
        path = _build_path(name, "/config")
        return self._send_config("PUT", path, {**config, "name": name}, name, config) == 201

    def set_state(self, name: str, state: TargetState) -> None:
        """See `ConnectCluster.set_state`."""
        self._send("PUT", _build_path(name, f"/{_ACTIONS[state]}"))

    def restart_connector(self, name: str, *, include_tasks: bool, only_failed: bool) -> None:
        """See `ConnectCluster.restart_connector`."""
        query = f"includeTasks={str(include_tasks).lower()}&onlyFailed={str(only_failed).lower()}"
        self._send("POST", _build_path(name, f"/restart?{query}"))

    def delete_connector(self, name: str) -> None:
        """See `ConnectCluster.delete_connector`."""
        self._send("DELETE", _build_path(name))

    def read_offsets(self, name: str) -> ConnectorOffsets:
        """See `ConnectCluster.read_offsets`."""
        return responses.parse_offsets(self._read(_build_path(name, "/offsets"), max_bytes=_MAX_LIST_BYTES))

    def alter_offsets(self, name: str, offsets: ConnectorOffsets) -> None:
        """See `ConnectCluster.alter_offsets`."""
        self._send("PATCH", _build_path(name, "/offsets"), responses.dump_offsets(offsets))

    def delete_offsets(self, name: str) -> None:
        """See `ConnectCluster.delete_offsets`."""
        self._send("DELETE", _build_path(name, "/offsets"))

    def close(self) -> None:
        """See `ConnectCluster.close`."""
        self._client.close()

    def _read(self, path: str, *, max_bytes: int = MAX_RESPONSE_BYTES) -> bytes:
        return self._exchange("GET", path, None, is_change=False, max_bytes=max_bytes)[1]

    def _read_unless_missing(self, path: str) -> bytes | None:
        try:
            return self._read(path)
        except Fault as fault:
            if fault.error == CONNECTOR_MISSING:
                return None
            raise

    def _send(
        self,
        method: Method,
        path: str,
        body: Mapping[str, JsonValue] | None = None,
        *,
        is_change: bool = True,
    ) -> bytes:
        return self._exchange(method, path, body, is_change=is_change)[1]

    def _send_config(
        self,
        method: Method,
        path: str,
        body: Mapping[str, JsonValue],
        name: str,
        config: ConnectorConfig,
    ) -> int:
        """Send a request with a config, and return the status of the response.

        Error messages can quote resolved values. After a rejection, this function has Connect validate the
        config: a validation reports each resolved value with its key, so that the value can be replaced. The
        validation also shows whether the config caused a 500.
        """
        try:
            return self._exchange(method, path, body, is_change=True)[0]
        except Fault as fault:
            if fault.error not in (SERVER_ERROR, INVALID_CONNECTOR):
                raise
            rejection = Fault(fault.error, responses.hide_resolved(fault.message, config), fault.kind)
        if rejection.error == SERVER_ERROR or responses.has_placeholders(config):
            errors = self._find_errors(name, config)
            is_certain = rejection.error == INVALID_CONNECTOR or any(e in rejection.message for e in errors)
            if errors and is_certain:
                raise Fault(INVALID_CONNECTOR, "\n".join(errors))
        raise rejection

    def _find_errors(self, name: str, config: ConnectorConfig) -> list[str]:
        """Validate a config, and return the error messages.

        Return no messages if the config cannot be validated.
        """
        try:
            validation = self.validate_config(name, config)
        except Fault as fault:
            return [fault.message] if fault.error == INVALID_CONNECTOR else []
        return [message for messages in validation.errors.values() for message in messages]

    def _exchange(
        self,
        method: Method,
        path: str,
        body: Mapping[str, JsonValue] | None,
        *,
        is_change: bool,
        max_bytes: int = MAX_RESPONSE_BYTES,
    ) -> tuple[int, bytes]:
        """Send a request to one worker after another until one responds.

        Return the status and body of the response. If a worker cannot be reached, or does not respond to a
        read, the next worker gets the request.
        """
        content = None if body is None else json.dumps(body).encode()
        passed_on = _NO_RESPONSE if method == "GET" else _NOT_SENT
        last_fault = Fault(UNREACHABLE, "The endpoint has no URL.")
        for url in sorted(self._urls, key=lambda url: url != self._preferred_url):
            try:
                response = self._client.send(
                    method,
                    url + path,
                    content,
                    is_change=is_change,
                    timeout_s=None if method == "GET" else _SLOW_S,
                    max_bytes=max_bytes,
                )
                if response.is_success:
                    self._preferred_url = url
                    return response.status, response.body
                raise responses.build_refusal_fault(response, is_change=is_change)
            except Fault as fault:
                last_fault = fault
                if fault.error in _ABOUT_WORKER:
                    last_fault = Fault(fault.error, f"{url}: {format_fault(fault)}.", fault.kind)
                if fault.error not in passed_on:
                    raise last_fault from None
        raise last_fault


def _build_path(name: str, suffix: str = "") -> str:
    """Return the path of a connector. Raises Fault if Connect's REST API cannot address the name."""
    if not is_addressable(name):
        raise Fault(INVALID_CONNECTOR, f"Connect's REST API cannot address a connector named '{name}'.")
    return f"/connectors/{_quote(name)}{suffix}"


def _quote(segment: str) -> str:
    return quote(segment, safe="")
