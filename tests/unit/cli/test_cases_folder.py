"""Run the cases of `tests/cases`, and compare the output in every format.

KDECLARE_UPDATE_GOLDEN=1 writes the outputs and the pages; review the diff.
"""

import json
from collections.abc import Mapping

import pytest
from jsonschema import Draft202012Validator

from kdeclare.engine.planning.planfile_schema import build_plan_schema
from kdeclare.report.run.documents import build_run_schemas
from tests.unit.cli.cases_folder import (
    FOLDER,
    FORMATS,
    Case,
    normalize_output,
    read_cases,
    render_index,
    render_page,
    run_case,
    set_up_case,
)
from tests.unit.cli.command_line import CommandLine
from tests.unit.report.golden_files import check_file
from tests.unit.report.test_markdown import check_comment as check_markdown
from tests.unit.report.test_sarif import check_log as check_sarif

CASES = read_cases()
SECRETS = ("hunter2", "correct horse")
"""The secret values of the cases."""

OUTPUTS = [
    pytest.param(case, output, id=f"{case.name}-{output}") for case in CASES for output in case.formats
]


@pytest.mark.parametrize(("case", "output"), OUTPUTS)
def test_case_output_matches_golden_file(case: Case, output: str, kdeclare: CommandLine) -> None:
    set_up_case(case, kdeclare)
    ran = run_case(case, kdeclare, output)
    assert ran.code == case.exit, ran
    assert "Traceback" not in ran.err
    assert not any(secret in ran.out + ran.err for secret in SECRETS)
    check_file(case.folder / FORMATS[output], normalize_output(ran))
    if output == "markdown":
        check_markdown(ran.out)
    elif output == "sarif":
        check_sarif(json.loads(ran.out))
    elif output == "json":
        document = json.loads(ran.out)
        Draft202012Validator(_select_schema(document)).validate(document)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case_page_is_current(case: Case) -> None:
    check_file(case.folder / "README.md", render_page(case))


def _select_schema(document: dict[str, object]) -> Mapping[str, object]:
    if "operations" in document:
        return build_run_schemas()["run"] if "run_id" in document else build_plan_schema()
    return build_run_schemas()["problem"]


def test_cases_index_page_is_current() -> None:
    check_file(FOLDER / "README.md", render_index(CASES))


def test_cases_cover_exit_codes_and_have_unique_titles() -> None:
    assert len(CASES) >= 25
    assert {case.exit for case in CASES} >= {0, 1, 2, 3, 4}
    assert len({case.title for case in CASES}) == len(CASES)
    assert {file.parent.name for file in FOLDER.glob("*/*")} >= {case.name for case in CASES}


def test_cases_folder_has_no_leftover_files() -> None:
    known = {case.name for case in CASES}
    assert {path.name for path in FOLDER.iterdir() if path.is_dir()} == known
    for case in CASES:
        outputs = {FORMATS[output] for output in case.formats}
        wanted = {
            "case.yaml",
            "README.md",
            *outputs,
            *(p.relative_to(case.folder).parts[0] for p in case.inputs()),
        }
        assert {path.name for path in case.folder.iterdir()} == wanted
