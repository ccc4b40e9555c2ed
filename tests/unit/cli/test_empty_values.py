"""Empty values of options and arguments, which usually come from an unset variable of a script."""

from collections.abc import Iterator
from typing import Any

import pytest

from kdeclare.cli.main import build_application
from tests.unit.cli.command_line import CommandLine


def list_parameters(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield each parameter with a value, with the words of its command."""
    for name, subcommand in getattr(command, "commands", {}).items():
        yield from list_parameters(subcommand, (*path, name))
    for param in command.params:
        if path and not getattr(param, "is_flag", False):
            yield path, param


PARAMETERS = list(list_parameters(build_application().root))
COMMANDS = sorted({path for path, _ in PARAMETERS})


@pytest.mark.slow
@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_parameter_rejects_empty_value(kdeclare: CommandLine, path: tuple[str, ...]) -> None:
    for param in (param for command, param in PARAMETERS if command == path):
        words = ("",) if param.param_type_name == "argument" else (param.opts[0], "")
        ran = kdeclare(*path, *words)
        assert ran.code == 64, (param.opts, ran)
        assert "The value is empty." in ran.err or "valid" in ran.err, (param.opts, ran.err)


def test_apply_of_empty_path_does_not_apply_current_folder(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    ran = kdeclare("apply", "", "--yes")
    assert ran.code == 64
    assert "error: Invalid value for 'PATH': The value is empty.\n" in ran.err
    assert not kdeclare.topics


def test_empty_environment_is_not_the_default_environment(kdeclare: CommandLine) -> None:
    ran = kdeclare("plan", "--env", "")
    assert ran.code == 64
    assert "error: Invalid value for '--env': The value is empty.\n" in ran.err


def test_value_with_nul_is_rejected(kdeclare: CommandLine) -> None:
    ran = kdeclare("plan", "--state", "a\0b")
    assert ran.code == 64
    assert "NUL" in ran.err
