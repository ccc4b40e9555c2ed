"""Generate the reference of exit codes and of the commands that use them."""

from kdeclare.cli.epilogs import EXIT_CODE_MEANINGS
from kdeclare.core.exit_codes import ExitCode
from scripts.reference.markdown import code, page, table


def exits_page() -> str:
    """Render all exit codes."""
    return page(
        "Exit codes",
        table(
            ("code", "name", "meaning"),
            ((code(int(c)), code(c.name), EXIT_CODE_MEANINGS[c]) for c in ExitCode),
        ),
        "`--help` of a command lists its exit codes. If there are several reasons, the most severe applies: "
        "an error before a denial, and a denial before changes. [Errors and exit codes]"
        "(../errors.md#exit-codes) lists each case with its test.",
    )
