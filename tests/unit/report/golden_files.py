"""Compare texts and schemas with files; KDECLARE_UPDATE_GOLDEN=1 writes the files."""

import json
import os
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parents[2] / "golden"
SCHEMAS = Path(__file__).parents[3] / "docs" / "schemas"


def check_golden(name: str, text: str, kind: str = "txt") -> None:
    """Compare with ``tests/golden/NAME.KIND``; run with KDECLARE_UPDATE_GOLDEN=1 to write it."""
    check_file(GOLDEN / f"{name}.{kind}", text)


def check_schema(name: str, schema: dict[str, Any]) -> None:
    """Compare with ``docs/schemas/NAME.schema.json``, or write it."""
    check_file(SCHEMAS / f"{name}.schema.json", json.dumps(schema, indent=2, ensure_ascii=False) + "\n")


def check_file(file: Path, text: str) -> None:
    """Compare a text with a file, or write the file."""
    if os.environ.get("KDECLARE_UPDATE_GOLDEN"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")
