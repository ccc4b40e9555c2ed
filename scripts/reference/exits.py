"""The exit codes, and which command gives which."""

from kdeclare.cli.epilogs import EXIT_CODE_MEANINGS
from kdeclare.core.exit_codes import ExitCode
from scripts.reference.markdown import code, page, table


def exits_page() -> str:
    """All exit codes."""
    return page(
        "Exit codes",
        table(
            ("code", "name", "meaning"),
            ((code(int(c)), code(c.name), EXIT_CODE_MEANINGS[c]) for c in ExitCode),
        ),
        "`--help` of a command lists those that it gives. With several reasons the worse one counts: an "
        "error weighs more than a denial, a denial more than changes. [What is said and how it exits]"
        "(../errors.md#exit-codes) has each case with the test that shows it.",
    )
