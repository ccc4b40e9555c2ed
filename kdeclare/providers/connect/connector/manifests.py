"""Write manifests for live connectors, and edit manifests so that they match a change."""

import hashlib
import re
from collections.abc import Collection, Iterator, Sequence

from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.faults import Fault
from kdeclare.core.parts import Connections
from kdeclare.core.resources.changes import Change, FieldChange
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import SpecPath
from kdeclare.core.resources.manifest_capabilities import (
    Export,
    ExportRequest,
    FieldEdit,
    ManifestEdits,
    OmittedObjects,
    SettingEdit,
    ValueEdit,
)
from kdeclare.core.resources.manifest_text import render_manifest, scalar
from kdeclare.core.resources.objects.manifest_text import format_variable
from kdeclare.core.secrets.secret_refs import SENSITIVE_MASK
from kdeclare.providers.connect.client.connectors_port import ConnectCluster, LiveConnector
from kdeclare.providers.connect.connection import ConnectClients
from kdeclare.providers.connect.connector.collector import read_password_keys
from kdeclare.providers.connect.connector.diff import TASKS_PATH
from kdeclare.providers.connect.connector.settings import (
    CLASS,
    CONFIG_FIELD_PREFIX,
    CONNECTOR,
    FIELD_KEYS,
    STATE_PATH,
    TASKS_MAX,
    find_key,
    find_path,
    is_hidden,
    is_masked,
    to_shown_value,
)
from kdeclare.providers.connect.connector.spec import bind_state
from kdeclare.providers.connect.connector.status import describe_fault, find_target_state

_ESCAPED_PLACEHOLDER = re.compile(r"\$\$(\{[^{}]*:[^{}]*\})")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9._-]{1,80}")


def export_connectors(connections: Connections, request: ExportRequest) -> Export:
    """Return a manifest for each connector of the environment's Connect clusters.

    Sensitive values become references to environment variables. A Connect cluster that does not respond is
    left out.
    """
    clients = connections.get(ConnectClients)
    manifests: dict[str, str] = {}
    left_out: list[OmittedObjects] = []
    out_of_scope_count = 0
    has_one_endpoint = len(clients.clusters) == 1
    for endpoint in sorted(clients.clusters):
        cluster = clients.open_cluster(endpoint)
        try:
            connectors = cluster.list_connectors()
        except Fault as fault:
            reason = f"connect/{endpoint} did not respond: {describe_fault(fault)}"
            left_out.append(OmittedObjects(1, "Connect cluster", "Connect clusters", reason))
            continue
        for connector in connectors.values():
            if not request.matches(connector.name):
                continue
            name = _make_manifest_name(connector.name, endpoint, manifests)
            if not request.permits(ResourceId(CONNECTOR, name)):
                out_of_scope_count += 1
                continue
            shown_endpoint = None if has_one_endpoint else endpoint
            manifests[name] = _render_manifest(name, shown_endpoint, connector, cluster)
    out_of_scope = OmittedObjects(
        out_of_scope_count, "connector", "connectors", "outside the scope of the project"
    )
    return Export(manifests, (out_of_scope, *left_out))


def _make_manifest_name(connector: str, endpoint: str, taken: Collection[str]) -> str:
    """Return the name of a manifest: the name of the connector, made unique and printable."""
    if _PLAIN_NAME.fullmatch(connector):
        name = connector
    else:
        digest = hashlib.sha256(connector.encode()).hexdigest()[:8]
        name = f"{re.sub(r'[^A-Za-z0-9._-]+', '-', connector).strip('-')[:60]}-{digest}"
    return f"{name}-{endpoint}" if name in taken else name


def _render_manifest(
    name: str, endpoint: str | None, connector: LiveConnector, cluster: ConnectCluster
) -> str:
    class_name = connector.config.get(CLASS, "")
    password_keys = read_password_keys(cluster, class_name) if class_name else frozenset[str]()
    lines = [f"connect: {scalar(endpoint, text=True)}"] if endpoint is not None else []
    if connector.name != name:
        lines.append(f"name: {scalar(connector.name, text=True)}")
    lines.append(f"class: {scalar(class_name)}")
    tasks_max = to_shown_value(TASKS_MAX, connector.config.get(TASKS_MAX))
    if isinstance(tasks_max, int):
        lines.append(f"tasksMax: {tasks_max}")
    settings = [
        line
        for key, text in sorted(connector.config.items())
        if key not in FIELD_KEYS
        for line in _render_setting(name, key, text, password_keys)
    ]
    lines += ["config:", *settings] if settings else []
    state = bind_state(find_target_state(connector))
    if state is not None:
        lines.append(f"state: {state}")
    has_references = any("${env." in line for line in settings)
    hint = "Put each secret into the environment variable that its reference names, or replace the reference."
    comments = [hint] if has_references else []
    return render_manifest(CONNECTOR, name, lines, comments)


def _render_setting(name: str, key: str, text: str, password_keys: frozenset[str]) -> Iterator[str]:
    if is_masked(text) or is_hidden(key, text, password_keys):
        yield f"  {scalar(key)}: {format_variable(name, key)}"
    else:
        yield f"  {scalar(key)}: {_format_text(text)}"


def _format_text(text: str) -> str:
    """Return a YAML scalar.

    Connect's placeholders are not escaped, because kdeclare does not resolve them.
    """
    return _ESCAPED_PLACEHOLDER.sub(r"$\1", scalar(text))


def find_connector_edits(change: Change) -> ManifestEdits:
    """Return the edits that make the manifest of a connector match a change.

    A restart of failed tasks changes nothing that a manifest declares.
    """
    edits: list[FieldEdit] = []
    for field in change.fields:
        key = find_key(field.path)
        if field.path == TASKS_PATH:
            continue
        if key is not None and key not in FIELD_KEYS:
            edits.append(SettingEdit(("config", key), (field,)))
        else:
            edits.append(ValueEdit((field.path,), _to_plain(field)))
    return ManifestEdits(tuple(edits))


def _to_plain(field: FieldChange) -> str | int | None:
    return field.after if isinstance(field.after, str | int) else None


def render_connector_lines(change: Change) -> Sequence[str]:
    """Return the lines of the spec for the manifest of a new connector."""
    values = {field.path: field.after for field in change.fields if field.after is not None}
    lines = [
        f"{path}: {values[path]}"
        for path in (find_path(CLASS), find_path(TASKS_MAX), STATE_PATH)
        if path in values
    ]
    config = {
        path.removeprefix(CONFIG_FIELD_PREFIX): value
        for path, value in values.items()
        if path.startswith(CONFIG_FIELD_PREFIX)
    }
    settings = [
        f"  {scalar(key)}: {format_variable(change.id.name, key)}"
        if value == SENSITIVE_MASK
        else f"  {scalar(key)}: {_format_text(str(value))}"
        for key, value in config.items()
    ]
    return [*lines, "config:", *settings] if settings else lines


def is_same_value(path: SpecPath, text: str, value: JsonValue) -> bool:
    """Whether a string in a manifest is equivalent to a value in a change."""
    return text == str(value)
