"""`kdeclare config` for users, client ids and IP addresses, on an in-memory cluster."""

import json
from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest
from jsonschema import Draft202012Validator

from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.client_quota.entity import EntityType, QuotaEntity
from kdeclare.providers.kafka.commands.views import build_document_schemas
from kdeclare.providers.kafka.request_values import ScramAlteration, ScramUpsertion
from kdeclare.providers.kafka.scram_user.credential import Mechanism
from tests.unit.cli.command_line import CommandLine, CommandResult
from tests.unit.report.golden_files import check_golden

SHA_256, SHA_512 = Mechanism.SHA_256, Mechanism.SHA_512
PASSWORD = "correct horse battery"
BY_REFERENCE = "SCRAM-SHA-256=[iterations=8192,password=${env.P}]"
RATE = "producer_byte_rate"


@pytest.fixture(autouse=True)
def password(kdeclare: CommandLine) -> None:
    """A password in the environment."""
    kdeclare.monkeypatch.setenv("P", PASSWORD)


def alter(kdeclare: CommandLine, options: str, *, yes: bool = True) -> CommandResult:
    return kdeclare("config", "alter", *options.split(), *(["--yes"] if yes else []))


def read_quotas(kdeclare: CommandLine) -> dict[str, Mapping[str, float]]:
    return {entity.key: dict(limits) for entity, limits in kdeclare.cluster.quotas(None).items()}


def set_credential(kdeclare: CommandLine, user: str, mechanism: Mechanism, number: int, text: str) -> None:
    kdeclare.cluster.alter_scram_users([ScramAlteration(user, mechanism, ScramUpsertion(number, text))])


ENTITIES = {
    "--user a": "user=a",
    "--user a,b": "user=a%2Cb",
    "--user-defaults": "user=*",
    "--client c": "client-id=c",
    "--client-defaults": "client-id=*",
    "--user a --client c": "user=a,client-id=c",
    "--user a --client-defaults": "user=a,client-id=*",
    "--user-defaults --client c": "user=*,client-id=c",
    "--user-defaults --client-defaults": "user=*,client-id=*",
    "--entity-type users --entity-name a": "user=a",
    "--entity-type users --entity-default": "user=*",
    "--entity-type clients --entity-name c": "client-id=c",
    "--entity-type users --entity-name a --entity-type clients --entity-name c": "user=a,client-id=c",
    "--entity-type clients --entity-name c --entity-type users --entity-name a": "user=a,client-id=c",
    "--entity-type users --entity-type clients --entity-default": "user=*,client-id=*",
    "--entity-type users --entity-name a --client c": "user=a,client-id=c",
}


@pytest.mark.slow
@pytest.mark.parametrize("options", ENTITIES)
def test_alter_changes_quotas_of_the_entity(kdeclare: CommandLine, options: str) -> None:
    ran = alter(kdeclare, f"{options} --add-config {RATE}=10MiB,request_percentage=12.5")
    assert ran.code == ExitCode.OK, ran
    expected = {RATE: 10 * 2**20, "request_percentage": 12.5}
    assert read_quotas(kdeclare) == {ENTITIES[options]: expected}
    ran = alter(kdeclare, f"{options} --delete-config {RATE} --add-config request_percentage=5")
    assert ran.code == ExitCode.OK, ran
    assert read_quotas(kdeclare) == {ENTITIES[options]: {"request_percentage": 5}}
    assert kdeclare("rollback", "--yes").code == ExitCode.OK
    assert read_quotas(kdeclare) == {ENTITIES[options]: expected}


@pytest.mark.parametrize("options", ["--ip 10.0.0.1", "--entity-type ips --entity-name 10.0.0.1"])
def test_alter_changes_quotas_of_addresses(kdeclare: CommandLine, options: str) -> None:
    assert alter(kdeclare, f"{options} --add-config connection_creation_rate=5").code == ExitCode.OK
    assert alter(kdeclare, "--ip-defaults --add-config connection_creation_rate=7").code == ExitCode.OK
    rate = "connection_creation_rate"
    assert read_quotas(kdeclare) == {"ip=10.0.0.1": {rate: 5}, "ip=*": {rate: 7}}


