"""Render what the commands of ``kdeclare state`` show, as text."""

import json
from collections.abc import Sequence

from kdeclare.report.elements.terminal import PLAIN, Style
from kdeclare.report.elements.values import format_count, sanitize_for_terminal
from kdeclare.report.run.state_views import (
    MigratedState,
    OwnedResource,
    OwnedResources,
    OwnershipChange,
    OwnershipTransfer,
    StateRevision,
)
from kdeclare.report.run.views import AbandonedRun, PrunedRuns, RunStep

_MAX_STEPS = 200
_MAX_NAMES = 20


def render_abandoned_run_text(run: AbandonedRun, style: Style = PLAIN) -> str:
    """Render the operations that an abandoned run began.

    Operations without a known outcome come first, and are never left out.
    """
    name = sanitize_for_terminal(run.run_id)
    reason = sanitize_for_terminal(run.problem) or f"Run {name} is not finished."
    lines = [style.bold(reason)]
    unknown_ids = {step.id for step in run.unknown}
    known_steps = [step for step in run.operations if step.id not in unknown_ids]
    if run.operations:
        lines.append(f"It began {format_count(len(run.operations), 'operation')}:")
        lines += [_format_step(step) for step in (*run.unknown, *known_steps[:_MAX_STEPS])]
        if len(known_steps) > _MAX_STEPS:
            lines.append(style.dim(f"  … and {len(known_steps) - _MAX_STEPS:,} more with a known outcome"))
    else:
        lines.append("According to its journal, it did not begin any operation.")
    if not run.journal_complete:
        lines.append("The journal is damaged. The run may have begun other operations as well.")
    return "".join(f"{line}\n" for line in lines)


def render_pruned_runs_text(pruned: PrunedRuns) -> str:
    """Render the number and the ids of the runs that ``kdeclare state prune`` removed or would remove."""
    if not pruned.runs:
        return f"No run to remove; {format_count(pruned.kept, 'run')} kept.\n"
    verb = "removed" if pruned.removed else "to remove"
    first, last = (sanitize_for_terminal(run_id) for run_id in (pruned.runs[0], pruned.runs[-1]))
    names = first if first == last else f"from {first} to {last}"
    return f"{format_count(len(pruned.runs), 'run')} {verb} ({names}); {pruned.kept:,} kept.\n"


def render_owned_resources_text(owned: OwnedResources) -> str:
    """Render the owned resources, one per line."""
    if not owned.resources:
        return "No resources are owned.\n"
    return "".join(f"{sanitize_for_terminal(name)}\n" for name in owned.resources)


def render_owned_resource_text(owned: OwnedResource, style: Style = PLAIN) -> str:
    """Render the ownership record of a resource as JSON, exactly as the state contains it."""
    record = json.dumps(owned.record, indent=2, ensure_ascii=False, sort_keys=True)
    lines = [
        style.bold(sanitize_for_terminal(owned.resource)),
        *map(sanitize_for_terminal, record.split("\n")),
    ]
    return "".join(f"{line}\n" for line in lines)


def render_ownership_change_text(change: OwnershipChange) -> str:
    """Render the ownership records that are added, changed and removed in the state."""
    if not (change.released or change.added or change.changed):
        return "The owned resources stay the same.\n"
    lines = [
        line
        for sign, names in (("+", change.added), ("~", change.changed), ("-", change.released))
        for line in _format_names(sign, names)
    ]
    return "".join(f"{line}\n" for line in lines)


def render_ownership_transfer_text(transfer: OwnershipTransfer) -> str:
    """Render the resources whose ownership is transferred, and their old and new projects."""
    lines = [
        f"From {_format_revision(transfer.source)}",
        f"to   {_format_revision(transfer.target)}:",
        *_format_names("→", transfer.resources),
    ]
    return "".join(f"{line}\n" for line in lines)


def _format_revision(revision: StateRevision) -> str:
    project, env = sanitize_for_terminal(revision.project), sanitize_for_terminal(revision.env)
    return f"project '{project}', environment '{env}'"


def _format_names(sign: str, names: Sequence[str]) -> list[str]:
    lines = [f"  {sign} {sanitize_for_terminal(name)}" for name in names[:_MAX_NAMES]]
    return lines + ([f"  {sign} … and {len(names) - _MAX_NAMES:,} more"] if len(names) > _MAX_NAMES else [])


def render_migrated_state_text(migrated: MigratedState) -> str:
    """Render the result of copying a state to another location, and how to change the project file."""
    target, source = sanitize_for_terminal(migrated.target), sanitize_for_terminal(migrated.source)
    lines = [
        f"Copied {format_count(migrated.resources, 'owned resource')} and "
        f"{format_count(migrated.runs, 'run')}, and verified the copy.",
        "",
        "Now change the location in the project file:",
        "",
        "  spec:",
        f"    state: {target}",
        "",
        f"The old state ({source}) is unchanged. Delete it once everyone uses the new location.",
    ]
    return "".join(f"{line}\n" for line in lines)


def _format_step(step: RunStep) -> str:
    status = step.status.value if step.status else "unknown"
    message = f": {sanitize_for_terminal(step.message)}" if step.message else ""
    return (
        f"  {status:<11}  {sanitize_for_terminal(step.verb)} {sanitize_for_terminal(step.resource)}{message}"
    )
