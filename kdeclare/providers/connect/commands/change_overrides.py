"""Change the overrides of Connect workers with an ad hoc command, without a manifest.

The steps are the same as in apply: validate the change with every worker, send one PATCH, and wait for all
workers. The command does not use a Kafka cluster or the state, so the change does not appear in the history.
If a manifest declares a changed key, the command prints a warning.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace

from kdeclare.app.adhoc.references import resolve_references
from kdeclare.app.workspace import Workspace
from kdeclare.core.clock import Clock, SystemClock
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error, warning
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.core.resources.changes import FieldChange, FieldOp
from kdeclare.core.secrets.secret_refs import Secret
from kdeclare.engine.executor.attempt import OUTCOME_UNCLEAR
from kdeclare.manifests.syntax.substitution import UnresolvedReference
from kdeclare.providers.connect.client.port import (
    Changes,
    ConnectWorkers,
    collect_verdicts,
    format_fault,
    patch_through_any,
    read_workers,
)
from kdeclare.providers.connect.commands.describe_workers import (
    ChangeView,
    OpenWorkers,
    ProposalView,
    VerdictView,
    WorkersRequest,
    build_workers_view,
    open_requested_workers,
    require_overrides,
)
from kdeclare.providers.connect.worker_config.spec import WorkerConfigBody, parse_value, warn_raw_secret
from kdeclare.providers.connect.worker_health import find_silent, find_unconverged
from kdeclare.providers.connect.worker_state import GroupSnapshot, redact_value

RequestedValues = Mapping[str, object]
"""The requested values by key, with unresolved references. None removes the override."""

ConfirmProposal = Callable[[ProposalView], bool]
"""A function that shows the proposed change, and returns whether to continue."""


@dataclass(frozen=True, slots=True)
class _Proposal:
    """A proposed change, and the data that the command displays about it."""

    changes: Changes
    compute_view: ProposalView


def validate_overrides(
    workspace: Workspace, workers_request: WorkersRequest, requested_values: RequestedValues
) -> ProposalView:
    """Have every worker validate ``requested_values`` without changing anything. Raises KdeclareError."""
    with open_requested_workers(workspace, workers_request) as opened:
        return _build_proposal(workspace, opened, requested_values).compute_view


def change_overrides(
    workspace: Workspace,
    workers_request: WorkersRequest,
    requested_values: RequestedValues,
    confirm: ConfirmProposal,
    wait_s: float,
    *,
    require_existing: bool = False,
) -> ChangeView | None:
    """Validate a change, ask for confirmation, send the change, and wait for the workers.

    Return None if the user declined or a worker refused the change. Raises KdeclareError.
    wait_s: how long to wait until all workers have applied the change, in seconds.
    require_existing: whether to raise an error if an override to remove does not exist.
    """
    with open_requested_workers(workspace, workers_request) as opened:
        proposal = _build_proposal(workspace, opened, requested_values, require_existing=require_existing)
        if not confirm(proposal.compute_view) or not proposal.compute_view.is_good:
            return None
        snapshot = read_workers(opened.workers)  # The prompt can take a long time, so read the state again.
        sent_change = send_changes(opened.workers, snapshot, proposal.changes)
        return await_workers(opened.workers, sent_change, proposal.compute_view.fields, SystemClock(), wait_s)


def _build_proposal(
    workspace: Workspace,
    opened: OpenWorkers,
    requested_values: RequestedValues,
    *,
    require_existing: bool = False,
) -> _Proposal:
    current_overrides = require_overrides(read_workers(opened.workers))
    missing_keys = [
        key for key, value in requested_values.items() if value is None and key not in current_overrides
    ]
    if missing_keys and require_existing:
        raise KdeclareError(*(_build_missing_error(key, current_overrides) for key in missing_keys))
    changes, value_notices = _resolve_values(workspace, requested_values)
    notices = (*value_notices, *_warn_declared(opened, changes))
    fields = tuple(
        _build_field_change(key, current_overrides.get(key), raw) for key, raw in sorted(changes.items())
    )
    verdict_views = tuple(
        VerdictView(verdict.url, "" if verdict.is_good else verdict.words)
        for verdict in collect_verdicts(opened.workers, changes)
    )
    return _Proposal(changes, ProposalView(fields, verdict_views, notices))


def _resolve_values(
    workspace: Workspace, requested_values: RequestedValues
) -> tuple[Changes, tuple[Diagnostic, ...]]:
    """Return the values with resolved references, and diagnostics about the values. Raises KdeclareError."""
    try:
        values = resolve_references(workspace, requested_values, "")
    except UnresolvedReference as problem:
        raise KdeclareError(replace(problem.diagnostic, resource=None)) from None
    notices: list[Diagnostic] = []
    for key, value in values.items():
        config_value, problems = parse_value("", key, value)
        notices += [warn_raw_secret(None, key)] if isinstance(config_value, Secret) else problems
    return {key: None if value is None else str(value) for key, value in values.items()}, tuple(notices)


def _build_field_change(key: str, before: str | None, after: str | None) -> FieldChange:
    op = FieldOp.DELETE if after is None else FieldOp.SET
    return FieldChange(f"configs.{key}", op, redact_value(key, before), redact_value(key, after))


def _warn_declared(opened: OpenWorkers, changes: Changes) -> Iterator[Diagnostic]:
    """Yield warnings about changed keys that manifests declare."""
    if opened.unread:
        yield warning(
            "manifests-unread",
            "Some manifests cannot be read",
            "kdeclare does not warn you if an unreadable manifest declares a key that you change.",
            hint="Run 'kdeclare validate' to see the errors in the manifests.",
        )
    for item in opened.declared:
        declared_keys = sorted(changes.keys() & item.get_body(WorkerConfigBody).configs)
        if declared_keys:
            yield warning(
                "owned-by-manifests",
                "Declared in a manifest",
                f"{item.id} declares {', '.join(declared_keys)}. "
                "The next 'kdeclare apply' reverts this change.",
                hint="To keep the change, make the same change in the manifest.",
                place=item.source,
                resource=str(item.id),
            )


def _build_missing_error(key: str, overrides: Mapping[str, str]) -> Diagnostic:
    overridden_keys = ", ".join(sorted(overrides))
    return error(
        "no-such-override",
        "No such override",
        f"'{key}' is not overridden. "
        f"{f'The overridden keys are {overridden_keys}' if overridden_keys else 'No key is overridden'}.",
        hint="Correct the key, or omit it from the command if the override was already removed.",
        subject=key,
    )


_PAUSE_S = 0.1
_WARN_DAYS = 30.0


@dataclass(frozen=True, slots=True)
class SentChange:
    """A change that was sent to a worker.

    before: the state of the workers before the change.
    after: all overrides according to the response; None if there was no response.
    lost: the reason why there was no response.
    """

    before: GroupSnapshot
    changes: Changes = field(repr=False)  # both this field and ``after`` can contain secrets
    after: Mapping[str, str] | None = field(repr=False)
    lost: Fault | None = None

    def made(self, seen: GroupSnapshot) -> Mapping[str, str] | None:
        """Return the overrides that all workers must have; None if it is unknown whether the change was made.

        If there was no response, the change counts as made only if a worker has read a newer update and
        the overrides contain the values that were sent. Without a newer update, equal values prove nothing,
        because they could have been set earlier.
        """
        if self.after is not None:
            return self.after
        if seen.overrides is None or _find_newest_offset(seen) <= _find_newest_offset(self.before):
            return None
        as_sent = all(seen.overrides.get(key) == value for key, value in self.changes.items())
        return seen.overrides if as_sent else None


def send_changes(workers: ConnectWorkers, snapshot_before: GroupSnapshot, changes: Changes) -> SentChange:
    """Send the change to one worker. Raises Fault if the change was not made.

    If it is unknown whether the change was made, the field ``lost`` of the result contains the reason.
    """
    try:
        return SentChange(snapshot_before, changes, patch_through_any(workers, changes))
    except Fault as fault:
        if fault.kind is not FaultKind.UNKNOWN:
            raise
        return SentChange(snapshot_before, changes, None, fault)


def await_workers(
    workers: ConnectWorkers,
    sent_change: SentChange,
    fields: tuple[FieldChange, ...],
    clock: Clock,
    wait_s: float,
) -> ChangeView:
    """Wait up to ``wait_s`` seconds until all workers have applied a change. Return their state.

    Raises KdeclareError if it is still unknown at the end whether the change was made.
    """
    started_at = clock.monotonic()
    while True:
        snapshot = read_workers(workers)
        expected_overrides = sent_change.made(snapshot)
        issues = find_unconverged(snapshot, expected_overrides) if expected_overrides is not None else ()
        elapsed_s = clock.monotonic() - started_at
        if expected_overrides is not None and (not issues or elapsed_s >= wait_s):
            view = build_workers_view(replace(snapshot, overrides=expected_overrides), _WARN_DAYS)
            return ChangeView(fields, view, elapsed_s, {standing.url: standing.why for standing in issues})
        if elapsed_s >= wait_s:
            raise _build_unclear_error(sent_change, snapshot, elapsed_s)
        clock.sleep(_PAUSE_S)


def _find_newest_offset(snapshot: GroupSnapshot) -> int:
    """Return the highest offset that any worker has read in the topic with the overrides; -1 if none."""
    offsets = (worker.status.seen for worker in snapshot.workers if worker.status)
    return max((offset for offset in offsets if offset is not None), default=-1)


def _build_unclear_error(sent_change: SentChange, snapshot: GroupSnapshot, elapsed_s: float) -> KdeclareError:
    return KdeclareError(
        error(
            OUTCOME_UNCLEAR,
            "Outcome of the change is unknown",
            "\n".join(_list_outcome_facts(sent_change, snapshot, elapsed_s)),
            hint="Run 'kdeclare connect worker-config status' to see the state of the workers, or repeat the "
            "change, which is safe.",
        ),
        exit_code=ExitCode.PARTIAL,
    )


def _list_outcome_facts(sent_change: SentChange, snapshot: GroupSnapshot, elapsed_s: float) -> Iterator[str]:
    if sent_change.lost is not None:
        yield f"{format_fault(sent_change.lost)} ({sent_change.lost.error})."
    yield f"No worker shows the change after {elapsed_s:.0f} s."
    for issue in find_silent(snapshot):
        yield f"{issue.url}: {issue.why}."
