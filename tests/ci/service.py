"""What the stubs of ``gh`` and ``curl`` have in common: the service's memory, and what it was asked."""

import json
import os
import sys
from pathlib import Path
from typing import Any


class Service:
    """All that the service knows, in a file, so that it lives longer than one command."""

    def __init__(self) -> None:
        self.folder = Path(os.environ["STUB_SERVICE"])
        self.knows: dict[str, Any] = json.loads((self.folder / "knows.json").read_text())
        with (self.folder / "asked.jsonl").open("a") as asked:
            asked.write(json.dumps(sys.argv[1:]) + "\n")

    def keep(self) -> None:
        """Remember what was changed."""
        (self.folder / "knows.json").write_text(json.dumps(self.knows))

    def number(self) -> int:
        """An id that nothing has yet."""
        self.knows["last"] = self.knows.get("last", 1000) + 1
        return int(self.knows["last"])

    def refusal(self, why: str) -> SystemExit:
        """For a request that the service refuses: why, on stderr, and a failure."""
        return SystemExit(why)


def page(items: list[Any], number: int, size: int = 2) -> list[Any]:
    """One page of a list; a small one, so that there are several."""
    return items[(number - 1) * size : number * size]
