"""Turn a saved plan into a chat message: text blocks, in the JSON that incoming webhooks accept.

python chat_message.py it.plan | curl --json @- "$WEBHOOK"
"""

import json
import sys
from pathlib import Path
from typing import Any

from kdeclare.api import (
    Action,
    Change,
    ExitCode,
    KdeclareError,
    Plan,
    Risk,
    Severity,
    load_plan,
    plan_outcome,
)

MOST = 10
"""The maximum number of listed changes, errors or fields; a chat message must stay short."""

LONGEST = 3000
"""The maximum number of characters in one block."""

SIGNS = {Action.CREATE: "+", Action.UPDATE: "~", Action.DELETE: "-", Action.FORGET: "…"}


def message(plan: Plan) -> dict[str, Any]:
    """Return the message: headline, changes, errors and denials."""
    headline = escaped(plan_outcome(plan).headline)
    acting = [change for change in plan.changes if change.action is not Action.NO_OP]
    worst_first = sorted(acting, key=lambda change: list(Risk).index(change.risk), reverse=True)
    told = [line(change) for change in worst_first]
    troubles = [
        f"*{escaped(found.summary)}*: {escaped(found.detail)}"
        for found in plan.diagnostics
        if found.severity in (Severity.ERROR, Severity.DENIED)
    ]
    blocks = [f"*{headline}*", "\n".join(first(told)), "\n".join(first(troubles))]
    return {"text": headline, "blocks": [text_block(text) for text in blocks if text]}


def line(change: Change) -> str:
    """Return the line of one change: action, resource, risk and fields."""
    fields = ", ".join(first([f"`{escaped(field.path)}`" for field in change.fields]))
    risk = "" if change.risk is Risk.SAFE else f"  :warning: {change.risk}"
    blocked = "  blocked" if change.blocked else ""
    return f"{SIGNS[change.action]} {escaped(str(change.id))}{risk}{blocked}" + (
        f"  {fields}" if fields else ""
    )


def first(items: list[str]) -> list[str]:
    """Return the first items, and the number of the others."""
    more = len(items) - MOST
    return items if more <= 0 else [*items[:MOST], f"… and {more} more"]


def text_block(text: str) -> dict[str, Any]:
    """Return a block with as many whole lines of the text as fit."""
    if len(text) > LONGEST:
        text = text[: LONGEST - 2].rpartition("\n")[0] + "\n…"
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def escaped(text: str) -> str:
    """Escape characters that the chat would interpret as a mention or a link."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("`", "'")


def main() -> int:
    """Print the message for the given plan file."""
    if len(sys.argv) != 2:
        print("usage: python chat_message.py PLANFILE", file=sys.stderr)
        return ExitCode.USAGE
    try:
        plan = load_plan(Path(sys.argv[1])).plan
    except KdeclareError as problem:
        print(problem, file=sys.stderr)
        return problem.exit_code
    print(json.dumps(message(plan), ensure_ascii=False, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
