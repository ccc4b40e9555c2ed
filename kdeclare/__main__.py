"""``python -m kdeclare``."""

from kdeclare.cli.main import run

if __name__ == "__main__":
    run()
