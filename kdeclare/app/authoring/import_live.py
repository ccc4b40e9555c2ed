"""Live systems as manifests, so that the next plan says "No changes."."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen import dataclass
from kdeclare.core.patterns import RE2_HINT, Pattern, PatternError, compile_pattern
from kdeclare.core.provider.registry import find_connected_kinds
from kdeclare.core.resources.capabilities import ExportRequest, LeftOut, export_manifests
from kdeclare.core.resources.ids import ResourceId
from kdeclare.engine.observation import observe
from kdeclare.manifests.syntax.files import file_name


@dataclass(frozen=True, slots=True)
class Imported:
    """One resource as the text of its manifest, and the file that it belongs in."""

    id: ResourceId
    file: Path
    text: str


def import_cluster(
    workspace: Workspace,
    match: str | None = None,
    tell: Callable[[Sequence[LeftOut]], None] = lambda left_out: None,
) -> tuple[Imported, ...]:
    """Manifests of all that the systems have, or of the objects whose whole name ``match`` matches.

    match: a regular expression (RE2). tell: is told what was left out.
    Raises KdeclareError for a ``match`` that is none, and where a system cannot be read.
    """
    wanted = _pattern(match)
    found: list[Imported] = []
    counts: Counter[tuple[str, str, str]] = Counter()
    with workspace.connected() as connections:
        request = ExportRequest(
            read=lambda selections: observe(connections, selections),
            matches=wanted.matches,
            permits=workspace.project.scope.permits,
            is_selective=match is not None,
        )
        for kind in find_connected_kinds(connections).values():
            exported = export_manifests(kind, connections, request)
            found += (_imported(kind.name, name, text) for name, text in sorted(exported.manifests.items()))
            for item in exported.left_out:
                counts[item.one, item.many, item.why] += item.count
    tell([LeftOut(count, *what) for what, count in counts.items() if count])
    return tuple(found)


def _imported(kind: str, name: str, text: str) -> Imported:
    resource = ResourceId(kind, name)
    return Imported(resource, Path(f"{kind.lower()}s", file_name(resource)), text)


def write_manifests(imported: Iterable[Imported], folder: Path) -> None:
    """Write them below ``folder``, overwriting nothing. Raises KdeclareError."""
    items = list(imported)
    there = [folder / item.file for item in items if (folder / item.file).exists()]
    if there:
        raise KdeclareError(
            error(
                "file-exists",
                "Manifests are there already",
                f"{len(there)} files would be overwritten, {there[0]} among them.",
                hint="Choose an empty folder with --out, or take them away first.",
            )
        )
    try:
        for item in items:
            target = folder / item.file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(item.text, encoding="utf-8")
    except OSError as problem:
        raise KdeclareError(
            error("not-written", "Manifests cannot be written", f"{folder}: {problem.strerror}.")
        ) from None


def _pattern(match: str | None) -> Pattern:
    try:
        return compile_pattern(match or ".*")
    except PatternError as wrong:
        raise KdeclareError(
            error(
                "bad-pattern",
                "Not a regular expression",
                f"--match '{match}': {wrong.located_reason}.",
                hint=f"For one topic, give its name; for a prefix, give it with '.*' behind it. {RE2_HINT}",
            )
        ) from None
