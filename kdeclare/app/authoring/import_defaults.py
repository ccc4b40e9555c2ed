"""Move the common values of imported manifests to `Defaults`, without changing what the project declares.

The manifests are loaded before and after the change, and must declare the same resources.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from yaml.nodes import MappingNode, Node

from kdeclare.app.authoring.common_values import (
    CommonValues,
    FieldTexts,
    choose_common_values,
    read_field_texts,
    remove_common_values,
    render_defaults,
)
from kdeclare.app.authoring.import_live import ImportResult, build_result, find_declared_ids
from kdeclare.app.workspace import Workspace
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.patterns import PatternError, is_pattern
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.manifest_capabilities import find_exclusive_fields, find_individual_fields
from kdeclare.manifests.defaults import DEFAULTS, DefaultsBody, FieldPath
from kdeclare.manifests.editing.documents import EditRejected
from kdeclare.manifests.load_manifests import load_project_manifests
from kdeclare.manifests.project import Project, find_manifest_roots
from kdeclare.manifests.rule_filter import RuleFilter
from kdeclare.manifests.syntax.files import FileFinder, build_folder_name, read_file
from kdeclare.manifests.syntax.node_reader import NodeReader
from kdeclare.manifests.syntax.nodes import compose, find_node
from kdeclare.manifests.syntax.substitution import ReferenceContext, has_reference

_ENVIRONMENT_VARIABLE = re.compile(r"\$\{env\.(\w+)\}")


@dataclass(frozen=True, slots=True)
class CreatedDefaults:
    """The `Defaults` of one kind that an import creates."""

    id: ResourceId
    kind: str
    value_count: int
    resource_count: int


@dataclass(frozen=True, slots=True)
class DefaultsImport:
    """The manifests of an import after their common values were moved to `Defaults`.

    results: the manifests. The manifests of kind `Defaults` come first.
    created: the new `Defaults`.
    unchanged_kinds: the kinds whose common values stay in the manifests, because with `Defaults`, the project
        would declare something else.
    """

    results: tuple[ImportResult, ...]
    created: tuple[CreatedDefaults, ...] = ()
    unchanged_kinds: tuple[str, ...] = ()


def move_common_values(
    workspace: Workspace, imported: Sequence[ImportResult], folder: Path | None = None
) -> DefaultsImport:
    """Move the common values of imported manifests to one `Defaults` manifest per kind.

    With the returned manifests, the project declares the same resources as with ``imported``. The new
    `Defaults` select resources by name, so they do not apply to any other resource.
    folder: the folder for the manifests. The new `Defaults` get names for which it has no file yet.
    Raises KdeclareError if the project cannot be read.
    """
    existing_defaults = _read_defaults(workspace.project)
    taken_names = {defaults.name for defaults in existing_defaults}
    declared_ids = frozenset().union(*find_declared_ids(workspace))
    created: list[CreatedDefaults] = []
    unchanged_kinds: list[str] = []
    new_manifests: list[ImportResult] = []
    texts = {item.id: item.text for item in imported}
    for kind in dict.fromkeys(item.id.kind for item in imported):
        # '/…/' in a selector is a regular expression, so it cannot select a resource of this name
        fields_by_name = {
            item.id.name: read_field_texts(item.text)
            for item in imported
            if item.id.kind == kind and item.id not in declared_ids and not is_pattern(item.id.name)
        }
        kept = set(_find_kept_fields(kind, fields_by_name, existing_defaults))
        common = choose_common_values(fields_by_name, kept)
        if common is None:
            continue
        defaults_id = _choose_id(kind, taken_names, folder)
        defaults_text = render_defaults(defaults_id.name, kind, common)
        moved_texts = _move_values(workspace, kind, common, texts, defaults_text)
        if moved_texts is None:
            unchanged_kinds.append(kind)
            continue
        texts |= moved_texts
        new_manifests.append(build_result(DEFAULTS, defaults_id.name, defaults_text))
        created.append(CreatedDefaults(defaults_id, kind, len(common.values), len(common.names)))
    results = (build_result(item.id.kind, item.id.name, texts[item.id]) for item in imported)
    return DefaultsImport((*new_manifests, *results), tuple(created), tuple(unchanged_kinds))


def _move_values(
    workspace: Workspace,
    kind: str,
    common: CommonValues,
    texts: Mapping[ResourceId, str],
    defaults_text: str,
) -> Mapping[ResourceId, str] | None:
    """Return the manifests without the common values, or None if the project would declare something else."""
    before = {ResourceId(kind, name): texts[ResourceId(kind, name)] for name in common.names}
    try:
        after = {resource: remove_common_values(text, common) for resource, text in before.items()}
    except EditRejected:
        return None
    return (
        after if has_same_declarations(workspace, before.values(), [defaults_text, *after.values()]) else None
    )


def has_same_declarations(workspace: Workspace, before: Iterable[str], after: Iterable[str]) -> bool:
    """Return whether two sets of manifests, each added to the project, declare the same resources.

    They must also have the same errors. before, after: the texts of the manifests, which the project does not
    contain yet.
    """
    return _load_declarations(workspace, before) == _load_declarations(workspace, after)


def _load_declarations(workspace: Workspace, texts: Iterable[str]) -> tuple[object, object]:
    """Load manifests together with the overlays and the `Defaults` of the project.

    Return the resources, and the number of errors per code and resource. Environment variables that are not
    set get a placeholder, because passwords are often not set until after the import.
    """
    stream = "---\n".join(texts)
    environ = dict.fromkeys(_ENVIRONMENT_VARIABLE.findall(stream), "unknown") | dict(workspace.environ)
    manifests = load_project_manifests(workspace.project, None, KINDS, environ, stream=stream.encode())
    resources = {
        item.id: (item.body, dict(item.labels), item.is_absent, item.description)
        for item in (*manifests.desired, *manifests.absent)
    }
    return resources, Counter((d.code, d.resource) for d in manifests.diagnostics if d.is_error)


def _choose_id(kind: str, taken_names: set[str], folder: Path | None) -> ResourceId:
    """Choose the id of a new `Defaults` manifest, such as ``Defaults/topics``.

    Neither the name nor the file of the manifest is in use yet.
    """
    base = name = build_folder_name(kind)
    number = 1
    while name in taken_names or (
        folder is not None and (folder / build_result(DEFAULTS, name, "").file).exists()
    ):
        number += 1
        name = f"{base}-{number}"
    taken_names.add(name)
    return ResourceId(DEFAULTS, name)


@dataclass(frozen=True, slots=True)
class _ExistingDefaults:
    """Existing `Defaults` of the project, read without resolving references.

    kind, names: None if the document does not set them, or sets them with a reference.
    """

    name: str
    kind: str | None
    names: tuple[str, ...] | None
    paths: tuple[FieldPath, ...]

    def may_cover(self, kind: str, names: Collection[str]) -> bool:
        """Whether the `Defaults` may apply to one of the resources, in any environment.

        Labels are ignored, because overlays can change them.
        """
        if self.kind is not None and self.kind != kind:
            return False
        if self.names is None:
            return True
        body = DefaultsBody(kind, self.names)
        try:
            return any(body.covers(ResourceId(kind, name), {}) for name in names)
        except PatternError:  # the user has not corrected the regular expression yet
            return True


def _find_kept_fields(
    kind: str, fields_by_name: Mapping[str, FieldTexts], existing: Iterable[_ExistingDefaults]
) -> Iterator[FieldPath]:
    """Yield the fields that must stay in the manifests of a kind.

    These are the fields that an import never moves to `Defaults`, the fields that the ``existing`` `Defaults`
    set, and the fields that cannot be combined with a field of the ``existing`` `Defaults`. If the manifest
    had no value for such a field, the ``existing`` `Defaults` could apply.
    """
    individual_fields = find_individual_fields(KINDS.get(kind))
    exclusive = find_exclusive_fields(KINDS.get(kind))
    existing_paths = [path for one in existing if one.may_cover(kind, fields_by_name) for path in one.paths]
    for path in {path for fields in fields_by_name.values() for path in fields}:
        if path[0] in individual_fields or any(
            path[: len(other)] == other[: len(path)]
            or path[0] in exclusive.get(other[0], ())
            or other[0] in exclusive.get(path[0], ())
            for other in existing_paths
        ):
            yield path


def _read_defaults(project: Project) -> Sequence[_ExistingDefaults]:
    """Return the `Defaults` in the manifests of all environments of a project."""
    if project.file is None:
        return ()
    context = ReferenceContext(project.folder, {}, project.environment.variables, root=project.folder)
    reader = NodeReader(context)
    rule_filter = RuleFilter((DEFAULTS,), reader)
    finder = FileFinder(project.file, project.all_overlays, project.stated)
    found: list[_ExistingDefaults] = []
    for file in finder.find((*find_manifest_roots(project), *project.foreign_manifests)):
        data = read_file(file, [])
        if data is not None and rule_filter.has_kind_name(data):
            roots = compose(file, data, [])
            found += [_describe_defaults(root) for root in roots if rule_filter.find_rule_kind(root)]
    return found


def _describe_defaults(root: Node) -> _ExistingDefaults:
    name = _read_text(find_node(root, ("metadata", "name")))
    names_node = find_node(root, ("spec", "selector", "names"))
    items = names_node.value if names_node is not None and isinstance(names_node.value, list) else []
    names = [_read_text(item) for item in items]
    known_names = tuple(text for text in names if text is not None)
    defaults = find_node(root, ("spec", "defaults"))
    return _ExistingDefaults(
        name or "",
        _read_text(find_node(root, ("spec", "kind"))),
        known_names if names and len(known_names) == len(names) else None,
        tuple(_list_paths(defaults, ())) if defaults is not None else (),
    )


def _list_paths(node: Node, path: FieldPath) -> Iterator[FieldPath]:
    if isinstance(node, MappingNode) and node.value:
        for key, value in node.value:
            yield from _list_paths(value, (*path, str(key.value)))
    elif path:
        yield path


def _read_text(node: Node | None) -> str | None:
    """Return the text of a scalar, or None if it contains a reference or is not a scalar."""
    text = node.value if node is not None else None
    return text if isinstance(text, str) and not has_reference(text) else None
