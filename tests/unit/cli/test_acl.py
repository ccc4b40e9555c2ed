"""`kdeclare acl` on an in-memory cluster: the options of kafka-acls, explanations, and manifests."""

import json

import pytest
from jsonschema import Draft202012Validator

from kdeclare.core.exit_codes import ExitCode
from kdeclare.providers.kafka.acl.binding import parse_binding
from kdeclare.providers.kafka.commands.views import build_document_schemas
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.unit.cli.command_line import CommandLine, CommandResult
from tests.unit.report.golden_files import check_golden

READ = "ALLOW User:alice READ topic:orders from *"
TO_ALICE = ("--allow-principal", "User:alice")


ROOT = "ALLOW User:root ALL cluster:kafka-cluster from *"
"""An ACL of the cluster, without which the first one could take kdeclare's own permissions away."""


def read(kdeclare: CommandLine) -> set[str]:
    return set(map(str, kdeclare.cluster.acls()))


def grant(kdeclare: CommandLine, *texts: str) -> None:
    kdeclare.cluster.create_acls(list(map(parse_binding, texts)))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--operation Read --topic orders", {READ}),
        (
            "--operation read --operation DESCRIBE_CONFIGS --topic t",
            {"READ topic:t", "DESCRIBE_CONFIGS topic:t"},
        ),
        ("--topic t", {"ALL topic:t"}),
        ("--topic t --group g --operation Read", {"READ topic:t", "READ group:g"}),
        ("--operation Alter --cluster", {"ALTER cluster:kafka-cluster"}),
        ("--operation Write --transactional-id x", {"WRITE transactionalId:x"}),
        ("--operation Read --topic pay. --resource-pattern-type prefixed", {"READ topic:pay.*"}),
        ("--operation Read --topic *", {"READ topic:*"}),
        ("--operation Read --topic t --allow-host 10.0.0.1", {"ALLOW User:alice READ topic:t from 10.0.0.1"}),
        (
            "--operation Read --topic t --deny-principal User:bob --deny-host 10.0.0.1",
            {"READ topic:t", "DENY User:bob READ topic:t from 10.0.0.1"},
        ),
        ("--producer --topic t", {"WRITE topic:t", "DESCRIBE topic:t", "CREATE topic:t"}),
        (
            "--producer --idempotent --topic t --transactional-id x",
            {
                "WRITE topic:t",
                "DESCRIBE topic:t",
                "CREATE topic:t",
                "WRITE transactionalId:x",
                "DESCRIBE transactionalId:x",
                "IDEMPOTENT_WRITE cluster:kafka-cluster",
            },
        ),
        ("--consumer --topic t --group g", {"READ topic:t", "DESCRIBE topic:t", "READ group:g"}),
    ],
)
def test_add_creates_bindings_like_kafka_acls(
    kdeclare: CommandLine, options: str, expected: set[str]
) -> None:
    grant(kdeclare, ROOT)
    kdeclare.cluster.principal = "User:root"
    ran = kdeclare("acl", "add", *TO_ALICE, *options.split(), "--yes")
    assert ran.code == 0, ran
    assert read(kdeclare) - {ROOT} == {
        text if text.endswith(("*", ".1")) and " from " in text else f"ALLOW User:alice {text} from *"
        for text in expected
    }
    assert kdeclare("rollback", "--yes").code == 0
    assert read(kdeclare) == {ROOT}


BROAD = (
    "Access for all principals",
    "Access denied to all principals",
    "All operations allowed on the cluster",
)


@pytest.mark.parametrize(
    ("options", "summary"),
    [
        ("--allow-principal User:* --operation All --topic t", "Access for all principals"),
        ("--deny-principal User:* --operation Read --topic t", "Access denied to all principals"),
        ("--allow-principal User:alice --operation All --cluster", "All operations allowed on the cluster"),
        ("--allow-principal User:alice --operation All --topic t", None),
    ],
)
def test_add_warns_about_broad_rights(kdeclare: CommandLine, options: str, summary: str | None) -> None:
    ran = kdeclare("acl", "add", *options.split(), "--allow-acl-lockout", "--yes")
    assert ran.code == 0, ran
    assert [text for text in BROAD if f"warning: {text}" in ran.out] == ([summary] if summary else [])


