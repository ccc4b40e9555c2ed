"""Read the data that ``connect worker-config`` displays. The data contains no secrets."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from datetime import datetime
from pathlib import Path
from typing import Annotated

from pydantic import Field, PlainSerializer

from kdeclare.app.connections import ProjectReferences
from kdeclare.app.plan import load_manifests
from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error, summarize_diagnostics
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.faults import Fault
from kdeclare.core.resources.changes import FieldChange
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.suggestions import format_suggestion
from kdeclare.http.urls import explain_url_problem, is_plain_http
from kdeclare.manifests.syntax.reference_limits import Limits
from kdeclare.providers.connect.client.port import ConnectWorkers, read_workers
from kdeclare.providers.connect.connection import ConnectSettings, ConnectTarget
from kdeclare.providers.connect.worker_config.kind import ConnectWorkerConfigKind
from kdeclare.providers.connect.worker_config.spec import (
    WorkerConfigBody,
    warn_plain_http,
)
from kdeclare.providers.connect.worker_health import IN_STEP, OUT_OF_STEP, check_worker_health, explain_step
from kdeclare.providers.connect.worker_state import GroupSnapshot, WorkerGroup, WorkerSnapshot, redact_value


def _sort_overrides(overrides: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return dict(sorted(overrides.items()))


@dataclass(frozen=True, slots=True)
class OverridesView:
    """The overrides that the workers share."""

    overrides: Annotated[
        Mapping[str, JsonValue],
        PlainSerializer(_sort_overrides, return_type=dict[str, str]),
        Field(description="The value of each key. A secret is shown as '(sensitive)'."),
    ]


@dataclass(frozen=True, slots=True)
class WorkerView:
    """The state of one worker.

    step: `IN_STEP` if the worker uses the current overrides; otherwise the reason why it does not.
    """

    seen: WorkerSnapshot
    step: str

    @property
    def is_in_step(self) -> bool:
        """Whether the worker uses the current overrides."""
        return self.step == IN_STEP


@dataclass(frozen=True, slots=True)
class WorkersView:
    """The state of all workers. diagnostics: messages about workers and expiring certificates."""

    at: datetime
    keys: tuple[str, ...]
    workers: tuple[WorkerView, ...]
    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class VerdictView:
    """One worker's verdict about a change.

    words: the errors that the worker reported; empty if the worker can apply the change.
    """

    schema_name = "VerdictOfWorkerDocument"

    url: str
    valid: bool = field(init=False, default=True)
    words: Annotated[str, Field(serialization_alias="message")]

    def __post_init__(self) -> None:
        object.__setattr__(self, "valid", not self.words)


@dataclass(frozen=True, slots=True)
class ProposalView:
    """Proposed overrides, and the verdict of every worker. notices: additional warnings."""

    fields: tuple[FieldChange, ...]
    verdicts: tuple[VerdictView, ...]
    notices: tuple[Diagnostic, ...] = ()

    @property
    def is_good(self) -> bool:
        """Whether every worker can apply the proposed overrides."""
        return not any(verdict.words for verdict in self.verdicts)


@dataclass(frozen=True, slots=True)
class ChangeView:
    """A change that was made.

    behind: for each worker that has not applied the change, the reason. The keys are the URLs of the workers.
    seconds: the time until all workers applied the change, or until the timeout.
    """

    fields: tuple[FieldChange, ...]
    workers: WorkersView
    seconds: float
    behind: Mapping[str, str] = field(default_factory=dict)


def get_workers_exit_code(view: WorkersView) -> ExitCode:
    """Return PARTIAL if a worker does not respond, lags behind, or presents an unexpected certificate.

    Otherwise, return OK.
    """
    return ExitCode.PARTIAL if any(d.code in OUT_OF_STEP for d in view.diagnostics) else ExitCode.OK


def get_proposal_exit_code(view: ProposalView) -> ExitCode:
    """Return ERROR if any worker refuses the change; otherwise OK."""
    return ExitCode.OK if view.is_good else ExitCode.ERROR


def get_change_exit_code(view: ChangeView) -> ExitCode:
    """Return PARTIAL if workers have not applied the change yet; otherwise OK."""
    return ExitCode.PARTIAL if view.behind else ExitCode.OK


_KIND = ConnectWorkerConfigKind.name
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WorkersRequest:
    """The workers that the options of a command select. File paths are relative to the working directory.

    name: the name of the manifest that declares the workers, if ``urls`` is empty.
    headers: a reference to the value of each header, by header name.
    """

    urls: tuple[str, ...] = ()
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    name: str | None = None
    timeout_s: float = 10.0


@dataclass(frozen=True, slots=True)
class OpenWorkers:
    """The workers that a command uses, and the manifests that declare overrides for them.

    unread: whether any manifest could not be read.
    """

    workers: ConnectWorkers
    declared: Sequence[DesiredResource] = field(default=())
    unread: bool = False


@contextmanager
def open_requested_workers(workspace: Workspace, workers_request: WorkersRequest) -> Iterator[OpenWorkers]:
    """Open the requested workers. Converts every Fault in the ``with`` block to a KdeclareError."""
    declared, manifest_error = _load_declared(workspace)
    if workers_request.urls:
        group, folder = _build_group(workers_request), Path()
        limits: Limits = ()  # The options are trusted, because the user types them.
    else:
        group, folder = _get_group(declared, workers_request, manifest_error), workspace.project.folder
        limits = workspace.project.limits
    for url in group.urls if group.headers else ():
        if is_plain_http(url):
            _log.warning("%s", warn_plain_http(url).detail)
    references = ProjectReferences(folder, workspace.environ, limits)
    settings = workspace.project.environment.providers.get("connect")
    named = settings.build_targets(workspace.project.folder) if isinstance(settings, ConnectSettings) else ()
    target = ConnectTarget(folder, references, endpoints=named)
    workers = target.open(workers_request.timeout_s).open(group)
    matching_manifests = [
        item
        for item in declared
        if not set(item.get_body(WorkerConfigBody).group.names).isdisjoint(group.names)
    ]
    try:
        yield OpenWorkers(workers, matching_manifests, manifest_error is not None)
    except Fault as fault:
        raise KdeclareError(
            error(
                "workers-refuse",
                "Request to Connect workers failed",
                f"{fault.message or 'No reason is given'} ({fault.error}).",
                hint="Run 'kdeclare connect worker-config status' to see the state of each worker.",
            )
        ) from fault
    finally:
        workers.close()


def _load_declared(workspace: Workspace) -> tuple[list[DesiredResource], str | None]:
    """Return the resources that declare workers. Also return an error message if manifests cannot be read."""
    if workspace.project.file is None:
        return [], None
    loaded = load_manifests(workspace, ())
    declared = [item for item in loaded.desired if item.id.kind == _KIND]
    return declared, summarize_diagnostics(loaded.diagnostics) if loaded.has_errors else None


def _build_group(workers_request: WorkersRequest) -> WorkerGroup:
    url_problems = [url_problem for url in workers_request.urls if (url_problem := explain_url_problem(url))]
    if url_problems:
        raise KdeclareError(*map(_build_url_error, url_problems), exit_code=ExitCode.USAGE)
    urls = tuple(dict.fromkeys(url.rstrip("/") for url in workers_request.urls))
    return WorkerGroup(
        urls,
        workers_request.ca_file,
        workers_request.cert_file,
        workers_request.key_file,
        workers_request.headers,
    )


def _get_group(
    declared: Sequence[DesiredResource], workers_request: WorkersRequest, manifest_error: str | None
) -> WorkerGroup:
    by_name: Mapping[str, DesiredResource] = {item.id.name: item for item in declared}
    names = [workers_request.name] if workers_request.name is not None else list(by_name)
    if len(names) == 1 and names[0] in by_name:
        return by_name[names[0]].get_body(WorkerConfigBody).group
    raise KdeclareError(
        _build_no_workers_error(by_name, workers_request.name, manifest_error), exit_code=ExitCode.USAGE
    )


def _build_no_workers_error(
    by_name: Mapping[str, DesiredResource], requested_name: str | None, manifest_error: str | None
) -> Diagnostic:
    hint = "Pass --worker URL for each worker, or declare the workers in a ConnectWorkerConfig manifest."
    if manifest_error is not None:
        detail = f"The manifests cannot be read: {manifest_error}"
    elif requested_name is not None:
        detail = f"No manifest declares {_KIND}/{requested_name}."
        hint = format_suggestion(requested_name, by_name) or hint
    elif by_name:
        detail = f"Several manifests declare workers: {', '.join(sorted(by_name))}."
        hint = "Choose one with --name NAME."
    else:
        detail = f"Neither --worker nor a manifest of kind {_KIND} names the workers."
    return error("no-workers", "Cannot determine the Connect workers", detail, hint=hint)


def _build_url_error(detail: str) -> Diagnostic:
    return error("worker-url", "Invalid worker URL", detail, hint="Use the form https://HOST:PORT.")


_DAY_S = 86400.0


def get_overrides(workspace: Workspace, workers_request: WorkersRequest) -> OverridesView:
    """Return the shared overrides with masked passwords. Raises KdeclareError."""
    with open_requested_workers(workspace, workers_request) as opened:
        overrides = require_overrides(read_workers(opened.workers))
    return OverridesView({key: redact_value(key, raw) for key, raw in overrides.items()})


def describe_workers(workspace: Workspace, workers_request: WorkersRequest, warn_days: float) -> WorkersView:
    """Return the state of every worker, with diagnostics. Raises KdeclareError."""
    with open_requested_workers(workspace, workers_request) as opened:
        return build_workers_view(read_workers(opened.workers), warn_days)


def build_workers_view(snapshot: GroupSnapshot, warn_days: float) -> WorkersView:
    """Convert the state of workers for display.

    warn_days: how many days before a certificate expires to warn.
    """
    overrides = snapshot.overrides or {}
    return WorkersView(
        snapshot.at,
        tuple(sorted(overrides)),
        tuple(WorkerView(worker, explain_step(worker, overrides)) for worker in snapshot.workers),
        tuple(check_worker_health(snapshot, warn_days * _DAY_S)),
    )


def require_overrides(snapshot: GroupSnapshot) -> Mapping[str, str]:
    """Return the overrides. Raises KdeclareError if no worker reports the overrides."""
    if snapshot.overrides is not None:
        return snapshot.overrides
    raise KdeclareError(
        error(
            "workers-unreachable",
            "No Connect worker reports its configuration",
            "\n".join(f"{worker.url}: {worker.trouble}." for worker in snapshot.workers),
            hint="Check the URLs and the values of --ca-file and --header, and install kdeclare's plug-in on "
            "the workers if it is missing.",
        )
    )
