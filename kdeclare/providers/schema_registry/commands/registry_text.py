"""Render the output of the `kdeclare schema-registry` commands as text."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from kdeclare.core.units import format_count
from kdeclare.providers.schema_registry.client.port import SchemaReference, SchemaType
from kdeclare.providers.schema_registry.commands.registry_views import (
    CheckResult,
    LevelOrigin,
    NamingView,
    RegistrationOutcome,
    SchemaCheckView,
    SchemaDiffView,
    SchemaLineView,
    SchemaSideView,
    SubjectDetailView,
    SubjectListView,
    SubjectView,
)
from kdeclare.providers.schema_registry.schema.manifests import format_json
from kdeclare.providers.schema_registry.schemas.differences import DifferenceScope, SchemaDifference
from kdeclare.report.elements.terminal import PLAIN, Column, Elision, Style, render_table
from kdeclare.report.elements.values import sanitize_for_terminal

_LIST_COLUMNS = (
    Column("REGISTRY"),
    Column("SUBJECT", elision=Elision.MIDDLE, least=20),
    Column("TYPE"),
    Column("LATEST", right=True),
    Column("VERSIONS", right=True),
    Column("DELETED", right=True),
    Column("LEVEL"),
    Column("OWNED"),
)
_CONTEXT_LINES = 3
_EQUAL = "equal"


def render_subject_list(view: SubjectListView, width: int | None = None, style: Style = PLAIN) -> str:
    """Render a list of subjects as text. width: the columns of the terminal; None for no limit."""
    return _join(_render_list(view, width, style))


def render_subject(view: SubjectDetailView, style: Style = PLAIN) -> str:
    """Render a subject and one of its versions as text."""
    return _join(_render_subject(view, style))


def render_schema_diff(view: SchemaDiffView, style: Style = PLAIN) -> str:
    """Render the differences between two schemas as text."""
    return _join(_render_diff(view, style))


def render_schema_check(view: SchemaCheckView, style: Style = PLAIN) -> str:
    """Render the result of checking a schema as text."""
    return _join(_render_check(view, style))


def _join(lines: Iterator[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _render_list(view: SubjectListView, width: int | None, style: Style) -> Iterator[str]:
    if view.subjects:
        rows = [
            (
                sanitize_for_terminal(item.registry),
                sanitize_for_terminal(item.subject),
                item.type.value if item.type is not None else "-",
                "-" if item.latest_version is None else str(item.latest_version),
                f"{item.versions:,}",
                "" if item.deleted_versions is None else f"{item.deleted_versions:,}",
                _format_level(item),
                "yes" if item.owned_by else "no",
            )
            for item in view.subjects
        ]
        yield from render_table(_LIST_COLUMNS, rows, width, style)
    elif not view.unreadable:
        yield "No subjects."
    for problem in view.unreadable:
        name, message = sanitize_for_terminal(problem.registry), sanitize_for_terminal(problem.message)
        yield f"{name}: not read: {message}."


def _format_level(item: SubjectView | SubjectDetailView) -> str:
    notes = {
        LevelOrigin.OWN: "",
        LevelOrigin.INHERITED: " (inherited)",
        LevelOrigin.UNKNOWN: " (own or inherited)",
    }
    return f"{item.level.value}{notes[item.level_origin]}"


def _render_subject(view: SubjectDetailView, style: Style) -> Iterator[str]:
    deleted = ", soft-deleted" if view.deleted else ""
    yield f"{style.bold(sanitize_for_terminal(view.subject))}: version {view.version} (id {view.id}{deleted})"
    yield f"  Registry: {sanitize_for_terminal(view.registry)}"
    yield f"  Type: {view.type.value}"
    deleted_numbers = (
        f" (soft-deleted: {_format_numbers(view.deleted_versions)})" if view.deleted_versions else ""
    )
    yield f"  Versions: {_format_numbers(view.versions)}{deleted_numbers}"
    yield f"  Compatibility: {_format_level(view)}"
    yield f"  Topic: {_format_topic(view.naming)}"
    yield f"  Manifest: {view.declared_by or 'none declares it'}"
    yield f"  Owned by kdeclare: {f'yes, as {view.owned_by}' if view.owned_by else 'no'}"
    yield from _render_references(view.references)
    if view.referrers is None:
        yield "  Referenced by: not read"
    else:
        referrers = (f"{sanitize_for_terminal(one.subject)} version {one.version}" for one in view.referrers)
        yield f"  Referenced by: {', '.join(referrers) or 'none'}"
    yield "  Schema:"
    text = view.text if view.type is SchemaType.PROTOBUF else format_json(view.text)
    yield from (f"    {sanitize_for_terminal(line)}".rstrip() for line in text.splitlines())


def _format_numbers(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers)) or "none"


def _format_topic(naming: NamingView | None) -> str:
    if naming is None:
        return "the subject name does not match any subject name strategy"
    if naming.topic is None:
        return f"any ({naming.strategy})"
    part = f", {naming.part.value}s" if naming.part is not None else ""
    return f"{sanitize_for_terminal(naming.topic)}{part} ({naming.strategy})"


def _render_references(references: Sequence[SchemaReference]) -> Iterator[str]:
    if not references:
        yield "  References: none"
        return
    yield "  References:"
    for item in references:
        name, subject = sanitize_for_terminal(item.name), sanitize_for_terminal(item.subject)
        yield f"    {name} = {subject} version {item.version}"


def _render_diff(view: SchemaDiffView, style: Style) -> Iterator[str]:
    title = f"{sanitize_for_terminal(view.subject)} in registry {sanitize_for_terminal(view.registry)}"
    yield f"{style.bold(title)}: {_format_side(view.before)} → {_format_side(view.after)}"
    if not view.differences:
        yield ("No differences." if view.equal_texts else "No differences, except in the layout of the text.")
        return
    yield from _render_differences(view.differences, view.scope, style)
    if any(line.change != _EQUAL for line in view.lines):
        yield ""
        yield from _render_lines(view.lines, style)


def _format_side(side: SchemaSideView) -> str:
    return f"version {side.version}" if side.version is not None else sanitize_for_terminal(side.file or "")


def _render_differences(
    differences: Sequence[SchemaDifference], scope: DifferenceScope, style: Style
) -> Iterator[str]:
    if scope is DifferenceScope.DOCUMENTATION:
        yield "  Only the documentation differs:"
    for item in differences:
        message = sanitize_for_terminal(item.message)
        if item.kind.endswith("-added"):
            yield style.green(f"  + {message}")
        elif item.kind.endswith("-removed"):
            yield style.red(f"  - {message}")
        else:
            yield style.yellow(f"  ~ {message}")


def _render_lines(lines: Sequence[SchemaLineView], style: Style) -> Iterator[str]:
    """Yield the lines of a unified diff, with a few equal lines around each difference."""
    differing = [index for index, line in enumerate(lines) if line.change != _EQUAL]
    kept = {
        near
        for index in differing
        for near in range(index - _CONTEXT_LINES, index + _CONTEXT_LINES + 1)
        if 0 <= near < len(lines)
    }
    parts = groupby(enumerate(lines), key=lambda item: (item[0] in kept, item[1].change == _EQUAL))
    for (is_kept, is_equal), group in parts:
        part = [line for _, line in group]
        if not is_kept:
            yield style.dim(f"  … {format_count(len(part), 'equal line')}")
        elif is_equal:
            yield from (f"    {sanitize_for_terminal(line.before or '')}" for line in part)
        else:
            removed = (line.before for line in part if line.before is not None)
            added = (line.after for line in part if line.after is not None)
            yield from (style.red(f"  - {sanitize_for_terminal(text)}") for text in removed)
            yield from (style.green(f"  + {sanitize_for_terminal(text)}") for text in added)


def _render_check(view: SchemaCheckView, style: Style) -> Iterator[str]:
    subject, registry = sanitize_for_terminal(view.subject), sanitize_for_terminal(view.registry)
    yield f"{style.bold(sanitize_for_terminal(view.file))} as subject {subject} in registry {registry}"
    yield f"  Type: {view.type.value}"
    yield from _render_references(view.references)
    yield f"  Registration: {_format_registration(view)}"
    if view.registration.mode is not None:
        yield f"  Mode: {view.registration.mode}, so the registry accepts no new version"
    yield from _render_compatibility(view, style)
    if view.differences:
        yield f"  Differences from version {view.registration.latest_version}:"
        yield from (f"  {line}" for line in _render_differences(view.differences, view.scope, style))


def _format_registration(view: SchemaCheckView) -> str:
    version, latest = view.registration.version, view.registration.latest_version
    return {
        RegistrationOutcome.NEW_SUBJECT: "a new subject",
        RegistrationOutcome.NEW_VERSION: f"a new version after version {latest}",
        RegistrationOutcome.LATEST_VERSION: f"no change; it is version {version}, the latest",
        RegistrationOutcome.OLDER_VERSION: f"no change; it is version {version}, and version {latest} "
        "remains the latest",
    }[view.registration.outcome]


def _render_compatibility(view: SchemaCheckView, style: Style) -> Iterator[str]:
    checked = view.compatibility
    level = checked.level.value
    if view.registration.outcome is RegistrationOutcome.NEW_SUBJECT:
        yield "  Compatibility: there is no earlier version"
        return
    which = "the earlier versions" if checked.level.is_transitive else "the latest version"
    yield {
        CheckResult.COMPATIBLE: style.green(f"  Compatibility: {level} compatible with {which}"),
        CheckResult.INCOMPATIBLE: style.red(f"  Compatibility: not {level} compatible with {which}"),
        CheckResult.UNCHECKED: style.yellow(f"  Compatibility: not checked at {level}"),
    }[checked.result]
    yield from (f"    - {sanitize_for_terminal(reason)}" for reason in checked.reasons)