def test_remove_deletes_exactly_the_described_bindings(kdeclare: CommandLine) -> None:
    write = "ALLOW User:alice WRITE topic:orders from *"
    grant(kdeclare, READ, write, "ALLOW User:bob READ topic:orders from *")
    ran = kdeclare("acl", "remove", *TO_ALICE, "--operation", "Read", "--topic", "orders", "--yes")
    assert ran.code == 0, ran
    assert read(kdeclare) == {write, "ALLOW User:bob READ topic:orders from *"}
    assert kdeclare("acl", "remove", "--topic", "orders", "--yes").code == 0
    assert read(kdeclare) == set()
    assert kdeclare("acl", "remove", "--topic", "orders", "--yes").code == 0


def test_changes_are_shown_and_confirmed(kdeclare: CommandLine) -> None:
    ran = kdeclare("acl", "add", *TO_ALICE, "--operation", "Read", "--topic", "orders", answer="no\n")
    assert "Create these ACLs?" in ran.err
    assert "ALLOW User:alice READ from *" in ran.err + ran.out
    assert read(kdeclare) == set()


def test_change_of_declared_binding_is_warned_about(kdeclare: CommandLine) -> None:
    kdeclare.write(
        "manifests/a.yaml", "Acl", "readers", principal="User:alice", consume={"topics": ["orders"]}
    )
    assert kdeclare("apply", "--yes").code == 0
    ran = kdeclare("acl", "remove", *TO_ALICE, "--operation", "Read", "--topic", "orders", "--yes")
    assert (ran.code, "is declared in a manifest" in ran.err) == (0, True), ran
    assert "Acl/readers" in ran.out + ran.err
    assert kdeclare("plan", "--detailed-exitcode").code == ExitCode.CHANGES


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--topic t", "name a principal"),
        ("--allow-principal User:a", "name a resource"),
        (
            "--allow-principal User:a --deny-host 10.0.0.1 --topic t",
            "--deny-host has no effect without --deny-principal",
        ),
        (
            "--deny-principal User:a --allow-host 10.0.0.1 --topic t",
            "--allow-host has no effect without --allow-principal",
        ),
        ("--allow-principal alice --topic t", "has no type"),
        ("--allow-principal user:alice --topic t", "case-sensitive"),
        ("--allow-principal User:a --allow-host 10.0.0.0/8 --topic t", "range of addresses"),
        ("--allow-principal User:a --topic orders*", "never matches"),
        ("--allow-principal User:a --topic t --operation Reed", "Did you mean 'Read'?"),
        ("--allow-principal User:a --group g --operation Write", "does not apply to a group"),
        ("--allow-principal User:a --topic t --resource-pattern-type any", "literal or prefixed"),
        ("--allow-principal User:a --topic t --cluster --producer", "do not apply to a cluster"),
        ("--allow-principal User:a --transactional-id x --producer", "--producer needs at least one --topic"),
        ("--allow-principal User:a --topic t --consumer", "needs at least one --topic and one --group"),
        ("--allow-principal User:a --group g --consumer", "needs at least one --topic and one --group"),
        ("--allow-principal User:a --topic t --idempotent", "only available with --producer"),
        ("--allow-principal User:a --topic t --producer --operation Read", "cannot be combined"),
    ],
)
def test_wrong_usage_is_explained(kdeclare: CommandLine, options: str, said: str) -> None:
    ran = kdeclare("acl", "add", *options.split(), "--yes")
    assert (ran.code, said in " ".join(ran.err.replace("│", " ").split())) == (ExitCode.USAGE, True), ran
    assert kdeclare.cluster.calls == []


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("remove --allow-principal alice --operation Read --topic t --yes", "Write User:alice."),
        ("remove --topic t --deny-host 10.0.0.1 --yes", "--deny-host has no effect without"),
        ("remove --deny-principal user:alice --topic t --yes", "Write User:alice."),
        ("list --principal alice", "Write User:alice."),
        ("explain --principal alice --operation Read --topic t", "Write User:alice."),
        ("explain --principal User:a --operation Read --topic t --host 10.0.0", "is not an IP address"),
        ("explain --principal User:a --operation Write --group g", "Write does not apply to a group"),
    ],
)
def test_questions_without_meaning_are_refused(kdeclare: CommandLine, line: str, said: str) -> None:
    """An answer such as "may not" to a misspelled question would look like a result."""
    ran = kdeclare("acl", *line.split())
    text = " ".join(ran.err.replace("│", " ").split())
    assert (ran.code, said.casefold() in text.casefold()) == (ExitCode.USAGE, True), ran
    assert kdeclare.cluster.calls == []


