"""Trace one topic from its manifest to the request that creates it, and write that into docs/ARCHITECTURE.md.

    python -m scripts.life_of_a_topic HOST:PORT

Applies a manifest with one topic to a real cluster in this process, and records which functions of kdeclare
make something that holds the topic, until the request is sent, and which values of kdeclare these are. The
topic is deleted again.
"""

import contextlib
import io
import os
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import CodeType, FrameType

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "ARCHITECTURE.md"
BEGIN, END = "<!-- life of a topic: written by scripts.life_of_a_topic -->\n", "<!-- end -->\n"
NAME = "life-of-a-topic"
_MANIFEST = f"""\
apiVersion: kdeclare/v1
kind: Topic
metadata:
  name: {NAME}
spec:
  partitions: 2
  replicationFactor: 1
  configs:
    retention.ms: 86400000
"""
_PROJECT = """\
apiVersion: kdeclare/v1
kind: Project
metadata:
  name: life
spec:
  environments:
    default:
      bootstrapServers: {servers}
"""
_DEEP = 4
_MANY = 200


class Trace:
    """What made something that holds the topic."""

    def __init__(self) -> None:
        """Record nothing yet."""
        self.functions: dict[CodeType, str] = {}
        self.values: dict[type, None] = {}
        self.over = False

    def watch(self, frame: FrameType, event: str, returned: object) -> None:
        """Be called for each call and return in a thread; see `sys.setprofile`."""
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(str(ROOT / "kdeclare")):
            return
        if code.co_name.startswith("<"):  # a comprehension is part of its function
            return
        if event == "call" or self.over:
            return
        self.over = code.co_name == "create_topics" and frame.f_locals.get("validate_only") is False
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if isinstance(returned, str) or any(returned is frame.f_locals.get(name) for name in names):
            return  # it only looked, or handed on what it was given
        if holds(returned):
            self.functions.setdefault(code, code.co_qualname)
            for value in {type(value): None for value in values_in(returned) if holds(value)}:
                self.values.setdefault(value)


def values_in(value: object) -> Iterator[object]:
    """The value, and the items of a list or mapping of such; kdeclare's own dataclasses only."""
    items = value.values() if isinstance(value, Mapping) else value if isinstance(value, tuple | list) else ()
    for item in (value, *list(items)[:_MANY]):
        if (
            is_dataclass(item)
            and not isinstance(item, type)
            and type(item).__module__.startswith("kdeclare.")
        ):
            yield item


def holds(value: object, depth: int = _DEEP) -> bool:
    """Whether the topic's name is somewhere in a value."""
    if isinstance(value, str):
        return NAME in value
    if isinstance(value, bytes):
        return NAME.encode() in value
    if depth == 0:
        return False
    if isinstance(value, Mapping):
        return any(holds(k, depth - 1) or holds(v, depth - 1) for k, v in list(value.items())[:_MANY])
    if isinstance(value, tuple | list | set | frozenset):
        return any(holds(item, depth - 1) for item in list(value)[:_MANY])
    if is_dataclass(value) and not isinstance(value, type):
        return any(holds(getattr(value, f.name, None), depth - 1) for f in fields(value))
    return False


def trace(servers: str) -> Trace:
    """Apply the manifest, watched."""
    from kdeclare.cli.main import main

    found = Trace()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("manifests").mkdir()
        Path("manifests/topic.yaml").write_text(_MANIFEST)
        Path("kdeclare.yaml").write_text(_PROJECT.format(servers=servers))
        with contextlib.redirect_stdout(io.StringIO()):
            main(["plan"])  # imports and caches are not part of a topic's life
            threading.setprofile(found.watch)
            sys.setprofile(found.watch)
            try:
                code = main(["apply", "--yes"])
            finally:
                sys.setprofile(None)
                threading.setprofile(None)
            Path("manifests/topic.yaml").unlink()
            main(["apply", "--yes", "--allow-deletes", "--allow-empty"])
    if code != 0:
        raise SystemExit(f"apply ended with {code}")
    return found


def describe(found: Trace) -> str:
    """The section of the page."""
    by_file: dict[str, list[str]] = {}
    for code, name in found.functions.items():
        file = os.path.relpath(code.co_filename, ROOT / "kdeclare")
        by_file.setdefault(file, []).append(f"`{name}`")
    files = "\n".join(f"| `{file}` | {', '.join(names)} |" for file, names in by_file.items())
    values = ", ".join(f"`{value.__name__}`" for value in found.values)
    return (
        f"{len(found.functions)} functions in {len(by_file)} files hand a topic on, from its manifest to the "
        "request that creates it, in the order in which they do so first:\n\n"
        f"| file | functions |\n|---|---|\n{files}\n\n"
        f"The {len(found.values)} values that hold it on its way: {values}.\n"
    )


def main(arguments: list[str]) -> None:
    """Write the section."""
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    tail = rest.partition(END)[2]
    PAGE.write_text(head + BEGIN + describe(trace(arguments[0])) + END + tail, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
