"""Which workers a command is about, and what they show. Changes nothing."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from kdeclare.app.connections import ProjectReferences
from kdeclare.app.plan import load_manifests
from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error, gist
from kdeclare.core.exits import ExitCode
from kdeclare.core.faults import Fault
from kdeclare.core.kind import Desired
from kdeclare.core.suggest import did_you_mean
from kdeclare.manifests.reference_limits import Limits
from kdeclare.providers.connect.client.port import ConnectWorkers
from kdeclare.providers.connect.client.reading import read_workers
from kdeclare.providers.connect.commands.views import OverridesView, WorkersView, WorkerView
from kdeclare.providers.connect.connection import ConnectTarget
from kdeclare.providers.connect.worker_config import ConnectWorkerConfigKind
from kdeclare.providers.connect.worker_config.spec import WorkerConfigBody, plain_http_warning
from kdeclare.providers.connect.worker_state import WorkerGroup, WorkersSeen
from kdeclare.providers.connect.workers.findings import findings
from kdeclare.providers.connect.workers.standing import step
from kdeclare.providers.connect.workers.urls import is_plain_http, wrong_url
from kdeclare.providers.connect.workers.values import shown

_KIND = ConnectWorkerConfigKind.name
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NamedWorkers:
    """The workers as a command line names them; files are relative to where one stands.

    name: of the manifest that names them, where ``urls`` is empty. headers: each with its reference.
    """

    urls: tuple[str, ...] = ()
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    name: str | None = None
    timeout_s: float = 10.0


@dataclass(frozen=True, slots=True)
class OpenedWorkers:
    """Workers, and the manifests that declare something of them.

    unread: whether there are manifests that cannot be read.
    """

    workers: ConnectWorkers
    declared: Sequence[Desired] = field(default=())
    unread: bool = False


@contextmanager
def open_named_workers(workspace: Workspace, named: NamedWorkers) -> Iterator[OpenedWorkers]:
    """The workers, open. Raises KdeclareError, also for what they refuse inside."""
    declared, unread = _load_declared(workspace)
    if named.urls:
        group, folder = _make_group(named), Path()
        limits: Limits = ()  # the options are typed by whoever runs it
    else:
        group, folder = _find_group(declared, named, unread), workspace.project.folder
        limits = workspace.project.limits
    for url in group.urls if group.headers else ():
        if is_plain_http(url):
            _log.warning("%s", plain_http_warning(url).detail)
    references = ProjectReferences(folder, workspace.environ, limits)
    workers = ConnectTarget(folder, references).open(named.timeout_s).open(group)
    mine = [item for item in declared if not set(item.body.group.urls).isdisjoint(group.urls)]
    try:
        yield OpenedWorkers(workers, mine, unread is not None)
    except Fault as fault:
        raise KdeclareError(
            error(
                "workers-refuse",
                "Connect workers do not do as asked",
                f"{fault.message or 'No reason is given'} ({fault.error}).",
                hint="'kdeclare connect worker-config status' shows them one by one.",
            )
        ) from fault
    finally:
        workers.close()


def _load_declared(workspace: Workspace) -> tuple[list[Desired], str | None]:
    """What manifests say of workers; and what is wrong with them, if something is."""
    if workspace.project.file is None:
        return [], None
    loaded = load_manifests(workspace, ())
    found = [item for item in loaded.desired if item.id.kind == _KIND]
    return found, gist(loaded.diagnostics) if loaded.has_errors else None


def _make_group(named: NamedWorkers) -> WorkerGroup:
    wrong = [what for url in named.urls if (what := wrong_url(url))]
    if wrong:
        raise KdeclareError(*map(_explain_wrong_url, wrong), exit_code=ExitCode.USAGE)
    urls = tuple(dict.fromkeys(url.rstrip("/") for url in named.urls))
    return WorkerGroup(urls, named.ca_file, named.cert_file, named.key_file, named.headers)


def _find_group(declared: Sequence[Desired], named: NamedWorkers, unread: str | None) -> WorkerGroup:
    by_name: Mapping[str, Desired] = {item.id.name: item for item in declared}
    names = [named.name] if named.name is not None else list(by_name)
    if len(names) == 1 and names[0] in by_name:
        body: WorkerConfigBody = by_name[names[0]].body
        return body.group
    raise KdeclareError(_explain_no_workers(by_name, named.name, unread), exit_code=ExitCode.USAGE)


def _explain_no_workers(by_name: Mapping[str, Desired], wanted: str | None, unread: str | None) -> Diagnostic:
    hint = "Give --worker URL for each worker, or declare them in a manifest of this kind."
    if unread is not None:
        detail = f"The manifests cannot be read: {unread}"
    elif wanted is not None:
        detail = f"No manifest declares {_KIND}/{wanted}."
        hint = did_you_mean(wanted, by_name) or hint
    elif by_name:
        detail = f"Several manifests declare workers: {', '.join(sorted(by_name))}."
        hint = "Choose one with --name NAME."
    else:
        detail = f"Neither --worker nor a manifest of kind {_KIND} names them."
    return error("no-workers", "Which Connect workers?", detail, hint=hint)


def _explain_wrong_url(what: str) -> Diagnostic:
    return error("worker-url", "Not the URL of a worker", what, hint="Write https://HOST:PORT.")


_DAY_S = 86400.0


def get_overrides(workspace: Workspace, named: NamedWorkers) -> OverridesView:
    """What workers share, passwords redacted. Raises KdeclareError."""
    with open_named_workers(workspace, named) as found:
        overrides = require_overrides(read_workers(found.workers))
    return OverridesView({key: shown(key, raw) for key, raw in overrides.items()})


def describe_workers(workspace: Workspace, named: NamedWorkers, warn_days: float) -> WorkersView:
    """Every worker, and what there is to say of them. Raises KdeclareError."""
    with open_named_workers(workspace, named) as found:
        return make_workers_view(read_workers(found.workers), warn_days)


def make_workers_view(seen: WorkersSeen, warn_days: float) -> WorkersView:
    """Workers as they were seen. warn_days: how long before its end a certificate is warned of."""
    overrides = seen.overrides or {}
    return WorkersView(
        seen.at,
        tuple(sorted(overrides)),
        tuple(WorkerView(worker, step(worker, overrides)) for worker in seen.workers),
        tuple(findings(seen, warn_days * _DAY_S)),
    )


def require_overrides(seen: WorkersSeen) -> Mapping[str, str]:
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
