"""The schema of what is told of a sandbox; the tests of its commands hold what they print to it."""

from kdeclare.cli.commands.sandbox_text import sandbox_schemas
from tests.unit.report.golden_files import check_schema


def test_the_schemas_in_the_docs_are_the_ones_in_use() -> None:
    for name, schema in sandbox_schemas().items():
        check_schema(name, schema)
