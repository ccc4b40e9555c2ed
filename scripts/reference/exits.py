"""Generate the reference of exit codes and of the commands that use them."""

from kdeclare.cli.epilogs import EXIT_CODE_MEANINGS
from kdeclare.core.exit_codes import ExitCode
from scripts.reference.markdown import code, page, table


def exits_page() -> str:
    """Render the page of exit codes."""
    return page(
        "Exit codes",
        table(
            ("code", "name", "meaning"),
            ((code(int(c)), code(c.name), EXIT_CODE_MEANINGS[c]) for c in ExitCode),
        ),
        "The help for each command lists the command's exit codes. If several exit codes apply, the command "
        "returns the code for the most severe reason: errors are more severe than denials, and denials are "
        "more severe than changes. [Errors and exit codes](../errors.md#exit-codes) lists each case with its "
        "test.",
    )
