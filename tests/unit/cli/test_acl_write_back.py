"""`kdeclare acl add` and `remove` with `--write-manifest`: which lines of which manifests change."""

from pathlib import Path
from random import Random

import pytest

from kdeclare.core.exit_codes import ExitCode
from kdeclare.providers.kafka.acl.binding import parse_binding
from tests.unit.cli.command_line import CommandLine, CommandResult

HEADER = "apiVersion: kdeclare/v1\nkind: Acl\nmetadata: {name: NAME}\nspec:\n"
CHECKOUT = """\
  principal: User:checkout   # the service
  produce: [orders]
  # Everything else.
  bindings:
    # Asked for by the audit team.
    - {topic: audit, allow: [READ, DESCRIBE]}   # until 2027
    - topic: secrets
      deny: [READ]
      hosts: [10.0.0.1, 10.0.0.2]
"""


TO_OLD = "--allow-principal User:old"


def put(kdeclare: CommandLine, name: str, spec: str) -> Path:
    file = kdeclare.folder / "manifests" / f"{name}.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(HEADER.replace("NAME", name) + spec)
    return file


def read_spec(file: Path) -> str:
    return file.read_text().partition("spec:\n")[2]


def run(kdeclare: CommandLine, verb: str, options: str) -> CommandResult:
    return kdeclare("acl", verb, *options.split(), "--write-manifest", "--yes")


def read(kdeclare: CommandLine) -> set[str]:
    return set(map(str, kdeclare.cluster.acls()))


def expect_no_changes(kdeclare: CommandLine) -> None:
    plan = kdeclare("plan", "--detailed-exitcode")
    assert (plan.code, "No changes." in plan.out) == (ExitCode.OK, True), plan


@pytest.mark.parametrize(
    ("verb", "options", "replacements"),
    [
        (
            "add",
            "--allow-principal User:checkout --operation DescribeConfigs --topic audit",
            {"[READ, DESCRIBE]": "[READ, DESCRIBE, DESCRIBE_CONFIGS]"},
        ),
        (
            "add",
            "--allow-principal User:checkout --operation Read --topic pay. --resource-pattern-type prefixed",
            {"10.0.0.2]\n": '10.0.0.2]\n    - {topic: "pay.*", allow: [READ]}\n'},
        ),
        (
            "add",
            "--deny-principal User:checkout --operation Read --operation Write --topic x "
            "--deny-host 10.0.0.9",
            {"10.0.0.2]\n": '10.0.0.2]\n    - {topic: x, deny: [READ, WRITE], hosts: ["10.0.0.9"]}\n'},
        ),
        (
            "add",
            "--allow-principal User:checkout --operation Describe --cluster",
            {"10.0.0.2]\n": "10.0.0.2]\n    - {cluster: true, allow: [DESCRIBE]}\n"},
        ),
        (
            "remove",
            "--allow-principal User:checkout --operation Describe --topic audit",
            {"[READ, DESCRIBE]": "[READ]"},
        ),
        (
            "remove",
            "--allow-principal User:checkout --operation Read --operation Describe --topic audit",
            {"    - {topic: audit, allow: [READ, DESCRIBE]}   # until 2027\n": ""},
        ),
        (
            "remove",
            "--topic secrets",
            {"    - topic: secrets\n      deny: [READ]\n      hosts: [10.0.0.1, 10.0.0.2]\n": ""},
        ),
        (
            "remove",
            "--deny-principal User:checkout --operation Read --topic secrets --deny-host 10.0.0.1",
            {
                "    - topic: secrets\n      deny: [READ]\n      hosts: [10.0.0.1, 10.0.0.2]\n": (
                    '    - {topic: secrets, deny: [READ], hosts: ["10.0.0.2"]}\n'
                )
            },
        ),
    ],
)
def test_change_edits_only_the_affected_entry(
    kdeclare: CommandLine, verb: str, options: str, replacements: dict[str, str]
) -> None:
    file = put(kdeclare, "team", CHECKOUT)
    assert kdeclare("apply", "--yes", "--allow-acl-lockout").code == 0
    ran = run(kdeclare, verb, f"{options} --allow-acl-lockout")
    assert (ran.code, "manifests/team.yaml" in ran.out) == (ExitCode.OK, True), ran
    expected = CHECKOUT
    for before, after in replacements.items():
        expected = expected.replace(before, after)
    assert read_spec(file) == expected
    expect_no_changes(kdeclare)


def test_new_list_of_bindings_has_one_line_for_each_entry(kdeclare: CommandLine) -> None:
    file = put(kdeclare, "team", "  principal: User:a\n  produce: [orders]\n")
    assert kdeclare("apply", "--yes").code == 0
    ran = run(kdeclare, "add", "--allow-principal User:a --operation Read --topic t --topic u")
    assert ran.code == ExitCode.OK, ran
    assert read_spec(file) == (
        "  principal: User:a\n  produce: [orders]\n"
        "  bindings:\n    - {topic: t, allow: [READ]}\n    - {topic: u, allow: [READ]}\n"
    )
    expect_no_changes(kdeclare)


