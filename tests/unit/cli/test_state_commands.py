"""`kdeclare state`: list, show, move and release owned resources, and pull and push the whole state."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from kdeclare.report.run.documents import build_run_schemas
from tests.unit.cli.command_line import CommandLine
from tests.unit.cli.test_damaged_state import (
    apply_topics,
    contains_words,
    damage,
    get_state_folder,
    list_owned,
    list_run_folders,
    read_state,
)
from tests.unit.cli.test_state_abandon import kill_last_run


def validate(schema: str, text: str) -> dict[str, object]:
    """Check a document against its schema, and return it."""
    document: dict[str, object] = json.loads(text)
    Draft202012Validator(build_run_schemas()[schema]).validate(document)
    return document


def forbid_connections(kdeclare: CommandLine) -> None:
    """Fail every command that connects to a system."""

    def refuse(*_: object) -> None:
        raise AssertionError("the command connected to a system")

    kdeclare.monkeypatch.setattr("kdeclare.providers.kafka.connection.connect_cluster", refuse)


def test_list_and_show_print_owned_resources(kdeclare: CommandLine) -> None:
    kdeclare.topic("b", configs={"retention.ms": 1000})
    apply_topics(kdeclare, "a")
    forbid_connections(kdeclare)
    assert kdeclare("state", "list").out == "Topic/a\nTopic/b\n"
    listed = validate("state-list", kdeclare("state", "list", "--format", "json").out)
    assert (listed["resources"], listed["serial"]) == (["Topic/a", "Topic/b"], 1)
    name, *record = kdeclare("state", "show", "Topic/b").out.splitlines()
    assert name == "Topic/b"
    assert "retention.ms" in json.loads("\n".join(record))["configs"]
    shown = validate("state-show", kdeclare("state", "show", "Topic/b", "--format", "json").out)
    assert shown["record"] == read_state(kdeclare)["resources"]["Topic/b"]
    refused = kdeclare("state", "show", "Topic/bb")
    assert (refused.code, contains_words(refused, "not owned", "Did you mean 'Topic/b'?")) == (1, True)
    assert kdeclare("state", "show", "b").code == 64


def test_commands_without_state_explain_what_to_do(kdeclare: CommandLine) -> None:
    for line in ("list", "show Topic/a", "pull", "rm Topic/a --yes", "mv Topic/a Topic/b --yes"):
        refused = kdeclare("state", *line.split())
        assert (refused.code, contains_words(refused, "There is no state")) == (1, True), line


def test_rm_releases_resources_with_one_write(kdeclare: CommandLine) -> None:
    kdeclare.topic("b")
    kdeclare.topic("c")
    apply_topics(kdeclare, "a")
    before = read_state(kdeclare)
    forbid_connections(kdeclare)
    ran = kdeclare("state", "rm", "Topic/a", "Topic/b", "--yes", "--format", "json")
    assert ran.code == 0, ran.err
    document = validate("state-change", ran.out)
    assert (document["released"], document["written"]) == (["Topic/a", "Topic/b"], True)
    after = read_state(kdeclare)
    assert (after["serial"], set(after["resources"])) == (2, {"Topic/c"})
    assert read_state(kdeclare, "state.json.backup") == before
    assert kdeclare.topics == {"a", "b", "c"}
    refused = kdeclare("state", "rm", "Topic/c", "Topic/a", "--yes")
    assert (refused.code, list_owned(kdeclare)) == (1, {"Topic/c"})


def test_rm_works_for_kind_that_is_not_installed(kdeclare: CommandLine) -> None:
    apply_topics(kdeclare, "a")
    state = get_state_folder(kdeclare) / "state.json"
    document = read_state(kdeclare)
    document["resources"] |= {"Strange/x": {"y": 1}}
    state.write_text(json.dumps(document))
    assert kdeclare("state", "show", "Strange/x").code == 0
    assert kdeclare("state", "rm", "Strange/x", "--yes").code == 0
    assert list_owned(kdeclare) == {"Topic/a"}


def test_mv_moves_ownership_and_changes_no_system(kdeclare: CommandLine) -> None:
    apply_topics(kdeclare, "a", "c")
    record = read_state(kdeclare)["resources"]["Topic/a"]
    forbid_connections(kdeclare)
    ran = kdeclare("state", "mv", "Topic/a", "Topic/b", answer="yes\n")
    assert ran.code == 0, ran.err
    assert contains_words(ran, "Only the state is changed", "+ Topic/b", "- Topic/a")
    after = read_state(kdeclare)
    assert after["resources"]["Topic/b"] == record
    assert (after["serial"], list_owned(kdeclare)) == (3, {"Topic/b", "Topic/c"})
    for line, code in (
        ("Topic/x Topic/y", 1),
        ("Topic/b Topic/c", 1),
        ("Topic/b ClientQuota/c", 64),
        ("Topic/b Nothing/c", 64),
        ("Topic/b b", 64),
    ):
        assert kdeclare("state", "mv", *line.split(), "--yes").code == code, line
    assert read_state(kdeclare) == after


def test_changes_require_confirmation(kdeclare: CommandLine) -> None:
    apply_topics(kdeclare, "a")
    kdeclare("state", "pull", "--out", "copy.json")
    before = read_state(kdeclare)
    for line in ("rm Topic/a", "mv Topic/a Topic/b", "push copy.json --force"):
        assert kdeclare("state", *line.split()).code == 64
        declined = kdeclare("state", *line.split(), answer="no\n")
        assert (declined.code, contains_words(declined, "Not confirmed")) == (1, True)
    assert read_state(kdeclare) == before


def test_changes_are_refused_while_a_run_is_unfinished(kdeclare: CommandLine) -> None:
    apply_topics(kdeclare, "a", "b")
    kdeclare("state", "pull", "--out", "copy.json")
    last = kill_last_run(kdeclare, 2)
    before = read_state(kdeclare)
    lines = ("rm Topic/a", "mv Topic/a Topic/c", "push copy.json --force", "migrate --to elsewhere")
    for line in lines:
        refused = kdeclare("state", *line.split(), *(["--yes"] if "migrate" not in line else []))
        assert (refused.code, contains_words(refused, "A run is not finished", last.name)) == (1, True), line
    assert read_state(kdeclare) == before
    assert kdeclare("state", "abandon", last.name, "--yes").code == 0
    assert kdeclare("state", "rm", "Topic/a", "--yes").code == 0


def test_outdated_state_is_updated_before_a_change(kdeclare: CommandLine) -> None:
    apply_topics(kdeclare, "a")
    state = get_state_folder(kdeclare) / "state.json"
    old = state.read_bytes()
    apply_topics(kdeclare, "b", "c")
    state.write_bytes(old)
    ran = kdeclare("state", "rm", "Topic/a", "--yes")
    assert (ran.code, contains_words(ran, "older than the recorded runs")) == (0, True)
    assert list_owned(kdeclare) == {"Topic/b", "Topic/c"}
    assert read_state(kdeclare)["serial"] == 4


def test_pulled_state_can_be_pushed(kdeclare: CommandLine) -> None:
    apply_topics(kdeclare, "a", "b")
    pulled = kdeclare("state", "pull")
    assert json.loads(pulled.out) == read_state(kdeclare)
    assert kdeclare("state", "pull", "--out", "copy.json").code == 0
    copy = kdeclare.folder / "copy.json"
    assert (copy.read_text(), copy.stat().st_mode & 0o777) == (pulled.out, 0o600)
    assert kdeclare("state", "pull", "--out", "no/folder.json").code == 1
    document = json.loads(pulled.out)
    document["serial"] += 3
    del document["resources"]["Topic/a"]
    copy.write_text(json.dumps(document))
    ran = kdeclare("state", "push", "copy.json", answer="yes\n")
    assert (ran.code, contains_words(ran, "- Topic/a", "serial is 5")) == (0, True), ran.err
    assert read_state(kdeclare) == document
    assert read_state(kdeclare, "state.json.backup") == json.loads(pulled.out)
    apply_topics(kdeclare, "c")
    assert read_state(kdeclare)["serial"] == 6


@pytest.mark.parametrize(
    ("field", "value"), [("serial", 2), ("serial", 1), ("lineage", "another"), ("cluster_id", "another")]
)
def test_push_refuses_document_that_is_not_newer(kdeclare: CommandLine, field: str, value: object) -> None:
    apply_topics(kdeclare, "a", "b")
    before = read_state(kdeclare)
    copy = kdeclare.folder / "copy.json"
    copy.write_text(json.dumps(before | {"serial": 9, "resources": {}} | {field: value}))
    refused = kdeclare("state", "push", "copy.json", "--yes")
    assert (refused.code, contains_words(refused, "not a later version", "--force")) == (1, True)
    assert read_state(kdeclare) == before
    assert kdeclare("state", "push", "copy.json", "--yes", "--force").code == 0
    assert read_state(kdeclare)["resources"] == {}
    if field != "cluster_id":
        assert "older than" not in kdeclare("plan").err  # the runs since are not replayed
    assert read_state(kdeclare)["resources"] == {}


def test_push_restores_damaged_and_lost_state(kdeclare: CommandLine) -> None:
    apply_topics(kdeclare, "a", "b", "c")
    state = get_state_folder(kdeclare) / "state.json"
    before = read_state(kdeclare)
    backup = state.with_name("state.json.backup").read_text()
    (kdeclare.folder / "copy.json").write_text(backup)
    state.unlink()
    assert contains_words(kdeclare("plan"), "kdeclare state push FILE")
    assert kdeclare("state", "push", "copy.json", "--yes").code == 0
    assert "older than the recorded runs" in kdeclare("plan").err
    assert read_state(kdeclare) == before
    state.write_text("{")
    refused = kdeclare("state", "push", "copy.json", "--yes")
    assert (refused.code, contains_words(refused, "kdeclare state push FILE --force")) == (1, True)
    assert kdeclare("state", "push", "copy.json", "--yes", "--force").code == 0
    assert (list_owned(kdeclare), read_state(kdeclare)["serial"]) == ({"Topic/a", "Topic/b"}, 4)


def test_push_refuses_what_is_not_a_state(kdeclare: CommandLine) -> None:
    apply_topics(kdeclare, "a")
    before = read_state(kdeclare)
    for text in ("", "{}", "[1]", '{"version": 99}', '{"version": 3, "lineage": 5}'):
        (kdeclare.folder / "copy.json").write_text(text)
        refused = kdeclare("state", "push", "copy.json", "--yes", "--force")
        assert (refused.code, contains_words(refused, "not a state", "copy.json")) == (1, True)
    assert contains_words(kdeclare("state", "push", "none.json", "--yes"), "cannot be read")
    assert read_state(kdeclare) == before


def test_no_command_prints_a_secret(kdeclare: CommandLine) -> None:
    secret = "correct horse battery staple"
    kdeclare.monkeypatch.setenv("PASSWORD", secret)
    kdeclare.write(
        "manifests/u.yaml", "ScramUser", "u", mechanisms={"SCRAM-SHA-512": {"password": "${env.PASSWORD}"}}
    )
    assert kdeclare("apply", "--yes").code == 0, kdeclare("plan").err
    assert list_owned(kdeclare) == {"ScramUser/u"}
    lines = ("list", "show ScramUser/u", "pull", "mv ScramUser/u ScramUser/v --yes", "migrate --to new")
    for line in lines:
        ran = kdeclare("state", *line.split())
        assert ran.code == 0, ran.err
        assert secret not in ran.out + ran.err
    stored = b"".join(path.read_bytes() for path in kdeclare.folder.rglob("new/**/*") if path.is_file())
    assert stored
    assert secret.encode() not in stored


def test_migrate_copies_state_and_history(kdeclare: CommandLine) -> None:
    apply_topics(kdeclare, "a", "b")
    assert kdeclare("rollback", "--yes").code == 0
    damage(list_run_folders(kdeclare)[0] / "journal.jsonl")
    history = json.loads(kdeclare("history", "--format", "json").out)["runs"]
    ran = kdeclare("state", "migrate", "--to", "new", "--format", "json")
    assert ran.code == 0, ran.err
    document = validate("state-migrate", ran.out)
    assert (document["runs"], document["skipped"]) == (2, [list_run_folders(kdeclare)[0].name])
    assert "A damaged run was not copied" in ran.err
    moved = kdeclare("history", "--format", "json", "--state", "new")
    assert json.loads(moved.out)["runs"] == history[:2]
    assert kdeclare("plan", "--state", "new").out == kdeclare("plan").out
    assert kdeclare("rollback", "--yes", "--state", "new").code == 0
    again = kdeclare("state", "migrate", "--to", "new")
    assert (again.code, contains_words(again, "already contains a state")) == (1, True)
    back = kdeclare("state", "migrate", "--from", "new", "--to", "third")
    assert (back.code, contains_words(back, "state: third", "(new) is unchanged")) == (0, True)
    same = kdeclare("state", "migrate", "--to", Path("state"))
    assert (same.code, contains_words(same, "current location")) == (64, True)
    assert kdeclare("state", "migrate", "--from", "nowhere", "--to", "fourth").code == 1


def test_state_commands_respect_the_lock(kdeclare: CommandLine) -> None:
    from kdeclare.engine.state.local_store import LocalStore

    apply_topics(kdeclare, "a")
    kdeclare("state", "pull", "--out", "copy.json")
    run_id = list_run_folders(kdeclare)[0].name
    with LocalStore(get_state_folder(kdeclare)).lock("kdeclare apply"):
        for line in (
            "rm Topic/a --yes",
            "mv Topic/a Topic/b --yes",
            "push copy.json --force --yes",
            "migrate --to new",
            "prune --keep 1 --yes",
            f"abandon {run_id} --yes",
        ):
            assert kdeclare("state", *line.split()).code == 6, line
        assert kdeclare("state", "list").code == 0
