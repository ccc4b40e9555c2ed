"""Looking at all that kdeclare needs: this machine, the project, its state, the systems of all providers."""

import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel

from kdeclare.app.connections import is_left_out, read_settings
from kdeclare.app.plan import load_manifests
from kdeclare.app.workspace import Options, Workspace, open_workspace, surroundings_of
from kdeclare.core.diagnostics import KdeclareError, gist
from kdeclare.core.live.faults import Fault
from kdeclare.core.parts import Connections
from kdeclare.core.plans.state import State
from kdeclare.core.provider.connection import NOT_CONFIGURED, Closable, Connects, Keepable, Surroundings
from kdeclare.core.provider.installed_providers import load_providers
from kdeclare.core.provider.provider import (
    Check,
    ExaminationRequest,
    Examined,
    Provider,
    Section,
    Standing,
    check_of_error,
)
from kdeclare.engine.state.local import folder_of
from kdeclare.java import installed_java
from kdeclare.manifests.load import Loaded
from kdeclare.manifests.project import PROJECT_FILE
from kdeclare.report.doctor import DoctorView
from kdeclare.report.elements.values import plural
from kdeclare.version import VERSION

Progress = Callable[[str, int, int], None]


def examined(options: Options, progress: Progress, environ: Mapping[str, str] | None = None) -> DoctorView:
    """What was found. Changes nothing, and raises nothing that a check can say.

    Sections stand in the order in which one thing rests on the other: what a provider builds on comes before
    it. environ: default: that of the process.
    """
    environ = os.environ if environ is None else environ
    progress("Looking at this machine", 0, 0)
    machine = _machine_section(environ)
    project, workspace, loaded = _project_section(options, environ)
    if workspace is None:
        found = [provider.examine(ExaminationRequest()) for provider in load_providers() if provider.examine]
        return DoctorView((machine, project, *(s for one in found for s in one.sections)))
    progress("Connecting", 0, 0)
    found = [_examine(provider, workspace, options, loaded) for provider in load_providers()]
    system_ids = [one.system_id for one in found if one.system_id is not None]
    state = _state_section(workspace, options, system_ids)
    return DoctorView((machine, project, state, *(s for one in found for s in one.sections)))


def _examine(provider: Provider, workspace: Workspace, options: Options, loaded: Loaded | None) -> Examined:
    surroundings = surroundings_of(workspace.project, options, workspace.environ)
    desired = loaded.desired if loaded else ()
    connects = provider.connection
    if connects is None:
        request = ExaminationRequest(None, surroundings, desired)
        return provider.examine(request) if provider.examine else Examined()
    if is_left_out(provider.name, connects, workspace.project, surroundings):
        return Examined()
    try:
        settings = read_settings(provider.name, connects, workspace.project)
    except KdeclareError as problem:
        if problem.diagnostics[0].code != NOT_CONFIGURED:
            raise
        return Examined()  # whoever needs it is told by name
    if provider.examine is not None:
        return provider.examine(ExaminationRequest(settings, surroundings, desired))
    if provider.name not in workspace.project.environment.providers:
        return Examined()
    checks = tuple(_try_connection(provider, connects, settings, surroundings))
    return Examined((Section(provider.name.capitalize(), checks),))


def _try_connection(
    provider: Provider, connects: Connects, settings: BaseModel, surroundings: Surroundings
) -> Iterator[Check]:
    """Check that a system can be connected to and read; a provider without `examine` has no more to say."""
    name = "Connection"
    try:
        connection = connects.make_target(settings, surroundings).open(surroundings.timeout_s)
        try:
            if isinstance(connection, Keepable):
                connection.check()
            yield Check(name, Standing.OK, "it can be connected to")
            codecs = [collector.codec for collector in provider.collectors if collector.codec is not None]
            for codec in codecs:
                name = "Objects"
                codec.list_objects(Connections(connection))
            if codecs:
                yield Check(name, Standing.OK, "they can be read")
        finally:
            if isinstance(connection, Closable):
                connection.close()
    except KdeclareError as problem:
        yield check_of_error(name, Standing.FAILED, problem)
    except Fault as fault:
        yield Check(name, Standing.FAILED, fault.message or fault.error)


# this machine: Python, and Java for what needs it

