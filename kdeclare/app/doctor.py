"""Check everything that kdeclare needs: this machine, the project, its state and the providers' systems."""

import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel

from kdeclare.app.connections import is_left_out, read_settings
from kdeclare.app.plan import load_manifests
from kdeclare.app.state_stores import is_shared_location
from kdeclare.app.workspace import Workspace, WorkspaceOptions, build_surroundings, open_workspace
from kdeclare.core.diagnostics import KdeclareError, summarize_diagnostics
from kdeclare.core.live.faults import Fault
from kdeclare.core.parts import Connections
from kdeclare.core.plans.state import State
from kdeclare.core.provider.connection import (
    NOT_CONFIGURED,
    AnyConnectionType,
    Closable,
    ConnectionContext,
    Keepable,
)
from kdeclare.core.provider.installed_providers import load_providers, resolve_provider
from kdeclare.core.provider.provider import (
    Check,
    CheckSection,
    CheckStatus,
    ExaminationRequest,
    ExaminationResult,
    Provider,
    build_error_check,
)
from kdeclare.core.provider.registry import list_codecs_of
from kdeclare.engine.state.location import resolve_folder
from kdeclare.java import get_installed_java
from kdeclare.manifests.load_manifests import LoadedManifests
from kdeclare.manifests.project import PROJECT_FILE, Project
from kdeclare.report.doctor import DoctorView
from kdeclare.report.elements.values import format_count
from kdeclare.version import VERSION

Progress = Callable[[str, int, int], None]


def run_doctor(
    options: WorkspaceOptions,
    progress: Progress,
    environ: Mapping[str, str] | None = None,
    *,
    kinds: frozenset[str] = frozenset(),
) -> DoctorView:
    """Run all checks without changing anything. Problems become failed checks instead of exceptions.

    Sections are ordered by dependency: if a provider builds on other systems, the sections of these systems
    come before its own.
    environ: the environment variables; None means the variables of the process.
    kinds: kinds to check even if no manifest declares a resource of them.
    """
    environ = os.environ if environ is None else environ
    progress("Checking this machine", 0, 0)
    machine_section = _check_machine(environ)
    project_section, workspace, manifests = _check_project(options, environ)
    providers = tuple(map(resolve_provider, load_providers()))
    if workspace is None:
        examinations = [provider.examine(ExaminationRequest()) for provider in providers if provider.examine]
        return DoctorView(
            (machine_section, project_section, *(s for one in examinations for s in one.sections))
        )
    progress("Connecting", 0, 0)
    examinations = [
        _examine_provider(provider, workspace, options, manifests, kinds) for provider in providers
    ]
    system_ids = [one.system_id for one in examinations if one.system_id is not None]
    state_section = _check_state(workspace, options, system_ids)
    project_section = _add_project_checks(project_section, workspace, system_ids)
    return DoctorView(
        (machine_section, project_section, state_section, *(s for one in examinations for s in one.sections))
    )


def _examine_provider(
    provider: Provider,
    workspace: Workspace,
    options: WorkspaceOptions,
    manifests: LoadedManifests | None,
    kinds: frozenset[str],
) -> ExaminationResult:
    surroundings = build_surroundings(workspace.project, options, workspace.environ)
    desired = manifests.desired if manifests else ()
    connection_type = provider.connection
    if connection_type is None:
        request = ExaminationRequest(None, surroundings, desired, kinds)
        return provider.examine(request) if provider.examine else ExaminationResult()
    if is_left_out(provider.name, connection_type, workspace.project, surroundings):
        return ExaminationResult()
    try:
        settings = read_settings(provider.name, connection_type, workspace.project)
    except KdeclareError as problem:
        if problem.diagnostics[0].code != NOT_CONFIGURED:
            raise
        return ExaminationResult()  # commands that need the system report the missing settings
    if provider.examine is not None:
        return provider.examine(ExaminationRequest(settings, surroundings, desired, kinds))
    if provider.name not in workspace.project.environment.providers:
        return ExaminationResult()
    checks = tuple(_check_connection(provider, connection_type, settings, surroundings))
    return ExaminationResult((CheckSection(provider.name.capitalize(), checks),))