def test_alter_changes_several_entities_in_one_plan(kdeclare: CommandLine) -> None:
    ran = alter(kdeclare, f"--user a --user b --client c --client d --add-config {RATE}=5")
    assert "4 to change" in ran.out
    assert len(read_quotas(kdeclare)) == 4


def test_alter_sets_and_deletes_credentials(kdeclare: CommandLine) -> None:
    added = f"{BY_REFERENCE},SCRAM-SHA-512=[password=${{env.P}}]"
    ran = alter(kdeclare, f"--user alice --add-config {added}")
    assert ran.code == ExitCode.OK, ran
    assert kdeclare.cluster.scram_users(None) == {"alice": {SHA_256: 8192, SHA_512: 4096}}
    for mechanism in Mechanism:
        assert kdeclare.cluster.can_log_in("alice", mechanism, PASSWORD)
    ran = alter(kdeclare, "--entity-type users --entity-name alice --delete-config SCRAM-SHA-256")
    assert ran.code == ExitCode.OK, ran
    assert kdeclare.cluster.scram_users(None) == {"alice": {SHA_512: 4096}}


def test_alter_sets_a_password_with_unchanged_iterations(kdeclare: CommandLine) -> None:
    set_credential(kdeclare, "alice", SHA_256, 8192, "old")
    assert alter(kdeclare, f"--user alice --add-config {BY_REFERENCE}").code == ExitCode.OK
    assert kdeclare.cluster.can_log_in("alice", SHA_256, PASSWORD)


def test_rollback_of_a_new_credential_deletes_it(kdeclare: CommandLine) -> None:
    assert alter(kdeclare, f"--user alice --add-config {BY_REFERENCE}").code == ExitCode.OK
    assert kdeclare("rollback", "--yes").code == ExitCode.OK
    assert kdeclare.cluster.scram_users(None) == {}


def test_rollback_restores_a_password_that_the_project_applied(kdeclare: CommandLine) -> None:
    spec = {"SCRAM-SHA-256": {"password": "${env.P}"}, "SCRAM-SHA-512": {"password": "${env.P}"}}
    kdeclare.write("manifests/alice.yaml", "ScramUser", "alice", mechanisms=spec)
    assert kdeclare("apply", "--yes").code == ExitCode.OK
    before = kdeclare.cluster.scram_users(None)
    kdeclare.monkeypatch.setenv("Q", "other password")
    options = "--user alice --add-config SCRAM-SHA-256=[password=${env.Q}] --delete-config SCRAM-SHA-512"
    ran = alter(kdeclare, options)
    assert ran.code == ExitCode.OK, ran
    assert "Resource is managed by kdeclare" in ran.err
    assert "Cannot be rolled back" not in ran.out
    assert kdeclare.cluster.can_log_in("alice", SHA_256, "other password")
    assert "changed outside kdeclare" in kdeclare("plan").out
    assert kdeclare("rollback", "--yes").code == ExitCode.OK
    assert kdeclare.cluster.scram_users(None) == before
    assert all(kdeclare.cluster.can_log_in("alice", mechanism, PASSWORD) for mechanism in Mechanism)
    assert "No changes." in kdeclare("plan").out


def test_password_of_another_client_cannot_be_rolled_back_and_the_plan_says_so(kdeclare: CommandLine) -> None:
    set_credential(kdeclare, "alice", SHA_256, 8192, "old")
    ran = alter(kdeclare, f"--user alice --add-config {BY_REFERENCE}")
    assert "Cannot be rolled back" in ran.out
    assert kdeclare("rollback", "--yes").code == ExitCode.PARTIAL
    assert kdeclare.cluster.can_log_in("alice", SHA_256, PASSWORD)