_JAVA_FOR = "kdeclare sandbox, and kdeclare fleet on Spark, alone"
_JAVAC_FOR = "kdeclare connect plugin alone"


def _machine_section(environ: Mapping[str, str]) -> Section:
    """What is installed here."""
    python = f"{platform.python_version()} at {sys.executable}; kdeclare {VERSION}"
    return Section("This machine", (Check("Python", Standing.OK, python), *_java(environ)))


def _java(environ: Mapping[str, str]) -> tuple[Check, ...]:
    try:
        java = installed_java(environ)
        found = Check("Java", Standing.OK, f"{java.version} at {java.path}", _JAVA_FOR)
    except KdeclareError as problem:
        return (check_of_error("Java", Standing.WARNING, problem, _JAVA_FOR),)
    from kdeclare.sandbox.connect_jars import find_javac

    try:
        return found, Check("Java compiler", Standing.OK, find_javac(environ, java.path), _JAVAC_FOR)
    except KdeclareError as problem:
        return found, check_of_error("Java compiler", Standing.WARNING, problem, _JAVAC_FOR)


# the project file and its manifests

_Project = tuple[Section, Workspace | None, Loaded | None]
"""What was found; the workspace and what its manifests say, where there are such."""


def _project_section(options: Options, environ: Mapping[str, str]) -> _Project:
    """What is declared here."""
    try:
        workspace = open_workspace(options, environ)
    except KdeclareError as problem:
        return Section("Project", (check_of_error("Project file", Standing.FAILED, problem),)), None, None
    project = workspace.project
    if project.file is None:
        none = Check(
            "Project file",
            Standing.SKIPPED,
            f"there is no {PROJECT_FILE} here: commands then go by --bootstrap-server and paths of manifests",
        )
        return Section("Project", (none,)), workspace, None
    found = Check("Project file", Standing.OK, f"{project.file}, environment {project.environment.name}")
    loaded = load_manifests(workspace, ())
    return Section("Project", (found, _manifests(loaded))), workspace, loaded


def _manifests(loaded: Loaded) -> Check:
    if loaded.has_errors:
        return Check(
            "Manifests",
            Standing.FAILED,
            gist(loaded.diagnostics),
            "plan and apply",
            "'kdeclare validate' shows all that is wrong.",
        )
    what = f"{plural(len(loaded.desired), 'resource')} in {plural(loaded.files, 'file')}"
    return Check("Manifests", Standing.OK, what)


# the state: whether it can be read and written, whose it is, who holds its lock


def _state_section(workspace: Workspace, options: Options, system_ids: Sequence[str]) -> Section:
    """Check the store, the lock, and whether the state is bound to one of the systems that were reached."""
    project = workspace.project
    folder = folder_of(options.state or project.state, project.name, project.environment.name)
    try:
        state = workspace.store.read()
        holder = workspace.store.holder()
    except KdeclareError as problem:
        return Section("State", (check_of_error("Store", Standing.FAILED, problem),))
    checks = [_store(folder, state)]
    if state is not None and system_ids and state.cluster_id not in ("", *system_ids):
        checks.append(
            Check(
                "Cluster id",
                Standing.FAILED,
                f"the state is of cluster {state.cluster_id}, and the one that was reached is "
                f"{system_ids[0]}",
                hint="Check --env and --bootstrap-server; another cluster wants another --state.",
            )
        )
    if holder is None:
        checks.append(Check("Lock", Standing.OK, "free"))
    else:
        held = f"held by {holder.who} (process {holder.pid}) since {holder.since}: {holder.what}"
        hint = "Wait for it; 'kdeclare lock break' takes it from a process that hangs."
        checks.append(Check("Lock", Standing.WARNING, held, "apply and rollback", hint))
    return Section("State", tuple(checks))


def _store(folder: Path, state: State | None) -> Check:
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not os.access(there, os.W_OK | os.X_OK):
        return Check(
            "Store",
            Standing.WARNING,
            f"{folder} can be read, but not written: {there} does not permit it",
            "apply and rollback; plan works without",
            "Give yourself the right to write there, or another folder with --state.",
        )
    if state is None:
        return Check("Store", Standing.OK, f"{folder}: nothing yet, the first apply makes it")
    owned = plural(len(state.resources), "owned resource")
    return Check("Store", Standing.OK, f"{folder}: serial {state.serial}, {owned}")
