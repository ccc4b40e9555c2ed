"""Tab completion in bash and zsh, requested by environment variables as their scripts do."""

import shlex
from pathlib import Path

import pytest

from kdeclare.cli.main import main
from tests.unit.cli.command_line import CommandLine

ZSH = ("_arguments '*: :((", "))'")
each_shell = pytest.mark.parametrize("shell", ["bash", "zsh"])


def complete(typed: CommandLine, shell: str, line: str) -> list[str]:
    """Return the completions at the end of a line: lines in bash, arguments of a function in zsh."""
    typed.monkeypatch.setenv("_KDECLARE_COMPLETE", f"complete_{shell}")
    typed.monkeypatch.setenv("COMP_WORDS", line)
    typed.monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
    typed.monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
    typed.capsys.readouterr()
    with pytest.raises(SystemExit) as left:
        main([])
    shown = typed.capsys.readouterr()
    assert (left.value.code, shown.err) == (0, "")
    text = shown.out.strip()
    if shell == "bash":
        return text.splitlines()
    if text == "_files":
        return []
    assert text.startswith(ZSH[0])
    assert text.endswith(ZSH[1])
    return shlex.split(text.removeprefix(ZSH[0]).removesuffix(ZSH[1]))


@pytest.fixture
def project(kdeclare: CommandLine) -> CommandLine:
    """Two environments, one of which has a variable that the other lacks."""
    Path("kdeclare.yaml").write_text(
        "apiVersion: kdeclare/v1\nkind: Project\nmetadata: {name: shop}\nspec:\n  defaultEnvironment: live\n"
        "  environments:\n    live: {bootstrapServers: 'live:9092', variables: {name: orders}}\n"
        "    lab: {bootstrapServers: 'lab:9092', variables: {name: trials}}\n"
    )
    kdeclare.write("manifests/one.yaml", "Topic", "${var.name}", partitions=1)
    kdeclare.write("manifests/two.yaml", "Topic", "payments", partitions=1)
    return kdeclare


@each_shell
def test_completion_offers_environments(project: CommandLine, shell: str) -> None:
    assert complete(project, shell, "kdeclare plan --env ") == ["live", "lab"]
    assert complete(project, shell, "kdeclare validate --env la") == ["lab"]


@each_shell
@pytest.mark.parametrize("line", ["apply --target ", "show-manifest "])
def test_completion_offers_declared_resources(project: CommandLine, shell: str, line: str) -> None:
    found = complete(project, shell, f"kdeclare {line}")
    assert found == ["Topic/orders", "Topic/payments"]
    assert complete(project, shell, f"kdeclare {line}Topic/p") == ["Topic/payments"]
    assert not project.cluster.calls


@each_shell
def test_completion_uses_typed_environment(project: CommandLine, shell: str) -> None:
    found = complete(project, shell, "kdeclare plan --env lab --target ")
    assert found == ["Topic/payments", "Topic/trials"]


@each_shell
def test_completion_uses_typed_project(project: CommandLine, shell: str) -> None:
    Path("other").mkdir()
    Path("kdeclare.yaml").rename("other/it.yaml")
    assert complete(project, shell, "kdeclare plan --env ") == []
    found = complete(project, shell, "kdeclare plan --project other/it.yaml --env l")
    assert found == ["live", "lab"]


@each_shell
@pytest.mark.parametrize("text", ["{", "kind: Nothing", "", "\0", "a: [b"])
@pytest.mark.parametrize("line", ["plan --env ", "plan --target "])
def test_completion_is_silent_for_invalid_project(
    project: CommandLine, shell: str, text: str, line: str
) -> None:
    Path("kdeclare.yaml").write_text(text)
    assert complete(project, shell, f"kdeclare {line}") == []


@each_shell
def test_completion_uses_given_variables(project: CommandLine, shell: str) -> None:
    (project.folder / "v.yaml").write_text("name: returns\n")
    for option in ("--var name=returns", "--var-file v.yaml"):
        found = complete(project, shell, f"kdeclare show-manifest {option} ")
        assert found == ["Topic/payments", "Topic/returns"]
