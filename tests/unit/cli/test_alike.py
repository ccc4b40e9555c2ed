"""Plan, apply and validate treat inputs alike: the same options, and the same errors."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kdeclare.cli.main import build_application
from tests.unit.cli.cases_folder import Case, read_cases, set_up_case
from tests.unit.cli.command_line import CommandLine

MISTAKEN = [
    case
    for case in read_cases()
    if json.loads((case.folder / "output.json").read_text()).get("exit_code") == 1
]
"""Cases for which no plan can be made."""


def list_options(name: str) -> set[str]:
    command: Any = build_application(name).root
    found = command.commands[name] if hasattr(command, "commands") else command
    return {spelling for param in found.params for spelling in param.opts if spelling.startswith("--")}


def test_plan_apply_and_validate_share_input_options() -> None:
    plan, apply, validate = map(list_options, ("plan", "apply", "validate"))
    assert plan - apply == {
        "--out",
        "--sign",
        "--detailed-exitcode",
        "--graph",
        "--refresh-only",
        "--list-unmanaged",
    }
    assert apply - plan == {
        "--yes",
        "--fail-fast",
        "--no-wait",
        "--on-denied",
        "--move-timeout",
        "--follow-timeout",
        "--require-signature",
        "--skip-stale",
    }
    assert validate == {
        "--project",
        "--env",
        "--format",
        "--var",
        "--var-file",
        "--quiet",
        "--verbose",
        "--no-color",
    } | (validate & {"--help"}), "offline, and of the project as a whole"
    assert validate <= plan & apply


def walk_commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, set[str]]]:
    """Yield the words and the options of each command."""
    for name, inner in getattr(command, "commands", {}).items():
        yield from walk_commands(inner, (*words, name))
    if not hasattr(command, "commands"):
        yield (
            " ".join(words),
            {option for param in command.params for option in param.opts if option.startswith("--")},
        )


def test_commands_that_open_a_project_accept_variables() -> None:
    commands = dict(walk_commands(build_application().root))
    with_env = {name for name, options in commands.items() if "--env" in options}
    assert len(with_env) > 40
    for name, options in commands.items():
        assert ({"--var", "--var-file"} <= options) == (name in with_env), name


def list_errors(text: str) -> list[tuple[object, ...]]:
    return list_diagnostics(text, "error")


def list_diagnostics(text: str, *severities: str) -> list[tuple[object, ...]]:
    return [
        (d["code"], d["resource"], d["detail"], d["hint"], *sorted((d["place"] or {}).items()))
        for d in json.loads(text)["diagnostics"]
        if d["severity"] in severities
    ]


@pytest.mark.parametrize("case", MISTAKEN, ids=lambda case: case.name)
def test_plan_apply_and_validate_report_same_errors(case: Case, kdeclare: CommandLine) -> None:
    set_up_case(case, kdeclare)
    told = [
        list_errors(kdeclare(*command, "--format", "json").out)
        for command in (["plan"], ["apply", "--yes"], ["validate"])
    ]
    assert told[0]
    assert told[0] == told[1] == told[2]


def test_cases_include_enough_invalid_inputs() -> None:
    assert len(MISTAKEN) >= 5


def declare_high_min_isr(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders", replicationFactor=1, configs={"min.insync.replicas": 2})


def declare_conflicting_factors(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders", replicationFactor=2)
    targets = [{"topic": "orders", "partition": 0, "replicas": [1, 2]}]
    spec = {"partitions": targets, "allowReplicationFactorChange": True}
    kdeclare.write("manifests/move.yaml", "Reassignment", "move", **spec)
    kdeclare.write(
        "manifests/other.yaml", "Reassignment", "other", partitions=[targets[0] | {"replicas": [2, 1]}]
    )


def declare_conflicting_placements(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders", partitions=1, replicationFactor=1, placement={"strategy": "cross-rack"})
    kdeclare.write("manifests/drain.yaml", "Reassignment", "drain", topics=["orders"], rebalance=True)


@pytest.mark.parametrize(
    "declares", [declare_high_min_isr, declare_conflicting_factors, declare_conflicting_placements]
)
def test_validate_reports_diagnostics_that_need_no_cluster(
    declares: Callable[[CommandLine], None], kdeclare: CommandLine
) -> None:
    declares(kdeclare)
    offline = list_diagnostics(kdeclare("validate", "--format", "json").out, "error", "warning")
    assert not kdeclare.cluster.calls
    planned = list_diagnostics(kdeclare("plan", "--format", "json").out, "error", "warning")
    assert offline
    assert set(offline) <= set(planned)
    assert {"min-isr-above-factor", "contradiction"} & {code for code, *_ in offline}
