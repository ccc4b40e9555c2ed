"""Reading manifests without any cluster, to say what is wrong with them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from kdeclare.app.plan import CHECKS
from kdeclare.kinds.registry import KINDS
from kdeclare.manifests.load import load
from kdeclare.manifests.project import open_project
from kdeclare.report.views import ValidationView


def validate(
    project_file: Path | None, env: str | None, paths: Sequence[Path], environ: Mapping[str, str]
) -> ValidationView:
    """All that can be said offline. Raises KdeclareError for a project file that cannot be used."""
    loaded = load(open_project(project_file, env, environ), paths, KINDS, environ, CHECKS)
    return ValidationView(loaded.files, len(loaded.desired), loaded.diagnostics)
