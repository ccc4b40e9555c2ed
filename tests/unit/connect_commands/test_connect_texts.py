"""What `connect worker-config` shows: to people, in a terminal and without one, and to scripts."""

import json
import re
from collections.abc import Callable, Mapping
from functools import partial

import pytest
from jsonschema import Draft202012Validator

from kdeclare.core.documents import dump_document
from kdeclare.providers.connect.commands.describe_workers import (
    changed_exit_code,
    proposal_exit_code,
    workers_exit_code,
)
from kdeclare.providers.connect.commands.text import (
    changed_text,
    connect_schemas,
    make_changed_document,
    make_proposal_document,
    make_workers_document,
    overrides_text,
    proposal_text,
    workers_text,
)
from kdeclare.report.elements.terminal import Style
from tests.unit.connect_commands.sample_workers import CHANGED, OVERRIDES, PROPOSALS, STATUS
from tests.unit.report.golden_files import check_golden, check_schema

TEXTS: Mapping[str, Callable[..., str]] = {
    **{f"connect-status-{name}": partial(workers_text, view) for name, view in STATUS.items()},
    **{f"connect-change-{name}": partial(changed_text, view) for name, view in CHANGED.items()},
}
PLAIN_TEXTS: Mapping[str, str] = {
    **{f"connect-proposal-{name}": proposal_text(view) for name, view in PROPOSALS.items()},
    **{f"connect-overrides-{name}": overrides_text(view) for name, view in OVERRIDES.items()},
}
DOCUMENTS: Mapping[str, tuple[str, object]] = {
    **{f"status {name}": ("connect-status", make_workers_document(view)) for name, view in STATUS.items()},
    **{f"change {name}": ("connect-change", make_changed_document(view)) for name, view in CHANGED.items()},
    **{f"proposal {name}": ("connect-proposal", make_proposal_document(v)) for name, v in PROPOSALS.items()},
    **{f"overrides {name}": ("connect-overrides", view) for name, view in OVERRIDES.items()},
}


@pytest.mark.parametrize("name", TEXTS)
def test_text(name: str) -> None:
    check_golden(name, TEXTS[name](100))


@pytest.mark.parametrize("name", PLAIN_TEXTS)
def test_text_without_a_table(name: str) -> None:
    check_golden(name, PLAIN_TEXTS[name])


@pytest.mark.parametrize("name", TEXTS)
def test_colours_change_nothing_but_colours_and_nothing_else_plays_tricks(name: str) -> None:
    plain = TEXTS[name](100)
    assert re.sub(r"\x1b\[\d+m", "", TEXTS[name](100, Style(on=True))) == plain
    assert plain.replace("\n", "").isprintable()


@pytest.mark.parametrize("name", [name for name in TEXTS if "hostile" not in name])
def test_the_table_fits_the_terminal(name: str) -> None:
    rows = [line for line in TEXTS[name](100).splitlines() if line.startswith(("WORKER", "https://"))]
    assert rows
    assert all(len(row) <= 100 for row in rows)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents_are_as_their_schemas_say(name: str) -> None:
    schema, document = DOCUMENTS[name]
    Draft202012Validator(connect_schemas()[schema]).validate(json.loads(json.dumps(dump_document(document))))


def test_the_schemas_in_the_docs_are_these() -> None:
    for name, schema in connect_schemas().items():
        check_schema(name, schema)


def test_how_commands_exit() -> None:
    assert [int(workers_exit_code(STATUS[name])) for name in ("well", "ill", "nobody")] == [0, 5, 5]
    assert [int(proposal_exit_code(PROPOSALS[name])) for name in ("good", "bad")] == [0, 1]
    assert [int(changed_exit_code(CHANGED[name])) for name in ("all", "some")] == [0, 5]
