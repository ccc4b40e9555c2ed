"""Run the cases of `tests/cases`, and compare the output in every format.

KDECLARE_UPDATE_GOLDEN=1 writes the outputs and the pages; review the diff.
"""

import json
from collections.abc import Mapping

import pytest
from jsonschema import Draft202012Validator

from kdeclare.engine.planning.planfile_schema import build_plan_schema
from kdeclare.report.run.documents import build_run_schemas
from tests.unit.cli.cases_folder import FOLDER, FORMATS, Case, bring_about, cases, golden, index, page, run
from tests.unit.cli.command_line import CommandLine
from tests.unit.report.golden_files import check_file
from tests.unit.report.test_markdown import check as check_markdown
from tests.unit.report.test_sarif import check as check_sarif

CASES = cases()
SECRETS = ("hunter2", "correct horse")
"""The secret values of the cases."""

OUTPUTS = [
    pytest.param(case, output, id=f"{case.name}-{output}") for case in CASES for output in case.formats
]


@pytest.mark.parametrize(("case", "output"), OUTPUTS)
def test_what_is_said(case: Case, output: str, kdeclare: CommandLine) -> None:
    bring_about(case, kdeclare)
    ran = run(case, kdeclare, output)
    assert ran.code == case.exit, ran
    assert "Traceback" not in ran.err
    assert not any(secret in ran.out + ran.err for secret in SECRETS)
    check_file(case.folder / FORMATS[output], golden(ran))
    if output == "markdown":
        check_markdown(ran.out)
    elif output == "sarif":
        check_sarif(json.loads(ran.out))
    elif output == "json":
        document = json.loads(ran.out)
        Draft202012Validator(_schema(document)).validate(document)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_case_has_a_page(case: Case) -> None:
    check_file(case.folder / "README.md", page(case))


def _schema(document: dict[str, object]) -> Mapping[str, object]:
    if "operations" in document:
        return build_run_schemas()["run"] if "run_id" in document else build_plan_schema()
    return build_run_schemas()["problem"]


def test_the_folder_has_a_page() -> None:
    check_file(FOLDER / "README.md", index(CASES))


def test_there_is_a_case_of_every_sort() -> None:
    assert len(CASES) >= 25
    assert {case.exit for case in CASES} >= {0, 1, 2, 3, 4}
    assert len({case.title for case in CASES}) == len(CASES)
    assert {file.parent.name for file in FOLDER.glob("*/*")} >= {case.name for case in CASES}


def test_no_file_is_left_from_a_case_that_is_gone() -> None:
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
