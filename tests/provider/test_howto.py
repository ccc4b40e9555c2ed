"""The code in docs/howto/write-a-provider.md is in the example, and its commands work."""

import pytest

from tests.provider.conftest import EXAMPLE
from tests.unit.cli.command_line import CommandLine
from tests.unit.docs.written import ROOT, list_code_blocks

PAGE = ROOT / "docs" / "howto" / "write-a-provider.md"


@pytest.mark.parametrize(
    "code", [text for language, text in list_code_blocks(PAGE) if language in ("python", "toml")]
)
def test_howto_code_matches_example(code: str) -> None:
    files = [path.read_text() for path in EXAMPLE.rglob("*") if path.suffix in (".py", ".toml")]
    assert any(code in text for text in files)


def test_example_is_small() -> None:
    texts = [path.read_text() for path in (EXAMPLE / "kdeclare_flags").glob("*.py")]
    assert sum(text.count("\n") for text in texts) <= 250


def test_howto_commands_succeed(kdeclare: CommandLine) -> None:
    kdeclare.write("manifests/dark-mode.yaml", "Flag", "dark-mode", rollout=10)
    (commands,) = (text for language, text in list_code_blocks(PAGE) if language == "sh")
    for line in commands.splitlines():
        ran = kdeclare(*line.split()[1:])
        assert ran.code == 0, (line, ran)
