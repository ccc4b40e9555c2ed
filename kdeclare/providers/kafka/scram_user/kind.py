"""The kind `ScramUser`, its export to manifests, and the fields of users for policies."""

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from pydantic import BaseModel

from kdeclare.core.jsontypes import JsonObject
from kdeclare.core.live.collector import Selections
from kdeclare.core.live.live_codec import LiveKey
from kdeclare.core.operations.argument_binding import get_arguments
from kdeclare.core.operations.operation import Operation
from kdeclare.core.operations.operation_type import OperationType, with_inverse
from kdeclare.core.parts import Connections, LiveState, PlanContext
from kdeclare.core.policies.policy_fields import PolicyField, PolicyWords
from kdeclare.core.resources.audit_rules import AuditRules
from kdeclare.core.resources.changes import Action, Change, FieldChange
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, Difference, SpecProblem, narrow
from kdeclare.core.resources.manifest_capabilities import Export, ExportRequest, OmittedObjects
from kdeclare.core.resources.manifest_text import render_manifest
from kdeclare.core.resources.owned_record import OwnedRecord, merge_fields, narrow_record
from kdeclare.providers.kafka.error_names import UNSUPPORTED_VERSION
from kdeclare.providers.kafka.scram_user.collector import (
    ScramSelection,
    ScramState,
    read_scram_users,
    require_visible,
)
from kdeclare.providers.kafka.scram_user.credential import (
    MIN_ITERATIONS,
    Credentials,
    Mechanism,
    describe_credential,
)
from kdeclare.providers.kafka.scram_user.diff import (
    ScramUserRecord,
    assess_credential,
    build_absent_record,
    diff_scram_user,
    find_mechanism,
    find_planned_iterations,
    ignore_credentials,
)
from kdeclare.providers.kafka.scram_user.fleet import SCRAM_USER, ScramRules
from kdeclare.providers.kafka.scram_user.operations import (
    DELETE,
    UPSERT,
    DeleteScramArgs,
    ScramArgs,
    UpsertScramArgs,
)
from kdeclare.providers.kafka.scram_user.spec import (
    ScramUserBody,
    ScramUserSpec,
    bind_scram_user,
    dump_scram_user,
    parse_scram_user,
)


def _list_mechanisms() -> Mapping[str, type]:
    return dict.fromkeys((mechanism.value for mechanism in Mechanism), dict)


SCRAM_WORDS = PolicyWords(
    {
        "user": PolicyField(str),
        "mechanisms": PolicyField(dict[str, dict[str, object]], keys=_list_mechanisms, elements="mechanisms"),
    },
    subject="SCRAM user",
)


def describe_credentials(user: str, credentials: Credentials) -> Mapping[str, object]:
    """Return the fields of a user for policies: the name, and the credentials by mechanism."""
    described = {m.value: describe_credential(number) for m, number in sorted(credentials.items())}
    return {"user": user, "mechanisms": described}


def export_scram_users(live: ScramState, request: ExportRequest) -> Export:
    """Return a manifest for each user.

    Each password is a reference to an environment variable, because Kafka does not return passwords.
    """
    if not live.is_visible:
        is_unsupported = live.fault is not None and live.fault.error == UNSUPPORTED_VERSION
        cause = (
            "the brokers do not support them"
            if is_unsupported
            else "the principal is not permitted to describe SCRAM credentials"
        )
        reason = f"ScramUser: {cause}"
        return Export({}, (OmittedObjects(1, "kind", "kinds", reason),))
    requested = [user for user in sorted(live.users) if request.matches(user)]
    permitted = [user for user in requested if request.permits(ResourceId(SCRAM_USER, user))]
    out_of_scope_count = len(requested) - len(permitted)
    variables = name_password_variables(live.users)
    return Export(
        {user: _render_manifest(user, live.of(user), variables[user]) for user in permitted},
        (OmittedObjects(out_of_scope_count, "user", "users", "outside the scope of the project"),),
    )


def name_password_variables(users: Iterable[str]) -> Mapping[str, str]:
    """Return the name of an environment variable for each user, such as ``ALICE_PASSWORD``.

    Users whose names differ only in case or in special characters get different variables. Pass all users of
    the cluster, so that the names do not depend on which users are imported.
    """
    variables: dict[str, str] = {}
    for user in sorted(users):
        base = re.sub(r"[^A-Z0-9]", "_", user.upper())
        base = base if base[:1].isalpha() else f"USER_{base}"
        numbered_bases = itertools.chain([base], (f"{base}_{number}" for number in itertools.count(2)))
        taken = variables.values()
        variables[user] = next(n for b in numbered_bases if (n := f"{b}_PASSWORD") not in taken)
    return variables


def _render_manifest(user: str, credentials: Credentials, variable: str) -> str:
    return render_manifest(
        SCRAM_USER,
        user,
        [
            "mechanisms:",
            *(line for mechanism in sorted(credentials) for line in _render_mechanism(mechanism, variable)),
        ],
        [f"Kafka does not return passwords. Set the variable {variable}, or replace the reference to it."],
    )


def _render_mechanism(mechanism: Mechanism, variable: str) -> Iterator[str]:
    yield f"  {mechanism.value}:"
    yield f"    password: ${{env.{variable}}}"


