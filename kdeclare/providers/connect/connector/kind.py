"""The kind `Connector`: a connector of a Connect cluster, with its whole config and its state."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from pydantic import BaseModel

from kdeclare.core.jsontypes import JsonObject, JsonValue
from kdeclare.core.live.collector import Selections
from kdeclare.core.live.live_codec import LiveKey
from kdeclare.core.operations.footprint import Access, Footprint, FootprintEntry
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections, LiveState, PlanContext
from kdeclare.core.policies.policy_fields import PolicyField, PolicyWords
from kdeclare.core.resources.changes import Action, Change, FieldChange
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import (
    DesiredResource,
    Difference,
    SpecPath,
    SpecProblem,
    narrow,
    narrow_optional,
)
from kdeclare.core.resources.manifest_capabilities import (
    DeclaredFields,
    Export,
    ExportRequest,
    ManifestEdits,
)
from kdeclare.core.resources.owned_record import OwnedRecord, merge_fields, narrow_record
from kdeclare.core.secrets.secret_refs import SENSITIVE_MASK, Secret
from kdeclare.providers.connect.client.connectors_port import LiveConnector
from kdeclare.providers.connect.connection import ConnectClients
from kdeclare.providers.connect.connector.arguments import (
    ConfigureConnectorArgs,
    CreateConnectorArgs,
    DeleteConnectorArgs,
    SetStateArgs,
)
from kdeclare.providers.connect.connector.diff import assess_connector_field, diff_connector
from kdeclare.providers.connect.connector.fleet import make_live_key
from kdeclare.providers.connect.connector.live import ConnectorKey, ConnectorSelection, ConnectorState
from kdeclare.providers.connect.connector.manifests import (
    export_connectors,
    find_connector_edits,
    is_same_value,
    render_connector_lines,
)
from kdeclare.providers.connect.connector.plan_operations import build_connector_operations
from kdeclare.providers.connect.connector.record import (
    ConnectorRecord,
    build_absent_record,
    ignore_fields,
)
from kdeclare.providers.connect.connector.settings import (
    CLASS,
    CONNECTOR,
    FIELD_KEYS,
    TASKS_MAX,
    find_key,
    find_path,
    redact_config,
    to_shown_value,
)
from kdeclare.providers.connect.connector.spec import (
    ConnectorBody,
    ConnectorSpec,
    bind_connector,
    bind_state,
    dump_connector,
    parse_connector,
)
from kdeclare.providers.connect.connector.status import find_target_state
from kdeclare.providers.connect.connector.topics import TOPIC, list_topics

CONNECTOR_WORDS = PolicyWords(
    {
        "class": PolicyField(str),
        "tasksMax": PolicyField(int, nullable=True),
        "config": PolicyField(dict[str, str]),
        "state": PolicyField(str, nullable=True),
    },
    subject="connector",
)


class ConnectorKind:
    """The kind `Connector`."""

    name = CONNECTOR
    spec: type[BaseModel] = ConnectorSpec
    record: type[OwnedRecord] = ConnectorRecord
    policy_words: PolicyWords = CONNECTOR_WORDS
    individual_fields: frozenset[str] = frozenset({"connect", "name"})
    deletion_cause = "The connector no longer transfers records."

    def parse(self, name: str, spec: BaseModel) -> tuple[ConnectorBody, tuple[SpecProblem, ...]]:
        """See `Kind`."""
        return parse_connector(name, narrow(spec, ConnectorSpec))

    def select(self, name: str, body: object | None, owned: OwnedRecord | None) -> Selections:
        """Select the declared and the owned connector."""
        keys: set[ConnectorKey] = set()
        classes: set[tuple[ConnectorKey, str]] = set()
        record = narrow_record(owned, ConnectorRecord)
        if record is not None:
            keys.add(ConnectorKey(record.endpoint, record.connector))
        if body is not None:
            declared = narrow(body, ConnectorBody)
            key = ConnectorKey(declared.endpoint, declared.name)
            keys.add(key)
            if not declared.is_partial:
                classes.add((key, declared.class_name))
        return (ConnectorSelection(frozenset(keys), classes=frozenset(classes)),)

    def diff(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> Difference:
        """See `Kind`."""
        state, record = live.get(ConnectorState), narrow_record(owned, ConnectorRecord)
        return diff_connector(resource, desired, state, record)

    def ignore_fields(
        self, desired: DesiredResource, live: LiveState, owned: OwnedRecord | None
    ) -> ConnectorBody:
        """See `IgnoresChanges`."""
        return ignore_fields(desired.get_body(ConnectorBody), live.get(ConnectorState))

    def build_absent_record(
        self, desired: DesiredResource, live: LiveState, owned: OwnedRecord | None
    ) -> OwnedRecord | None:
        """See `DeletesByRecord`."""
        body, record = desired.get_body(ConnectorBody), narrow_record(owned, ConnectorRecord)
        return build_absent_record(body, live.get(ConnectorState), record, desired.labels)

    def plan_operations(
        self,
        change: Change,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> tuple[Operation, ...]:
        """See `Kind`."""
        body = desired.get_body(ConnectorBody) if desired is not None else None
        record = narrow_record(owned, ConnectorRecord)
        return build_connector_operations(change, body, live.get(ConnectorState), record)

    def merge_ownership(
        self,
        before: OwnedRecord | None,
        after: OwnedRecord | None,
        done: tuple[Operation, ...],
        all_done: bool,
    ) -> OwnedRecord | None:
        """See `Kind`."""
        if all_done or not done:
            return after if all_done else before
        if any(isinstance(op.args, CreateConnectorArgs | DeleteConnectorArgs) for op in done):
            return after
        old, new = narrow_record(before, ConnectorRecord), narrow_record(after, ConnectorRecord)
        if new is None:
            return old  # only the operations that prepare the deletion are done
        keys = {key for op in done if isinstance(op.args, ConfigureConnectorArgs) for key in op.args.keys}
        has_new_state = any(isinstance(op.args, SetStateArgs) for op in done)
        old_config, old_state = (old.config, old.state) if old is not None else ({}, None)
        config = merge_fields(old_config, new.config, keys)
        return replace(new, config=config, state=new.state if has_new_state else old_state)

    def assess_field(self, action: Action, field: FieldChange) -> FieldChange:
        """See `AssessesRisks`."""
        return assess_connector_field(field)

    def list_mentions(self, body: object) -> Footprint:
        """See `MentionsObjects`. Topics that match ``topics.regex`` are left out."""
        names = sorted(list_topics(narrow(body, ConnectorBody).config))
        return [FootprintEntry(TOPIC, name, Access.MENTIONS) for name in names]

    def list_exclusive_settings(self, name: str, body: object) -> Mapping[str, JsonValue]:
        """Return the connector as an exclusive setting: only one manifest can declare it."""
        declared = narrow(body, ConnectorBody)
        endpoint = declared.endpoint or "the Connect cluster of the environment"
        return {
            f"the manifest that declares the connector {declared.name} of {endpoint}": f"{CONNECTOR}/{name}"
        }

    def describe_declared(self, desired: DesiredResource) -> Mapping[str, object]:
        """Return the declared fields. Secrets are masked."""
        body = desired.get_body(ConnectorBody)
        config = {key: SENSITIVE_MASK if isinstance(v, Secret) else v for key, v in body.config.items()}
        fields = {"class": body.class_name, "tasksMax": body.tasks_max, "config": config, "state": body.state}
        return {name: value for name, value in fields.items() if value is not None}

    def describe_live(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
    ) -> Mapping[str, object] | None:
        """Return the fields of the live connector; None if it does not exist. Secrets are masked."""
        record = narrow_record(owned, ConnectorRecord)
        body = desired.get_body(ConnectorBody) if desired is not None else None
        if body is None and record is None:
            return None
        endpoint = body.endpoint if body is not None else record.endpoint if record is not None else None
        connector_name = body.name if body is not None else record.connector if record is not None else ""
        cluster = live.get(ConnectorState).get_cluster(endpoint)
        connector = cluster.find(connector_name)
        if connector is None:
            return None
        password_keys = cluster.find_password_keys(connector.config.get(CLASS, ""))
        return _describe_connector(connector, password_keys)

    def is_self_contained(self, name: str, body: object) -> bool:
        """Whether the manifest names the Connect cluster.

        If it does not, the key of the live connector can be determined only with the environment.
        """
        return narrow(body, ConnectorBody).endpoint is not None

    def find_live_key(self, name: str, body: object | None, owned: OwnedRecord | None) -> LiveKey | None:
        """Return the key of the owned or the declared connector; None if its Connect cluster is unknown."""
        record = narrow_record(owned, ConnectorRecord)
        if record is not None:
            return make_live_key(record.endpoint, record.connector)
        declared = narrow_optional(body, ConnectorBody)
        if declared is None or declared.endpoint is None:
            return None
        return make_live_key(declared.endpoint, declared.name)

    def to_json(self, name: str, body: object) -> JsonObject:
        """See `BodyCodec`."""
        return dump_connector(narrow(body, ConnectorBody))

    def from_json(self, json: JsonObject) -> ConnectorBody:
        """See `BodyCodec`."""
        return bind_connector(json)

    def locate_secret(self, path: SpecPath) -> SpecPath | None:
        """Return the path in the spec, which is the same as the path in the body."""
        return path

    def is_field_claimed(self, field: FieldChange, stated: JsonObject) -> bool:
        """See `ClaimsFields`.

        A manifest with a ``config`` claims all config keys, even keys that it does not declare.
        """
        if find_key(field.path) is not None:
            return "config" in stated
        return stated.get(field.path) is not None

    def export(self, connections: Connections, request: ExportRequest) -> Export:
        """See `Exportable`."""
        return export_connectors(connections, request)

    def list_names(self, connections: Connections) -> Sequence[str]:
        """Return the names of all connectors. Raises Fault."""
        clients = connections.get(ConnectClients)
        names: Collection[str] = {
            name for endpoint in clients.clusters for name in clients.open_cluster(endpoint).list_connectors()
        }
        return sorted(names)

    def find_edits(self, change: Change, declared: DeclaredFields) -> ManifestEdits:
        """See `Editable`."""
        return find_connector_edits(change)

    def render_spec_lines(self, change: Change) -> Sequence[str]:
        """See `Editable`."""
        return render_connector_lines(change)

    def is_same_value(self, path: SpecPath, text: str, value: JsonValue) -> bool:
        """See `Editable`."""
        return is_same_value(path, text, value)

    def is_as_changed(self, name: str, before: object | None, after: object, change: Change) -> bool:
        """See `Editable`."""
        edited = narrow(after, ConnectorBody)
        new_body = ConnectorBody(name, edited.class_name)
        return _apply_fields(narrow_optional(before, ConnectorBody) or new_body, change) == edited


def _describe_connector(connector: LiveConnector, password_keys: frozenset[str]) -> Mapping[str, object]:
    return {
        "class": connector.config.get(CLASS, ""),
        "tasksMax": to_shown_value(TASKS_MAX, connector.config.get(TASKS_MAX)),
        "config": redact_config(connector.config, password_keys),
        "state": bind_state(find_target_state(connector)),
    }


def _apply_fields(body: ConnectorBody, change: Change) -> ConnectorBody:
    """Apply the field changes of ``change`` to the body of a connector. Skip changes to masked values."""
    config = dict(body.config)
    for field in change.fields:
        key = find_key(field.path)
        if key is not None and key not in FIELD_KEYS:
            if field.after is None:
                config.pop(key, None)
            elif field.after != SENSITIVE_MASK:
                config[key] = str(field.after)
    values = {field.path: field.after for field in change.fields}
    class_name, tasks_max = values.get(find_path(CLASS)), values.get(find_path(TASKS_MAX), body.tasks_max)
    return replace(
        body,
        class_name=class_name if isinstance(class_name, str) else body.class_name,
        tasks_max=tasks_max if isinstance(tasks_max, int) else None,
        config=config,
        state=bind_state(values.get("state", body.state)),
    )
