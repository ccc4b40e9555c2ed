"""All commands work with a kind of a third-party provider, without changes to kdeclare."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated

import pytest
import typer
from jsonschema import Draft202012Validator

from kdeclare.app.authoring.scaffolds import SpecLine
from kdeclare.cli.command import command
from kdeclare.cli.commands.new import write_new_manifest
from kdeclare.cli.console import Console
from kdeclare.cli.installed_commands import NEW_GROUP, find_commands
from kdeclare.cli.options.option_groups import ProjectOptions
from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.parts import Connections
from kdeclare.core.provider import entry_points, plan_options
from kdeclare.core.provider.entry_points import InstalledEntryPoint
from kdeclare.core.provider.installed_providers import load_providers
from kdeclare.core.provider.plan_options import OfferedOptions, PlanOption, collect_options
from kdeclare.core.provider.provider import Activity, OngoingWork, RecentRuns
from kdeclare.core.resources.changes import Action, Change, FieldChange, FieldOp, Reason, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.manifests.editing import project_edits
from kdeclare.manifests.editing.documents import FileEdit
from kdeclare.report.manifest.manifest_diff import render_manifest_diff
from tests import foreign
from tests.foreign import QueueKind, Shed, shed
from tests.unit.app.write_back_project import PROJECT, WriteBackProject, put_file
from tests.unit.cli.command_line import CommandLine

__all__ = ["shed"]

pytestmark = pytest.mark.usefixtures("shed")

QUEUE = """\
apiVersion: kdeclare/v1
kind: Queue
metadata: {name: orders}
spec:
  size: 10  # enough for a week
  durable: false
