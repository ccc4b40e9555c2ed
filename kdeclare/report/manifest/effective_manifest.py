"""Render the effective manifest of a resource as YAML. Comments contain the origin of each field."""

from collections.abc import Iterator, Sequence
from typing import Any

from kdeclare.core.diagnostics import SourcePosition
from kdeclare.core.documents import publish_schemas
from kdeclare.core.provider.registry import find_api_version
from kdeclare.core.resources.manifest_text import quote_scalar, scalar
from kdeclare.core.secrets.secret_refs import SENSITIVE_MASK
from kdeclare.manifests.provenance import EffectiveManifest, FieldOrigins, FieldSource, Origin
from kdeclare.report.elements.terminal import PLAIN, Elision, Style, elide, measure_width
from kdeclare.report.elements.values import sanitize_for_terminal


def build_manifest_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schema of ``kdeclare show-manifest``, by document name; see `publish_schemas`."""
    return publish_schemas({"show-manifest": EffectiveManifest})


_INDENT = "  "
_MAX_ALIGNED_WIDTH = 64
"""The maximum width of a line with an aligned comment, in terminal columns."""
_MIN_COMMENT_WIDTH = 20
"""The minimum width of a comment, in terminal columns."""

_Line = tuple[str, Sequence[str]]
"""A line of YAML without comments, and the comments that belong to it."""


def render_manifest_text(manifest: EffectiveManifest, width: int | None = None, style: Style = PLAIN) -> str:
    """Render the manifest as text that ends in a newline.

    width: the width of the terminal; None for no limit.
    """
    header = f"{manifest.resource}, environment {manifest.env} of project {manifest.project}"
    lines = [
        (f"apiVersion: {find_api_version(manifest.resource.kind)}", ()),
        (f"kind: {scalar(manifest.resource.kind, text=True)}", ()),
        *_render_fields(manifest.fields),
    ]
    body = "".join(f"{line}\n" for line in _align_comments(lines, width, style))
    return f"{style.dim(f'# {sanitize_for_terminal(header)}')}\n{body}"


def _render_fields(fields: Sequence[FieldOrigins]) -> Iterator[_Line]:
    previous_parents: tuple[str | int, ...] = ()
    for item in fields:
        *parents, name = item.path
        common_depth = 0
        while (
            common_depth < len(parents)
            and common_depth < len(previous_parents)
            and previous_parents[common_depth] == parents[common_depth]
        ):
            common_depth += 1
        for depth in range(common_depth, len(parents)):
            yield f"{_INDENT * depth}{_format_key(parents[depth])}:", ()
        previous_parents = tuple(parents)
        yield from _render_field(f"{_INDENT * len(parents)}{_format_key(name)}:", item)


def _render_field(line_start: str, item: FieldOrigins) -> Iterator[_Line]:
    comments = [*_list_comments(item)]
    quote_text = not item.is_text
    if isinstance(item.value, list) and any(isinstance(inner, dict | list) for inner in item.value):
        yield line_start, comments
        indent = line_start[: len(line_start) - len(line_start.lstrip())]
        for element in item.value:
            yield f"{indent}{_INDENT}- {_render_flow(element, item, quote_text=quote_text)}", ()
        return
    value = SENSITIVE_MASK if item.secret else _render_flow(item.value, item, quote_text=quote_text)
    yield f"{line_start} {value}", comments


def _render_flow(value: Any, item: FieldOrigins, *, quote_text: bool) -> str:
    if isinstance(value, dict):
        pairs = (
            f"{_format_key(key)}: {_render_flow(inner, item, quote_text=quote_text)}"
            for key, inner in value.items()
        )
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list):
        return f"[{', '.join(_render_flow(inner, item, quote_text=quote_text) for inner in value)}]"
    if isinstance(value, str):
        return quote_scalar(value) if item.by_reference and "${" in value else scalar(value, text=quote_text)
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _format_key(step: str | int) -> str:
    return str(step) if isinstance(step, int) else scalar(step, text=True)


def _list_comments(item: FieldOrigins) -> Iterator[str]:
    source = _format_source(item.by)
    yield source if item.sent is None else f"{source}, sent as {sanitize_for_terminal(item.sent)}"
    for overridden_source in item.over:
        yield f"overrides {_format_source(overridden_source)}"
    for reference in item.references:
        if reference.place is not None:
            yield (
                f"${{{sanitize_for_terminal(reference.name)}}} is from "
                f"{sanitize_for_terminal(_format_position(reference.place))}"
            )
        elif not item.by_reference:
            yield f"${{{sanitize_for_terminal(reference.name)}}}"


def _format_position(position: SourcePosition) -> str:
    """Return where a variable is set: a position in a file, or an option such as ``--var retention``."""
    return position.file if position.file.startswith("--") else str(position)


def _format_source(source: FieldSource) -> str:
    position = sanitize_for_terminal(str(source.place))
    if source.origin is Origin.MANIFEST:
        return position
    return (
        f"{position} "
        f"({'overlay' if source.name is None else f'Defaults/{sanitize_for_terminal(source.name)}'})"
    )


def _align_comments(lines: Sequence[_Line], width: int | None, style: Style) -> Iterator[str]:
    """Align the comments. A comment that does not fit the width is moved to the next line, or shortened."""
    column = 2 + max(n for n in (0, *(measure_width(text) for text, _ in lines)) if n <= _MAX_ALIGNED_WIDTH)
    for text, comments in lines:
        yaml = text
        for comment in comments or ("",):
            gap = " " * max(2, column - measure_width(yaml))
            comment_width = None if width is None else width - measure_width(yaml) - len(gap) - 2
            if comment and comment_width is not None and comment_width < _MIN_COMMENT_WIDTH and yaml.strip():
                yield yaml  # write the comment on the next line
                yaml, gap = "", " " * min(column, max(0, (width or 0) - _MIN_COMMENT_WIDTH - 2))
                comment_width = (width or 0) - len(gap) - 2
            shown_comment = (
                comment
                if comment_width is None
                else elide(comment, max(comment_width, _MIN_COMMENT_WIDTH), Elision.MIDDLE)
            )
            yield f"{yaml}{gap}{style.dim(f'# {shown_comment}')}" if comment else yaml
            yaml = ""
