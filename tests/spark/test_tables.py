"""Tables and texts that Spark gets from this process."""

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from kdeclare.fleet.spark.tables import create_table, quote_sql, to_spark_schema
from kdeclare.fleet.tables.rows import DECLARED, FINDINGS, LIVE

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("text", ["", "it's", '"internal":true', "a\\b", "\\'", "${x} %s", "ä\u2028\0"])
def test_quoted_text_is_unchanged_in_sql(spark: SparkSession, text: str) -> None:
    assert spark.range(1).selectExpr(quote_sql(text)).collect()[0][0] == text


@pytest.mark.parametrize("schema", [DECLARED, LIVE, FINDINGS], ids=["declared", "live", "findings"])
def test_empty_table_has_all_columns_and_types(spark: SparkSession, schema: pa.Schema) -> None:
    table = create_table(spark, schema.empty_table())
    assert table.collect() == []
    expected = to_spark_schema(schema)
    assert [(field.name, field.dataType) for field in table.schema] == [
        (field.name, field.dataType) for field in expected
    ]
