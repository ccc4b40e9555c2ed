"""Plan and apply from Python, but refuse plans with irreversible changes.

Run ``python careful_apply.py`` in a folder with a kdeclare.yaml.
"""

import sys
import tempfile
from pathlib import Path

from kdeclare.api import (
    ApplyOptions,
    ExitCode,
    KdeclareError,
    Plan,
    Risk,
    Workspace,
    WorkspaceOptions,
    apply_saved,
    load_plan,
    make_plan,
    open_workspace,
    plan_outcome,
    run_outcome,
    save_plan,
)

PROGRAM = "careful_apply.py"


def main() -> int:
    """Apply the project in the current folder; return the exit code of the command line."""
    try:
        return careful_apply(open_workspace(WorkspaceOptions()))
    except KdeclareError as problem:
        for found in problem.diagnostics:
            print(f"{found.place or found.resource or found.code}: {found.detail or found.summary}")
        return problem.exit_code


def careful_apply(workspace: Workspace) -> int:
    """Apply exactly the checked plan if it can be rolled back. Raises KdeclareError."""
    plan = make_plan(workspace, what=PROGRAM).plan
    print(plan_outcome(plan).headline)
    if plan.has_errors:
        raise KdeclareError(*plan.diagnostics)
    final = final_changes(plan)
    if final:
        print(f"Not applied because they are irreversible: {', '.join(final)}.")
        return ExitCode.DENIED
    if not plan.has_changes:
        return plan_outcome(plan).exit_code
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "it.plan"
        save_plan(plan, file)
        run = apply_saved(workspace, load_plan(file), ApplyOptions(PROGRAM))
    assert run is not None  # no confirmation was requested
    print(run_outcome(run).headline)
    return run_outcome(run).exit_code


def final_changes(plan: Plan) -> list[str]:
    """Return the resources with a change that a rollback cannot undo."""
    return [str(change.id) for change in plan.changes if change.risk is Risk.IRREVERSIBLE]


if __name__ == "__main__":
    sys.exit(main())