def _check_connection(
    provider: Provider,
    connection_type: AnyConnectionType,
    settings: BaseModel,
    surroundings: ConnectionContext,
) -> Iterator[Check]:
    """Check that a system can be reached and read. Used for providers that do not implement `examine`."""
    name = "Connection"
    try:
        connection = connection_type.make_target(settings, surroundings).open(surroundings.timeout_s)
        try:
            if isinstance(connection, Keepable):
                connection.check()
            yield Check(name, CheckStatus.OK, "the system is reachable")
            codecs = list_codecs_of([provider])
            for codec in codecs:
                name = "Objects"
                codec.list_objects(Connections(connection))
            if codecs:
                yield Check(name, CheckStatus.OK, "objects of all kinds can be read")
        finally:
            if isinstance(connection, Closable):
                connection.close()
    except KdeclareError as problem:
        yield build_error_check(name, CheckStatus.FAILED, problem)
    except Fault as fault:
        yield Check(name, CheckStatus.FAILED, fault.message or fault.error)


# this machine: Python, and Java for the commands that need it

_JAVA_PURPOSE = "only kdeclare sandbox, and kdeclare fleet for large fleets (Spark)"
_JAVAC_PURPOSE = "only kdeclare connect plugin"


def _check_machine(environ: Mapping[str, str]) -> CheckSection:
    python_words = f"{platform.python_version()} at {sys.executable}; kdeclare {VERSION}"
    return CheckSection(
        "This machine", (Check("Python", CheckStatus.OK, python_words), *_check_java(environ))
    )


def _check_java(environ: Mapping[str, str]) -> tuple[Check, ...]:
    try:
        java = get_installed_java(environ)
        java_check = Check("Java", CheckStatus.OK, f"{java.version} at {java.path}", _JAVA_PURPOSE)
    except KdeclareError as problem:
        return (build_error_check("Java", CheckStatus.WARNING, problem, _JAVA_PURPOSE),)
    from kdeclare.sandbox.connect_jars import find_javac

    try:
        return java_check, Check(
            "Java compiler", CheckStatus.OK, find_javac(environ, java.path), _JAVAC_PURPOSE
        )
    except KdeclareError as problem:
        return java_check, build_error_check("Java compiler", CheckStatus.WARNING, problem, _JAVAC_PURPOSE)


# the project file and its manifests

_ProjectCheck = tuple[CheckSection, Workspace | None, LoadedManifests | None]
"""The check results, the workspace and the manifests. None stands for data that could not be loaded."""


def _check_project(options: WorkspaceOptions, environ: Mapping[str, str]) -> _ProjectCheck:
    try:
        workspace = open_workspace(options, environ)
    except KdeclareError as problem:
        return (
            CheckSection("Project", (build_error_check("Project file", CheckStatus.FAILED, problem),)),
            None,
            None,
        )
    project = workspace.project
    if project.file is None:
        skipped_check = Check(
            "Project file",
            CheckStatus.SKIPPED,
            f"there is no {PROJECT_FILE} in this folder, so commands need --bootstrap-server and the paths "
            "of manifests",
        )
        return CheckSection("Project", (skipped_check,)), workspace, None
    project_check = Check(
        "Project file", CheckStatus.OK, f"{project.file}, environment {project.environment.name}"
    )
    manifests = load_manifests(workspace, ())
    return CheckSection("Project", (project_check, _check_manifests(manifests))), workspace, manifests


def _add_project_checks(
    section: CheckSection, workspace: Workspace, system_ids: Sequence[str]
) -> CheckSection:
    """Add the checks of ``clusterId`` and ``signatures``, if the project file has these fields."""
    project = workspace.project
    checks = list(section.checks)
    cluster_id = project.environment.cluster_id
    if cluster_id is not None and not system_ids:
        skipped = f"{cluster_id} was not compared with the id of the cluster"
        checks.append(Check("Cluster id", CheckStatus.SKIPPED, skipped))
    elif cluster_id in system_ids:
        checks.append(Check("Cluster id", CheckStatus.OK, f"{cluster_id}, as in the project file"))
    elif cluster_id is not None:
        checks.append(
            Check(
                "Cluster id",
                CheckStatus.FAILED,
                f"the environment is for cluster {cluster_id} (clusterId), but the reachable cluster is "
                f"{system_ids[0]}",
                hint="Check --env and --bootstrap-server. If the cluster was replaced, change clusterId.",
            )
        )
    return replace(section, checks=(*checks, *_check_signatures(project)))


