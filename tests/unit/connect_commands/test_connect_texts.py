"""The output of `connect worker-config`: for people, with and without a terminal, and for scripts."""

import json
import re
from collections.abc import Callable, Mapping
from functools import partial

import pytest
from jsonschema import Draft202012Validator

from kdeclare.core.documents import dump_document
from kdeclare.providers.connect.commands.describe_workers import (
    get_change_exit_code,
    get_proposal_exit_code,
    get_workers_exit_code,
)
from kdeclare.providers.connect.commands.text import (
    build_change_document,
    build_connect_schemas,
    build_proposal_document,
    build_workers_document,
    render_change,
    render_overrides,
    render_proposal,
    render_workers,
)
from kdeclare.report.elements.terminal import Style
from tests.unit.connect_commands.sample_workers import CHANGED, OVERRIDES, PROPOSALS, STATUS
from tests.unit.report.golden_files import check_golden, check_schema

TEXTS: Mapping[str, Callable[..., str]] = {
    **{f"connect-status-{name}": partial(render_workers, view) for name, view in STATUS.items()},
    **{f"connect-change-{name}": partial(render_change, view) for name, view in CHANGED.items()},
}
PLAIN_TEXTS: Mapping[str, str] = {
    **{f"connect-proposal-{name}": render_proposal(view) for name, view in PROPOSALS.items()},
    **{f"connect-overrides-{name}": render_overrides(view) for name, view in OVERRIDES.items()},
}
DOCUMENTS: Mapping[str, tuple[str, object]] = {
    **{f"status {name}": ("connect-status", build_workers_document(view)) for name, view in STATUS.items()},
    **{f"change {name}": ("connect-change", build_change_document(view)) for name, view in CHANGED.items()},
    **{f"proposal {name}": ("connect-proposal", build_proposal_document(v)) for name, v in PROPOSALS.items()},
    **{f"overrides {name}": ("connect-overrides", view) for name, view in OVERRIDES.items()},
}


@pytest.mark.parametrize("name", TEXTS)
def test_connect_text_matches_golden_file(name: str) -> None:
    check_golden(name, TEXTS[name](100))


@pytest.mark.parametrize("name", PLAIN_TEXTS)
def test_connect_text_without_table_matches_golden_file(name: str) -> None:
    check_golden(name, PLAIN_TEXTS[name])


@pytest.mark.parametrize("name", TEXTS)
def test_colors_add_only_color_sequences(name: str) -> None:
    plain = TEXTS[name](100)
    assert re.sub(r"\x1b\[\d+m", "", TEXTS[name](100, Style(on=True))) == plain
    assert plain.replace("\n", "").isprintable()


@pytest.mark.parametrize("name", [name for name in TEXTS if "hostile" not in name])
def test_table_fits_terminal_width(name: str) -> None:
    rows = [line for line in TEXTS[name](100).splitlines() if line.startswith(("WORKER", "https://"))]
    assert rows
    assert all(len(row) <= 100 for row in rows)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_connect_documents_match_schemas(name: str) -> None:
    schema, document = DOCUMENTS[name]
    Draft202012Validator(build_connect_schemas()[schema]).validate(
        json.loads(json.dumps(dump_document(document)))
    )


def test_documented_connect_schemas_are_current() -> None:
    for name, schema in build_connect_schemas().items():
        check_schema(name, schema)


def test_connect_exit_codes_follow_results() -> None:
    assert [int(get_workers_exit_code(STATUS[name])) for name in ("well", "ill", "nobody")] == [0, 5, 5]
    assert [int(get_proposal_exit_code(PROPOSALS[name])) for name in ("good", "bad")] == [0, 1]
    assert [int(get_change_exit_code(CHANGED[name])) for name in ("all", "some")] == [0, 5]
