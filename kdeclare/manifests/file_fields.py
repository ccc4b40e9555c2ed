"""Read the files that manifests name in fields of type `FileText`.

A file below the folder of the project can always be read, because it is reviewed together with the manifests.
For all other files, the limits on references apply.
"""

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from yaml.nodes import Node, ScalarNode

from kdeclare.core.diagnostics import Diagnostic, error
from kdeclare.core.resources.file_text import FileText, list_file_fields
from kdeclare.manifests.document_models import Declarable
from kdeclare.manifests.syntax.node_reader import BROKEN
from kdeclare.manifests.syntax.nodes import compose, find_node, get_position
from kdeclare.manifests.syntax.reference_limits import check_file
from kdeclare.manifests.syntax.substitution import ReferenceContext, format_os_error, read_regular_file


class FileFields:
    """Replaces the paths in the fields of type `FileText` with the contents of the files."""

    def __init__(
        self,
        kinds: Mapping[str, Declarable],
        context: ReferenceContext,
        replacements: Mapping[str, bytes | None] | None = None,
    ) -> None:
        """Create the reader.

        context: the folder of the project, and the limits on references. replacements: the contents to use
            instead of those on disk, by file.
        """
        self._context = context
        self._replacements = replacements or {}
        self._fields = find_file_fields(kinds)
        self._cached: dict[str, FileText] = {}

    def read(self, data: Any, root: Node) -> list[Diagnostic]:
        """Replace the paths in the data of one document, and return the problems.

        A path whose file cannot be read is replaced with `BROKEN`.
        """
        if not self._fields or not isinstance(data, dict) or not isinstance(data.get("kind"), str):
            return []
        spec, problems = data.get("spec"), []
        if not isinstance(spec, dict):
            return []
        for name in self._fields.get(data["kind"], ()):
            node = find_node(root, ("spec", name))
            if isinstance(spec.get(name), str) and node is not None:
                content = self._read_file(str(spec[name]), node)
                if isinstance(content, Diagnostic):
                    problems.append(content)
                spec[name] = BROKEN if isinstance(content, Diagnostic) else content
        return problems

    def _read_file(self, written: str, node: Node) -> FileText | Diagnostic:
        location = locate_file(written, node)
        if location in self._cached:
            return self._cached[location]
        refusal = self._check_location(location)
        if refusal is not None:
            return error(
                refusal.code, refusal.summary, refusal.detail, hint=refusal.hint, place=get_position(node)
            )
        replacement = self._replacements.get(location)
        try:
            text = replacement.decode() if replacement is not None else read_regular_file(Path(location))
        except (OSError, ValueError) as e:
            reason = "it is not UTF-8 text" if isinstance(e, ValueError) else format_os_error(e)
            return error(
                "unreadable-file",
                "File cannot be read",
                f"'{location}' cannot be read: {reason}.",
                hint="Correct the path. A relative path starts at the folder of the file that contains the "
                "field.",
                place=get_position(node),
            )
        self._cached[location] = FileText(location, text)
        return self._cached[location]

    def _check_location(self, location: str) -> Diagnostic | None:
        folder = Path(self._context.root or self._context.folder)
        limits = self._context.limits
        real_folder, real_path = os.path.realpath(folder), os.path.realpath(location)
        if Path(real_path).is_relative_to(real_folder) and ".git" not in Path(real_path).parts:
            return None
        return check_file(
            os.path.relpath(location, folder), Path(location), folder, limits, f"The file '{location}'"
        )


def find_file_fields(kinds: Mapping[str, Declarable]) -> Mapping[str, tuple[str, ...]]:
    """Return the names of the fields that contain the path of a file, by kind. Omit kinds without fields."""
    fields = {name: list_file_fields(kind.spec) for name, kind in kinds.items()}
    return {name: names for name, names in fields.items() if names}


def find_named_files(file: str, data: bytes, fields: Mapping[str, Collection[str]]) -> Iterator[Path]:
    """Yield the locations of the files that the manifests in one YAML file name.

    data: the content of the YAML file. fields: the result of `find_file_fields`. References in paths are not
    resolved, and errors in the YAML file are ignored.
    """
    if not any(kind.encode() in data for kind in fields):
        return
    for root in compose(file, data, []):
        kind = find_node(root, ("kind",))
        for name in fields.get(kind.value, ()) if isinstance(kind, ScalarNode) else ():
            node = find_node(root, ("spec", name))
            if isinstance(node, ScalarNode):
                yield Path(locate_file(node.value, node))


def locate_file(written: str, node: Node) -> str:
    """Return the location of a file. node: the scalar in the manifest, with the location of the manifest."""
    folder = os.path.dirname(node.start_mark.name)  # noqa: PTH120  # keeps relative paths short
    return os.path.normpath(os.path.join(folder, written))  # noqa: PTH118
