"""Changing the overrides of Connect workers by hand, without a manifest.

It goes the way of the engine: every worker is asked, one PATCH is sent, and all are waited for. No Kafka
cluster and no state have a part in it, so it stands in no history; manifests that own a key are named.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from kdeclare.app.adhoc.references import resolve_references
from kdeclare.app.connect.following import followed, send
from kdeclare.app.connect.looking import told_overrides
from kdeclare.app.connect.which import Chosen, Named, chosen
from kdeclare.app.workspace import Workspace
from kdeclare.core.changes import FieldChange, FieldOp
from kdeclare.core.clock import SystemClock
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error, warning
from kdeclare.core.secrets import Secret
from kdeclare.manifests.substitution import Unresolved
from kdeclare.providers.connect.client.port import Changes
from kdeclare.providers.connect.client.reading import read_workers
from kdeclare.providers.connect.client.rollout import verdicts
from kdeclare.providers.connect.worker_config.spec import parse_value, raw_secret
from kdeclare.providers.connect.workers.values import shown
from kdeclare.report.connect_views import ChangedView, ProposalView, VerdictView

Wanted = Mapping[str, object]
"""Values by key, references and all; None takes the override away."""

Agree = Callable[[ProposalView], bool]
"""Shows what would change, and says whether to go on."""


@dataclass(frozen=True, slots=True)
class _Proposed:
    """What is to change, and how it is told."""

    changes: Changes
    view: ProposalView


def validate_overrides(workspace: Workspace, named: Named, wanted: Wanted) -> ProposalView:
    """What every worker says of ``wanted``; changes nothing. Raises KdeclareError."""
    with chosen(workspace, named) as found:
        return _proposed(workspace, found, wanted).view


def change_overrides(
    workspace: Workspace,
    named: Named,
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
    with chosen(workspace, named) as found:
        proposed = _proposed(workspace, found, wanted, must_be_there=must_be_there)
        if not agree(proposed.view) or not proposed.view.is_good:
            return None
        before = read_workers(found.workers)  # anew: the question may have stood for long
        sent = send(found.workers, before, proposed.changes)
        return followed(found.workers, sent, proposed.view.fields, SystemClock(), wait_s)


def _proposed(
    workspace: Workspace, found: Chosen, wanted: Wanted, *, must_be_there: bool = False
) -> _Proposed:
    before = told_overrides(read_workers(found.workers))
    missing = [key for key, value in wanted.items() if value is None and key not in before]
    if missing and must_be_there:
        raise KdeclareError(*(_not_there(key, before) for key in missing))
    changes, said = _read(workspace, wanted)
    notices = (*said, *_owned(found, changes))
    fields = tuple(_field(key, before.get(key), raw) for key, raw in sorted(changes.items()))
    said_of_it = tuple(
        VerdictView(verdict.url, "" if verdict.is_good else verdict.words)
        for verdict in verdicts(found.workers, changes)
    )
    return _Proposed(changes, ProposalView(fields, said_of_it, notices))


def _read(workspace: Workspace, wanted: Wanted) -> tuple[Changes, tuple[Diagnostic, ...]]:
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


def _field(key: str, before: str | None, after: str | None) -> FieldChange:
    op = FieldOp.DELETE if after is None else FieldOp.SET
    return FieldChange(f"configs.{key}", op, shown(key, before), shown(key, after))


def _owned(found: Chosen, changes: Changes) -> Iterator[Diagnostic]:
    """What of a change manifests speak of."""
    if found.unread:
        yield warning(
            "manifests-unread",
            "Not all manifests can be read",
            "So it cannot be said of everything whether a manifest declares it.",
            hint="kdeclare validate says what is wrong with them.",
        )
    for item in found.declared:
        both = sorted(changes.keys() & item.body.configs)
        if both:
            yield warning(
                "owned-by-manifests",
                "The manifests own this",
                f"{', '.join(both)} of {item.id} is declared in a manifest; the next 'kdeclare apply' takes "
                "this change back.",
                place=item.source,
                resource=str(item.id),
            )


def _not_there(key: str, there: Mapping[str, str]) -> Diagnostic:
    known = ", ".join(sorted(there))
    return error(
        "no-such-override",
        "No such override",
        f"'{key}' is not overridden; {f'overridden are {known}' if known else 'nothing is'}.",
        subject=key,
    )
