"""The commands of kdeclare on resources of a provider that it has never heard of."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from kdeclare_flags.provider import CLIENT, FLAG
from kdeclare_flags.service import FlagService

from kdeclare.api import ApplyOptions, PlanScope, WorkspaceOptions, apply_manifests, make_plan, open_workspace
from kdeclare.core.parts import LiveState
from kdeclare.core.secrets.secret_refs import Secret
from tests.unit.cli.command_line import CommandLine

SECRET = "web-secret-1234567"
NEW_SECRET = "new-secret-1234567"


@pytest.fixture
def kdeclare(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> CommandLine:
    """A project with a flag and a client of it, beside a cluster."""
    line = CommandLine(tmp_path, capsys, monkeypatch)
    lab = {"bootstrapServers": "lab:9092", "providers": {"flags": {"file": "flags.db"}}}
    line.write("kdeclare.yaml", "Project", "shop", environments={"lab": lab})
    open_service(line).create()
    monkeypatch.setenv("WEB_TOKEN", SECRET)
    monkeypatch.setenv("NEW_TOKEN", NEW_SECRET)
    declare_flag(line, rollout=10, description="Night")
    declare_client(line)
    return line


def open_service(line: CommandLine) -> FlagService:
    return FlagService(line.folder / "flags.db")


def declare_flag(line: CommandLine, name: str = "dark-mode", **spec: object) -> Path:
    return line.write(f"manifests/{name}.yaml", "Flag", name, **spec)


def declare_client(line: CommandLine, token: str = "${env.WEB_TOKEN}") -> Path:
    return line.write("manifests/web.yaml", "FlagClient", "web", flags=["dark-mode"], token=token)


def read_flags(line: CommandLine) -> dict[str, object]:
    live = LiveState(open_service(line).read())
    return {name: fields["rollout"] for name, fields in FLAG.read(live).items()}


def set_rollout(line: CommandLine, name: str, rollout: int) -> None:
    """Somebody else changes a flag."""
    with closing(sqlite3.connect(line.folder / "flags.db")) as file, file:
        body = json.dumps({"rollout": rollout, "description": "Night"})
        file.execute("UPDATE objects SET body = ? WHERE name = ?", (body, name))


def test_validate_reports_location_and_suggestion(kdeclare: CommandLine) -> None:
    declare_flag(kdeclare, rolout=10)
    ran = kdeclare("validate")
    assert ran.code == 1
    assert "manifests/dark-mode.yaml:6:3 · Flag/dark-mode" in ran.out
    assert "Did you mean 'rollout'?" in ran.out


def test_validate_suggests_kind_of_provider(kdeclare: CommandLine) -> None:
    kdeclare.write("manifests/odd.yaml", "Flagg", "odd")
    assert "Did you mean 'Flag'?" in kdeclare("validate").out


def test_manifest_with_wrong_group_is_refused(kdeclare: CommandLine) -> None:
    """In a manifest, in an overlay, and for a kind that nobody has."""
    flag = Path("manifests/dark-mode.yaml")
    flag.write_text(flag.read_text().replace("flags.example/v1", "kdeclare/v1"))
    ran = kdeclare("validate")
    assert "manifests/dark-mode.yaml:1:13 · Flag/dark-mode" in ran.out
    assert "'apiVersion' takes flags.example/v1, not 'kdeclare/v1'." in ran.out
    assert "Write 'apiVersion: flags.example/v1', because Flag belongs to this group." in ran.out
    flag.write_text(
        flag.read_text().replace("kind: Flag", "kind: Flagge").replace("kdeclare/v1", "flag.example/v1")
    )
    ran = kdeclare("validate")
    assert "Did you mean 'Flag'?" in ran.out
    assert "Did you mean 'flags.example/v1'?" in ran.out
    declare_flag(kdeclare)
    lab = {
        "providers": {"flags": {"file": "flags.db"}},
        "bootstrapServers": "lab:9092",
        "overlays": ["over.yaml"],
    }
    kdeclare.write("kdeclare.yaml", "Project", "shop", environments={"lab": lab})
    over = kdeclare.write("over.yaml", "Flag", "dark-mode", rollout=7)
    assert kdeclare("validate").code == 0
    over.write_text(over.read_text().replace("flags.example/v1", "kdeclare/v1"))
    assert "over.yaml:1:13 · Flag/dark-mode" in kdeclare("validate").out


def test_validate_loads_json_manifest_in_folder(kdeclare: CommandLine) -> None:
    Path("manifests/flag.json").write_text('{"apiVersion": "flags.example/v1", "kind": "Flag"}')
    assert "manifests/flag.json:1:1\n  A manifest needs a field 'metadata'." in kdeclare("validate").out


def test_schema_includes_provider_kinds(kdeclare: CommandLine) -> None:
    schema = json.loads(kdeclare("schema", "--kind", "Flag").out)
    assert "rollout" in json.dumps(schema)
    assert schema["$defs"]["Flag"]["properties"]["apiVersion"]["const"] == "flags.example/v1"


@pytest.mark.parametrize("form", ["text", "json", "markdown", "sarif", "html"])
def test_plan_is_rendered_in_every_format(kdeclare: CommandLine, form: str) -> None:
    ran = kdeclare("plan", "--format", form)
    assert (ran.code, ran.err) == (0, "")
    assert SECRET not in ran.out
    assert form == "sarif" or "dark-mode" in ran.out


def test_plan_after_apply_is_empty(kdeclare: CommandLine) -> None:
    ran = kdeclare("plan", "--detailed-exitcode")
    assert ran.code == 2
    assert "2 to create" in ran.out
    assert "token  (sensitive)" in ran.out
    assert kdeclare("apply", "--yes").code == 0
    assert read_flags(kdeclare) == {"dark-mode": 10}
    assert "No changes. shop/lab on lab:9092: 2 resources up to date." in kdeclare("plan").out


def test_saved_plan_is_applied_as_saved(kdeclare: CommandLine) -> None:
    assert kdeclare("plan", "--out", "it.plan").code == 0
    declare_flag(kdeclare, rollout=99)
    assert kdeclare("apply", "it.plan", "--yes").code == 0
    assert read_flags(kdeclare) == {"dark-mode": 10}
    assert SECRET not in Path("it.plan").read_text()


def test_saved_plan_is_stale_after_concurrent_change(kdeclare: CommandLine) -> None:
    kdeclare("apply", "--yes")
    declare_flag(kdeclare, rollout=20, description="Night")
    declare_flag(kdeclare, "search", rollout=1)
    kdeclare("plan", "--out", "it.plan")
    set_rollout(kdeclare, "dark-mode", 77)
    ran = kdeclare("apply", "it.plan", "--yes")
    assert ran.code == 4
    assert "Flag/dark-mode rollout was 10 when the plan was made, but is now 77." in ran.err
    assert read_flags(kdeclare) == {"dark-mode": 77}
    assert kdeclare("apply", "it.plan", "--yes", "--skip-stale").code == 5
    assert read_flags(kdeclare) == {"dark-mode": 77, "search": 1}


def test_forged_plan_is_refused(kdeclare: CommandLine) -> None:
    kdeclare("plan", "--out", "it.plan")
    text = Path("it.plan").read_text()
    Path("it.plan").write_text(text.replace('"rollout":10', '"rollout":11', 1))
    assert kdeclare("apply", "it.plan", "--yes").code == 1
    assert read_flags(kdeclare) == {}


def test_rollback_with_conflict_keeps_concurrent_change(kdeclare: CommandLine) -> None:
    kdeclare("apply", "--yes")
    declare_flag(kdeclare, rollout=20, description="Day")
    kdeclare("apply", "--yes")
    set_rollout(kdeclare, "dark-mode", 77)  # and the description is as before
    ran = kdeclare("rollback", "--yes")
    assert ran.code == 5
    assert (
        "Flag/dark-mode: rollout was changed after the run, so the rollback leaves it unchanged."
        in ran.err + ran.out
    )
    assert read_flags(kdeclare) == {"dark-mode": 77}


def read_token(kdeclare: CommandLine) -> str:
    token = CLIENT.read(LiveState(open_service(kdeclare).read()))["web"]["token"]
    assert isinstance(token, Secret)
    return token.value


def test_rollback_restores_secret(kdeclare: CommandLine) -> None:
    kdeclare("apply", "--yes")
    declare_client(kdeclare, "${env.NEW_TOKEN}")
    kdeclare("apply", "--yes")
    assert read_token(kdeclare) == NEW_SECRET
    ran = kdeclare("rollback", "--yes")
    assert (ran.code, "cleaned up FlagClient/web" in ran.out + ran.err) == (0, True), ran
    assert read_token(kdeclare) == SECRET


def test_old_token_is_cleaned_up_by_later_command(kdeclare: CommandLine) -> None:
    (kdeclare.folder / "flags.db").unlink()
    open_service(kdeclare).create(grace_s=3600)
    kdeclare("apply", "--yes")
    declare_client(kdeclare, "${env.NEW_TOKEN}")
    kdeclare("apply", "--yes")
    assert CLIENT.read(LiveState(open_service(kdeclare).read()))["web"]["oldToken"] == "valid"
    with closing(sqlite3.connect(kdeclare.folder / "flags.db")) as file, file:
        file.execute("UPDATE old_tokens SET until = 0")  # an hour later
    kdeclare("apply", "--yes")
    assert "oldToken" not in CLIENT.read(LiveState(open_service(kdeclare).read()))["web"]


def test_apply_waits_for_ongoing_work(kdeclare: CommandLine) -> None:
    (kdeclare.folder / "flags.db").unlink()
    open_service(kdeclare).create(rollout_s=0.3)
    assert kdeclare("apply", "--yes").code == 0
    assert not open_service(kdeclare).read().ongoing


def test_status_lists_work_in_progress(kdeclare: CommandLine) -> None:
    (kdeclare.folder / "flags.db").unlink()
    open_service(kdeclare).create(rollout_s=3600)
    assert kdeclare("apply", "--yes", "--no-wait").code == 5, "the client needs the flag"
    status = kdeclare("status").out
    assert "shop/lab on lab:9092: 1 operation in progress." in status
    assert "Flag/dark-mode" in status
    (work,) = json.loads(kdeclare("status", "--format", "json").out)["work"]
    assert (work["resource"], work["verb"]) == ("Flag/dark-mode", "flag.create")
    with closing(sqlite3.connect(kdeclare.folder / "flags.db")) as file, file:
        file.execute("UPDATE service SET rollout_s = 0")  # an hour later
    assert "no work in progress" in kdeclare("status", "--watch").out


def test_ad_hoc_change_of_declared_field_is_warned_of(kdeclare: CommandLine) -> None:
    kdeclare("apply", "--yes")
    ran = kdeclare("flag", "set", "dark-mode", "50", "--yes")
    assert "rollout of Flag/dark-mode is declared in a manifest" in ran.err


def test_literal_secret_is_not_saved(kdeclare: CommandLine) -> None:
    declare_client(kdeclare, "a-literal-secret-1")
    ran = kdeclare("plan", "--out", "it.plan")
    assert ran.code == 1, ran.out
    assert not Path("it.plan").exists()


def test_target_and_selector_limit_plan(kdeclare: CommandLine) -> None:
    declare_flag(kdeclare, "search", rollout=1)
    assert "1 to create" in kdeclare("plan", "--target", "Flag/search").out
    file = Path("manifests/search.yaml")
    file.write_text(file.read_text().replace("name: search", "name: search\n  labels: {team: find}"))
    assert "1 to create" in kdeclare("plan", "--selector", "team=find").out


def test_orphans_are_reported_and_deleted_on_request(kdeclare: CommandLine) -> None:
    kdeclare("apply", "--yes")
    for file in Path("manifests").iterdir():
        file.unlink()
    kdeclare.topic("orders")
    ran = kdeclare("plan")
    assert (ran.code, "2 orphaned" in ran.out) == (0, True)
    assert kdeclare("apply", "--yes", "--allow-deletes").code == 0
    assert read_flags(kdeclare) == {}


def test_prevent_destroy_blocks_deletion(kdeclare: CommandLine) -> None:
    declare_flag(kdeclare, "keep", rollout=1, lifecycle={"preventDestroy": True})
    kdeclare("apply", "--yes")
    Path("manifests/keep.yaml").unlink()
    ran = kdeclare("apply", "--yes", "--allow-deletes")
    assert ran.code == 3
    assert "Flag/keep must not be deleted" in ran.out + ran.err
    assert "keep" in read_flags(kdeclare)


def test_existing_object_is_adopted_on_request(kdeclare: CommandLine) -> None:
    kdeclare("apply", "--yes", "--state", "elsewhere")
    set_rollout(kdeclare, "dark-mode", 77)
    assert kdeclare("apply", "--yes").code == 3
    assert read_flags(kdeclare) == {"dark-mode": 77}
    assert kdeclare("apply", "--yes", "--adopt").code == 0
    assert read_flags(kdeclare) == {"dark-mode": 10}


def test_history_and_status_show_runs(kdeclare: CommandLine) -> None:
    kdeclare("apply", "--yes")
    assert "+2" in kdeclare("history").out
    assert "Idle." in kdeclare("status").out
    run = json.loads(kdeclare("history", "--format", "json").out)["runs"][0]["run_id"]
    detail = kdeclare("history", run)
    assert (detail.code, "Flag/dark-mode" in detail.out) == (0, True)


def test_unavailable_system_is_reported(kdeclare: CommandLine) -> None:
    (kdeclare.folder / "flags.db").unlink()
    ran = kdeclare("plan")
    assert ran.code == 1
    assert "flags.db: unable to open database file" in ran.err


def test_internal_error_names_failing_provider(kdeclare: CommandLine) -> None:
    """The example does not expect that what the file holds is not JSON."""
    kdeclare("apply", "--yes")
    with closing(sqlite3.connect(kdeclare.folder / "flags.db")) as file, file:
        file.execute("UPDATE objects SET body = 'no JSON'")
    ran = kdeclare("plan")
    assert ran.code == 1
    assert "error: Internal error in a provider" in ran.err
    assert "The provider 'flags' raised an unexpected exception: JSONDecodeError: Expecting value" in ran.err
    assert "report the error to the authors of " in ran.err
    assert "Traceback" not in ran.err


def test_environment_without_address_is_shown_without_address(kdeclare: CommandLine) -> None:
    """Nothing is declared yet, so that nothing was read that would identify a system."""
    lab = {"providers": {"flags": {"file": "flags.db"}}}
    kdeclare.write("kdeclare.yaml", "Project", "shop", environments={"lab": lab})
    for file in Path("manifests").iterdir():
        file.unlink()
    assert kdeclare("plan").out == "No changes. shop/lab: 0 resources up to date.\n"


def test_missing_provider_is_named(kdeclare: CommandLine) -> None:
    """In a manifest of its group, and in an environment that says how to reach its system."""
    text = "apiVersion: acme.org/v1\nkind: Queue\nmetadata: {name: orders}\nspec: {}\n"
    Path("manifests/queue.yaml").write_text(text)
    ran = kdeclare("validate")
    assert "'Queue' is not a kind of resource." in ran.out
    assert (
        "Install a provider with the group 'acme.org'. "
        "Run 'kdeclare providers' to list the installed providers." in ran.out
    )
    lab = {"bootstrapServers": "lab:9092", "providers": {"queues": {"url": "x"}}}
    kdeclare.write("kdeclare.yaml", "Project", "shop", environments={"lab": lab})
    ran = kdeclare("validate")
    assert "There is no field 'queues' in 'spec.environments.lab.providers'." in ran.err
    assert (
        "Install the provider, or correct its name. Run 'kdeclare providers' to list the installed providers."
        in ran.err
    )


def test_manifest_without_group_gets_group_hint(kdeclare: CommandLine) -> None:
    flag = Path("manifests/dark-mode.yaml")
    flag.write_text(flag.read_text().replace("apiVersion: flags.example/v1\n", ""))
    assert "Write 'apiVersion: flags.example/v1'." in kdeclare("validate").out


def test_project_without_flags_does_not_need_service(kdeclare: CommandLine) -> None:
    """The provider is installed, and nobody has said where its system is."""
    kdeclare.write("kdeclare.yaml", "Project", "shop", environments={"lab": {"bootstrapServers": "lab:9092"}})
    for file in Path("manifests").iterdir():
        file.unlink()
    kdeclare.topic("orders")
    assert kdeclare("apply", "--yes").code == 0
    assert kdeclare("plan").code == 0


def test_environment_settings_of_provider_are_validated(kdeclare: CommandLine) -> None:
    lab = {"bootstrapServers": "lab:9092", "providers": {"flags": {"fil": "flags.db"}}}
    kdeclare.write("kdeclare.yaml", "Project", "shop", environments={"lab": lab})
    assert "Did you mean 'file'?" in kdeclare("validate").err


RULE = """
apiVersion: kdeclare/v1
kind: Policy
metadata: {name: careful}
spec:
  actions: [CREATE, MODIFY]
  selector: {kind: Flag}
  rule: after.rollout <= 50
  message: Not more than half of the users at once.
