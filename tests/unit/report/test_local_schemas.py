"""The schema of the sandbox's output; the tests of its commands validate the output."""

from kdeclare.cli.commands.sandbox_text import sandbox_schemas
from tests.unit.report.golden_files import check_schema


def test_the_schemas_in_the_docs_are_the_ones_in_use() -> None:
    for name, schema in sandbox_schemas().items():
        check_schema(name, schema)
