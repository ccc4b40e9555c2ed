"""Tables of manifests and their diagnostics, in ``cases/*.txt``.

A case is ``=== name``, then options (``env NAME=value``, ``--env NAME``, ``paths A B``, ``rules`` for a kind
of rules, ``show``), then files (``--- path``), and at the end ``--- says`` with one line for each diagnostic,
followed by its hint. UPDATE_CASES=1 writes the current output into the tables; review the diff.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kdeclare.core.diagnostics import Diagnostic, KdeclareError
from kdeclare.core.provider.provider_queries import check_declared
from kdeclare.manifests.load_manifests import load_project_manifests
from kdeclare.manifests.project import open_project
from tests.unit.manifests.small_kinds import KINDS, RULES

TABLES = sorted((Path(__file__).parent / "cases").glob("*.txt"))
UPDATE = bool(os.environ.get("UPDATE_CASES"))


@dataclass
class Case:
    table: Path
    name: str
    options: str = ""
    files: dict[str, str] = field(default_factory=dict)
    says: str = ""


def read_cases(table: Path) -> Iterator[Case]:
    for block in re.split(r"^=== ", table.read_text(), flags=re.MULTILINE)[1:]:
        head, *parts = re.split(r"^--- (?=[\w./ -]+$)", block, flags=re.MULTILINE)
        name, _, options = head.partition("\n")
        case = Case(table, name, options)
        for part in parts:
            file, _, text = part.partition("\n")
            if file == "says":
                case.says = text.strip("\n")
            else:
                case.files[file] = text
        yield case


ALL = [case for table in TABLES for case in read_cases(table)]


@pytest.mark.slow
@pytest.mark.parametrize("case", ALL, ids=lambda case: f"{case.table.stem}: {case.name}")
def test_manifest_case_gives_expected_diagnostics(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in case.files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = re.sub(rb"\\x(..)", lambda m: bytes.fromhex(m[1].decode()), text.encode())
        path.write_bytes(data.replace(b"\\t", b"\t"))
    monkeypatch.chdir(tmp_path)
    says = "\n".join(_load_case(case))
    if UPDATE:
        _write(case, says)
    else:
        assert says == case.says


def _load_case(case: Case) -> Iterator[str]:
    environ = dict(re.findall(r"^env (\w+)=(.*)$", case.options, re.MULTILINE))
    env = re.search(r"^--env (\S+)$", case.options, re.MULTILINE)
    paths = re.search(r"^paths (.+)$", case.options, re.MULTILINE)
    given = [Path(path) for path in paths[1].split()] if paths else []
    if not given and "kdeclare.yaml" not in case.files:
        given = [Path()]
    try:
        project = open_project(None, env[1] if env else None, environ)
        rules = RULES if "rules" in case.options.split() else {}
        loaded = load_project_manifests(project, given, KINDS, environ, [check_declared], rules)
    except KdeclareError as e:
        yield from map(_format_diagnostic, e.diagnostics)
        return
    yield from map(_format_diagnostic, loaded.diagnostics)
    if "show" in case.options.split():
        shown = (*loaded.desired, *loaded.rules)
        yield from (f"{item.id} {dict(item.labels)} {item.body}" for item in shown)


def _format_diagnostic(item: Diagnostic) -> str:
    about = f" {item.resource}:" if item.resource else ""
    head = f"{item.place or '-'}: {item.severity} {item.code}:{about} {item.summary}: {item.detail}"
    return f"{head}\n    {item.hint}" if item.hint else head


def _write(case: Case, says: str) -> None:
    text = case.table.read_text()
    start = text.index(f"=== {case.name}\n")
    at = text.index("--- says\n", start) + len("--- says\n")
    end = text.find("=== ", at)
    end = len(text) if end < 0 else end
    rest = text[end:]
    case.table.write_text(text[:at] + says + ("\n" if says else "") + ("\n" if rest else "") + rest)