def _check_signatures(project: Project) -> Iterator[Check]:
    rules = project.signatures
    if not (rules.is_required or rules.keys or rules.files):
        return
    requirement = "plans must be signed" if rules.is_required else "plans need no signature"
    try:
        key_lists = rules.load_keys()
    except KdeclareError as problem:
        yield build_error_check("Signatures", CheckStatus.FAILED, problem)
        return
    words = f"{requirement}; {format_count(len(key_lists[0]), 'trusted key')}"
    status = CheckStatus.FAILED if rules.is_required and not all(key_lists) else CheckStatus.OK
    yield Check("Signatures", status, words)


def _check_manifests(manifests: LoadedManifests) -> Check:
    if manifests.has_errors:
        return Check(
            "Manifests",
            CheckStatus.FAILED,
            summarize_diagnostics(manifests.diagnostics),
            "plan and apply",
            "Run 'kdeclare validate' to see all errors.",
        )
    counts = f"{format_count(len(manifests.desired), 'resource')} in {format_count(manifests.files, 'file')}"
    return Check("Manifests", CheckStatus.OK, counts)


# the state: access, the cluster that it belongs to, and its lock


def _check_state(workspace: Workspace, options: WorkspaceOptions, system_ids: Sequence[str]) -> CheckSection:
    """Check the state store and its lock, and that the state belongs to one of the reachable systems."""
    project = workspace.project
    location = options.state or project.state
    try:
        state = workspace.store.read()
        holder = workspace.store.read_holder()
    except KdeclareError as problem:
        return CheckSection("State", (build_error_check("Store", CheckStatus.FAILED, problem),))
    checks = [
        _describe_store(f"{location} ({project.name}/{project.environment.name})", state)
        if is_shared_location(location)
        else _check_folder(resolve_folder(location, project.name, project.environment.name), state)
    ]
    if state is not None and system_ids and state.cluster_id not in ("", *system_ids):
        checks.append(
            Check(
                "Cluster id",
                CheckStatus.FAILED,
                f"the state belongs to cluster {state.cluster_id}, but the reachable cluster is "
                f"{system_ids[0]}",
                hint="Check --env and --bootstrap-server, or choose another state for this cluster with "
                "--state.",
            )
        )
    if holder is None:
        checks.append(Check("Lock", CheckStatus.OK, "free"))
    else:
        holder_words = f"held by {holder.who} (process {holder.pid}) since {holder.since}: {holder.what}"
        hint = "Wait until the process finishes. If it hangs, run 'kdeclare lock break'."
        if holder.renewed is not None:
            holder_words += f"; the lease was renewed at {holder.renewed}"
        checks.append(Check("Lock", CheckStatus.WARNING, holder_words, "apply and rollback", hint))
    return CheckSection("State", tuple(checks))


def _check_folder(folder: Path, state: State | None) -> Check:
    existing_folder = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not os.access(existing_folder, os.W_OK | os.X_OK):
        return Check(
            "Store",
            CheckStatus.WARNING,
            f"{folder} can be read but not written: no write permission on {existing_folder}",
            "apply and rollback; plan works without it",
            "Grant yourself write permission there, or choose another folder with --state.",
        )
    return _describe_store(str(folder), state)


def _describe_store(location: str, state: State | None) -> Check:
    if state is None:
        return Check("Store", CheckStatus.OK, f"{location}: empty; the first apply creates the state")
    owned_count = format_count(len(state.resources), "owned resource")
    return Check("Store", CheckStatus.OK, f"{location}: serial {state.serial}, {owned_count}")
