"""Convert the files of other tools into manifests that `kdeclare validate` accepts."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from yaml.nodes import MappingNode, Node, SequenceNode

from kdeclare.app.authoring.import_live import ImportResult, write_manifests
from kdeclare.app.authoring.validate import validate
from kdeclare.convert.formats import convert_files
from kdeclare.convert.manifest_text import render_resource
from kdeclare.convert.result import ConvertedResource, Gap, SpecPath
from kdeclare.core.diagnostics import Diagnostic, SourcePosition
from kdeclare.core.resources.ids import ResourceId
from kdeclare.manifests.syntax.files import build_file_name, build_folder_name
from kdeclare.manifests.syntax.nodes import compose, get_position
from kdeclare.report.conversion import ConversionGap, ConversionView, ConvertedManifest

_VARIABLE = re.compile(r"(?<!\$)\$\{env\.(\w+)\}")
_PROJECT = (
    "apiVersion: kdeclare/v1\nkind: Project\nmetadata: {name: converted}\nspec: {manifests: [manifests]}\n"
)
_MAX_ROUNDS = 10
"""The maximum number of times that fields with errors are removed and the manifests validated again."""

_EMPTY = frozenset({"entity", "principal"})
"""The fields for a principal or the entity of a quota. A spec with only these fields declares nothing."""


def convert(source_format: str, paths: Sequence[Path]) -> ConversionView:
    """Convert files. Fields that kdeclare would reject are removed, and listed in the result with the reason.

    Raises KdeclareError if a file cannot be read, cannot be parsed or is not in the given format.
    """
    findings = convert_files(source_format, [str(path) for path in paths])
    gaps = list(findings.gaps)
    resources = _remove_duplicates(findings.resources, gaps)
    for _ in range(_MAX_ROUNDS):
        kept = _remove_refused(resources, gaps)
        if kept == resources:
            break
        resources = kept
    manifests = tuple(_build_manifest(resource) for resource in resources)
    variables = sorted({name for item in manifests for name in _VARIABLE.findall(item.text)})
    order = {str(path): number for number, path in enumerate(paths)}
    gaps.sort(key=lambda gap: (order.get(gap.place.file, 0), gap.place.line, gap.place.column))
    return ConversionView(
        source_format,
        manifests,
        tuple(ConversionGap(gap.place, gap.subject, gap.reason) for gap in dict.fromkeys(gaps)),
        tuple(variables),
    )


def write_converted(view: ConversionView, folder: Path) -> None:
    """Write the manifests to a folder without overwriting files. Raises KdeclareError."""
    write_manifests(
        [ImportResult(ResourceId.parse(item.resource), item.file, item.text) for item in view.manifests],
        folder,
    )


def _build_manifest(resource: ConvertedResource) -> ConvertedManifest:
    file = Path(build_folder_name(resource.kind), build_file_name(ResourceId(resource.kind, resource.name)))
    return ConvertedManifest(resource.id, file, resource.place, render_resource(resource))


def _remove_duplicates(resources: Sequence[ConvertedResource], gaps: list[Gap]) -> list[ConvertedResource]:
    first_by_id: dict[str, ConvertedResource] = {}
    for resource in resources:
        first = first_by_id.setdefault(resource.id, resource)
        if first is not resource:
            reason = (
                "This resource is declared more than once. The manifest contains only the declaration at "
                f"{first.place}."
            )
            gaps.append(Gap(resource.place, resource.id, reason))
    return list(first_by_id.values())


def _remove_refused(resources: Sequence[ConvertedResource], gaps: list[Gap]) -> list[ConvertedResource]:
    """Return the resources without the fields that kdeclare rejects.

    A resource that would still be invalid, or would declare nothing, is left out.

    gaps: receives an entry for each removed field or resource, with the reason.
    """
    errors = _find_errors(resources)
    kept = []
    for resource in resources:
        refused = errors.get(resource.id, ())
        paths = {_find_removable(path): problem for path, problem in refused}
        if () in paths:
            gaps.append(Gap(resource.place, resource.id, _explain(paths[()])))
            continue
        spec: Any = resource.spec
        for path in sorted(
            paths, key=lambda path: [(isinstance(step, int), step) for step in path], reverse=True
        ):
            place = resource.places.get(path, resource.place)
            gaps.append(Gap(place, f"{resource.id} {_format_path(path)}", _explain(paths[path])))
            spec = _remove(spec, path)
        if not (spec and spec.keys() <= _EMPTY):  # otherwise, each removed part is in ``gaps``
            places = _move_places(resource.places, paths)
            kept.append(replace(resource, spec=spec, places=places) if paths else resource)
    return kept


def _find_errors(
    resources: Sequence[ConvertedResource],
) -> Mapping[str, list[tuple[SpecPath, Diagnostic]]]:
    """Return the errors of `kdeclare validate` about each resource, with the paths of the rejected values."""
    manifests = {str(number): _build_manifest(resource) for number, resource in enumerate(resources)}
    variables = {name: "unknown" for item in manifests.values() for name in _VARIABLE.findall(item.text)}
    errors: dict[str, list[tuple[SpecPath, Diagnostic]]] = {}
    with TemporaryDirectory(prefix="kdeclare-convert-") as folder:
        root = Path(folder)
        project_file = root / "kdeclare.yaml"
        project_file.write_text(_PROJECT, encoding="utf-8")
        (root / "manifests").mkdir()
        by_file = {}
        for number, item in manifests.items():
            file = root / "manifests" / f"{number}.yaml"
            file.write_text(item.text, encoding="utf-8")
            by_file[str(file)] = item
        for problem in validate(project_file, None, (), variables).diagnostics:
            if not problem.is_error:
                continue
            manifest = by_file.get(problem.place.file) if problem.place else None
            resource = manifest.resource if manifest is not None else problem.resource
            if resource is not None:
                path = _locate(manifest.text, problem.place) if manifest and problem.place else ()
                errors.setdefault(resource, []).append((path, problem))
    return errors


def _locate(text: str, place: SourcePosition) -> SpecPath:
    """Return the path, within the spec, of the value or key at ``place``; () if it is outside the spec.

    In block style, a mapping has the same position as its first key. If several paths match, return the
    longest, which is the path of the key.
    """
    paths = [
        path[1:]
        for document in compose(place.file, text.encode(), [])
        for path, node in _walk(document, ())
        if path[:1] == ("spec",) and get_position(node) == place
    ]
    return max(paths, key=len, default=())


def _walk(node: Node, path: SpecPath) -> Iterator[tuple[SpecPath, Node]]:
    if isinstance(node, MappingNode):
        for key, value in node.value:
            yield (*path, key.value), key
            yield (*path, key.value), value
            yield from _walk(value, (*path, key.value))
    elif isinstance(node, SequenceNode):
        for index, item in enumerate(node.value):
            yield (*path, index), item
            yield from _walk(item, (*path, index))


def _find_removable(path: SpecPath) -> SpecPath:
    """Return the path of the field to remove because of an error at ``path``; () to remove the resource."""
    match path:
        case (("configs" | "config" | "limits" | "bindings" | "produce") as field, step, *_):
            return field, step
        case ("consume", str() as field, step, *_):
            return "consume", field, step
        case ("placement", *_):
            return ("placement",)
        case ("mechanisms", str() as mechanism, "iterations"):
            return "mechanisms", mechanism, "iterations"
        case _:
            return ()


def _remove(spec: Any, path: SpecPath) -> Any:
    first, *rest = path
    if isinstance(spec, list):
        return [item for index, item in enumerate(spec) if index != first]
    if not rest:
        return {key: value for key, value in spec.items() if key != first}
    inner = _remove(spec[first], tuple(rest))
    return {key: inner if key == first else value for key, value in spec.items() if key != first or inner}


def _move_places(places: Mapping[SpecPath, Any], removed: Mapping[SpecPath, Any]) -> dict[SpecPath, Any]:
    """Return the source positions of the fields that are left after removing ``removed``, by their new paths.

    Removing a list item shifts the indexes of all later items.
    """
    moved = {}
    for path, place in places.items():
        if path in removed:
            continue
        *parents, last = path
        if isinstance(last, int):
            last -= sum(
                1 for other in removed if other[:-1] == tuple(parents) and _is_before(other[-1], last)
            )
        moved[*parents, last] = place
    return moved


def _is_before(step: str | int, index: int) -> bool:
    return isinstance(step, int) and step < index


def _explain(problem: Diagnostic) -> str:
    return problem.detail or f"{problem.summary}."


def _format_path(path: SpecPath) -> str:
    """Format a path without list indexes, because these can differ from the indexes in the source."""
    return ".".join(step for step in path if isinstance(step, str))
