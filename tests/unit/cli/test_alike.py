"""Plan, apply and validate treat the same inputs alike: same options, same mistakes in the same words."""

import json
from typing import Any

import pytest
import typer

from kdeclare.cli.main import application
from tests.unit.cli.cases_folder import Case, bring_about, cases
from tests.unit.cli.command_line import CommandLine

MISTAKEN = [
    case for case in cases() if json.loads((case.folder / "output.json").read_text()).get("exit_code") == 1
]
"""Cases that no plan can be made of."""


def options(name: str) -> set[str]:
    command: Any = typer.main.get_command(application(name))
    found = command.commands[name] if hasattr(command, "commands") else command
    return {spelling for param in found.params for spelling in param.opts if spelling.startswith("--")}


def test_what_can_be_said_of_inputs_can_be_said_to_each() -> None:
    plan, apply, validate = map(options, ("plan", "apply", "validate"))
    assert plan - apply == {"--out", "--detailed-exitcode", "--graph"}
    assert apply - plan == {
        "--yes",
        "--fail-fast",
        "--no-wait",
        "--move-timeout",
        "--follow-timeout",
        "--skip-stale",
    }
    assert validate == {"--project", "--env", "--format", "--quiet", "--verbose", "--no-color"} | (
        validate & {"--help"}
    ), "offline, and of the project as a whole"
    assert validate <= plan & apply


def errors(text: str) -> list[tuple[object, ...]]:
    return [
        (d["code"], d["resource"], d["detail"], d["hint"], str(d["place"]))
        for d in json.loads(text)["diagnostics"]
        if d["severity"] == "error"
    ]


@pytest.mark.parametrize("case", MISTAKEN, ids=lambda case: case.name)
def test_a_mistake_is_the_same_to_all(case: Case, kdeclare: CommandLine) -> None:
    bring_about(case, kdeclare)
    said = [
        errors(kdeclare(*command, "--format", "json").out)
        for command in (["plan"], ["apply", "--yes"], ["validate"])
    ]
    assert said[0]
    assert said[0] == said[1] == said[2]


def test_there_are_mistakes_to_compare() -> None:
    assert len(MISTAKEN) >= 5
