"""Planning hooks for SCRAM users: hidden credentials, and the credential that kdeclare itself uses."""

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from kdeclare.core.diagnostics import Diagnostic, denied, warning
from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.operation import Operation
from kdeclare.core.operations.operation_type import OperationType, with_inverse
from kdeclare.core.plans.plan_hooks import PlanHooks, PlanInputs, PlanStep
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, Difference, ResourceComparison
from kdeclare.core.resources.owned_record import OwnedRecord, narrow_record
from kdeclare.providers.kafka.acl.operations import DeleteAcls, list_bindings
from kdeclare.providers.kafka.collector import report_unsupported
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.error_names import UNSUPPORTED_VERSION
from kdeclare.providers.kafka.live import ClusterInfo, KafkaState
from kdeclare.providers.kafka.scram_user.collector import ScramState
from kdeclare.providers.kafka.scram_user.credential import Mechanism
from kdeclare.providers.kafka.scram_user.diff import ScramUserRecord, diff_scram_user, find_mechanism
from kdeclare.providers.kafka.scram_user.fleet import SCRAM_USER as SCRAM_USER
from kdeclare.providers.kafka.scram_user.operations import (
    DELETE,
    UPSERT,
    DeleteScram,
    DeleteScramArgs,
    ScramArgs,
    UpsertScramArgs,
)
from kdeclare.providers.kafka.scram_user.spec import ScramUserBody

_RIGHTS_FIRST = "the permissions of the user are revoked first"
_LAST = "kdeclare connects with this credential, so it changes last"


class ScramPlanning(PlanHooks):
    """The planning hooks for SCRAM users."""

    def __init__(self, inputs: PlanInputs) -> None:
        """Create the hooks for one plan."""
        self._live = inputs.live.find(ScramState)
        self._cluster = inputs.live.get(KafkaState).cluster
        self._connections = inputs.connections
        resources = inputs.state.resources if inputs.by_hand and inputs.state is not None else {}
        self._records = {key: item for key, item in resources.items() if isinstance(item, ScramUserRecord)}
        """The ownership records of all SCRAM users; empty unless the plan is for an ad hoc command.

        The records contain references to the passwords that a rollback restores.
        """

    def withhold(
        self, resource: ResourceId, desired: DesiredResource | None, owned: OwnedRecord | None
    ) -> Difference | None:
        """Leave a user unchanged if its credentials cannot be read."""
        if resource.kind != SCRAM_USER or self._live is None or self._live.is_visible:
            return None
        is_unsupported = self._live.fault is not None and self._live.fault.error == UNSUPPORTED_VERSION
        problem = (
            report_unsupported(resource, desired, "SCRAM credentials")
            if is_unsupported
            else _report_hidden(resource, desired)
        )
        return Difference(None, owned, diagnostics=(problem,))

    def review_difference(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        owned: OwnedRecord | None,
        difference: Difference,
    ) -> Difference:
        """Check the declared passwords by logging in, if the manifest requests it.

        If a login fails, the plan sets the password again.
        """
        if desired is None or resource.kind != SCRAM_USER or self._live is None:
            return difference
        if not desired.get_body(ScramUserBody).verify_login:
            return difference
        record = narrow_record(owned, ScramUserRecord)
        try:
            logins = self._check_logins(desired, difference)
        except Fault as fault:
            diagnostics = (*difference.diagnostics, _warn_no_login(desired, fault))
            return difference.with_diagnostics(diagnostics)
        return diff_scram_user(resource, desired, self._live, record, logins)

    def _check_logins(self, desired: DesiredResource, difference: Difference) -> Mapping[Mechanism, bool]:
        """Log in with the declared passwords of existing credentials that the plan does not change.

        Return, for each of their mechanisms, whether the login succeeded.
        """
        assert self._live is not None
        changed = (
            {find_mechanism(field) for field in difference.change.fields} if difference.change else set()
        )
        return {
            mechanism: self._connections.get(KafkaConnection).cluster.can_log_in(
                desired.id.name, mechanism, item.password.value
            )
            for mechanism, item in desired.get_body(ScramUserBody).mechanisms.items()
            if item.password.value  # a fleet audit does not have the passwords
            and mechanism in self._live.of(desired.id.name)
            and mechanism not in changed
        }

    def refine(self, operations: tuple[Operation, ...], compared: Sequence[ResourceComparison]) -> PlanStep:
        """Make deletions of credentials wait for deletions of the users' ACLs.

        Warn if kdeclare's own credential changes.
        """
        operations = tuple(map(self._add_earlier_password, operations))
        own = (op for op in operations if is_own_credential(op, self._cluster))
        warnings = tuple(_warn_own_credential(op, self._cluster) for op in own)
        return PlanStep(_revoke_rights_first(operations), warnings)

    def _add_earlier_password(self, op: Operation) -> Operation:
        """Add the earlier password to an operation of an ad hoc command, so that a rollback can restore it.

        The password is known if the project applied it and no other client has changed it since then.
        """
        record, args = self._records.get(str(op.resource)), op.args
        if record is None or not isinstance(args, ScramArgs):
            return op
        applied = record.get(Mechanism(args.mechanism))
        if applied is None or applied.iterations != op.expect.get(args.mechanism):
            return op  # another client has set the password
        operation_type: OperationType = UPSERT if isinstance(args, UpsertScramArgs) else DELETE
        restorable = replace(op, args=replace(args, was=applied.password), irreversible=None, inverse=None)
        return with_inverse(operation_type, restorable)

    def finalize(self, operations: tuple[Operation, ...]) -> PlanStep:
        """Make the change to kdeclare's own credential wait for all other operations.

        Open connections continue to work, but new connections need the new password.
        """
        own_ids = {op.id for op in operations if is_own_credential(op, self._cluster)}
        if not own_ids:
            return PlanStep(operations)
        others = {op.id: _LAST for op in operations if op.id not in own_ids}
        return PlanStep(
            tuple(
                replace(op, follows={**others, **op.follows}) if op.id in own_ids else op for op in operations
            )
        )

    def count_unmanaged(self, known: Set[str]) -> int:
        """Count the users with credentials that are neither declared nor owned."""
        users = self._live.users if self._live is not None else ()
        return sum(f"{SCRAM_USER}/{user}" not in known for user in users)


