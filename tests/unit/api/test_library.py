"""kdeclare from Python: what is public, and the two example programs, on a cluster in this process."""

import ast
import functools
import importlib
import inspect
import json
import re
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from kdeclare import api
from kdeclare.api import (
    ApplyOptions,
    FleetOptions,
    KdeclareError,
    PlanScope,
    WorkspaceOptions,
    apply_manifests,
    apply_saved,
    audit_fleet,
    import_cluster,
    list_runs,
    load_manifests,
    load_plan,
    make_plan,
    open_workspace,
    plan_outcome,
    roll_back,
    save_plan,
    show_run,
    validate,
    validation_outcome,
    write_manifests,
)
from kdeclare.core.parts import Connections
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.unit.cli.command_line import CommandLine
from tests.unit.cli.conftest import kdeclare as kdeclare
from tests.unit.report.sample_plans import SAMPLES

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "library"


@functools.cache
def _collect_imports(package: str) -> set[tuple[str, str]]:
    """What the modules of a package import from where."""
    trees = [ast.parse(file.read_text()) for file in (ROOT / package).rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {(str(node.module), name.name) for node in nodes for name in node.names}


FUNCTIONS = [name for name in api.__all__ if inspect.isfunction(getattr(api, name))]


def test_public_names_match_imported_names() -> None:
    tree = ast.parse(Path(inspect.getfile(api)).read_text())
    imported = {a.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for a in node.names}
    assert imported == set(api.__all__)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "load_manifests"])
def test_cli_imports_same_functions_as_library(name: str) -> None:
    assert (getattr(api, name).__module__, name) in _collect_imports("kdeclare/cli")


def test_make_plan_uses_load_manifests() -> None:
    plan = inspect.getsource(sys.modules[make_plan.__module__])
    assert "load_manifests(workspace, paths)" in plan


@pytest.mark.parametrize("name", api.__all__)
def test_public_names_have_docstrings(name: str) -> None:
    if name != "Confirm":  # an alias: its words stand below it in its module
        assert inspect.getdoc(getattr(api, name))


ACTING = [
    f for f in FUNCTIONS if f != "load_manifests" and not f.endswith(("_outcome", "_text", "_markdown"))
]


@pytest.mark.parametrize("name", ACTING)
def test_use_case_docstrings_document_kdeclare_error(name: str) -> None:
    assert "Raises KdeclareError" in (inspect.getdoc(getattr(api, name)) or "")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_docstrings_refer_only_to_public_names(name: str) -> None:
    words = inspect.getdoc(getattr(api, name)) or ""
    assert {found.partition(".")[0] for found in re.findall(r"(?<!`)`([A-Za-z_.]+)`", words)} <= set(
        api.__all__
    )


