"""Compute the three-way diff of one user's credentials, and define the ownership record of a user."""

from collections.abc import Mapping
from dataclasses import field, replace
from types import MappingProxyType
from typing import Annotated

from kdeclare.core.diagnostics import Diagnostic, denied, info
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.operations.argument_binding import OMIT_EMPTY
from kdeclare.core.operations.operation import Arguments
from kdeclare.core.resources.adoption import adopt_settings
from kdeclare.core.resources.changes import (
    Action,
    Change,
    FieldChange,
    FieldOp,
    Reason,
    Risk,
    find_highest_risk,
)
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, Difference
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.core.secrets.secret_hashes import is_hash_of
from kdeclare.core.secrets.secret_refs import UNKNOWN_HASH, SecretRef
from kdeclare.providers.kafka.scram_user.collector import ScramState
from kdeclare.providers.kafka.scram_user.credential import (
    Credentials,
    Mechanism,
    choose_iterations,
    describe_credential,
)
from kdeclare.providers.kafka.scram_user.spec import (
    MECHANISM_FIELD_PREFIX,
    DeclaredCredential,
    ScramUserBody,
)


@dataclass(frozen=True, slots=True)
class AppliedCredential(Arguments):
    """The credential that kdeclare last applied for a mechanism.

    iterations: the number of iterations of the credential. If the live number differs, another client has set
        the password.
    """

    password: SecretRef
    iterations: int


_UNKNOWN_CREDENTIAL = AppliedCredential(SecretRef(UNKNOWN_HASH, None), 0)
"""A placeholder for a credential that another client has set.

No live credential has 0 iterations, so operations never mistake the placeholder for the live credential.
"""


@dataclass(frozen=True, slots=True)
class ScramUserRecord(OwnedRecord):
    """The owned credentials of one user, by mechanism.

    labels: the labels of the manifest. Policies use these labels if the resource becomes an orphan.
    """

    mechanisms: Mapping[str, AppliedCredential]
    preventDestroy: bool = False  # noqa: N815
    labels: Annotated[Mapping[str, str], OMIT_EMPTY] = field(default_factory=dict)

    def get(self, mechanism: Mechanism) -> AppliedCredential | None:
        """Return the owned credential of one mechanism; None if kdeclare does not own the credential."""
        return self.mechanisms.get(mechanism.value)


def diff_scram_user(
    resource: ResourceId,
    desired: DesiredResource | None,
    live: ScramState,
    owned: ScramUserRecord | None,
    logins: Mapping[Mechanism, bool] = MappingProxyType({}),
) -> Difference:
    """Compare the desired, live and owned credentials of one user.

    logins: for each checked mechanism, whether brokers accept the declared password.
    """
    credentials = live.of(resource.name)
    if desired is None:
        return _diff_undeclared(resource, credentials, owned)
    body = ignore_credentials(desired.get_body(ScramUserBody), credentials, owned)
    fields: list[FieldChange] = []
    # The credentials that stay as they are. Their ownership does not change either.
    kept_mechanisms = body.ignored_mechanisms - body.mechanisms.keys()
    records = {m.value: a for m in kept_mechanisms if owned is not None and (a := owned.get(m)) is not None}
    unverified: list[str] = []
    for mechanism in Mechanism:
        if mechanism in kept_mechanisms:
            continue
        declared, before = body.mechanisms.get(mechanism), credentials.get(mechanism)
        applied = owned.get(mechanism) if owned is not None else None
        if declared is None:
            if (applied is not None or mechanism in body.absent) and before is not None:
                fields.append(build_field(mechanism, before, None))
            continue
        iterations = find_planned_iterations(declared, before, applied)
        records[mechanism.value] = AppliedCredential(declared.password.ref, iterations)
        is_wrong = body.is_requested or logins.get(mechanism) is False
        if before is None or before != iterations or is_wrong or _has_new_password(declared, applied):
            fields.append(build_field(mechanism, before, iterations))
        elif applied is None and mechanism not in logins:
            unverified.append(mechanism.value)
    record = ScramUserRecord(records, body.prevent_destroy, dict(desired.labels))
    drifted = tuple(
        MECHANISM_FIELD_PREFIX + mechanism.value
        for mechanism in Mechanism
        if owned is not None
        and mechanism not in kept_mechanisms
        and (applied := owned.get(mechanism)) is not None
        and (credentials.get(mechanism) != applied.iterations or logins.get(mechanism) is False)
    )
    diagnostics = (_report_unverified(desired, unverified),) if unverified else ()
    is_new = not credentials and not body.is_requested
    change = _build_change(desired, fields, owned, drifted, is_new=is_new)
    if change is not None:
        adopted_paths = [f.path for f in fields if f.before is not None and _is_foreign(f, owned)]
        if adopted_paths:
            undrifted_reason = Reason.DECLARED if owned is None else Reason.CHANGED
            change, adoption = adopt_settings(change, desired, adopted_paths, drifted, undrifted_reason)
            diagnostics = (*diagnostics, adoption)
    others = (
        ()
        if owned is None and change is None
        else tuple(
            m.value
            for m in credentials
            if m not in body.mechanisms
            and m not in kept_mechanisms
            and (owned is None or owned.get(m) is None)
        )
    )
    return Difference(change, record, others, diagnostics, drifted=drifted)