def test_overlay_that_replaces_the_list_is_edited(kdeclare: CommandLine) -> None:
    environments = {"lab": {"bootstrapServers": "lab:9092", "overlays": ["over.yaml"]}}
    kdeclare.write("kdeclare.yaml", "Project", "shop", environments=environments)
    base = put(kdeclare, "team", "  principal: User:a\n  bindings: [{topic: t, allow: [READ]}]\n")
    before = base.read_text()
    overlay = kdeclare.write("over.yaml", "Acl", "team", bindings=[{"topic": "u", "allow": ["READ"]}])
    assert kdeclare("apply", "--yes").code == 0
    ran = run(kdeclare, "add", "--allow-principal User:a --operation Write --topic u")
    assert ran.code == ExitCode.OK, ran
    assert base.read_text() == before
    assert "WRITE" in overlay.read_text()
    expect_no_changes(kdeclare)


def test_principal_without_manifest_gets_one(kdeclare: CommandLine) -> None:
    put(kdeclare, "team", CHECKOUT)
    kdeclare.write("manifests/topic.yaml", "Topic", "new", partitions=1, replicationFactor=1)
    ran = run(kdeclare, "add", "--allow-principal User:new --producer --topic orders")
    assert ran.code == ExitCode.OK, ran
    assert "+ Acl/new" in ran.out + ran.err
    assert read_spec(kdeclare.folder / "manifests" / "new.yaml") == (
        '  principal: "User:new"\n  produce: [orders]\n  bindings:\n'
        "    - {topic: orders, allow: [CREATE, DESCRIBE]}\n"
    )
    assert kdeclare("apply", "--yes").code == ExitCode.OK
    expect_no_changes(kdeclare)


def test_several_principals_are_written_to_their_manifests(kdeclare: CommandLine) -> None:
    pair = put(kdeclare, "pair", "  principals: [User:a, User:b]\n  produce: [orders]\n")
    single = put(kdeclare, "single", "  principal: User:c\n  produce: [orders]\n")
    assert kdeclare("apply", "--yes").code == 0
    options = "--operation Read --topic t --allow-principal User:a --allow-principal User:b"
    ran = run(kdeclare, "add", f"{options} --allow-principal User:c")
    assert ran.code == ExitCode.OK, ran
    for file in (pair, single):
        assert read_spec(file).endswith("  bindings:\n    - {topic: t, allow: [READ]}\n")
    expect_no_changes(kdeclare)
    ran = run(kdeclare, "remove", options)
    assert ran.code == ExitCode.OK, ran
    assert read_spec(pair).endswith("  bindings: []\n")
    expect_no_changes(kdeclare)


@pytest.mark.parametrize(
    ("verb", "options", "words"),
    [
        ("remove", "--allow-principal User:a --operation Write --topic orders", "with the role 'produce'"),
        ("add", "--allow-principal User:p --operation Read --topic t", "together with User:q"),
        ("remove", "--allow-principal User:p --operation Read --topic u", "User:p, User:q"),
        ("add", "--allow-principal User:d --operation Read --topic t", "Acl/two"),
        ("remove", "--allow-principal User:d --operation Read --topic v", "Acl/two"),
        ("add", f"{TO_OLD} --operation Read --operation Write --topic t", "kdeclare import"),
        ("add", "--deny-principal User:a --operation Write --topic orders", "contains a binding and its"),
    ],
)
def test_change_that_cannot_be_written_changes_nothing(
    kdeclare: CommandLine, verb: str, options: str, words: str
) -> None:
    put(kdeclare, "team", "  principal: User:a\n  produce: [orders]\n")
    put(kdeclare, "pair", "  principals: [User:p, User:q]\n  bindings: [{topic: u, allow: [READ]}]\n")
    for name in ("one", "two"):
        put(kdeclare, name, "  principal: User:d\n  bindings: [{topic: v, allow: [READ]}]\n")
    assert kdeclare("apply", "--yes").code == 0
    kdeclare.cluster.create_acls([parse_binding("ALLOW User:old READ topic:t from *")])
    bindings, files = read(kdeclare), read_files(kdeclare)
    ran = run(kdeclare, verb, options)
    assert ran.code == ExitCode.ERROR, ran
    assert words in " ".join(ran.err.split()), ran
    assert (read(kdeclare), read_files(kdeclare)) == (bindings, files)


