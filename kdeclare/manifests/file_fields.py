"""Read the files that manifests name in fields of type `FileText`.

A file below the folder of the project can always be read, because it is reviewed together with the manifests.
For all other files, the limits on references apply.
"""

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from yaml.nodes import Node, ScalarNode

from kdeclare.core.diagnostics import Diagnostic, SourcePosition, error
from kdeclare.core.resources.file_text import FileText, list_file_fields
from kdeclare.manifests.document_models import Declarable
from kdeclare.manifests.for_each.generator import FOR_EACH, Generator
from kdeclare.manifests.for_each.items import find_item_file
from kdeclare.manifests.syntax.file_locations import is_in_folder, locate_file
from kdeclare.manifests.syntax.node_reader import BROKEN
from kdeclare.manifests.syntax.nodes import compose, find_child, find_node, find_position
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
        self._kinds = kinds
        self._fields: dict[str, tuple[str, ...]] = {}
        self._cached: dict[str, FileText] = {}

    def read(self, data: Any, root: Node) -> list[Diagnostic]:
        """Replace the paths in the data of one document, and return the problems.

        A path whose file cannot be read is replaced with `BROKEN`.
        """
        if not isinstance(data, dict) or not isinstance(data.get("kind"), str):
            return []
        spec, problems = data.get("spec"), []
        if not isinstance(spec, dict):
            return []
        for name in self._list_fields(data["kind"]):
            key = _find_field_key(root, name)
            if isinstance(spec.get(name), str) and key is not None:
                content = self._read_file(str(spec[name]), key, find_position(root, ("spec", name)))
                if isinstance(content, Diagnostic):
                    problems.append(content)
                spec[name] = BROKEN if isinstance(content, Diagnostic) else content
        return problems

    def _list_fields(self, kind: str) -> tuple[str, ...]:
        if kind not in self._fields:
            self._fields[kind] = list_file_fields(self._kinds[kind].spec) if kind in self._kinds else ()
        return self._fields[kind]

    def _read_file(self, written: str, key: Node, position: SourcePosition) -> FileText | Diagnostic:
        location = locate_file(written, key)
        if location in self._cached:
            return self._cached[location]
        refusal = self._check_location(location)
        if refusal is not None:
            return error(refusal.code, refusal.summary, refusal.detail, hint=refusal.hint, place=position)
        replacement = self._replacements.get(location)
        try:
            text = replacement.decode() if replacement is not None else read_regular_file(Path(location))
        except (OSError, ValueError) as e:
            reason = "it is not UTF-8 text" if isinstance(e, ValueError) else format_os_error(e)
            return error(
                "unreadable-file",
                "File cannot be read",
                f"'{location}' cannot be read: {reason}.",
                hint="Correct the path. Relative paths are resolved from the folder of the file that "
                "contains the field.",
                place=position,
            )
        self._cached[location] = FileText(location, text)
        return self._cached[location]

    def _check_location(self, location: str) -> Diagnostic | None:
        folder = Path(self._context.root or self._context.folder)
        limits = self._context.limits
        if is_in_folder(location, folder):
            return None
        return check_file(
            os.path.relpath(location, folder), Path(location), folder, limits, f"The file '{location}'"
        )


def find_file_fields(kinds: Mapping[str, Declarable]) -> Mapping[str, tuple[str, ...]]:
    """Return the names of the fields that contain a file's path, by kind. Omit kinds without such fields."""
    fields = {name: list_file_fields(kind.spec) for name, kind in kinds.items()}
    return {name: names for name, names in fields.items() if names}


def find_named_files(
    file: str, data: bytes, fields: Mapping[str, Collection[str]], generator: Generator
) -> Iterator[Path]:
    """Yield the locations of the files to which the fields of manifests in one YAML file refer.

    Of the references in paths, only those to items of ``forEach`` are resolved. Errors in the YAML file are
    ignored.

    data: the content of the YAML file. fields: the result of `find_file_fields`.
    generator: generates manifests from documents with ``forEach``.
    """
    if not has_for_each(data) and not any(kind.encode() in data for kind in fields):
        return
    for root in compose(file, data, []):
        for document in generator.expand(root, lambda _: False):
            kind = find_node(document.root, ("kind",))
            for name in fields.get(kind.value, ()) if isinstance(kind, ScalarNode) else ():
                location = locate_field_file(document.root, name)
                if location is not None:
                    yield Path(location)


def find_item_files(file: str, data: bytes) -> Iterator[Path]:
    """Yield the locations of the files from which the ``forEach`` fields in one YAML file take items."""
    for root in compose(file, data, []) if has_for_each(data) else ():
        source = find_node(root, (FOR_EACH,))
        item_file = find_item_file(source) if source is not None else None
        if item_file is not None:
            yield Path(item_file)


def has_for_each(data: bytes) -> bool:
    """Return whether a file could contain a document with ``forEach``."""
    return FOR_EACH.encode() in data or data[:2] in (b"\xff\xfe", b"\xfe\xff")


def locate_field_file(root: Node, name: str) -> str | None:
    """Return the location of the file that a field of the spec names, or None if the field names no file.

    A relative path is resolved against the folder of the file that sets the field. If the path comes from an
    item of ``forEach``, it is resolved against the folder of the manifest, not of the file with the items.
    """
    key, node = _find_field_key(root, name), find_node(root, ("spec", name))
    return locate_file(node.value, key) if key is not None and isinstance(node, ScalarNode) else None


def _find_field_key(root: Node, name: str) -> Node | None:
    spec = find_node(root, ("spec",))
    pair = find_child(spec, name) if spec is not None else None
    return pair[0] if pair is not None else None