"""
DEFAULTS = """\
apiVersion: kdeclare/v1
kind: Defaults
metadata: {name: large}
spec: {kind: Queue, defaults: {size: 99}}
"""


def test_foreign_kind_is_planned_applied_and_shown_in_status(kdeclare: CommandLine, shed: Shed) -> None:
    kdeclare.write("manifests/orders.yaml", "Queue", "orders", size=5)
    planned = kdeclare("plan", "--out", "it.plan")
    assert "Queue/orders" in planned.out
    assert kdeclare("apply", "it.plan", "--yes").code == 0
    assert shed.queues == {"orders": {"size": 5, "durable": False}}
    assert "No changes" in kdeclare("plan").out
    assert kdeclare("status").code == 0


class Painters:
    """Another client paints a queue."""

    def __init__(self, connections: Connections) -> None:
        self.coats = 0

    def look(self) -> tuple[Diagnostic, ...]:
        self.coats += 1
        return ()

    def describe(self, runs: RecentRuns) -> Activity:
        work = OngoingWork("orders", "gray", "red", note="second coat", document={"queue": "orders"})
        fields: dict[str, JsonValue] = {"coats": self.coats}
        return Activity(("1 queue being painted",), "no paint", "Painting:", (work,), fields=fields)


def test_status_shows_activity_of_foreign_system(
    kdeclare: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign, "PROVIDER", replace(foreign.PROVIDER, watch=Painters))
    load_providers.cache_clear()
    text = kdeclare("status").out
    assert "1 queue being painted." in text
    assert "Painting:\n  ↻ orders  gray → red  not by kdeclare  second coat\n" in text
    assert json.loads(kdeclare("status", "--format", "json").out)["coats"] == 1


def register_new(app: typer.Typer) -> None:
    def queue(name: str, *, setting: ProjectOptions, console: Console) -> ExitCode:
        """Write the manifest of a queue."""
        return write_new_manifest(console, setting, ResourceId("Queue", name), [SpecLine("size: 7", "NAME")])

    command(app, "queue")(queue)


@pytest.fixture
def install_new(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    installed = entry_points.find_all

    def install(reference: str) -> None:
        point = InstalledEntryPoint(NEW_GROUP, "queue", reference)
        monkeypatch.setattr(entry_points, "find_all", lambda: (*installed(), point))
        find_commands.cache_clear()

    yield install
    find_commands.cache_clear()


def test_new_writes_manifest_of_foreign_kind(
    kdeclare: CommandLine, install_new: Callable[[str], None]
) -> None:
    install_new(f"{__name__}:register_new")
    assert "topic" in kdeclare("new", "--help").out
    made = kdeclare("new", "queue", "orders")
    assert (made.code, made.out) == (0, "manifests/orders.yaml\n")
    assert "kind: Queue" in Path("manifests/orders.yaml").read_text()
    assert kdeclare("apply", "--yes").code == 0
    again = kdeclare("new", "queue", "orders")
    assert (again.code, "Resource is already declared" in again.err) == (1, True)


def test_new_names_unloadable_command(kdeclare: CommandLine, install_new: Callable[[str], None]) -> None:
    install_new(f"{__name__}:nowhere")
    refused = kdeclare("new", "queue")
    assert refused.code == 1
    assert f"'queue' of {__name__}:nowhere cannot be loaded" in refused.err


def test_provider_option_applies_to_plan_and_apply(kdeclare: CommandLine) -> None:
    kdeclare.write("manifests/orders.yaml", "Queue", "orders", size=5)
    assert kdeclare("plan").code == 0
    denied = kdeclare("plan", "--highest", "4")
    assert denied.code == 3
    assert "Queue is too large" in denied.out
    assert kdeclare("apply", "--yes", "--highest", "4").code == 3
    assert kdeclare("apply", "--yes", "--highest", "5").code == 0


@pytest.mark.parametrize("command", ["plan", "apply", "fleet plan"])
def test_help_lists_provider_option_after_kafka_options(kdeclare: CommandLine, command: str) -> None:
    shown = kdeclare(*command.split(), "--help").out
    assert shown.index("--rf-guard") < shown.index("--highest N") < shown.index("--target")
    assert "The size of the largest queue." in shown


@pytest.mark.parametrize("command", ["rollback", "topic create", "topic delete"])
def test_help_of_other_commands_omits_provider_option(kdeclare: CommandLine, command: str) -> None:
    assert "--highest" not in kdeclare(*command.split(), "--help").out


def test_apply_of_plan_file_rejects_provider_option(kdeclare: CommandLine) -> None:
    kdeclare.write("manifests/orders.yaml", "Queue", "orders", size=5)
    assert kdeclare("plan", "--out", "it.plan").code == 0
    assert kdeclare("apply", "it.plan", "--yes", "--highest", "9").code == 64


def test_provider_option_with_builtin_name_is_refused(
    kdeclare: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    @dataclass(frozen=True)
    class GreedyOptions:
        yes: Annotated[bool, PlanOption("Say yes to everything.")] = False

    (option,) = collect_options("shed", GreedyOptions)
    monkeypatch.setattr(plan_options, "find_plan_options", cache(lambda: OfferedOptions({"yes": option})))
    assert "Do not ask for confirmation." in kdeclare("apply", "--help").out
    refused = kdeclare("apply", "--yes")
    assert refused.code == 1
    expected = (
        "The provider 'shed' adds the option '--yes', but this command already has an option with that name."
    )
    assert expected in refused.err


def test_defaults_apply_to_foreign_kind(kdeclare: CommandLine) -> None:
    put_file("manifests/d.yaml", DEFAULTS)
    kdeclare.write("manifests/orders.yaml", "Queue", "orders")
    shown = kdeclare("show-manifest", "Queue/orders")
    assert shown.code == 0
    assert "99" in shown.out


def test_show_manifest_hides_secret_of_foreign_kind(kdeclare: CommandLine) -> None:
    kdeclare.write("manifests/orders.yaml", "Queue", "orders", password="hunter2")
    shown = kdeclare("show-manifest", "Queue/orders")
    assert shown.code == 0
    assert "hunter2" not in shown.out


def test_schema_includes_foreign_kind(kdeclare: CommandLine) -> None:
    found = kdeclare("schema", "--kind", "Queue")
    validator = Draft202012Validator(json.loads(found.out))
    queue = {"apiVersion": "kdeclare/v1", "kind": "Queue", "metadata": {"name": "q"}}
    assert validator.is_valid(queue | {"spec": {"size": 5}})
    assert not validator.is_valid(queue | {"spec": {"size": "large"}})


def test_project_scope_limits_foreign_kind(kdeclare: CommandLine) -> None:
    environments = {"lab": {"bootstrapServers": "lab:9092"}}
    kdeclare.write("kdeclare.yaml", "Project", "shop", environments=environments, scope={"Queue": ["/o.*/"]})
    kdeclare.write("manifests/orders.yaml", "Queue", "orders")
    assert kdeclare("validate").code == 0
    kdeclare.write("manifests/returns.yaml", "Queue", "returns")
    assert "Outside the scope of the project" in kdeclare("validate").out


def test_validate_runs_checks_of_foreign_kind(kdeclare: CommandLine) -> None:
    for name in ("orders", "returns"):
        kdeclare.write(f"manifests/{name}.yaml", "Queue", name, size=600)
    assert "There is no room for all queues" in kdeclare("validate").out


def test_deletion_shows_data_loss_of_foreign_kind(kdeclare: CommandLine) -> None:
    file = kdeclare.write("manifests/orders.yaml", "Queue", "orders", size=5)
    kdeclare.write("manifests/returns.yaml", "Queue", "returns", size=5)
    assert kdeclare("apply", "--yes").code == 0
    file.unlink()
    assert "What is in the queue is lost." in kdeclare("plan", "--allow-deletes", "--format", "markdown").out
    asked = kdeclare("apply", "--allow-deletes", answer="no\n").err
    assert "What waits in orders is lost." in asked
    assert kdeclare("apply", "--allow-deletes", "--yes").code == 0
    assert "Queue/orders" in kdeclare("rollback", "--yes").out


def test_import_writes_foreign_kind(kdeclare: CommandLine, shed: Shed) -> None:
    shed.queues |= {name: {"size": 7, "durable": False} for name in ("orders", "returns")}
    assert kdeclare("import", "--match", "ord.*", "--out", "manifests").code == 0
    assert "size: 7" in (kdeclare.folder / "manifests" / "queues" / "orders.yaml").read_text()
    assert not (kdeclare.folder / "manifests" / "queues" / "returns.yaml").exists()
    assert kdeclare("plan", "--detailed-exitcode").code == 0
    environments = {"lab": {"bootstrapServers": "lab:9092"}}
    kdeclare.write("kdeclare.yaml", "Project", "shop", environments=environments, scope={"Queue": []})
    assert "2 queues (of others)" in kdeclare("import").err


def test_project_sets_plan_settings_of_provider(kdeclare: CommandLine) -> None:
    lab: dict[str, object] = {"bootstrapServers": "lab:9092"}
    kdeclare.write("manifests/orders.yaml", "Queue", "orders", size=50)
    project = {"environments": {"lab": lab}, "shelves": {"highest": 10}}
    kdeclare.write("kdeclare.yaml", "Project", "shop", **project)
    assert kdeclare("plan").code == 3
    higher = {"environments": {"lab": lab | {"shelves": {"highest": 99}}}}
    kdeclare.write("kdeclare.yaml", "Project", "shop", **project | higher)
    assert kdeclare("plan").code == 0
    kdeclare.write("kdeclare.yaml", "Project", "shop", **project | {"shelves": {"widest": 10}})
    assert "widest" in kdeclare("plan").err
    schema = json.loads(kdeclare("schema", "--kind", "Project").out)
    assert "shelves" in schema["$defs"]["ProjectSpec"]["properties"]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WriteBackProject:
    monkeypatch.chdir(tmp_path)
    put_file("kdeclare.yaml", PROJECT)
    for overlay in ("overlays/dev/none.yaml", "overlays/more/none.yaml"):
        put_file(overlay, "")
    put_file("manifests/orders.yaml", QUEUE)
    return WriteBackProject({})


def make_change(name: str, action: Action = Action.UPDATE, **after: JsonValue) -> Change:
    fields = tuple(FieldChange(field, FieldOp.CHANGE, None, value) for field, value in after.items())
    return Change(ResourceId("Queue", name), action, Reason.ASKED, Risk.SAFE, fields)


def test_write_back_edits_foreign_manifest(project: WriteBackProject) -> None:
    assert project.render_diff(make_change("orders", size=20, durable=True)) == (
        "-  size: 10  # enough for a week\n"
        "-  durable: false\n"
        "+  size: 20  # enough for a week\n"
        "+  durable: true\n"
    )


def test_manifest_diff_hides_secrets_of_foreign_kind(project: WriteBackProject) -> None:
    secrets = "  password: hunter2\n  combination: 12-34\n"
    after = QUEUE.replace("  durable: false\n", "  durable: false\n" + secrets)
    shown = render_manifest_diff([FileEdit("it.yaml", None, after.encode())])
    assert "hunter2" not in shown
    assert "12-34" not in shown
    assert shown.count("(sensitive)") == 2


def test_write_back_creates_foreign_manifest(project: WriteBackProject) -> None:
    written = project.render_diff(make_change("returns", Action.CREATE, size=3))
    assert "+  name: returns\n+spec:\n+  size: 3\n" in written


def test_write_back_deletes_foreign_manifest(project: WriteBackProject) -> None:
    assert "-kind: Queue" in project.render_diff(make_change("orders", Action.DELETE))


def test_write_back_refuses_unexpected_result(
    project: WriteBackProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(QueueKind, "is_as_changed", lambda *_: False)
    (refused,) = project.list_refusals(make_change("orders", size=20))
    assert refused.code == "not-as-wanted"


def test_write_back_refuses_uneditable_kind(
    project: WriteBackProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project_edits, "find_editable", lambda kind: None)
    (refused,) = project.list_refusals(make_change("orders", size=20))
    assert (refused.code, refused.resource) == ("not-editable", "Queue/orders")
