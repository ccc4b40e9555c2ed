"""Looking at all that kdeclare needs: this machine, the project, its state, the cluster."""

import os
from collections.abc import Callable, Mapping

from kdeclare.app.doctor.cluster import NOT_LOOKED_AT, Reaching, cluster_sections, reach_kafka
from kdeclare.app.doctor.machine import machine_section
from kdeclare.app.doctor.project import declared_workers, project_section
from kdeclare.app.doctor.state import state_section
from kdeclare.app.doctor.workers import workers_section
from kdeclare.app.workspace import Options
from kdeclare.report.doctor_views import DoctorView, Section

Progress = Callable[[str, int, int], None]


def examined(
    options: Options,
    progress: Progress,
    environ: Mapping[str, str] | None = None,
    reaching: Reaching = reach_kafka,
) -> DoctorView:
    """What was found. Changes nothing, and raises nothing that a check can say.

    environ: default: that of the process. reaching: opens a cluster.
    """
    environ = os.environ if environ is None else environ
    progress("Looking at this machine", 0, 0)
    sections = [machine_section(environ)]
    in_project, workspace, loaded = project_section(options, environ)
    sections.append(in_project)
    if workspace is None:
        sections.append(Section("Cluster", (NOT_LOOKED_AT,)))
        return DoctorView(tuple(sections))
    progress("Connecting", 0, 0)
    on_cluster, cluster_id = cluster_sections(workspace, options, reaching)
    sections.append(state_section(workspace, options, cluster_id))
    sections += on_cluster
    sections += workers_section(workspace, declared_workers(loaded), options.patience_s)
    return DoctorView(tuple(sections))