"""


def test_policy_denies_flag_and_its_dependents(kdeclare: CommandLine) -> None:
    Path("manifests/careful.yaml").write_text(RULE)
    declare_flag(kdeclare, rollout=60)
    declare_flag(kdeclare, "search", rollout=5)
    assert kdeclare("apply", "--yes").code == 3
    assert read_flags(kdeclare) == {"search": 5}, "the client needs the flag that was denied"
    declare_flag(kdeclare, rollout=40)
    assert kdeclare("apply", "--yes").code == 0
    assert read_flags(kdeclare) == {"search": 5, "dark-mode": 40}


def test_policy_check_evaluates_live_objects(kdeclare: CommandLine) -> None:
    kdeclare("apply", "--yes")
    set_rollout(kdeclare, "dark-mode", 77)
    Path("manifests/careful.yaml").write_text(RULE)
    ran = kdeclare("policy", "check", "--live")
    assert ran.code == 3, ran.out + ran.err
    assert "dark-mode" in ran.out


def test_misspelled_field_in_policy_rule_is_reported(kdeclare: CommandLine) -> None:
    Path("manifests/careful.yaml").write_text(RULE.replace("after.rollout", "after.rolout"))
    assert "Did you mean 'rollout'?" in kdeclare("validate").out


def test_import_writes_manifests_that_change_nothing(kdeclare: CommandLine) -> None:
    kdeclare("apply", "--yes")
    for file in Path("manifests").iterdir():
        file.unlink()
    assert kdeclare("import", "--out", "manifests").code == 0
    texts = {path.name: path.read_text() for path in Path("manifests").rglob("*.yaml")}
    assert not [name for name, text in texts.items() if SECRET in text]
    assert any("rollout: 10" in text for text in texts.values())
    assert all(text.startswith("apiVersion: flags.example/v1\n") for text in texts.values())
    ran = kdeclare("plan")
    assert (ran.code, "No changes." in ran.out) == (0, True), ran.out + ran.err


def test_import_names_variables_of_secrets(kdeclare: CommandLine) -> None:
    kdeclare("apply", "--yes")
    ran = kdeclare("import", "--include-declared", "--out", "imported")
    assert "Set these environment variables before you plan: WEB_TOKEN." in ran.err


def test_import_from_empty_system_reports_nothing_to_import(kdeclare: CommandLine) -> None:
    ran = kdeclare("import")
    assert (ran.code, ran.out) == (0, "")
    assert "There is nothing to import." in ran.err


def test_run_without_journal_is_listed_as_unreadable(kdeclare: CommandLine) -> None:
    assert kdeclare("apply", "--yes").code == 0
    (journal,) = (kdeclare.folder / "state").rglob("journal.jsonl")
    journal.unlink()
    ran = kdeclare("history")
    assert ran.code == 0
    assert "unreadable" in ran.out


def test_providers_command_lists_provider(kdeclare: CommandLine) -> None:
    assert "kdeclare-flags (kdeclare_flags.provider:PROVIDER)" in kdeclare("providers").out


def test_library_plans_and_applies(kdeclare: CommandLine) -> None:
    workspace = open_workspace(WorkspaceOptions(project=kdeclare.folder / "kdeclare.yaml", env="lab"))
    assert [str(change.id) for change in make_plan(workspace).plan.changes] == [
        "Flag/dark-mode",
        "FlagClient/web",
    ]
    result = apply_manifests(workspace, (), PlanScope(), ApplyOptions("a program"))
    assert result is not None
    assert result.complete
    assert read_flags(kdeclare) == {"dark-mode": 10}


def test_import_leaves_out_systems_that_are_not_configured(kdeclare: CommandLine) -> None:
    """An installed provider must not stop imports of clusters that do not use it."""
    kdeclare.write("kdeclare.yaml", "Project", "p", environments={"lab": {"bootstrapServers": "lab:9092"}})
    ran = kdeclare("import", "--out", "imported")
    assert ran.code == 0, ran.err
    assert "Flag: the environment has no connection settings for this kind" in ran.err