def test_list_selects_resources_and_principals(kdeclare: CommandLine) -> None:
    prefixed = "DENY User:bob WRITE topic:ord* from 10.0.0.1"
    grant(kdeclare, READ, prefixed, "ALLOW User:alice READ group:g from *")
    ran = kdeclare("acl", "list")
    assert ran.out.splitlines() == [
        "group:g",
        "  ALLOW User:alice READ from *",
        "topic:ord*",
        "  DENY User:bob WRITE from 10.0.0.1",
        "topic:orders",
        "  ALLOW User:alice READ from *",
        "3 ACLs",
    ]
    assert read_list(kdeclare("acl", "list", "--topic", "orders", "--format", "json")) == {READ}
    match = ("--topic", "orders", "--resource-pattern-type", "match", "--format", "json")
    assert read_list(kdeclare("acl", "list", *match)) == {READ, prefixed}
    assert read_list(kdeclare("acl", "list", "--principal", "User:bob", "--format", "json")) == {prefixed}


def read_list(ran: CommandResult) -> set[str]:
    document = json.loads(ran.out)
    Draft202012Validator(build_document_schemas()["acl-list"]).validate(document)
    return {binding["text"] for binding in document["bindings"]}


def explain(kdeclare: CommandLine, *options: str) -> CommandResult:
    return kdeclare("acl", "explain", "--principal", "User:alice", "--operation", "Read", *options)


def test_explain_names_the_binding_that_decides(kdeclare: CommandLine) -> None:
    grant(kdeclare, READ)
    ran = explain(kdeclare, "--topic", "orders")
    assert ran.code == 0
    assert f"User:alice may READ topic orders: allowed by a binding: {READ}." in ran.out
    grant(kdeclare, "DENY User:* ALL topic:o* from 10.0.0.9")
    ran = explain(kdeclare, "--topic", "orders")
    assert ran.code == ExitCode.DENIED
    assert "User:alice may not READ topic orders from 10.0.0.9: denied by a binding" in ran.out
    assert explain(kdeclare, "--topic", "orders", "--host", "10.0.0.1").code == 0
    ran = explain(kdeclare, "--topic", "other")  # the denial of o* applies to one host only
    assert (ran.code, "no binding allows it" in ran.out) == (ExitCode.DENIED, True), ran
    document = json.loads(explain(kdeclare, "--topic", "orders", "--format", "json").out)
    Draft202012Validator(build_document_schemas()["acl-explain"]).validate(document)
    assert [decision["allowed"] for decision in document["decisions"]] == [True, False]


def test_explain_evaluates_manifests_and_plans(kdeclare: CommandLine) -> None:
    kdeclare.write("manifests/a.yaml", "Acl", "a", principal="User:alice", consume={"topics": ["orders"]})
    assert explain(kdeclare, "--topic", "orders").code == ExitCode.DENIED
    calls = len(kdeclare.cluster.calls)
    assert explain(kdeclare, "--topic", "orders", "--manifests").code == 0
    assert len(kdeclare.cluster.calls) == calls
    assert kdeclare("plan", "--out", "plan.json").code == 0
    assert explain(kdeclare, "--topic", "orders", "--plan", "plan.json").code == 0
    assert kdeclare("apply", "plan.json", "--yes").code == 0
    assert explain(kdeclare, "--topic", "orders").code == 0


def test_explain_evaluates_deletions_of_a_plan(kdeclare: CommandLine) -> None:
    kdeclare.write(
        "manifests/a.yaml", "Acl", "a", principal="User:alice", consume={"topics": ["orders", "t"]}
    )
    assert kdeclare("apply", "--yes").code == 0
    grant(kdeclare, "ALLOW User:alice READ topic:later from *")
    kdeclare.write("manifests/a.yaml", "Acl", "a", principal="User:alice", consume={"topics": ["t"]})
    assert kdeclare("plan", "--out", "plan.json").code == 0
    assert explain(kdeclare, "--topic", "orders").code == 0
    ran = explain(kdeclare, "--topic", "orders", "--plan", "plan.json")
    assert (ran.code, "no ACL exists for the resource" in ran.out) == (ExitCode.DENIED, True), ran
    assert explain(kdeclare, "--topic", "t", "--plan", "plan.json").code == 0
    assert explain(kdeclare, "--topic", "later", "--plan", "plan.json").code == 0
    assert explain(kdeclare, "--topic", "later", "--manifests").code == ExitCode.DENIED