@pytest.mark.parametrize("text", ["hunter2,4", "${env.P}", "${file.secret.txt}"])
def test_password_is_in_no_output_or_file(kdeclare: CommandLine, text: str) -> None:
    (kdeclare.folder / "secret.txt").write_text("hunter2,4")
    kdeclare.monkeypatch.setenv("P", "hunter2,4")
    outputs = [
        alter(kdeclare, f"--user alice --add-config SCRAM-SHA-256=[iterations=5000,password={text}]"),
        kdeclare("config", "describe", "--user", "alice", "--format", "json"),
        kdeclare("history"),
        kdeclare("rollback", "--yes"),
    ]
    assert {ran.code for ran in outputs} == {ExitCode.OK}
    files = [p for p in kdeclare.folder.rglob("*") if p.is_file() and p.name != "secret.txt"]
    assert any(path.name == "journal.jsonl" for path in files)
    for content in (*(ran.out + ran.err for ran in outputs), *(path.read_text() for path in files)):
        assert "hunter2" not in content
    assert ("Password on the command line" in outputs[0].out) == (text == "hunter2,4")


def test_unreadable_reference_leaves_other_users_unchanged(kdeclare: CommandLine) -> None:
    ran = alter(kdeclare, "--user alice --user bob --add-config SCRAM-SHA-256=[password=${env.NOPE}]")
    assert ran.code == ExitCode.ERROR
    assert "The environment variable 'NOPE' is not set." in ran.err
    assert kdeclare.cluster.scram_users(None) == {}


def test_change_of_declared_quota_keeps_the_name_of_its_manifest(kdeclare: CommandLine) -> None:
    kdeclare.write("manifests/q.yaml", "ClientQuota", "mine", entity={"user": "alice"}, limits={RATE: 5})
    kdeclare.write("manifests/r.yaml", "ClientQuota", "user-bob", entity={"user": "x"}, limits={RATE: 5})
    assert kdeclare("apply", "--yes").code == ExitCode.OK
    ran = alter(kdeclare, f"--user alice --user bob --add-config {RATE}=6")
    assert "~ ClientQuota/mine" in ran.out
    assert "limits.producer_byte_rate of ClientQuota/mine is declared in a manifest." in ran.err
    assert "~ ClientQuota/user-bob-" in ran.out, "the name of another quota's manifest is not used"
    assert "of ClientQuota/user-bob" not in ran.err
    assert "limits.producer_byte_rate" in kdeclare("plan").out


QUOTA_MANIFEST = """\
# The limits of the checkout team.
apiVersion: kdeclare/v1
kind: ClientQuota
metadata: {name: mine}
spec:
  entity: {user: alice}
  limits:
    producer_byte_rate: 10MiB   # agreed in May
    request_percentage: 200
"""


@pytest.fixture
def manifest(kdeclare: CommandLine) -> Path:
    """The manifest of the limits of alice, which are applied."""
    file = kdeclare.folder / "manifests" / "mine.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(QUOTA_MANIFEST)
    assert kdeclare("apply", "--yes").code == ExitCode.OK
    return file


@pytest.mark.parametrize(
    ("options", "replacements"),
    [
        (f"--add-config {RATE}=20MiB", {"10MiB": "20971520"}),
        (f"--add-config {RATE}=10485760", {}),
        ("--add-config request_percentage=12.5", {"200": "12.5"}),
        ("--add-config consumer_byte_rate=7", {"200\n": "200\n    consumer_byte_rate: 7\n"}),
        ("--delete-config request_percentage", {"    request_percentage: 200\n": ""}),
        (
            f"--delete-config {RATE},request_percentage",
            {":\n    producer_byte_rate: 10MiB   # agreed in May\n    request_percentage: 200": ": {}"},
        ),
    ],
)
def test_changed_limit_is_written_to_its_manifest(
    kdeclare: CommandLine, manifest: Path, options: str, replacements: Mapping[str, str]
) -> None:
    ran = alter(kdeclare, f"--user alice {options} --write-manifest")
    assert ran.code == ExitCode.OK, ran
    expected = QUOTA_MANIFEST
    for before, after in replacements.items():
        expected = expected.replace(before, after)
    assert manifest.read_text() == expected
    plan = kdeclare("plan", "--detailed-exitcode")
    assert (plan.code, "No changes." in plan.out) == (ExitCode.OK, True), plan