def test_removal_of_undeclared_binding_changes_no_manifest(kdeclare: CommandLine) -> None:
    put(kdeclare, "team", CHECKOUT)
    assert kdeclare("apply", "--yes").code == 0
    kdeclare.cluster.create_acls([parse_binding("ALLOW User:old READ topic:audit from *")])
    files = read_files(kdeclare)
    ran = run(kdeclare, "remove", "--allow-principal User:old --operation Read --topic audit")
    assert (ran.code, "no manifest is changed" in ran.err + ran.out) == (ExitCode.OK, True), ran
    assert read_files(kdeclare) == files
    expect_no_changes(kdeclare)


def read_files(kdeclare: CommandLine) -> dict[str, str]:
    return {path.name: path.read_text() for path in (kdeclare.folder / "manifests").iterdir()}


# The property: whatever was written back, the next plan has no changes.

OPERATIONS = ("READ", "WRITE", "DESCRIBE", "ALTER")
TOPICS = ("a", "b", "b*")
HOSTS = ("*", "10.0.0.1", "10.0.0.2")


def draw_manifest(random: Random, principals: list[str]) -> str:
    lines = [
        f"  principal: {principals[0]}  # who"
        if len(principals) == 1
        else f"  principals: [{', '.join(principals)}]  # who"
    ]
    if random.random() < 0.4:
        lines.append(f"  hosts: ['{random.choice(HOSTS[1:])}']  # where")
    if random.random() < 0.5:
        lines.append(f"  produce: ['{random.choice(TOPICS)}']  # what")
    entries = []
    for _ in range(random.randrange(4)):
        operations = ", ".join(random.sample(OPERATIONS, random.randint(1, 3)))
        entry = f"topic: '{random.choice(TOPICS)}', allow: [{operations}]"
        if random.random() < 0.5:
            hosts = "', '".join(random.sample(HOSTS[1:], random.randint(1, 2)))
            entry += f", hosts: ['{hosts}']"
        entries.append(entry)
    if entries and random.random() < 0.3:
        return "\n".join([*lines, "  bindings: [" + ", ".join(f"{{{e}}}" for e in entries) + "]  # rest", ""])
    if entries:
        lines += ["  # the rest", "  bindings:", *(f"    # entry\n    - {{{entry}}}" for entry in entries)]
    return "\n".join([*lines, ""])


def draw_options(random: Random, principals: list[str]) -> str:
    options = [f"--allow-principal {p}" for p in random.sample(principals, random.randint(1, 2))]
    options += [f"--operation {o}" for o in random.sample(OPERATIONS, random.randint(1, 2))]
    options += [f"--allow-host {h}" for h in random.sample(HOSTS[1:], random.randint(0, 2))]
    topic = random.choice(TOPICS)
    options.append(f"--topic {topic.rstrip('*')}")
    return " ".join([*options, *(["--resource-pattern-type prefixed"] if topic.endswith("*") else [])])


def draw_removal(random: Random, live: set[str], principals: list[str]) -> str:
    """Choose a live binding, and perhaps the same binding for other hosts and another principal."""
    bindings = [b for b in map(parse_binding, sorted(live)) if b.principal in principals]
    if not bindings:
        return draw_options(random, principals)
    binding = random.choice(bindings)
    hosts = [binding.host] if random.random() < 0.5 else list(HOSTS)
    names = [binding.principal] if random.random() < 0.3 else principals
    return " ".join(
        [
            *(f"--allow-principal {name}" for name in names),
            *(f"--allow-host {host}" for host in hosts),
            f"--operation {binding.operation} --topic {binding.name}",
            f"--resource-pattern-type {binding.pattern}",
        ]
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_plan_after_write_back_has_no_changes(kdeclare: CommandLine, seed: int) -> None:
    random = Random(seed)
    people = {"one": ["User:one"], "two": ["User:two"], "pair": ["User:three", "User:four"]}
    for name, principals in people.items():
        put(kdeclare, name, draw_manifest(random, principals))
    assert kdeclare("apply", "--yes").code == 0
    for _ in range(3):
        bindings, files = read(kdeclare), read_files(kdeclare)
        asked = ["User:one", "User:two"] if random.random() < 0.5 else people["pair"]
        verb = random.choice(("add", "remove", "remove"))
        options = draw_options(random, asked) if verb == "add" else draw_removal(random, bindings, asked)
        ran = run(kdeclare, verb, options)
        if ran.code != ExitCode.OK:
            assert ran.code == ExitCode.ERROR, (options, ran)
            assert (read(kdeclare), read_files(kdeclare)) == (bindings, files), options
            continue
        expect_no_changes(kdeclare)
        for name, text in read_files(kdeclare).items():
            assert text.count("# who") == files.get(name, text).count("# who") == 1
            assert text.count("# where") == files[name].count("# where")
            assert text.count("# what") == files[name].count("# what")
