"""A resource as it is planned: YAML with the origin of each field beside it, and the same as JSON."""

from collections.abc import Iterator, Sequence
from typing import Any

from kdeclare.core.documents import publish_schemas
from kdeclare.core.provider.registry import find_api_version
from kdeclare.core.resources.manifest_text import quoted, scalar
from kdeclare.core.secrets.secret_refs import SHOWN
from kdeclare.manifests.provenance import EffectiveManifest, Origin, Origins, Said
from kdeclare.report.elements.terminal import PLAIN, Cut, Style, elided, width_of
from kdeclare.report.elements.values import clean


def manifest_schemas() -> dict[str, dict[str, Any]]:
    """By name; see `publish_schemas`."""
    return publish_schemas({"show-manifest": EffectiveManifest})


_INDENT = "  "
_LONGEST = 64
"""Lines longer than this do not push the comments of all others to the right."""
_LEAST = 20
"""How many columns of a comment are still worth reading."""

_Line = tuple[str, Sequence[str]]
"""YAML, and what there is to say of it, a comment each."""


def manifest_text(manifest: EffectiveManifest, width: int | None = None, style: Style = PLAIN) -> str:
    """The whole text, ending in a new line. width: columns of the terminal, None for no bound."""
    about = f"{manifest.resource}, environment {manifest.env} of project {manifest.project}"
    lines = [
        (f"apiVersion: {find_api_version(manifest.resource.kind)}", ()),
        (f"kind: {scalar(manifest.resource.kind, text=True)}", ()),
        *_fields(manifest.fields),
    ]
    body = "".join(f"{line}\n" for line in _aligned(lines, width, style))
    return f"{style.dim(f'# {clean(about)}')}\n{body}"


def _fields(fields: Sequence[Origins]) -> Iterator[_Line]:
    above: tuple[str | int, ...] = ()
    for item in fields:
        *parents, name = item.path
        same = 0
        while same < len(parents) and same < len(above) and above[same] == parents[same]:
            same += 1
        for depth in range(same, len(parents)):
            yield f"{_INDENT * depth}{_key(parents[depth])}:", ()
        above = tuple(parents)
        yield from _field(f"{_INDENT * len(parents)}{_key(name)}:", item)


def _field(begun: str, item: Origins) -> Iterator[_Line]:
    comments = [*_comments(item)]
    text = not item.is_text
    if isinstance(item.value, list) and any(isinstance(inner, dict | list) for inner in item.value):
        yield begun, comments
        indent = begun[: len(begun) - len(begun.lstrip())]
        for inner in item.value:
            yield f"{indent}{_INDENT}- {_flow(inner, item, text=text)}", ()
        return
    value = SHOWN if item.secret else _flow(item.value, item, text=text)
    yield f"{begun} {value}", comments


def _flow(value: Any, item: Origins, *, text: bool) -> str:
    if isinstance(value, dict):
        pairs = (f"{_key(key)}: {_flow(inner, item, text=text)}" for key, inner in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list):
        return f"[{', '.join(_flow(inner, item, text=text) for inner in value)}]"
    if isinstance(value, str):
        return quoted(value) if item.by_reference and "${" in value else scalar(value, text=text)
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _key(step: str | int) -> str:
    return str(step) if isinstance(step, int) else scalar(step, text=True)


def _comments(item: Origins) -> Iterator[str]:
    yield _where(item.by)
    for said in item.over:
        yield f"over {_where(said)}"
    for reference in item.references:
        if reference.place is not None:
            yield f"${{{clean(reference.name)}}} is from {clean(str(reference.place))}"
        elif not item.by_reference:
            yield f"${{{clean(reference.name)}}}"


def _where(said: Said) -> str:
    place = clean(str(said.place))
    if said.origin is Origin.MANIFEST:
        return place
    return f"{place} ({'overlay' if said.name is None else f'Defaults/{clean(said.name)}'})"


def _aligned(lines: Sequence[_Line], width: int | None, style: Style) -> Iterator[str]:
    """Comments below each other; none is wider than the terminal, however long the YAML is."""
    column = 2 + max(n for n in (0, *(width_of(text) for text, _ in lines)) if n <= _LONGEST)
    for text, comments in lines:
        begun = text
        for comment in comments or ("",):
            gap = " " * max(2, column - width_of(begun))
            room = None if width is None else width - width_of(begun) - len(gap) - 2
            if comment and room is not None and room < _LEAST and begun.strip():
                yield begun  # the comment gets the next line
                begun, gap = "", " " * min(column, max(0, (width or 0) - _LEAST - 2))
                room = (width or 0) - len(gap) - 2
            shown = comment if room is None else elided(comment, max(room, _LEAST), Cut.MIDDLE)
            yield f"{begun}{gap}{style.dim(f'# {shown}')}" if comment else begun
            begun = ""
