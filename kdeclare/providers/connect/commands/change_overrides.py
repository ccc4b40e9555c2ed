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
from kdeclare.core.frozen import dataclass
from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.core.resources.changes import FieldChange, FieldOp
from kdeclare.core.secrets.secret_refs import Secret
from kdeclare.engine.executor.attempt import OUTCOME_UNCLEAR
from kdeclare.manifests.syntax.substitution import Unresolved
from kdeclare.providers.connect.client.port import (
    Changes,
    ConnectWorkers,
    read_workers,
    through_any,
    told,
    verdicts,
)
from kdeclare.providers.connect.commands.describe_workers import (
    ChangedView,
    NamedWorkers,
    OpenedWorkers,
    ProposalView,
    VerdictView,
    make_workers_view,
    open_named_workers,
    require_overrides,
)
from kdeclare.providers.connect.worker_config.spec import WorkerConfigBody, parse_value, raw_secret
from kdeclare.providers.connect.worker_health import not_reached, silent
from kdeclare.providers.connect.worker_state import WorkersSeen, show_value

Wanted = Mapping[str, object]
"""Values by key, references and all; None takes the override away."""

Agree = Callable[[ProposalView], bool]
"""Shows what would change, and says whether to go on."""


@dataclass(frozen=True, slots=True)
class _Proposed:
    """What is to change, and how it is told."""

    changes: Changes
    view: ProposalView


def validate_overrides(workspace: Workspace, named: NamedWorkers, wanted: Wanted) -> ProposalView:
    """What every worker says of ``wanted``; changes nothing. Raises KdeclareError."""
    with open_named_workers(workspace, named) as found:
        return _propose(workspace, found, wanted).view


def change_overrides(
    workspace: Workspace,
    named: NamedWorkers,
    wanted: Wanted,
    agree: Agree,
    wait_s: float,
    *,
    must_be_there: bool = False,
) -> ChangedView | None:
    """Check, ask, change and wait; None when the person said no, or a worker did.

    wait_s: how long workers are given to follow. must_be_there: what is to be taken away.
    Raises KdeclareError.
    """
    with open_named_workers(workspace, named) as found:
        proposed = _propose(workspace, found, wanted, must_be_there=must_be_there)
        if not agree(proposed.view) or not proposed.view.is_good:
            return None
        before = read_workers(found.workers)  # anew: the question may have stood for long
        sent = send(found.workers, before, proposed.changes)
        return await_workers(found.workers, sent, proposed.view.fields, SystemClock(), wait_s)


def _propose(
    workspace: Workspace, found: OpenedWorkers, wanted: Wanted, *, must_be_there: bool = False
) -> _Proposed:
    before = require_overrides(read_workers(found.workers))
    missing = [key for key, value in wanted.items() if value is None and key not in before]
    if missing and must_be_there:
        raise KdeclareError(*(_explain_missing(key, before) for key in missing))
    changes, said = _resolve_values(workspace, wanted)
    notices = (*said, *_find_declared(found, changes))
    fields = tuple(_make_field(key, before.get(key), raw) for key, raw in sorted(changes.items()))
    said_of_it = tuple(
        VerdictView(verdict.url, "" if verdict.is_good else verdict.words)
        for verdict in verdicts(found.workers, changes)
    )
    return _Proposed(changes, ProposalView(fields, said_of_it, notices))


def _resolve_values(workspace: Workspace, wanted: Wanted) -> tuple[Changes, tuple[Diagnostic, ...]]:
    """Values with their references read, and what there is to say of them. Raises KdeclareError."""
    try:
        values = resolve_references(workspace, wanted, "")
    except Unresolved as problem:
        raise KdeclareError(replace(problem.diagnostic, resource=None)) from None
    said: list[Diagnostic] = []
    for key, value in values.items():
        wish, problems = parse_value("", key, value)
        said += [raw_secret(None, key)] if isinstance(wish, Secret) else problems
    return {key: None if value is None else str(value) for key, value in values.items()}, tuple(said)


