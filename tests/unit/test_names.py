"""Function names say what functions do: public names start with a verb or ask a question."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import kdeclare

PACKAGE = Path(kdeclare.__file__).parent

VERBS = frozenset(
    """
    abandon abort accept acquire adapt add adopt advance align allow alter announce append apply ascend ask
    assess attempt audit await balance batch begin bind block break build call cancel catch change check
    choose claim classify clean clear close collect color compare compile complete compose compute configure
    confirm connect convert copy count create cut decide declare decode decompress defer delete descend
    describe diff download drop dump edit elect elide encode enter escape evaluate evict examine exchange
    exclude execute expand explain export fail fetch fill filter find flatten fold follow forget format
    generate get grant group handle hash hide hold identify ignore import improve init insert install
    intercept invert isolate issue iterate join keep kill launch lay leave limit link list load locate lock
    log look make map mark mask match measure merge migrate move name narrow nest normalize notify observe
    open order pack paint parse patch pause permit pin place plan prepare probe produce prompt protect prove
    prune publish pull push put quote raise rank rate reach read reap reassign rebalance rebuild receive
    reconcile record recover redact refine refresh register reject release relocate remove rename render
    reorder replace replay report require reset resize resolve respond restart restore resume reveal review
    rewrite roll run salvage sanitize save scrub seal select send set settle ship shorten show shuffle sign
    silence skip sleep sort spawn splice split start stop strip substitute subtract suggest sum summarize
    sync take terminate test tick tokenize trace transfer translate truncate try unescape update use validate
    verify wait walk warn watch withhold wrap write
    """.split()  # noqa: SIM905
)
QUESTIONS = frozenset({"allows", "can", "covers", "has", "is", "may", "needs", "should"})
CONVERSIONS = frozenset({"as", "from", "of", "to", "with", "without"})

COMMAND = "a command of this name"
REPLACED = "tests replace it by this name"

NOUNS = {
    "kdeclare/cli/command.py:command": "a decorator, as in `@command(group)`; part of the provider contract",
    "kdeclare/cli/commands/doctor.py:doctor": COMMAND,
    "kdeclare/cli/commands/fleet/snapshots.py:history": COMMAND,
    "kdeclare/cli/commands/fleet/snapshots.py:snapshot": COMMAND,
    "kdeclare/cli/commands/history.py:history": COMMAND,
    "kdeclare/cli/commands/providers.py:providers": COMMAND,
    "kdeclare/cli/commands/rollback.py:rollback": COMMAND,
    "kdeclare/cli/commands/sandbox.py:status": COMMAND,
    "kdeclare/cli/commands/schema.py:schema": COMMAND,
    "kdeclare/cli/commands/shell.py:shell": COMMAND,
    "kdeclare/cli/commands/status.py:status": COMMAND,
    "kdeclare/cli/main.py:main": "what the entry point calls",
    "kdeclare/cli/pager.py:fits": REPLACED,
    "kdeclare/core/resources/manifest_text.py:scalar": REPLACED,
    "kdeclare/fleet/in_process_audit.py:proves_no_drift": "asks a question",
    "kdeclare/fleet/spark/session.py:spark_session": "a context manager, named after what it holds",
    "kdeclare/providers/connect/commands/connect.py:status": COMMAND,
    "kdeclare/providers/kafka/commands/new_topic.py:topic": COMMAND,
    "kdeclare/providers/kafka/commands/acl/new_acl.py:acl": COMMAND,
    "kdeclare/providers/kafka/commands/clients/new_client_quota.py:client_quota": COMMAND,
    "kdeclare/providers/kafka/commands/clients/new_scram_user.py:scram_user": COMMAND,
    "kdeclare/report/outcome.py:validation_outcome": "part of the Python API",
    "kdeclare/sandbox/broker_properties.py:broker_properties": REPLACED,
    "kdeclare/sandbox/jars.py:kafka_jars": REPLACED,
    "kdeclare/sandbox/security.py:broker_properties": REPLACED,
    "kdeclare/sandbox/status.py:running_process": REPLACED,
    "kdeclare/sandbox/status.py:status": "part of the interface of the sandbox",
    "kdeclare/cli/commands/sandbox_text.py:sandbox_schemas": "as the published schemas of other documents",
}
"""Functions whose name is a noun nevertheless, each with the reason."""


def list_public_functions() -> Iterator[tuple[str, str]]:
    """Yield the functions at the top level of each module, with the file and name that identify them."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                yield f"{path.relative_to(PACKAGE.parent).as_posix()}:{node.name}", node.name


def is_well_named(name: str) -> bool:
    return name.split("_")[0] in VERBS | QUESTIONS | CONVERSIONS


@pytest.mark.slow
def test_public_functions_start_with_a_verb() -> None:
    unlisted = {place for place, name in list_public_functions() if not is_well_named(name)}
    assert unlisted - NOUNS.keys() == set()
    assert NOUNS.keys() - unlisted == set(), "what is gone must leave the list"


@pytest.mark.parametrize("name", ["told", "judged_topics", "standing", "summary", "leftovers_of"])
def test_check_rejects_participles_and_nouns(name: str) -> None:
    assert not is_well_named(name)


@pytest.mark.parametrize("name", ["load_manifests", "is_topic", "with_inverse", "to_json"])
def test_check_accepts_verbs_questions_and_conversions(name: str) -> None:
    assert is_well_named(name)
