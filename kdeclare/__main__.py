"""The ``kdeclare`` command, and ``python -m kdeclare``."""

import sys


def run() -> None:
    """Import the command line and run it. A Ctrl-C during the import ends it as any other does."""
    try:
        from kdeclare.cli.main import run as run_command

        run_command()
    except KeyboardInterrupt:
        sys.exit(130)  # `ExitCode.INTERRUPTED`, which may not be imported yet


if __name__ == "__main__":
    run()
