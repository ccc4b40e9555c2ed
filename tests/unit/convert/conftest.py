"""The command line, for conversions."""

from tests.unit.cli.conftest import kdeclare as kdeclare