def ignore_credentials(
    body: ScramUserBody, credentials: Credentials, owned: ScramUserRecord | None
) -> ScramUserBody:
    """Return the body without the ignored credentials that already exist or that kdeclare has applied.

    If the user has no credentials, return all declared credentials, because the user does not exist yet.
    """
    if not body.ignored:
        return body
    if not credentials:
        return replace(body, ignored=())
    applied = {Mechanism(name) for name in owned.mechanisms} if owned is not None else set()
    settled = body.ignored_mechanisms & (credentials.keys() | applied)
    return replace(body, mechanisms={m: item for m, item in body.mechanisms.items() if m not in settled})


def build_absent_record(
    body: ScramUserBody, credentials: Credentials, owned: ScramUserRecord | None
) -> ScramUserRecord | None:
    """Return a record of the credentials to delete; None if there are none. See `DeletesByRecord`.

    A user exists only while it has credentials.
    """
    if owned is not None and not body.adopt:
        return owned
    others = dict.fromkeys((mechanism.value for mechanism in credentials), _UNKNOWN_CREDENTIAL)
    if owned is not None:
        return replace(owned, mechanisms={**others, **owned.mechanisms})
    return ScramUserRecord(others) if others else None


def find_planned_iterations(
    declared: DeclaredCredential, before: int | None, applied: AppliedCredential | None
) -> int:
    """Return the number of iterations that a declared credential has after the next apply.

    If the manifest declares no number, an unchanged credential keeps its number. An existing credential that
    was never applied also keeps its number, because kdeclare takes ownership of the credential without
    changing the password.
    """
    if declared.iterations is not None:
        return declared.iterations
    is_kept = before is not None and (
        applied is None or (before == applied.iterations and not _has_new_password(declared, applied))
    )
    if is_kept and before is not None:
        return before
    return choose_iterations(declared.password.digest, before)


def assess_credential(field: FieldChange) -> FieldChange:
    """Return the field change of a credential with its risk.

    Adding a credential is safe. After any other change, new connections with the previous credential fail.
    """
    if field.before is None:
        return replace(field, risk=Risk.SAFE, cause="")
    cause = (
        "New connections with this mechanism fail. Open connections continue."
        if field.after is None
        else "New connections with the previous password fail. Open connections continue."
    )
    return replace(field, risk=Risk.DISRUPTIVE, cause=cause)


def build_field(mechanism: Mechanism, before: int | None, after: int | None) -> FieldChange:
    """Return the field change of one credential.

    before, after: the numbers of iterations; None if there is no credential.
    """
    path = MECHANISM_FIELD_PREFIX + mechanism.value
    values = describe_credential(before), describe_credential(after)
    return assess_credential(FieldChange(path, FieldOp.CHANGE, *values))


def find_mechanism(field: FieldChange) -> Mechanism:
    """Return the mechanism of the credential that a field change sets or deletes."""
    return Mechanism(field.path.removeprefix(MECHANISM_FIELD_PREFIX))


def _has_new_password(declared: DeclaredCredential, applied: AppliedCredential | None) -> bool:
    if applied is None:
        return False
    password = declared.password
    if password.value:
        return not is_hash_of(applied.password.secret, password.value)
    return applied.password.secret not in {password.digest, password.stored or password.digest}


def _is_foreign(field: FieldChange, owned: ScramUserRecord | None) -> bool:
    """Return whether this project has never applied the credential of a field change."""
    return owned is None or owned.get(find_mechanism(field)) is None


def _build_change(
    desired: DesiredResource,
    fields: list[FieldChange],
    owned: ScramUserRecord | None,
    drifted: tuple[str, ...],
    *,
    is_new: bool,
) -> Change | None:
    if not fields:
        return None
    undrifted_reason = Reason.DECLARED if owned is None else Reason.CHANGED
    drift_reason = Reason.MISSING if is_new else Reason.DRIFTED
    reason = drift_reason if drifted else undrifted_reason
    action = Action.CREATE if is_new else Action.UPDATE
    return Change(desired.id, action, reason, find_highest_risk(fields), tuple(fields), desired.source)


def _diff_undeclared(
    resource: ResourceId, credentials: Credentials, owned: ScramUserRecord | None
) -> Difference:
    """Return the diff of an orphan, which deletes the owned credentials that still exist."""
    fields = tuple(
        build_field(mechanism, credentials[mechanism], None)
        for mechanism in Mechanism
        if mechanism in credentials and owned is not None and owned.get(mechanism) is not None
    )
    if not fields:
        return Difference(None)
    change = Change(resource, Action.DELETE, Reason.ORPHANED, find_highest_risk(fields), fields)
    if owned is not None and owned.preventDestroy:
        problem = _report_protected(resource)
        return Difference(replace(change, blocked=problem.code), owned, diagnostics=(problem,))
    return Difference(change)


def _report_protected(resource: ResourceId) -> Diagnostic:
    return denied(
        "prevent-destroy",
        "Deletion prevented",
        f"{resource} must not be deleted: lifecycle.preventDestroy was true when the user was last applied.",
        hint="Restore the manifest. To delete the user, set preventDestroy to false in the restored "
        "manifest, run kdeclare apply, and then delete the manifest.",
        resource=str(resource),
    )


def _report_unverified(desired: DesiredResource, mechanisms: list[str]) -> Diagnostic:
    return info(
        "password-unverified",
        "Password not verified",
        f"{desired.id} already has credentials for {' and '.join(mechanisms)}. kdeclare takes ownership of "
        "them without setting the password. Kafka does not reveal whether the declared password is correct.",
        hint="To check the password, declare 'verify: login'. To set the declared password, declare "
        "'iterations' with a number that differs from the current one.",
        place=desired.source,
        resource=str(desired.id),
    )