def test_load_manifests_returns_errors_without_raising(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    (kdeclare.folder / "bad.yaml").write_text("{")
    loaded = load_manifests(open_workspace(WorkspaceOptions()), [Path("nothing.yaml"), Path("bad.yaml")])
    missing, syntax = (found for found in loaded.diagnostics if found.is_error)
    assert "nothing.yaml" in missing.detail
    assert (syntax.code, syntax.place and syntax.place.file) == ("yaml-syntax", "bad.yaml")
    assert loaded.desired == ()


@pytest.mark.slow
def test_import_needs_neither_spark_nor_command_line() -> None:
    """Both are slow to import, and a program that only plans needs neither."""
    code = (
        "import sys, kdeclare.api;"
        "print([m for m in ('pyspark', 'typer', 'rich', 'kdeclare.cli') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.stdout == "[]\n", ran.stderr


@pytest.mark.slow
def test_logged_warnings_are_not_printed() -> None:
    """Python prints warnings that no handler took."""
    code = "import logging, kdeclare.api; logging.getLogger('kdeclare.app.workspace').warning('heard')"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_library_covers_validate_to_rollback(kdeclare: CommandLine) -> None:
    """Validate, plan, save, apply, look back, roll back and import; the folder is a project in memory."""
    file = kdeclare.topic("orders", partitions=3, configs={"retention.ms": 1000})
    assert validation_outcome(validate()).headline == "Valid: 1 resource in 1 file."
    workspace = open_workspace(WorkspaceOptions())
    assert [str(found.id) for found in load_manifests(workspace).desired] == ["Topic/orders"]
    plan = make_plan(workspace).plan
    assert plan_outcome(plan).status == "changes"
    identity = save_plan(plan, Path("it.plan"))
    saved = load_plan(Path("it.plan"))
    assert saved.plan_id == identity
    run = apply_saved(workspace, saved, ApplyOptions("a test"))
    assert run is not None
    assert run.run_id is not None
    assert kdeclare.topics == {"orders"}
    assert list_runs(workspace)[0].command == "a test"
    assert show_run(workspace, run.run_id).run.outcome == "done"
    file.unlink()
    deleted = apply_manifests(
        workspace, (), PlanScope(allow_deletes=True), ApplyOptions("a test", lambda p, n: False)
    )
    assert deleted is None, "whoever confirms said no"
    assert roll_back(workspace, None, ApplyOptions("a test")) is not None
    assert kdeclare.topics == set()
    kdeclare.topic("refunds")
    assert apply_manifests(workspace, (), PlanScope(), ApplyOptions("a test")) is not None
    written = import_cluster(workspace, "refu.*")
    write_manifests(written, Path("copy"))
    assert (Path("copy") / "topics" / "refunds.yaml").read_text() == written[0].text


def test_apply_manifests_works_outside_main_thread(kdeclare: CommandLine) -> None:
    """Python gives handlers of signals to the main thread only, and a server has many."""
    kdeclare.topic("orders")
    workspace = open_workspace(WorkspaceOptions())
    ended: list[object] = []

    def work() -> None:
        ended.append(apply_manifests(workspace, (), PlanScope(), ApplyOptions("a server")))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert len(ended) == 1
    assert kdeclare.topics == {"orders"}


def test_make_plan_accepts_memory_cluster(tmp_path: Path) -> None:
    """A program's tests need no broker."""
    cluster = MemoryCluster()

    options = WorkspaceOptions(bootstrap_server="nowhere:9092", state=str(tmp_path))
    workspace = open_workspace(options, {}, Connections(KafkaConnection(cluster)))
    assert make_plan(workspace).plan.cluster.name == "nowhere:9092"


def test_errors_are_raised_as_diagnostics(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders", partitons=3)
    with pytest.raises(KdeclareError) as wrong:
        make_plan(open_workspace(WorkspaceOptions()))
    [found] = wrong.value.diagnostics
    assert (found.code, found.place is not None) == ("unknown-field", True)
    with pytest.raises(KdeclareError):
        audit_fleet(FleetOptions(Path("fleet.yaml"), "audits"))


@pytest.fixture
def example_project(kdeclare: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A copy of the example, and the programs importable."""
    folder = shutil.copytree(EXAMPLE, tmp_path / "library")
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    for name in ("careful_apply", "chat_message"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return folder


def _import_program(name: str) -> ModuleType:
    return importlib.import_module(name)


def test_careful_apply_program_applies_and_stops_at_risk(
    example_project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main = _import_program("careful_apply").main
    assert main() == 0
    assert "1 to create" in capsys.readouterr().out
    assert main() == 0
    assert capsys.readouterr().out.startswith("No changes.")
    manifest = example_project / "manifests" / "parcels.yaml"
    text = manifest.read_text()
    manifest.write_text(text.replace("partitions: 3", "partitions: 6"))
    assert main() == 3
    assert "Not applied because they are irreversible: Topic/library.parcels." in capsys.readouterr().out
    manifest.write_text(text.replace("retention.ms", "retention.mss"))
    assert main() == 1
    assert "\nmanifests/parcels.yaml:10:5: 'retention.mss' is not" in capsys.readouterr().out


def test_chat_message_program_prints_message(
    kdeclare: CommandLine,
    example_project: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert kdeclare("plan", "--out", "it.plan").code == 0
    monkeypatch.setattr(sys, "argv", ["chat_message.py", "it.plan"])
    assert _import_program("chat_message").main() == 0
    told = json.loads(capsys.readouterr().out)
    assert "1 to create" in told["text"]
    assert [block["type"] for block in told["blocks"]] == ["section", "section"]
    assert told["blocks"][1]["text"]["text"].startswith("+ Topic/library.parcels")
    monkeypatch.setattr(sys, "argv", ["chat_message.py", "kdeclare.yaml"])
    assert _import_program("chat_message").main() == 1
    capsys.readouterr()
    for words in ([], ["it.plan", "more"]):
        monkeypatch.setattr(sys, "argv", ["chat_message.py", *words])
        assert _import_program("chat_message").main() == 64
        shown = capsys.readouterr()
        assert (shown.out, shown.err) == ("", "usage: python chat_message.py PLANFILE\n")


@pytest.mark.usefixtures("example_project")
def test_chat_message_escapes_markup() -> None:
    told = _import_program("chat_message").message(replace(SAMPLES["create"], project="<!channel> & co"))
    assert "&lt;!channel&gt; &amp; co" in told["text"]
    assert "<" not in told["text"]


@pytest.mark.parametrize("name", sorted(SAMPLES))
@pytest.mark.usefixtures("example_project")
def test_chat_message_fits_limits_for_any_plan(name: str) -> None:
    told = _import_program("chat_message").message(SAMPLES[name])
    texts = [block["text"]["text"] for block in told["blocks"]]
    assert texts
    for text in texts:
        assert 0 < len(text) <= 3000
        assert "<" not in text
        assert text.count("`") % 2 == 0


def test_library_guide_code_runs(kdeclare: CommandLine, capsys: pytest.CaptureFixture[str]) -> None:
    guide = (ROOT / "docs" / "library.md").read_text()
    code = guide.partition("```python\n")[2].partition("```")[0].replace('"sandbox"', '"lab"')
    kdeclare.topic("orders")
    exec(code, {})
    assert "Applied to shop/lab" in capsys.readouterr().out
    assert set(FUNCTIONS) <= set(re.findall(r"\w+", guide)), "every function has its place in the guide"
