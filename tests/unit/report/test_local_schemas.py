"""The schema of the sandbox's output; the tests of its commands validate the output."""

from kdeclare.cli.commands.sandbox_text import sandbox_schemas
from tests.unit.report.golden_files import check_schema


def test_sandbox_schemas_match_docs() -> None:
    for name, schema in sandbox_schemas().items():
        check_schema(name, schema)