def test_limit_of_undeclared_entity_is_not_written(kdeclare: CommandLine, manifest: Path) -> None:
    before = read_quotas(kdeclare)
    ran = alter(kdeclare, f"--user bob --add-config {RATE}=5 --write-manifest")
    assert (ran.code, "kdeclare import" in ran.err) == (ExitCode.ERROR, True), ran
    assert (read_quotas(kdeclare), manifest.read_text()) == (before, QUOTA_MANIFEST)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30))
def test_plan_after_write_back_has_no_changes(kdeclare: CommandLine, manifest: Path, seed: int) -> None:
    random = Random(seed)
    keys = [RATE, "consumer_byte_rate", "request_percentage", "controller_mutation_rate"]
    for _ in range(4):
        chosen = random.sample(keys, random.randint(1, 3))
        added = {key: random.choice(("5", "7", "9e3")) for key in chosen[1:]}
        options = [f"--delete-config {chosen[0]}", *(f"--add-config {k}={v}" for k, v in added.items())]
        ran = alter(kdeclare, f"--user alice {' '.join(options)} --write-manifest")
        assert ran.code == ExitCode.OK, ran
        limits = read_quotas(kdeclare).get("user=alice", {})
        assert {key: limits.get(key) for key in chosen} == {
            key: float(added[key]) if key in added else None for key in chosen
        }
        plan = kdeclare("plan", "--detailed-exitcode")
        assert (plan.code, "No changes." in plan.out) == (ExitCode.OK, True), plan
        assert "# The limits of the checkout team." in manifest.read_text()


BOTH = "--entity-type users --entity-type clients"
REFUSED = {
    f"--user a --add-config {RATE}=5,SCRAM-SHA-256=[password=x]": "use two commands",
    "--user a --add-config producer_byte_rat=5": "Did you mean 'producer_byte_rate'?",
    "--user a --add-config SCRAM-SHA-1=[password=x]": "Did you mean 'SCRAM-SHA-512'?",
    "--client a --add-config SCRAM-SHA-256=[password=x]": "belong to users",
    "--user-defaults --add-config SCRAM-SHA-256=[password=x]": "belong to users",
    "--user a --user-defaults --add-config SCRAM-SHA-256=[password=x]": "belong to users",
    "--user a --client c --add-config SCRAM-SHA-256=[password=x]": "belong to users",
    "--user a --add-config connection_creation_rate=5": "not a limit of users and client ids",
    f"--ip 10.0.0.1 --add-config {RATE}=5": "use connection_creation_rate",
    f"--user a --ip 10.0.0.1 --add-config {RATE}=5": "cannot be combined",
    f"--user a --topic t --add-config {RATE}=5": "use only one of these options",
    f"--entity-type topics --user a --add-config {RATE}=5": "use users, clients or ips",
    f"--entity-type users --entity-type users --add-config {RATE}=5": "use users, clients or ips",
    f"--user a --entity-name b --add-config {RATE}=5": "specify the type of the entity",
    f"{BOTH} --entity-name a --add-config {RATE}=5": "name the users",
    f"{BOTH} --entity-name a --entity-default --add-config {RATE}=5": "--client-defaults",
    f"{BOTH} --entity-name a --entity-name b --entity-name c --add-config {RATE}=5": "at most one",
    f"--entity-type users --add-config {RATE}=5": "name the users",
    f"--entity-type users --entity-name= --add-config {RATE}=5": "The value is empty.",
    f"--user a --append-config {RATE}=5": "are not lists",
    "--user a --add-config SCRAM-SHA-256=[password=x] --write-manifest": "never written to manifests",
    "--user a": "specify a change",
}


