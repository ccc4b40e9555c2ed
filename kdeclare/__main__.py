"""The ``kdeclare`` command, and ``python -m kdeclare``."""

import sys


def run() -> None:
    """Run the command line. Ctrl-C has the same effect while modules are imported as it has later."""
    try:
        from kdeclare.cli.main import run as run_command

        run_command()
    except KeyboardInterrupt:
        sys.exit(130)  # `ExitCode.INTERRUPTED`, which may not have been imported yet


if __name__ == "__main__":
    run()
