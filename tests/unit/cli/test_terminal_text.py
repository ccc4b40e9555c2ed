"""Control characters in text from outside never reach a terminal unescaped."""

import io
import json
import logging

import pytest

from kdeclare.cli.terminal_text import TerminalFormatter, sanitize_for_terminal
from kdeclare.providers.kafka.request_values import NewTopic
from tests.unit.cli.command_line import CommandLine

OBEYED = "\x9b31m\x85\u202e\u2066\u061c\u2028"
"""An 8-bit control sequence, a line feed, and marks that reorder text."""


def is_safe(text: str) -> bool:
    """Whether a terminal only shows it; ESC is what paints, and tests have no colors."""
    return all(c in "\n\t" or c.isprintable() or c in "\u200d\u200b" for c in text)


@pytest.mark.parametrize("text", ["plain", "Zürich 東京 👩\u200d🔧", "\x1b[1mbold\x1b[0m\n"])
def test_sanitize_keeps_plain_text(text: str) -> None:
    assert sanitize_for_terminal(text) == text


def test_sanitized_json_keeps_its_value() -> None:
    text = json.dumps({"a": OBEYED}, ensure_ascii=False)
    safe = sanitize_for_terminal(text)
    assert is_safe(safe)
    assert json.loads(safe) == {"a": OBEYED}


@pytest.mark.parametrize("output", ["text", "json", "markdown", "sarif", "html"])
def test_hostile_values_are_safe_in_every_format(kdeclare: CommandLine, output: str) -> None:
    hostile = f"#{OBEYED}"
    kdeclare.cluster.create_topics([NewTopic("orders", 1, 1, None, {})])
    kdeclare.write("manifests/a.yaml", "Topic", "orders", configs={"cleanup.policy": hostile})
    ran = kdeclare("plan", "--adopt", "--format", output)
    assert is_safe(ran.out)
    assert is_safe(ran.err)
    assert "u202e" in ran.out + ran.err


@pytest.mark.parametrize("arguments", [[OBEYED], ["plan", f"--{OBEYED}"], ["plan", "--target", OBEYED]])
def test_usage_errors_are_safe(kdeclare: CommandLine, arguments: list[str]) -> None:
    ran = kdeclare(*arguments)
    assert ran.code == 64
    assert is_safe(ran.err)


def test_log_lines_are_safe() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(TerminalFormatter("%(message)s"))
    handler.handle(logging.LogRecord("kafka", logging.INFO, "", 1, f"broker says {OBEYED}", (), None))
    assert is_safe(stream.getvalue())
    assert "\\u009b31m" in stream.getvalue()
