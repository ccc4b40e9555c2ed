"""The picture of a terminal in the README: a change is planned, confirmed and applied on real brokers."""

import io
import os
import re
import sys
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pexpect
import pytest
from rich.console import Console
from rich.text import Text

from kdeclare.core.exit_codes import ExitCode
from kdeclare.providers.kafka.client import connect
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.sandbox import SandboxStatus
from tests.beds import KafkaBed
from tests.commands import run_here
from tests.unit.report.golden_files import check_golden

pytestmark = pytest.mark.kafka

COLUMNS = 104
PICTURE = Path(__file__).parents[2] / "docs" / "pictures" / "terminal.svg"
PROJECT = """\
apiVersion: kdeclare/v1
kind: Project
metadata: {{name: shop}}
spec:
  manifests: [manifests]
  reassignments: {{throttle: 50MiB/s}}
  environments:
    production: {{bootstrapServers: '{bootstrap}'}}
"""
ORDERS = """\
apiVersion: kdeclare/v1
kind: Topic
metadata: {{name: {prefix}orders}}
spec:
  {shape}
  configs: {{retention.ms: {retention}}}
"""
PAYMENTS = """\
---
apiVersion: kdeclare/v1
kind: Topic
metadata: {{name: {prefix}payments}}
spec:
  partitions: 12
  replicationFactor: 3
  configs: {{min.insync.replicas: 2}}
"""
CHANGING = [
    (r"\b\d+(?:\.\d+)? m?s\b", "1.9 s"),
    (r" · [\d,]+ unmanaged\b", ""),
    (r"\b\d{8}T\d{6}Z(?:\.\d+)?-[0-9a-f]{8}\b", "20261124T091504Z-fe4a154a"),
]
"""Durations, run ids and counts of other tests' topics, with what the picture shows in their place."""


@pytest.fixture
def prefix(sandbox: SandboxStatus) -> Iterator[str]:
    """Topics of this test alone; they are gone at the end."""
    name = f"shop-{uuid.uuid4().hex[:8]}-"
    with closing(connect(sandbox.bootstrap, {})) as cluster:
        cluster.create_topics([NewTopic(f"{name}other", 1, 1, None, {})])
    yield name
    with closing(connect(sandbox.bootstrap, {})) as cluster:
        bed = KafkaBed(cluster, sandbox.bootstrap)
        for topic in ("orders", "payments", "other"):
            bed.delete_at_end(f"{name}{topic}")
        bed.clean()


def type_command(folder: Path, *arguments: str, answer: str | None = None) -> str:
    """Return what a terminal shows of a command, colors included, with the prompt of a shell before it."""
    output = io.StringIO()
    unset = {"NO_COLOR", "CI", "PAGER", "KDECLARE_PAGER"}
    environ = {name: value for name, value in os.environ.items() if name not in unset}
    child = pexpect.spawn(
        sys.executable,
        ["-m", "kdeclare", *arguments],
        cwd=folder,
        env=environ | {"TERM": "xterm-256color", "PAGER": "cat"},
        dimensions=(60, COLUMNS),
        encoding="utf-8",
        timeout=120,
    )
    child.logfile_read = output
    if answer is not None:
        child.expect("Only 'yes' is accepted: ")
        child.sendline(answer)
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0, output.getvalue()
    return f"\x1b[1;32m$\x1b[0m kdeclare {' '.join(arguments)}\n" + output.getvalue().replace("\r\n", "\n")


def remove_progress(text: str) -> str:
    """Without bars of progress, which the command itself clears, and the codes that clear them."""
    plain = re.sub(r"\x1b\[\??\d*(?:;\d+)*[A-HJKSThl]", "", text)
    lines = [line.rpartition("\r")[2] for line in plain.split("\n")]
    return "\n".join(line for line in lines if "\N{BOX DRAWINGS HEAVY HORIZONTAL}" not in line)


def test_terminal_shows_change_from_plan_to_result(
    sandbox: SandboxStatus, prefix: str, tmp_path: Path
) -> None:
    (tmp_path / "manifests").mkdir()
    first_broker = sandbox.bootstrap.split(",")[0]
    manifest = tmp_path / "manifests" / "shop.yaml"
    (tmp_path / "kdeclare.yaml").write_text(PROJECT.format(bootstrap=first_broker))
    placed = "assignments: {0: [1, 2], 1: [2, 3]}"
    manifest.write_text(ORDERS.format(prefix=prefix, shape=placed, retention=604_800_000))
    applied = run_here(tmp_path, "apply", "--yes")
    assert applied.code is ExitCode.OK, applied
    manifest.write_text(
        ORDERS.format(prefix=prefix, shape="replicationFactor: 3", retention=86_400_000)
        + PAYMENTS.format(prefix=prefix)
    )

    session = type_command(tmp_path, "apply", answer="yes") + "\n" + type_command(tmp_path, "plan")

    session = remove_progress(session).replace(prefix, "").replace(first_broker, "kafka-1:9092")
    for pattern, shown in CHANGING:
        session = re.sub(pattern, shown, session)
    text = Text.from_ansi(session.rstrip())
    check_golden("terminal-session", text.plain + "\n")
    if os.environ.get("KDECLARE_UPDATE_GOLDEN"):
        console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
        console.print(text)
        drawn = console.export_svg(title="kdeclare apply", unique_id="kdeclare")
        # fonts of the reader's own: nothing is fetched
        PICTURE.write_text(re.sub(r"@font-face \{[^}]*\}\s*", "", drawn))
