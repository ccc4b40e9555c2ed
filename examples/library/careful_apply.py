"""Plan and apply from code, and leave to people what no rollback brings back.

python careful_apply.py    in a folder with a kdeclare.yaml
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
    """Apply the project that is here; the exit code is the one that the command line would have."""
    try:
        return careful_apply(open_workspace(WorkspaceOptions()))
    except KdeclareError as problem:
        for found in problem.diagnostics:
            print(f"{found.place or found.resource or found.code}: {found.detail or found.summary}")
        return problem.exit_code


def careful_apply(workspace: Workspace) -> int:
    """Apply what can be rolled back, exactly as it was looked at here. Raises KdeclareError."""
    plan = make_plan(workspace, what=PROGRAM).plan
    print(plan_outcome(plan).headline)
    if plan.has_errors:
        raise KdeclareError(*plan.diagnostics)
    final = final_changes(plan)
    if final:
        print(f"Left to people: {', '.join(final)}.")
        return ExitCode.DENIED
    if not plan.has_changes:
        return plan_outcome(plan).exit_code
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "it.plan"
        save_plan(plan, file)
        run = apply_saved(workspace, load_plan(file), ApplyOptions(PROGRAM))
    assert run is not None  # nobody was asked
    print(run_outcome(run).headline)
    return run_outcome(run).exit_code


def final_changes(plan: Plan) -> list[str]:
    """The resources that no rollback would bring back to what they are."""
    return [str(change.id) for change in plan.changes if change.risk is Risk.IRREVERSIBLE]


if __name__ == "__main__":
    sys.exit(main())