def _revoke_rights_first(operations: tuple[Operation, ...]) -> tuple[Operation, ...]:
    """Make the deletion of a credential wait for the deletion of the user's ACLs.

    Open connections continue to work after the credential is deleted, but not after the ACLs are deleted.
    """
    revocations: dict[str, dict[str, str]] = defaultdict(dict)
    for op in operations:
        if op.verb == DeleteAcls.name:
            for binding in list_bindings(op):
                revocations[binding.principal][op.id] = _RIGHTS_FIRST
    if not revocations:
        return operations
    return tuple(
        replace(op, follows={**revocations[f"User:{op.args.user}"], **op.follows})
        if isinstance(op.args, DeleteScramArgs) and f"User:{op.args.user}" in revocations
        else op
        for op in operations
    )


def is_own_credential(op: Operation, cluster: ClusterInfo) -> bool:
    """Return whether an operation changes the credential that kdeclare connects with."""
    args = op.args
    return (
        isinstance(args, ScramArgs)
        and cluster.principal == f"User:{args.user}"
        and cluster.sasl_mechanism == args.mechanism
    )


def _warn_own_credential(op: Operation, cluster: ClusterInfo) -> Diagnostic:
    is_deletion = op.verb == DeleteScram.name
    return warning(
        "own-credential",
        "Change to kdeclare's own credential",
        f"kdeclare connects as {cluster.principal} with {cluster.sasl_mechanism}. This plan "
        f"{'deletes' if is_deletion else 'changes'} that credential as its last operation, and kdeclare "
        f"{'can no longer connect' if is_deletion else 'then needs the new password to connect'}.",
        hint="Connect as a different user, or keep the credential."
        if is_deletion
        else "Update the client properties of kdeclare with the new password right after the apply.",
        resource=str(op.resource),
    )


def _warn_no_login(desired: DesiredResource, fault: Fault) -> Diagnostic:
    return warning(
        "password-unverified",
        "Password not verified",
        f"{desired.id} has 'verify: login', but kdeclare could not log in to check its passwords: "
        f"{fault.message}.",
        hint="Connect to a SASL listener that allows the mechanism, or remove 'verify: login'.",
        place=desired.source,
        resource=str(desired.id),
    )


def _report_hidden(resource: ResourceId, desired: DesiredResource | None) -> Diagnostic:
    make_diagnostic, outcome = (
        (denied, "is left unchanged") if desired else (warning, "is left unchanged and stays owned")
    )
    return make_diagnostic(
        "not-visible",
        "Credentials not visible",
        f"{resource} {outcome}: without the Describe permission on the cluster, kdeclare cannot read the "
        "user's credentials.",
        hint="Grant kdeclare the Describe and Alter permissions on the cluster.",
        place=desired.source if desired else None,
        resource=str(resource),
    )
