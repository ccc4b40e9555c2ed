"""Generate manifests from live systems, so that the next plan reports "No changes."."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from kdeclare.app.plan import load_manifests
from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.patterns import RE2_HINT, Pattern, PatternError, compile_pattern
from kdeclare.core.provider.connection import is_not_configured
from kdeclare.core.provider.provider_queries import find_connected_kinds
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.manifest_capabilities import (
    ExportRequest,
    OmittedObjects,
    export_manifests,
)
from kdeclare.core.resources.manifest_text import add_labels
from kdeclare.engine.observation import observe
from kdeclare.manifests.syntax.files import build_file_name, build_folder_name

ALREADY_OWNED = "already owned by the project"
ALREADY_DECLARED = "already declared in the project"
"""The reason for leaving out a resource that a manifest of the project declares."""
EXCLUDED = "only declared for other environments, with metadata.only or metadata.except"
"""The reason for leaving out a resource whose manifest is not present in the environment."""


@dataclass(frozen=True, slots=True)
class ImportResult:
    """An imported resource: the content of its manifest, and the file for this manifest."""

    id: ResourceId
    file: Path
    text: str


def import_cluster(
    workspace: Workspace,
    match: str | None = None,
    tell: Callable[[Sequence[OmittedObjects]], None] = lambda left_out: None,
    *,
    include_declared: bool = True,
    include_owned: bool = True,
    labels: Mapping[str, str] | None = None,
) -> tuple[ImportResult, ...]:
    """Generate manifests for all live objects, or for the objects whose full name matches ``match``.

    match: a regular expression (RE2). tell: called with the objects that were left out.
    include_declared: whether to include resources that a manifest of the project already declares. A second
        manifest for such a resource would make the project invalid.
    include_owned: whether to include resources that the state lists as owned, such as orphans.
    labels: the labels for ``metadata.labels`` of each manifest.
    A kind is left out if the environment does not configure its system.
    Raises KdeclareError if ``match`` is invalid or a system cannot be read.
    """
    pattern = _compile_match(match)
    results: list[ImportResult] = []
    counts: Counter[tuple[str, str, str]] = Counter()
    declared_ids, excluded_ids = (
        (frozenset(), frozenset()) if include_declared else find_declared_ids(workspace)
    )
    owned_ids = frozenset() if include_owned else _find_owned_ids(workspace)
    with workspace.open_connections() as connections:
        request = ExportRequest(
            read=lambda selections: observe(connections, selections),
            matches=pattern.matches,
            permits=workspace.project.scope.permits,
            is_selective=match is not None,
        )
        for kind in find_connected_kinds(connections).values():
            try:
                export = export_manifests(kind, connections, request)
            except KdeclareError as problem:
                if not is_not_configured(problem):
                    raise
                counts[
                    "kind", "kinds", f"{kind.name}: the environment has no connection settings for this kind"
                ] += 1
                continue
            for name, text in sorted(export.manifests.items()):
                if ResourceId(kind.name, name) in declared_ids:
                    counts["resource", "resources", ALREADY_DECLARED] += 1
                elif ResourceId(kind.name, name) in excluded_ids:
                    counts["resource", "resources", EXCLUDED] += 1
                elif ResourceId(kind.name, name) in owned_ids:
                    counts["resource", "resources", ALREADY_OWNED] += 1
                else:
                    results.append(build_result(kind.name, name, add_labels(text, labels or {})))
            for item in export.left_out:
                counts[item.one, item.many, item.why] += item.count
    tell([OmittedObjects(count, *what) for what, count in counts.items() if count])
    return tuple(results)


def _find_owned_ids(workspace: Workspace) -> frozenset[ResourceId]:
    """Return the resources that the state lists as owned. Raises KdeclareError."""
    state = workspace.store.read()
    return frozenset(map(ResourceId.parse, state.resources)) if state is not None else frozenset()


def find_declared_ids(workspace: Workspace) -> tuple[frozenset[ResourceId], frozenset[ResourceId]]:
    """Return the resources that the project declares, and those that it declares only for other environments.

    Manifests with errors do not prevent an import.
    """
    if workspace.project.file is None:
        return frozenset(), frozenset()
    manifests = load_manifests(workspace)
    invalid_ids = (ResourceId.parse(d.resource) for d in manifests.diagnostics if d.resource)
    all_declared = (*manifests.desired, *manifests.absent)
    declared_ids = frozenset(item.id for item in all_declared).union(invalid_ids)
    return declared_ids, frozenset(manifests.exclusions)


def build_result(kind: str, name: str, text: str) -> ImportResult:
    """Return a manifest together with the name of its file."""
    resource_id = ResourceId(kind, name)
    return ImportResult(resource_id, Path(build_folder_name(kind), build_file_name(resource_id)), text)


def write_manifests(imported: Iterable[ImportResult], folder: Path) -> None:
    """Write the manifests to ``folder`` without overwriting files. Raises KdeclareError."""
    results = list(imported)
    try:
        existing_files = [folder / item.file for item in results if (folder / item.file).exists()]
        if existing_files:
            raise KdeclareError(
                error(
                    "file-exists",
                    "Manifests already exist",
                    f"The import would overwrite {len(existing_files)} files, including {existing_files[0]}.",
                    hint="Choose an empty folder with --out, or remove the existing files first.",
                )
            )
        for item in results:
            target = folder / item.file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(item.text, encoding="utf-8")
    except OSError as problem:
        raise KdeclareError(
            error(
                "not-written",
                "Manifests cannot be written",
                f"{folder}: {problem.strerror}.",
                hint="Check the permissions and the free space of the folder, or choose another folder "
                "with --out.",
            )
        ) from None


def _compile_match(match: str | None) -> Pattern:
    try:
        return compile_pattern(match or ".*")
    except PatternError as pattern_error:
        raise KdeclareError(
            error(
                "bad-pattern",
                "Invalid regular expression",
                f"--match '{match}': {pattern_error.located_reason}.",
                hint=f"Pass one name, or a prefix followed by '.*' to match several names. {RE2_HINT}",
            ),
            exit_code=ExitCode.USAGE,
        ) from None
