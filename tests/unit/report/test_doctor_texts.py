"""The text of ``kdeclare doctor``."""

import json
import re

import pytest
from jsonschema import Draft202012Validator

from kdeclare.core.documents import dump_document
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.provider.provider import Check, CheckSection, CheckStatus
from kdeclare.report.doctor import DoctorView, build_doctor_document, build_doctor_schemas, render_doctor_text
from kdeclare.report.elements.terminal import Style
from tests.unit.report.golden_files import check_golden, check_schema

WELL = CheckSection(
    "This machine",
    (
        Check("Python", CheckStatus.OK, "3.11.7 at /usr/bin/python3; kdeclare 1.0"),
        Check("Java", CheckStatus.OK, "21 at /usr/bin/java", "kdeclare sandbox, and kdeclare fleet on Spark"),
    ),
)
MIXED = CheckSection(
    "Cluster",
    (
        Check(
            "Address", CheckStatus.SKIPPED, "no cluster is named", hint="Give --bootstrap-server HOST:PORT."
        ),
        Check("Create topics", CheckStatus.WARNING, "not permitted: CREATE", "new topics", "Ask for Create."),
    ),
)
ALONE = CheckSection("Cluster", MIXED.checks[:1])
ILL = CheckSection(
    "Connect workers",
    (
        Check(
            "https://w\x1b[2J:8083", CheckStatus.FAILED, "it is not there: \nrefused", "ConnectWorkerConfig"
        ),
    ),
)
VIEWS = {
    "well": DoctorView((WELL,)),
    "alone": DoctorView((WELL, ALONE)),
    "warned": DoctorView((WELL, MIXED)),
    "failed": DoctorView((WELL, MIXED, ILL)),
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("width", [80, None])
def test_doctor_text_matches_golden_file(name: str, width: int | None) -> None:
    text = render_doctor_text(VIEWS[name], width=width)
    assert "\x1b" not in text
    assert width is None or all(len(line) <= width for line in text.splitlines())
    check_golden(f"doctor-{name}{'' if width is None else f'-{width}'}", text)


def test_doctor_colors_change_no_text() -> None:
    coloured = render_doctor_text(VIEWS["failed"], Style(on=True))
    assert re.sub(r"\x1b\[\d+m", "", coloured) == render_doctor_text(VIEWS["failed"])


@pytest.mark.parametrize(
    ("name", "outcome", "code"),
    [
        ("well", "ok", ExitCode.OK),
        ("alone", "ok", ExitCode.OK),
        ("warned", "warning", ExitCode.OK),
        ("failed", "failed", ExitCode.ERROR),
    ],
)
def test_doctor_document_fits_schema(name: str, outcome: str, code: ExitCode) -> None:
    document = json.loads(json.dumps(dump_document(build_doctor_document(VIEWS[name]))))
    Draft202012Validator(build_doctor_schemas()["doctor"]).validate(document)
    assert (document["outcome"], document["exit_code"], VIEWS[name].exit_code) == (outcome, code, code)


def test_doctor_schema_matches_docs() -> None:
    for name, schema in build_doctor_schemas().items():
        check_schema(name, schema)
