"""The three-way diff of a connector: config, state and failed tasks."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from kdeclare.core.diagnostics import Diagnostic, denied, error, warning
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.resources.adoption import report_adoption
from kdeclare.core.resources.changes import (
    Action,
    Change,
    FieldChange,
    FieldOp,
    Reason,
    Risk,
    find_highest_risk,
)
from kdeclare.core.resources.endpoint_choice import (
    report_missing_endpoint,
    report_unreachable_endpoint,
    withhold_resource,
)
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, Difference
from kdeclare.core.resources.plan_capabilities import PREVENT_DESTROY
from kdeclare.core.secrets.secret_hashes import is_hash_of
from kdeclare.core.secrets.secret_refs import SENSITIVE_MASK, Secret, SecretRef
from kdeclare.providers.connect.client.connectors_port import LiveConnector, RunState
from kdeclare.providers.connect.connector.live import ClusterSnapshot, ConnectorState
from kdeclare.providers.connect.connector.record import (
    ConnectorRecord,
    build_record,
    ignore_fields,
    restore_ignored,
)
from kdeclare.providers.connect.connector.settings import (
    CLASS,
    NAME,
    STATE_PATH,
    Setting,
    find_path,
    is_hidden,
    is_masked,
    is_public,
    redact_setting,
    to_shown_value,
)
from kdeclare.providers.connect.connector.spec import ConnectorBody
from kdeclare.providers.connect.connector.status import (
    FAILED,
    RUNNING,
    describe_fault,
    find_target_state,
    list_failures,
)

TASKS_PATH = "tasks"
FAILURE = "connector-failed"
"""The code of the warning about a connector that failed or has failed tasks."""

_NO_RECORDS_FLOW = "The connector transfers no records in this state."
_NO_RECORDS_DURING_RESTART = "The connector transfers no records while its tasks restart."
_OTHER_CLASS = "The new class may not be able to continue from the offsets of the connector."


@dataclass(frozen=True, slots=True)
class _DiffInput:
    """The declared connector, the live connector, and the ownership record."""

    desired: DesiredResource
    body: ConnectorBody
    cluster: ClusterSnapshot
    live: LiveConnector
    owned: ConnectorRecord | None

    @property
    def password_keys(self) -> frozenset[str]:
        """The keys that the class of the live connector or of the declared connector defines as PASSWORD."""
        return self.cluster.find_password_keys(self.body.class_name, self.live.config.get(CLASS, ""))


def withhold_connector(
    resource: ResourceId,
    desired: DesiredResource | None,
    state: ConnectorState,
    owned: ConnectorRecord | None,
) -> Difference | None:
    """Return the difference for a connector whose Connect cluster is not configured or did not respond.

    Return None if the connector can be compared.
    """
    declared_endpoint = desired.get_body(ConnectorBody).endpoint if desired is not None else None
    snapshot = state.get_cluster(
        owned.endpoint if desired is None and owned is not None else declared_endpoint
    )
    if snapshot.choice.name is None:
        problem = replace(report_missing_endpoint(snapshot.choice, str(resource)), subject="spec.connect")
        return withhold_resource(problem, desired, owned)
    if snapshot.fault is not None:
        reason = describe_fault(snapshot.fault)
        problem = report_unreachable_endpoint(snapshot.full_name, reason, str(resource))
        return withhold_resource(problem, desired, owned)
    return None


def diff_connector(
    resource: ResourceId,
    desired: DesiredResource | None,
    state: ConnectorState,
    owned: ConnectorRecord | None,
) -> Difference:
    """Compare the desired, live and owned state of one connector."""
    withheld = withhold_connector(resource, desired, state, owned)
    if withheld is not None:
        return withheld
    if desired is None:
        return _diff_undeclared(resource, state, owned)
    body = ignore_fields(desired.get_body(ConnectorBody), state)
    cluster = state.get_cluster(body.endpoint)
    if owned is not None and (owned.endpoint, owned.connector) != (cluster.name, body.name):
        return Difference(None, owned, diagnostics=(_report_moved(desired, body, cluster, owned),))
    record = restore_ignored(build_record(body, cluster.name, desired.labels), body, owned)
    live = cluster.find(body.name)
    if body.is_partial:
        return Difference(None) if live is None else _diff_requested(desired, body, live)
    literals = _report_literal_passwords(desired, body, cluster.find_password_keys(body.class_name))
    if literals:
        return Difference(None, owned, diagnostics=literals)
    if live is None:
        reason = Reason.DECLARED if owned is None else Reason.MISSING
        fields = tuple(_list_creation_fields(body))
        drifted = tuple(field.path for field in fields) if owned is not None else ()
        change = Change(resource, Action.CREATE, reason, Risk.SAFE, fields, desired.source)
        return Difference(change, record, drifted=drifted)
    return _diff_existing(_DiffInput(desired, body, cluster, live, owned), record)


def _diff_existing(item: _DiffInput, record: ConnectorRecord) -> Difference:
    config_fields = tuple(_list_config_fields(item))
    state_fields = tuple(_list_state_fields(item))
    failures = list_failures(item.live)
    task_fields: tuple[FieldChange, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    is_wanted_running = (item.body.state or find_target_state(item.live)) == RUNNING
    if failures and is_wanted_running:
        # A new config also restarts failed tasks, and resuming a connector does as well.
        if item.body.restart_failed and not config_fields and not state_fields:
            task_fields = (build_restart_field(),)
        diagnostics = (_warn_failed(item, failures, will_restart=bool(task_fields)),)
    fields = tuple(map(assess_connector_field, (*config_fields, *state_fields, *task_fields)))
    drifted = tuple(_list_drifted(item, has_failures=bool(failures) and is_wanted_running))
    if not fields:
        return Difference(None, record, diagnostics=diagnostics, drifted=drifted)
    is_adopted = item.owned is None
    reason = Reason.ADOPT if is_adopted else Reason.DRIFTED if drifted else Reason.CHANGED
    blocked = None
    if is_adopted:
        adoption = report_adoption(item.desired, fields)
        diagnostics = (*diagnostics, adoption)
        blocked = adoption.code if adoption.is_blocking else None
    change = Change(
        item.desired.id,
        Action.UPDATE,
        reason,
        find_highest_risk(fields),
        fields,
        item.desired.source,
        blocked,
    )
    return Difference(change, record, diagnostics=diagnostics, drifted=drifted)


def _diff_requested(desired: DesiredResource, body: ConnectorBody, live: LiveConnector) -> Difference:
    """Return the change to the state, or the restart, that an ad hoc command requests."""
    fields: list[FieldChange] = []
    current = find_target_state(live)
    if body.state is not None and current != body.state:
        fields.append(FieldChange(STATE_PATH, FieldOp.CHANGE, current, body.state))
    has_failures = bool(list_failures(live))
    if body.restart == "all":
        fields.append(build_full_restart_field(FAILED if has_failures else RUNNING))
    elif body.restart == "failed" and has_failures:
        fields.append(build_restart_field())
    if not fields:
        return Difference(None)
    assessed = tuple(map(assess_connector_field, fields))
    risk = find_highest_risk(assessed)
    return Difference(Change(desired.id, Action.UPDATE, Reason.CHANGED, risk, assessed, desired.source))


def _list_creation_fields(body: ConnectorBody) -> Iterator[FieldChange]:
    for key, setting in body.whole_config.items():
        yield _build_setting_field(key, FieldOp.SET, None, setting)
    if body.state is not None:
        yield FieldChange(STATE_PATH, FieldOp.CHANGE, None, body.state)


def _list_config_fields(item: _DiffInput) -> Iterator[FieldChange]:
    declared, live, owned = item.body.whole_config, item.live.config, item.owned
    applied: Mapping[str, str | SecretRef] = owned.config if owned is not None else {}
    for key in sorted({*declared, *live} - item.body.ignore - {NAME}):
        text = live.get(key)
        before = redact_live_setting(key, text, item.password_keys, declared.get(key), applied.get(key))
        if key not in declared:
            yield FieldChange(find_path(key), FieldOp.DELETE, before, None)
        elif not _is_as_declared(item, key, declared[key], text, applied.get(key)):
            yield _build_setting_field(key, FieldOp.SET, before, declared[key])


def _list_state_fields(item: _DiffInput) -> Iterator[FieldChange]:
    current = find_target_state(item.live)
    if item.body.state is not None and current not in (None, item.body.state):
        yield FieldChange(STATE_PATH, FieldOp.CHANGE, current, item.body.state)


def build_restart_field() -> FieldChange:
    """Return the field change that represents a restart of the failed connector or tasks."""
    return FieldChange(TASKS_PATH, FieldOp.CHANGE, FAILED, RUNNING)


def build_full_restart_field(before: str) -> FieldChange:
    """Return the field change that represents a restart of the connector and all of its tasks."""
    return FieldChange(TASKS_PATH, FieldOp.CHANGE, before, RunState.RESTARTING.value)


def redact_live_setting(
    key: str,
    text: str | None,
    password_keys: frozenset[str],
    declared: Setting | SecretRef | None,
    applied: str | SecretRef | None,
) -> JsonValue:
    """Return a live value for display.

    The value is masked if it is a secret according to the manifest or the ownership record.
    """
    if text is not None and isinstance(declared, Secret | SecretRef):
        return SENSITIVE_MASK
    if text is not None and isinstance(applied, SecretRef) and not is_public(key, text):
        return SENSITIVE_MASK
    return redact_setting(key, text, password_keys)


def _build_setting_field(key: str, op: FieldOp, before: JsonValue, setting: Setting) -> FieldChange:
    if isinstance(setting, Secret):
        return FieldChange(find_path(key), op, before, SENSITIVE_MASK)
    return FieldChange(find_path(key), op, before, to_shown_value(key, setting))


def _is_as_declared(
    item: _DiffInput, key: str, setting: Setting, text: str | None, applied: str | SecretRef | None
) -> bool:
    if text is None:
        return False
    if is_masked(text) and not (isinstance(setting, str) and is_masked(setting)):
        # The live value is unknown. It is assumed to be the value that was last applied.
        return applied is not None and _is_same_as_applied(setting, applied)
    if isinstance(setting, Secret):
        return text == setting.value if setting.value else is_hash_of(setting.digest, text)
    return text == setting or (key == CLASS and item.cluster.is_same_class(text, setting))


def _is_same_as_applied(setting: Setting, applied: str | SecretRef) -> bool:
    if isinstance(applied, str) or isinstance(setting, str):
        return applied == setting
    if setting.value:
        return is_hash_of(applied.secret, setting.value)
    return applied.secret in (setting.digest, setting.stored or setting.digest)


def _list_drifted(item: _DiffInput, *, has_failures: bool) -> Iterator[str]:
    """Yield the paths whose live values differ from the values that were last applied."""
    owned, live = item.owned, item.live
    if owned is None:
        return
    ignored = {*owned.ignore, *item.body.ignore, NAME}
    is_state_ignored = STATE_PATH in item.body.ignored
    for key in sorted({*owned.config, *live.config} - ignored):
        if not _is_as_applied(item, key, owned.config.get(key), live.config.get(key)):
            yield find_path(key)
    if (
        owned.state is not None
        and not is_state_ignored
        and find_target_state(live) not in (None, owned.state)
    ):
        yield STATE_PATH
    if has_failures:
        yield TASKS_PATH


def _is_as_applied(item: _DiffInput, key: str, applied: str | SecretRef | None, text: str | None) -> bool:
    if applied is None or text is None:
        return applied is None and text is None
    if is_masked(text):
        return True
    if isinstance(applied, SecretRef):
        return is_hash_of(applied.secret, text)
    return text == applied or (key == CLASS and item.cluster.is_same_class(text, applied))


def _diff_undeclared(
    resource: ResourceId, state: ConnectorState, owned: ConnectorRecord | None
) -> Difference:
    """Return the deletion of a connector that is owned and no longer declared."""
    if owned is None:
        return Difference(None)
    if state.get_cluster(owned.endpoint).find(owned.connector) is None:
        return Difference(None)
    risk = Risk.IRREVERSIBLE if owned.deleteOffsets else Risk.DISRUPTIVE
    change = Change(resource, Action.DELETE, Reason.ORPHANED, risk)
    if not owned.preventDestroy:
        return Difference(change)
    problem = _report_protected(resource)
    return Difference(replace(change, blocked=problem.code), owned, diagnostics=(problem,))


def assess_connector_field(field: FieldChange) -> FieldChange:
    """Return a field change with its risk.

    A change is disruptive if the connector processes no records in the new state or during a restart, or if
    it continues from the existing offsets with a different class.
    """
    if field.path == STATE_PATH and field.before is not None and field.after != RUNNING:
        return replace(field, risk=Risk.DISRUPTIVE, cause=_NO_RECORDS_FLOW)
    if field.path == TASKS_PATH and field.after != RUNNING:
        return replace(field, risk=Risk.DISRUPTIVE, cause=_NO_RECORDS_DURING_RESTART)
    if field.path == find_path(CLASS) and field.before is not None:
        return replace(field, risk=Risk.DISRUPTIVE, cause=_OTHER_CLASS)
    return replace(field, risk=Risk.SAFE, cause="")


def _warn_failed(item: _DiffInput, failures: tuple[str, ...], *, will_restart: bool) -> Diagnostic:
    hint = "Apply the plan to restart the connector and tasks that failed."
    if not will_restart:
        hint = "Fix the cause, then restart the connector, or set restartFailed: true in the manifest."
    return warning(
        FAILURE,
        "Connector has failed",
        f"{item.desired.id}: {'; '.join(failures)}.",
        hint=hint,
        place=item.desired.source,
        resource=str(item.desired.id),
        subject=TASKS_PATH,
    )


def _report_literal_passwords(
    desired: DesiredResource, body: ConnectorBody, password_keys: frozenset[str]
) -> tuple[Diagnostic, ...]:
    """Return an error for each literal secret that only the connector class identifies as a secret.

    kdeclare does not recognize such a value as a secret when it loads the manifest, so plans and states
    would contain the value.
    """
    return tuple(
        error(
            "literal-password",
            "Password in a manifest",
            f"{body.class_name} defines '{key}' as a password, but the manifest contains its value in plain "
            "text. kdeclare does not store passwords in plans or in the state.",
            hint="Use a placeholder of a Connect config provider, or a reference, such as ${env.NAME} or "
            "${file.PATH}.",
            place=desired.source,
            resource=str(desired.id),
            subject=f"spec.{find_path(key)}",
        )
        for key, setting in sorted(body.config.items())
        if isinstance(setting, str) and is_hidden(key, setting, password_keys)
    )


def _report_moved(
    desired: DesiredResource, body: ConnectorBody, cluster: ClusterSnapshot, owned: ConnectorRecord
) -> Diagnostic:
    return denied(
        "connector-moved",
        "Manifest names a different connector",
        f"{desired.id} was applied to the connector {owned.connector} in {owned.endpoint}, but the manifest "
        f"now names {body.name} in {cluster.name}. kdeclare leaves both connectors unchanged.",
        hint="Give the manifest a different metadata.name. To delete the earlier connector, pass "
        f"--allow-deletes or --delete {desired.id}; to keep it, pass --forget {desired.id}.",
        place=desired.source,
        resource=str(desired.id),
    )


def _report_protected(resource: ResourceId) -> Diagnostic:
    return denied(
        PREVENT_DESTROY,
        "Deletion prevented",
        f"{resource} must not be deleted: lifecycle.preventDestroy was true when the connector was last "
        "applied.",
        hint="Restore the manifest. To delete the connector, set preventDestroy to false in the restored "
        "manifest, run kdeclare apply, and then delete the manifest.",
        resource=str(resource),
    )
