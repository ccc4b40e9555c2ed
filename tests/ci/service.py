"""Shared by the stubs of ``gh`` and ``curl``: the service's data, and a log of requests."""

import json
import os
import sys
from pathlib import Path
from typing import Any


class Service:
    """The data of the service, in a file, so that it survives between commands."""

    def __init__(self) -> None:
        self.folder = Path(os.environ["STUB_SERVICE"])
        self.data: dict[str, Any] = json.loads((self.folder / "knows.json").read_text())
        with (self.folder / "asked.jsonl").open("a") as asked:
            asked.write(json.dumps(sys.argv[1:]) + "\n")

    def keep(self) -> None:
        """Store the changes."""
        (self.folder / "knows.json").write_text(json.dumps(self.data))

    def number(self) -> int:
        """Return an unused id."""
        self.data["last"] = self.data.get("last", 1000) + 1
        return int(self.data["last"])

    def refusal(self, why: str) -> SystemExit:
        """Fail a request: print the reason to stderr, and exit with an error."""
        return SystemExit(why)


def take_page(items: list[Any], number: int, size: int = 2) -> list[Any]:
    """Return one page of a list; pages are small, so that there are several."""
    return items[(number - 1) * size : number * size]
