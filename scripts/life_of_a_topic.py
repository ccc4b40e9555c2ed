"""Trace one topic from its manifest to the request that creates it. Write the result to docs/ARCHITECTURE.md.

    python -m scripts.life_of_a_topic HOST:PORT

Applies a manifest with one topic to a real cluster in this process. Until the request is sent, the script
records the functions of kdeclare that return a value with the topic, and the types of these values. Then the
script deletes the topic.

A value holds the topic if it contains the name and the declared config of the topic. (No other topic has the
same config value.) A value with only the name of the topic, such as an id or a selection, refers to the
topic. Functions and values that only refer to the topic are counted but not listed.
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
DECLARED = 86412345
_MANIFEST = f"""\
apiVersion: kdeclare/v1
kind: Topic
metadata:
  name: {NAME}
spec:
  partitions: 2
  replicationFactor: 1
  configs:
    retention.ms: {DECLARED}
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
_DEEP = 8
_MANY = 200


class Trace:
    """Records functions that return the topic, and the types of values that contain the topic."""

    def __init__(self) -> None:
        self.functions: dict[CodeType, str] = {}
        self.values: dict[type, None] = {}
        self.naming: dict[CodeType, None] = {}
        self.names: dict[type, None] = {}
        self.over = False

    def watch(self, frame: FrameType, event: str, returned: object) -> None:
        """Record the values that functions of kdeclare return. A profile function (see `sys.setprofile`)."""
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(str(ROOT / "kdeclare")):
            return
        if code.co_name.startswith("<"):  # count a comprehension as part of its function
            return
        if event == "call" or self.over:
            return
        self.over = code.co_name == "create_topics" and frame.f_locals.get("validate_only") is False
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if isinstance(returned, str) or any(returned is frame.f_locals.get(name) for name in names):
            return  # the function only read the value, or returned its own argument
        if holds(returned):
            self.functions.setdefault(code, code.co_qualname)
        elif names_it(returned):
            self.naming.setdefault(code)
        for value in values_in(returned):
            if holds(value):
                self.values.setdefault(type(value))
            elif names_it(value):
                self.names.setdefault(type(value))


def values_in(value: object) -> Iterator[object]:
    """Yield the instances of kdeclare dataclasses among a value and, for a list or mapping, its items."""
    items = value.values() if isinstance(value, Mapping) else value if isinstance(value, tuple | list) else ()
    for item in (value, *list(items)[:_MANY]):
        if (
            is_dataclass(item)
            and not isinstance(item, type)
            and type(item).__module__.startswith("kdeclare.")
        ):
            yield item


def holds(value: object) -> bool:
    """Return whether a value contains the name and the declared config of the topic."""
    return {NAME, str(DECLARED)} <= set(find_marks(value))


def names_it(value: object) -> bool:
    """Return whether a value contains the name of the topic."""
    return NAME in find_marks(value)


def find_marks(value: object, depth: int = _DEEP) -> Iterator[str]:
    """Yield the name or the config of the topic for each occurrence in a value."""
    if isinstance(value, str | int | bytes):
        text = value.decode("latin-1") if isinstance(value, bytes) else str(value)
        yield from (mark for mark in (NAME, str(DECLARED)) if mark in text)
    elif depth and isinstance(value, Mapping):
        for key, item in list(value.items())[:_MANY]:
            yield from find_marks(key, depth - 1)
            yield from find_marks(item, depth - 1)
    elif depth and isinstance(value, tuple | list | set | frozenset):
        for item in list(value)[:_MANY]:
            yield from find_marks(item, depth - 1)
    elif depth and is_dataclass(value) and not isinstance(value, type):
        for each in fields(value):
            yield from find_marks(getattr(value, each.name, None), depth - 1)


def trace(servers: str) -> Trace:
    """Apply the manifest of the topic, and record the functions and values that the topic passes through."""
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
    """Render the section of docs/ARCHITECTURE.md about the life of a topic."""
    by_file: dict[str, list[str]] = {}
    for code, name in found.functions.items():
        file = os.path.relpath(code.co_filename, ROOT / "kdeclare")
        by_file.setdefault(file, []).append(f"`{name}`")
    files = "\n".join(f"| `{file}` | {', '.join(names)} |" for file, names in by_file.items())
    values = "\n".join(f"| `{value.__name__}` | {_summarize(value)} |" for value in found.values)
    naming = [code for code in found.naming if code not in found.functions]
    others = {code.co_filename for code in naming} - {code.co_filename for code in found.functions}
    names = [value for value in found.names if value not in found.values]
    return (
        f"A topic passes through {len(found.functions)} functions in {len(by_file)} files, from its "
        "manifest to the request that creates it. The table lists the functions in the order of their "
        f"first call:\n\n| file | functions |\n|---|---|\n{files}\n\nObjects of these "
        f"{len(found.values)} types contain the topic:\n\n| type | description "
        f"|\n|---|---|\n{values}\n\n{len(naming)} other functions, in {len(others)} other files, return "
        f"only the name of the topic. {len(names)} other types contain only the name.\n"
    )


def _summarize(value: type) -> str:
    """Return the first sentence of the docstring."""
    text = " ".join((value.__doc__ or "").split("\n\n")[0].split())
    return text.partition(". ")[0].removesuffix(".") + "."


def main(arguments: list[str]) -> None:
    """Trace the topic, and write the section to docs/ARCHITECTURE.md."""
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    tail = rest.partition(END)[2]
    PAGE.write_text(head + BEGIN + describe(trace(arguments[0])) + END + tail, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