@pytest.mark.parametrize("options", REFUSED)
def test_alter_rejects_wrong_usage(kdeclare: CommandLine, options: str) -> None:
    ran = alter(kdeclare, options)
    assert (ran.code, REFUSED[options] in " ".join(ran.err.split())) == (ExitCode.USAGE, True), ran
    assert kdeclare.cluster.calls == []


BAD_VALUES = {
    f"{RATE}=fast": "takes a number, or an amount such as 10MiB",
    f"{RATE}=0": "must be more than 0",
    f"{RATE}=0.5": "must be a whole number",
    "SCRAM-SHA-256=hunter2": "is not a credential",
    "SCRAM-SHA-256=[password=hunter2": "is not a credential",
    "SCRAM-SHA-256=[iterations=many,password=hunter2]": "is not a credential",
    "SCRAM-SHA-256=[iterations=1,password=hunter2]": "brokers accept 4096 to 16384",
    "SCRAM-SHA-256=[password=]": "is empty",
}


@pytest.mark.parametrize("value", BAD_VALUES)
def test_alter_rejects_values_that_brokers_refuse(kdeclare: CommandLine, value: str) -> None:
    ran = alter(kdeclare, f"--user a --add-config {value}")
    assert (ran.code, BAD_VALUES[value] in " ".join(ran.err.split())) == (ExitCode.ERROR, True), ran
    assert "hunter2" not in ran.out + ran.err
    assert (kdeclare.cluster.scram_users(None), read_quotas(kdeclare)) == ({}, {})


def prepare_entities(kdeclare: CommandLine) -> None:
    user, client, ip = EntityType.USER, EntityType.CLIENT_ID, EntityType.IP
    kdeclare.cluster.alter_quotas(
        {
            QuotaEntity.of({user: "alice"}): {RATE: 10485760.0, "request_percentage": 12.5},
            QuotaEntity.of({user: "alice", client: "reports"}): {"consumer_byte_rate": 1000.0},
            QuotaEntity.of({user: None}): {"controller_mutation_rate": 2.5},
            QuotaEntity.of({client: None}): {RATE: float("inf")},
            QuotaEntity.of({ip: "10.0.0.1"}): {"connection_creation_rate": 100.0},
        }
    )
    set_credential(kdeclare, "alice", SHA_256, 8192, "x")
    set_credential(kdeclare, "alice", SHA_512, 4096, "x")
    set_credential(kdeclare, "bob", SHA_512, 16384, "x")


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ("--user alice", ["User 'alice': 2 limits", "User 'alice': 2 SCRAM credentials"]),
        ("--entity-type users --entity-default", ["The default user: 1 limit"]),
        ("--user-defaults", ["The default user: 1 limit"]),
        ("--client-defaults", ["The default client id: 1 limit"]),
        ("--user alice --client reports", ["User 'alice' with client id 'reports': 1 limit"]),
        ("--entity-type users --entity-type clients", ["User 'alice' with client id 'reports': 1 limit"]),
        (
            "--entity-type users --entity-name alice --entity-type clients",
            ["User 'alice' with client id 'reports': 1 limit"],
        ),
        ("--entity-type ips", ["IP address '10.0.0.1': 1 limit"]),
        ("--user bob", ["User 'bob': 1 SCRAM credential"]),
        ("--user nobody", ["No quotas or SCRAM credentials to show for lab:9092."]),
        (
            "--entity-type users",
            [
                "User 'alice': 2 limits",
                "The default user: 1 limit",
                "User 'alice': 2 SCRAM credentials",
                "User 'bob': 1 SCRAM credential",
            ],
        ),
    ],
)
def test_describe_shows_exactly_the_named_entities(
    kdeclare: CommandLine, options: str, shown: list[str]
) -> None:
    prepare_entities(kdeclare)
    ran = kdeclare("config", "describe", *options.split())
    assert ran.code == ExitCode.OK
    titles = [line for line in ran.out.splitlines() if line and not line.startswith(" ")]
    assert sorted(titles) == sorted(shown)