class ScramUserKind:
    """The kind `ScramUser`. Kafka lists a user only while it has at least one credential."""

    name = SCRAM_USER
    spec: type[BaseModel] = ScramUserSpec
    record: type[OwnedRecord] = ScramUserRecord
    policy_words: PolicyWords = SCRAM_WORDS
    audit_rules: AuditRules = ScramRules()

    def parse(self, name: str, spec: BaseModel) -> tuple[ScramUserBody, tuple[SpecProblem, ...]]:
        """See `Kind`."""
        return parse_scram_user(name, narrow(spec, ScramUserSpec))

    def select(self, name: str, body: object | None, owned: OwnedRecord | None) -> Selections:
        """Select the user."""
        return (ScramSelection(frozenset({name})),)

    def diff(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> Difference:
        """See `Kind`."""
        return diff_scram_user(resource, desired, live.get(ScramState), narrow_record(owned, ScramUserRecord))

    def ignore_fields(
        self, desired: DesiredResource, live: LiveState, owned: OwnedRecord | None
    ) -> ScramUserBody:
        """See `IgnoresChanges`."""
        credentials = live.get(ScramState).of(desired.id.name)
        record = narrow_record(owned, ScramUserRecord)
        return ignore_credentials(desired.get_body(ScramUserBody), credentials, record)

    def build_absent_record(
        self, desired: DesiredResource, live: LiveState, owned: OwnedRecord | None
    ) -> OwnedRecord | None:
        """See `DeletesByRecord`."""
        credentials = live.get(ScramState).of(desired.id.name)
        record = narrow_record(owned, ScramUserRecord)
        return build_absent_record(desired.get_body(ScramUserBody), credentials, record)

    def assess_field(self, action: Action, field: FieldChange) -> FieldChange:
        """Rate the risk: changing or deleting a credential is disruptive."""
        return assess_credential(field)

    def plan_operations(
        self,
        change: Change,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> tuple[Operation, ...]:
        """Plan one operation per credential. Brokers accept only one change to a user in each request."""
        credentials = live.get(ScramState).of(change.id.name)
        record = narrow_record(owned, ScramUserRecord)
        body = desired.get_body(ScramUserBody) if desired is not None else None
        return tuple(
            _plan_operation(change, find_mechanism(field), body, credentials, record)
            for field in change.fields
        )

    def merge_ownership(
        self,
        before: OwnedRecord | None,
        after: OwnedRecord | None,
        done: tuple[Operation, ...],
        all_done: bool,
    ) -> OwnedRecord | None:
        """See `Kind`."""
        if all_done:
            return after
        if not done:
            return before
        mechanisms = {get_arguments(op, ScramArgs).mechanism for op in done}
        old, new = narrow_record(before, ScramUserRecord), narrow_record(after, ScramUserRecord)
        owned = merge_fields(old.mechanisms if old else {}, new.mechanisms if new else {}, mechanisms)
        base_record = new or old
        return replace(base_record, mechanisms=owned) if base_record is not None and owned else None

    def describe_declared(self, desired: DesiredResource) -> Mapping[str, object]:
        """Return the name of the user, and the iterations of the declared credentials, for policies.

        If kdeclare chooses the number of iterations, return the smallest number that it can choose.
        """
        credentials = {
            mechanism: item.iterations or MIN_ITERATIONS + 1
            for mechanism, item in desired.get_body(ScramUserBody).mechanisms.items()
        }
        return describe_credentials(desired.id.name, credentials)

    def describe_live(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
    ) -> Mapping[str, object] | None:
        """Return the user and its live credentials."""
        return describe_credentials(resource.name, require_visible(live.get(ScramState)).of(resource.name))

    def select_every(self) -> Selections:
        """Return a selection that names no users: kdeclare reads all users anyway to list the live users."""
        return (ScramSelection(),)

    def list_live(self, live: LiveState) -> Collection[str]:
        """Return all users with credentials. Raises Fault if credentials are hidden."""
        return list(require_visible(live.get(ScramState)).users)

    def is_self_contained(self, name: str, body: object) -> bool:
        """Return True: the diff of a user needs only the live credentials of that user."""
        return True

    def find_live_key(self, name: str, body: object | None, owned: OwnedRecord | None) -> LiveKey | None:
        """Return the key of the live user."""
        return LiveKey(SCRAM_USER, name)

    def locate_secret(self, path: tuple[str | int, ...]) -> tuple[str | int, ...] | None:
        """Return the path of a secret in the spec, which is the same as its path in the body."""
        return path

    def to_json(self, name: str, body: object) -> JsonObject:
        """See `BodyCodec`."""
        return dump_scram_user(narrow(body, ScramUserBody))

    def from_json(self, json: JsonObject) -> ScramUserBody:
        """See `BodyCodec`."""
        return bind_scram_user(json)

    def export(self, connections: Connections, request: ExportRequest) -> Export:
        """Return one manifest for each user that has credentials."""
        return export_scram_users(read_scram_users(connections), request)


def _plan_operation(
    change: Change,
    mechanism: Mechanism,
    body: ScramUserBody | None,
    credentials: Credentials,
    owned: ScramUserRecord | None,
) -> Operation:
    resource = change.id
    before = credentials.get(mechanism)
    applied = owned.get(mechanism) if owned is not None else None
    # The earlier password is known only if no other client has changed the credential since the last apply.
    was = applied.password if applied is not None and applied.iterations == before else None
    declared = body.mechanisms.get(mechanism) if body is not None else None
    if declared is not None and was == declared.password.ref and declared.iterations in (None, before):
        was = None  # the password is set again, because a login failed: another client changed it
    operation_type: OperationType = DELETE
    args: ScramArgs = DeleteScramArgs(resource.name, mechanism.value, was, whole=body is None)
    if declared is not None:
        operation_type = UPSERT
        iterations = find_planned_iterations(declared, before, applied)
        args = UpsertScramArgs(
            resource.name,
            mechanism.value,
            was,
            iterations=iterations,
            password=declared.password.ref,
            whole=change.action is Action.CREATE,
        )
    op = Operation(
        f"{operation_type.name}:{resource}/{mechanism.value}",
        operation_type.name,
        resource,
        args,
        {mechanism.value: before},
    )
    return with_inverse(operation_type, op)
