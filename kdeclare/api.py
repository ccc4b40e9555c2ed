"""The Python API of kdeclare: the functions that the commands call.

These functions do not print, prompt or exit. Log messages go to the logger ``kdeclare``, and the calling
program decides where they are written. A command named in client properties (``${command.LINE}``) gets no
input and writes to the program's standard error.

Failures that a user can act on are raised as `KdeclareError`, with the diagnostics that the corresponding
command would print and the exit code that this command would return. The names in ``__all__`` keep their
meaning within a major version. All other modules are internal, except `kdeclare.policy`, which is for policy
authors.
"""

import logging
import warnings

from kdeclare.app.apply import ApplyOptions, Confirm, apply_manifests, apply_saved, roll_back
from kdeclare.app.authoring.import_live import ImportResult, import_cluster, write_manifests
from kdeclare.app.authoring.validate import validate
from kdeclare.app.fleet.audit import AuditOptions, audit_fleet
from kdeclare.app.fleet.job import FleetOptions
from kdeclare.app.history import list_runs, show_run
from kdeclare.app.plan import PlanResult, load_manifests, make_plan, save_plan
from kdeclare.app.workspace import Workspace, WorkspaceOptions, open_workspace
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, Severity, SourcePosition
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.parts import Connections, PlanOptions
from kdeclare.core.plans.plan import Plan, Summary, Verdict, VerdictOutcome
from kdeclare.core.plans.run import ApplyResult, MoveProgress, OperationResult, Status
from kdeclare.core.progress import Progress
from kdeclare.core.provider.plan_options import choose_options
from kdeclare.core.resources.changes import Action, Change, FieldChange, FieldOp, Reason, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.engine.executor.progress_tracker import RunOptions
from kdeclare.engine.planning.planfile import PlanFile, load_plan
from kdeclare.engine.planning.request import PlanScope
from kdeclare.fleet.audit_summary import Audit, AuditSummary
from kdeclare.manifests.load_manifests import LoadedManifests
from kdeclare.report.outcome import Outcome, plan_outcome, run_outcome, validation_outcome
from kdeclare.report.plan.plan_markdown import plan_markdown
from kdeclare.report.plan.plan_text import plan_text
from kdeclare.report.run.views import RunDetail, RunSummary, ValidationView

__all__ = [
    "Action",
    "ApplyOptions",
    "ApplyResult",
    "Audit",
    "AuditOptions",
    "AuditSummary",
    "Change",
    "Confirm",
    "Connections",
    "Diagnostic",
    "ExitCode",
    "FieldChange",
    "FieldOp",
    "FleetOptions",
    "ImportResult",
    "KdeclareError",
    "LoadedManifests",
    "MoveProgress",
    "OperationResult",
    "Outcome",
    "Plan",
    "PlanFile",
    "PlanOptions",
    "PlanResult",
    "PlanScope",
    "Progress",
    "Reason",
    "ResourceId",
    "Risk",
    "RunDetail",
    "RunOptions",
    "RunSummary",
    "Severity",
    "SourcePosition",
    "Status",
    "Summary",
    "ValidationView",
    "Verdict",
    "VerdictOutcome",
    "Workspace",
    "WorkspaceOptions",
    "apply_manifests",
    "apply_saved",
    "audit_fleet",
    "choose_options",
    "import_cluster",
    "list_runs",
    "load_manifests",
    "load_plan",
    "make_plan",
    "open_workspace",
    "plan_markdown",
    "plan_outcome",
    "plan_text",
    "roll_back",
    "run_outcome",
    "save_plan",
    "show_run",
    "validate",
    "validation_outcome",
    "write_manifests",
]

_DEPRECATED = {
    "How": "ApplyOptions",
    "Imported": "ImportResult",
    "Loaded": "LoadedManifests",
    "Looking": "AuditOptions",
    "Options": "WorkspaceOptions",
    "Place": "SourcePosition",
    "Planned": "PlanResult",
    "RunResult": "ApplyResult",
    "Scope": "PlanScope",
}
"""Deprecated names from version 0.1 and their replacements. kdeclare 0.3 will remove these names."""


def __getattr__(name: str) -> object:
    replacement = _DEPRECATED.get(name)
    if replacement is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(f"Use {replacement} instead of {name}.", DeprecationWarning, stacklevel=2)
    return globals()[replacement]


logging.getLogger("kdeclare").addHandler(logging.NullHandler())
