"""The schemas of what is told of this machine; the tests of its commands hold what they print to them."""

from kdeclare.report.local_schemas import local_schemas
from tests.unit.report.golden_files import check_schema


def test_the_schemas_in_the_docs_are_the_ones_in_use() -> None:
    for name, schema in local_schemas().items():
        check_schema(name, schema)
