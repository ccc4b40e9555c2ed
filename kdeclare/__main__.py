"""The ``kdeclare`` command, and ``python -m kdeclare``."""

import sys


def run() -> None:
    """Import the command line and run it. Ctrl-C during the import has the same effect as later."""
    try:
        from kdeclare.cli.main import run as run_command

        run_command()
    except KeyboardInterrupt:
        sys.exit(130)  # `ExitCode.INTERRUPTED`, which may not have been imported yet


if __name__ == "__main__":
    run()