def test_describe_reads_well(kdeclare: CommandLine) -> None:
    prepare_entities(kdeclare)
    texts = []
    for options in ("--entity-type users", "--entity-type clients", "--ip 10.0.0.1"):
        texts.append(f"$ kdeclare config describe {options}\n")
        texts.append(kdeclare("config", "describe", *options.split()).out)
    check_golden("config-describe-clients", "\n".join(texts))


def test_plan_and_warnings_read_well(kdeclare: CommandLine) -> None:
    prepare_entities(kdeclare)
    kdeclare.write("manifests/q.yaml", "ClientQuota", "mine", entity={"user": "alice"}, limits={RATE: 5})
    texts = []
    for options in (
        f"--user alice --add-config {RATE}=1MiB --delete-config request_percentage",
        "--user alice --user carol --add-config SCRAM-SHA-512=[password=hunter2]",
    ):
        ran = alter(kdeclare, options, yes=False)
        assert ran.code == ExitCode.USAGE, ran
        texts.append(f"$ kdeclare config alter {options}\n")
        texts.append(ran.out + ran.err)
    check_golden("config-alter-clients", "\n".join(texts))


def test_describe_json_has_published_schema(kdeclare: CommandLine) -> None:
    prepare_entities(kdeclare)
    schema = build_document_schemas()["config-describe-clients"]
    for options in ("--entity-type users", "--entity-type clients", "--ip 10.0.0.1", "--user nobody"):
        document = json.loads(kdeclare("config", "describe", *options.split(), "--format", "json").out)
        Draft202012Validator(schema).validate(document)
    document = json.loads(kdeclare("config", "describe", "--client-defaults", "--format", "json").out)
    assert document["quotas"] == [
        {"entity": [{"type": "client-id", "name": None}], "limits": {RATE: "inf"}},
    ]


def test_describe_rejects_inherited_values(kdeclare: CommandLine) -> None:
    ran = kdeclare("config", "describe", "--user", "a", "--all")
    assert (ran.code, "shows inherited values" in " ".join(ran.err.split())) == (ExitCode.USAGE, True)


def test_describe_warns_about_hidden_quotas_and_credentials(kdeclare: CommandLine) -> None:
    prepare_entities(kdeclare)

    def refuse(*_: object) -> None:
        raise Fault("CLUSTER_AUTHORIZATION_FAILED", "")

    kdeclare.monkeypatch.setattr(kdeclare.cluster, "quotas", refuse)
    ran = kdeclare("config", "describe", "--user", "alice")
    assert ran.code == ExitCode.OK
    assert "Reading quotas requires the DescribeConfigs permission" in ran.err
    assert "User 'alice': 2 SCRAM credentials" in ran.out
    kdeclare.monkeypatch.setattr(kdeclare.cluster, "scram_users", refuse)
    ran = kdeclare("config", "describe", "--user", "alice")
    assert "Reading SCRAM credentials requires the Describe permission" in ran.err


def test_alter_reports_missing_permission(kdeclare: CommandLine) -> None:
    def refuse(*_: object) -> None:
        raise Fault("CLUSTER_AUTHORIZATION_FAILED", "")

    kdeclare.monkeypatch.setattr(kdeclare.cluster, "quotas", refuse)
    ran = alter(kdeclare, f"--user a --add-config {RATE}=5")
    assert (ran.code, "Quotas not visible" in ran.out + ran.err) == (ExitCode.DENIED, True), ran
