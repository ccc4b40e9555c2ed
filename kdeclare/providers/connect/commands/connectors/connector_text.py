"""Render connectors as text."""

from collections.abc import Iterator

from kdeclare.core.jsontypes import dump_canonical_json
from kdeclare.providers.connect.commands.connectors.connector_views import (
    ConnectorDetailView,
    ConnectorListView,
)
from kdeclare.report.elements.terminal import PLAIN, Column, Elision, Style, render_table
from kdeclare.report.elements.values import format_count, sanitize_for_terminal

_LIST_COLUMNS = (
    Column("CONNECT"),
    Column("NAME", elision=Elision.MIDDLE, least=20),
    Column("TYPE"),
    Column("CLASS", elision=Elision.MIDDLE, least=16),
    Column("STATE"),
    Column("TASKS", right=True),
    Column("RUNNING", right=True),
    Column("FAILED", right=True),
)
_MAX_OFFSETS = 10
"""The number of offsets that the text shows. The JSON output has all offsets."""


def render_connector_list(view: ConnectorListView, width: int | None = None, style: Style = PLAIN) -> str:
    """Return the list of connectors as text that ends with a newline.

    width: columns of the terminal; None for no limit.
    """
    return "".join(f"{line}\n" for line in _render_list_lines(view, width, style))


def _render_list_lines(view: ConnectorListView, width: int | None, style: Style) -> Iterator[str]:
    if view.connectors:
        rows = [
            (
                sanitize_for_terminal(item.connect),
                sanitize_for_terminal(item.name),
                item.type,
                sanitize_for_terminal(item.class_name),
                item.state or "-",
                f"{item.tasks_total:,}",
                f"{item.tasks_running:,}",
                f"{item.tasks_failed:,}",
            )
            for item in view.connectors
        ]
        yield from render_table(_LIST_COLUMNS, rows, width, style)
    elif not view.unreadable:
        yield "No connectors."
    for problem in view.unreadable:
        yield f"{problem.connect}: not read: {sanitize_for_terminal(problem.message)}."


def render_connector(view: ConnectorDetailView, style: Style = PLAIN) -> str:
    """Return one connector as text that ends with a newline."""
    return "".join(f"{line}\n" for line in _render_lines(view, style))


def _render_lines(view: ConnectorDetailView, style: Style) -> Iterator[str]:
    worker = f" on {sanitize_for_terminal(view.worker_id)}" if view.worker_id else ""
    yield f"{style.bold(sanitize_for_terminal(view.name))}: {view.state or 'no status yet'}{worker}"
    if view.failure is not None:
        yield f"  Failure: {sanitize_for_terminal(view.failure)}"
    yield f"  Connect: {sanitize_for_terminal(view.connect)}"
    yield f"  Class: {sanitize_for_terminal(view.class_name)} ({view.type})"
    yield f"  Manifest: {view.declared_by or 'none declares it'}"
    yield f"  Owned by kdeclare: {f'yes, as {view.owned_by}' if view.owned_by else 'no'}"
    yield "  Config:"
    for key, value in view.config.items():
        yield f"    {sanitize_for_terminal(key)} = {sanitize_for_terminal(str(value))}"
    yield f"  Tasks: {view.tasks_total:,}"
    for task in view.tasks:
        task_worker = f" on {sanitize_for_terminal(task.worker_id)}" if task.worker_id else ""
        failure = f": {sanitize_for_terminal(task.failure)}" if task.failure else ""
        yield f"    {task.id}: {task.state}{task_worker}{failure}"
    if view.offsets is None:
        yield "  Offsets: not read"
        return
    yield f"  Offsets: {format_count(len(view.offsets), 'partition')}"
    for item in view.offsets[:_MAX_OFFSETS]:
        pair = f"{dump_canonical_json(item.partition)}: {dump_canonical_json(item.offset)}"
        yield f"    {sanitize_for_terminal(pair)}"
    if len(view.offsets) > _MAX_OFFSETS:
        yield f"    … and {len(view.offsets) - _MAX_OFFSETS:,} more; --format json shows all"
