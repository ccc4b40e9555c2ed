"""Plan files, as 'kdeclare apply FILE' and 'kdeclare plan FILE' read and show them."""

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.jsontypes import parse_json
from kdeclare.engine.planning.plan_document import compute_document_id
from kdeclare.engine.planning.planfile import parse_plan_file, require_known_parts, verify_plan
from kdeclare.engine.signatures.signature import SignedContent
from kdeclare.engine.signatures.verification import require_intact_signature
from kdeclare.report.plan.plan_markdown import plan_markdown
from kdeclare.report.plan.plan_page import render_plan_page
from kdeclare.report.plan.plan_text import plan_text
from kdeclare.report.sarif import build_plan_sarif
from tests.fuzzing.mutations import mutate_json
from tests.fuzzing.target import Target

ROOT = Path(__file__).parents[3]


def read_plan(data: bytes) -> None:
    """Read a plan file as it is, and then with a matching id, as somebody would forge it."""
    text = data.decode("utf-8-sig", "replace")
    with suppress(KdeclareError):
        _read_text(text)
    _read_text(forge_id(text))


def _read_text(text: str) -> None:
    file = parse_plan_file(text, "x.plan", require_intact_signature_of)
    with suppress(KdeclareError):
        verify_plan(file, "x.plan")
        require_known_parts(file.plan)
        plan_text(file.plan, graph=True)
        plan_markdown(file.plan)
        render_plan_page(file.plan)
        json.dumps(build_plan_sarif(file.plan))


def require_intact_signature_of(content: SignedContent, name: str) -> None:
    """Check the signature of a plan; signatures of ssh-keygen are left out, because they start a process."""
    if content.signature is not None and b"ssh-ed25519" in content.signature.value[:40]:
        require_intact_signature(content, name)


def forge_id(text: str) -> str:
    """Return the text of a plan file with the id that matches its content."""
    try:
        document = parse_json(text)
        if isinstance(document, dict):
            return json.dumps(document | {"plan_id": compute_document_id(document)})
    except (ValueError, RecursionError):
        pass
    return text


def make_plans() -> Sequence[bytes]:
    """Return plans of all kinds and formats from the tests."""
    files = [*ROOT.glob("tests/cases/*/output.json"), *ROOT.glob("tests/formats/*/runs/*/plan.json")]
    documents: list[dict[str, Any]] = [json.loads(file.read_bytes()) for file in sorted(files)]
    plans = [document for document in documents if "plan_id" in document]
    return [forge_id(json.dumps(plan)).encode() for plan in plans]


TARGETS = (Target("plan-file", read_plan, make_plans, mutate_json),)
