"""Looking at Connect workers: what is overridden, who runs on it, and what they show. Changes nothing."""

from collections.abc import Mapping

from kdeclare.app.connect.which import Chosen, Named, chosen
from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.providers.connect.client.reading import read_workers
from kdeclare.providers.connect.worker_state import WorkersSeen
from kdeclare.providers.connect.workers.findings import findings
from kdeclare.providers.connect.workers.standing import step
from kdeclare.providers.connect.workers.values import shown
from kdeclare.report.connect_views import OverridesView, WorkersView, WorkerView

_DAY_S = 86400.0


def get_overrides(workspace: Workspace, named: Named) -> OverridesView:
    """What workers share, passwords redacted. Raises KdeclareError."""
    with chosen(workspace, named) as found:
        overrides = told_overrides(read_workers(found.workers))
    return OverridesView({key: shown(key, raw) for key, raw in overrides.items()})


def workers_status(workspace: Workspace, named: Named, warn_days: float) -> WorkersView:
    """Every worker, and what there is to say of them. Raises KdeclareError."""
    with chosen(workspace, named) as found:
        return status_of(found, warn_days)


def status_of(found: Chosen, warn_days: float) -> WorkersView:
    """The same of workers that are open already."""
    return workers_view(read_workers(found.workers), warn_days)


def workers_view(seen: WorkersSeen, warn_days: float) -> WorkersView:
    """Workers as they were seen. warn_days: how long before its end a certificate is warned of."""
    overrides = seen.overrides or {}
    return WorkersView(
        seen.at,
        tuple(sorted(overrides)),
        tuple(WorkerView(worker, step(worker, overrides)) for worker in seen.workers),
        tuple(findings(seen, warn_days * _DAY_S)),
    )


def told_overrides(seen: WorkersSeen) -> Mapping[str, str]:
    """The overrides. Raises KdeclareError where no worker tells them."""
    if seen.overrides is not None:
        return seen.overrides
    raise KdeclareError(
        error(
            "workers-unreachable",
            "No Connect worker tells its configuration",
            "\n".join(f"{worker.url}: {worker.trouble}." for worker in seen.workers),
            hint="Check the URLs, --ca-file and --header, and that kdeclare's plug-in is installed there.",
        )
    )