def _make_field(key: str, before: str | None, after: str | None) -> FieldChange:
    op = FieldOp.DELETE if after is None else FieldOp.SET
    return FieldChange(f"configs.{key}", op, show_value(key, before), show_value(key, after))


def _find_declared(found: OpenedWorkers, changes: Changes) -> Iterator[Diagnostic]:
    """What of a change manifests speak of."""
    if found.unread:
        yield warning(
            "manifests-unread",
            "Not all manifests can be read",
            "So it cannot be said of everything whether a manifest declares it.",
            hint="kdeclare validate says what is wrong with them.",
        )
    for item in found.declared:
        both = sorted(changes.keys() & item.get_body(WorkerConfigBody).configs)
        if both:
            yield warning(
                "owned-by-manifests",
                "The manifests own this",
                f"{', '.join(both)} of {item.id} is declared in a manifest; the next 'kdeclare apply' takes "
                "this change back.",
                place=item.source,
                resource=str(item.id),
            )


def _explain_missing(key: str, there: Mapping[str, str]) -> Diagnostic:
    known = ", ".join(sorted(there))
    return error(
        "no-such-override",
        "No such override",
        f"'{key}' is not overridden; {f'overridden are {known}' if known else 'nothing is'}.",
        subject=key,
    )


_PAUSE_S = 0.1
_WARN_DAYS = 30.0


@dataclass(frozen=True, slots=True)
class Sent:
    """A change that has been sent.

    before: the workers as they were. after: all overrides as the answer tells them; None where none came,
    and lost says why.
    """

    before: WorkersSeen
    changes: Changes = field(repr=False)  # may hold secrets, as may the next
    after: Mapping[str, str] | None = field(repr=False)
    lost: Fault | None = None

    def made(self, seen: WorkersSeen) -> Mapping[str, str] | None:
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


def send(workers: ConnectWorkers, before: WorkersSeen, changes: Changes) -> Sent:
    """Tell one of the workers. Raises Fault where the change was not made; what is not known is told."""
    try:
        return Sent(before, changes, through_any(workers, changes))
    except Fault as fault:
        if fault.kind is not FaultKind.UNKNOWN:
            raise
        return Sent(before, changes, None, fault)


def await_workers(
    workers: ConnectWorkers, sent: Sent, fields: tuple[FieldChange, ...], clock: Clock, wait_s: float
) -> ChangedView:
    """Who runs on a change after ``wait_s`` seconds, or as soon as all do.

    Raises KdeclareError where even then nobody can know whether it was made.
    """
    begun = clock.monotonic()
    while True:
        seen = read_workers(workers)
        wanted = sent.made(seen)
        late = not_reached(seen, wanted) if wanted is not None else ()
        passed = clock.monotonic() - begun
        if wanted is not None and (not late or passed >= wait_s):
            view = make_workers_view(replace(seen, overrides=wanted), _WARN_DAYS)
            return ChangedView(fields, view, passed, {standing.url: standing.why for standing in late})
        if passed >= wait_s:
            raise _explain_unclear(sent, seen, passed)
        clock.sleep(_PAUSE_S)


def _find_newest_offset(seen: WorkersSeen) -> int:
    """The offset of the last update that any worker has read; -1 where there was none."""
    offsets = (worker.status.seen for worker in seen.workers if worker.status)
    return max((offset for offset in offsets if offset is not None), default=-1)


def _explain_unclear(sent: Sent, seen: WorkersSeen, passed_s: float) -> KdeclareError:
    return KdeclareError(
        error(
            OUTCOME_UNCLEAR,
            "It is not known whether the change was made",
            "\n".join(_list_known(sent, seen, passed_s)),
            hint="'kdeclare connect worker-config status' and 'get' show it; to do it again does no harm.",
        ),
        exit_code=ExitCode.PARTIAL,
    )


def _list_known(sent: Sent, seen: WorkersSeen, passed_s: float) -> Iterator[str]:
    if sent.lost is not None:
        yield f"{told(sent.lost)} ({sent.lost.error})."
    yield f"No worker shows it after {passed_s:.0f} s."
    for standing in silent(seen):
        yield f"{standing.url}: {standing.why}."