def test_explain_refuses_a_plan_of_another_cluster(kdeclare: CommandLine) -> None:
    kdeclare.write("manifests/a.yaml", "Acl", "a", principal="User:alice", consume={"topics": ["orders"]})
    assert kdeclare("plan", "--out", "plan.json").code == 0
    kdeclare.cluster = MemoryCluster({1: None}, cluster_id="other")
    ran = explain(kdeclare, "--topic", "orders", "--plan", "plan.json")
    assert (ran.code, "is for cluster memory, but the environment is connected to other" in ran.err) == (
        1,
        True,
    )


def test_explain_says_what_it_evaluated(kdeclare: CommandLine) -> None:
    kdeclare.write(
        "manifests/a.yaml",
        "Acl",
        "a",
        principal="User:alice",
        consume={"topics": ["orders"]},
        bindings=[
            {"topic": "pay.*", "deny": ["READ"], "hosts": ["10.0.0.9"]},
            {"topic": "pay.*", "allow": ["ALL"]},
        ],
    )
    assert kdeclare("plan", "--out", "plan.json").code == 0
    texts = []
    for options in (
        "--topic orders",
        "--topic orders --manifests",
        "--topic orders --plan plan.json",
        "--topic pay.eu --manifests",
        "--topic pay.eu --manifests --host 10.0.0.9",
        "--group jobs --manifests",
    ):
        texts.append(f"$ kdeclare acl explain --principal User:alice --operation Read {options}\n")
        ran = explain(kdeclare, *options.split())
        texts.append(f"{ran.out}(exit code {ran.code})\n")
    check_golden("acl-explain", "\n".join(texts))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--topic t --manifests --plan p", "use only one of --manifests and --plan"),
        ("--topic t --topic u", "name exactly one resource"),
        ("", "name exactly one resource"),
        ("--topic t --plan missing.json", "missing.json"),
    ],
)
def test_explain_rejects_wrong_usage(kdeclare: CommandLine, options: str, said: str) -> None:
    ran = explain(kdeclare, *options.split())
    assert (ran.code in (1, ExitCode.USAGE), said in " ".join(ran.err.split())) == (True, True), ran
    assert kdeclare.cluster.calls == []


def test_explain_of_manifests_needs_a_project(kdeclare: CommandLine) -> None:
    (kdeclare.folder / "kdeclare.yaml").unlink()
    ran = explain(kdeclare, "--topic", "t", "--manifests", "--bootstrap-server", "lab:9092")
    assert (ran.code, "requires a project file" in ran.err) == (1, True), ran


def test_commands_explain_brokers_without_authorizer(kdeclare: CommandLine) -> None:
    kdeclare.cluster.has_authorizer = False
    ran = kdeclare("acl", "list")
    assert (ran.code, "no authorizer" in ran.err) == (1, True), ran


def test_import_writes_one_manifest_for_each_principal(kdeclare: CommandLine) -> None:
    useless = "ALLOW user:x READ topic:t from *"
    texts = {
        READ,
        "ALLOW User:alice WRITE topic:pay.* from *",
        "ALLOW User:alice DESCRIBE topic:* from *",
        "ALLOW User:alice DESCRIBE_CONFIGS topic:* from *",
        "ALLOW User:alice READ group:g from 10.0.0.1",
        "DENY User:alice DELETE topic:orders from *",
        "ALLOW User:alice WRITE transactionalId:a%2A from *",
        *(f"ALLOW User:app {o} topic:app-* from *" for o in ("READ", "WRITE", "CREATE", "DELETE")),
        "ALLOW User:app READ group:app from *",
        "ALLOW User:app WRITE transactionalId:app-* from *",
        "ALLOW User:* DESCRIBE cluster:kafka-cluster from *",
    }
    grant(kdeclare, *texts, useless)
    ran = kdeclare("import", "--out", "manifests")
    assert ran.code == 0, ran
    files = {
        file.name: text
        for file in (kdeclare.folder / "manifests").rglob("*.yaml")
        if "kind: Acl" in (text := file.read_text())
    }
    written = "\n".join(files.values())
    assert 'produce: ["pay.*"]' in written or "produce: ['pay.*']" in written
    assert "streams: [app]" in written
    assert len(files) == 3
    ran = kdeclare("plan", "--detailed-exitcode")
    assert ran.code == 0, ran
    assert kdeclare("apply", "--yes").code == 0
    assert read(kdeclare) == {*texts, useless}
