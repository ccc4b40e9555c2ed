"""Changing the overrides of Connect workers by hand, without a manifest.

It goes the way of the engine: every worker is asked, one PATCH is sent, and all are waited for. No Kafka
cluster and no state have a part in it, so it stands in no history; manifests that own a key are named.
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
"""Values by key, references and all; None takes the override away."""

ConfirmProposal = Callable[[ProposalView], bool]
"""Shows what would change, and says whether to go on."""


@dataclass(frozen=True, slots=True)
class _Proposal:
    """What is to change, and how it is told."""

    changes: Changes
    compute_view: ProposalView


def validate_overrides(
    workspace: Workspace, workers_request: WorkersRequest, requested_values: RequestedValues
) -> ProposalView:
    """What every worker says of ``requested_values``; changes nothing. Raises KdeclareError."""
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
    """Check, ask, change and wait; None when the person said no, or a worker did.

    wait_s: how long workers are given to follow. require_existing: what is to be taken away.
    Raises KdeclareError.
    """
    with open_requested_workers(workspace, workers_request) as opened:
        proposal = _build_proposal(workspace, opened, requested_values, require_existing=require_existing)
        if not confirm(proposal.compute_view) or not proposal.compute_view.is_good:
            return None
        snapshot = read_workers(opened.workers)  # anew: the question may have stood for long
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
    """Values with their references read, and what there is to say of them. Raises KdeclareError."""
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
    """What of a change manifests speak of."""
    if opened.unread:
        yield warning(
            "manifests-unread",
            "Not all manifests can be read",
            "So it cannot be said of everything whether a manifest declares it.",
            hint="kdeclare validate says what is wrong with them.",
        )
    for item in opened.declared:
        declared_keys = sorted(changes.keys() & item.get_body(WorkerConfigBody).configs)
        if declared_keys:
            yield warning(
                "owned-by-manifests",
                "The manifests own this",
                f"{', '.join(declared_keys)} of {item.id} is declared in a manifest; "
                f"the next 'kdeclare apply' takes "
                "this change back.",
                place=item.source,
                resource=str(item.id),
            )


def _build_missing_error(key: str, overrides: Mapping[str, str]) -> Diagnostic:
    overridden_keys = ", ".join(sorted(overrides))
    return error(
        "no-such-override",
        "No such override",
        f"'{key}' is not overridden; "
        f"{f'overridden are {overridden_keys}' if overridden_keys else 'nothing is'}.",
        subject=key,
    )


_PAUSE_S = 0.1
_WARN_DAYS = 30.0


@dataclass(frozen=True, slots=True)
class SentChange:
    """A change that has been sent.

    before: the workers as they were. after: all overrides as the answer tells them; None where none came,
    and lost says why.
    """

    before: GroupSnapshot
    changes: Changes = field(repr=False)  # may hold secrets, as may the next
    after: Mapping[str, str] | None = field(repr=False)
    lost: Fault | None = None

    def made(self, seen: GroupSnapshot) -> Mapping[str, str] | None:
        """The overrides that every worker is to run on; None where nothing shows that it was made.

        Without an answer it shows in an update that is newer than all there were before, with these keys as
        they were sent: the values alone can have been there already, and others may change other keys.
        """
        if self.after is not None:
            return self.after
        if seen.overrides is None or _find_newest_offset(seen) <= _find_newest_offset(self.before):
            return None
        as_sent = all(seen.overrides.get(key) == value for key, value in self.changes.items())
        return seen.overrides if as_sent else None


def send_changes(workers: ConnectWorkers, snapshot_before: GroupSnapshot, changes: Changes) -> SentChange:
    """Tell one of the workers. Raises Fault where the change was not made; what is not known is told."""
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
    """Who runs on a change after ``wait_s`` seconds, or as soon as all do.

    Raises KdeclareError where even then nobody can know whether it was made.
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
    """The offset of the last update that any worker has read; -1 where there was none."""
    offsets = (worker.status.seen for worker in snapshot.workers if worker.status)
    return max((offset for offset in offsets if offset is not None), default=-1)


def _build_unclear_error(sent_change: SentChange, snapshot: GroupSnapshot, elapsed_s: float) -> KdeclareError:
    return KdeclareError(
        error(
            OUTCOME_UNCLEAR,
            "It is not known whether the change was made",
            "\n".join(_list_outcome_facts(sent_change, snapshot, elapsed_s)),
            hint="'kdeclare connect worker-config status' and 'get' show it; to do it again does no harm.",
        ),
        exit_code=ExitCode.PARTIAL,
    )


def _list_outcome_facts(sent_change: SentChange, snapshot: GroupSnapshot, elapsed_s: float) -> Iterator[str]:
    if sent_change.lost is not None:
        yield f"{format_fault(sent_change.lost)} ({sent_change.lost.error})."
    yield f"No worker shows it after {elapsed_s:.0f} s."
    for issue in find_silent(snapshot):
        yield f"{issue.url}: {issue.why}."
