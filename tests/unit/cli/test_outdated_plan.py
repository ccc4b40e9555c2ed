"""A plan file of an earlier format: shown, never applied."""

import json
from pathlib import Path

from kdeclare.engine.planning.plan_document import compute_document_id
from tests.unit.cli.command_line import CommandLine


def save_as_1_0(path: Path) -> None:
    """Rewrite a saved plan as kdeclare 0.1 would have written it."""
    document = json.loads(path.read_text()) | {"format_version": "1.0"}
    for change in document["changes"]:
        del change["risks"]
        for field in change["fields"]:
            for name in ("risk", "cause", "reason"):
                del field[name]
    path.write_text(json.dumps(document | {"plan_id": compute_document_id(document)}))


def test_plan_of_earlier_format_is_shown_but_refused_as_stale(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    assert kdeclare("plan", "--out", "it.plan").code == 0
    save_as_1_0(kdeclare.folder / "it.plan")
    shown = kdeclare("show", "it.plan")
    assert shown.code == 0
    assert "orders" in shown.out
    applied = kdeclare("apply", "it.plan", "--yes")
    assert applied.code == 4
    assert "Plan from an earlier version" in applied.err
    assert "kdeclare plan --out FILE" in applied.err
    assert not kdeclare.cluster.topics(None)
