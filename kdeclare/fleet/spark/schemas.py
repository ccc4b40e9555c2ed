"""Arrow's schemas as Spark's."""

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type
from pyspark.sql.types import DataType, StructType


def as_spark(type_: pa.DataType) -> DataType:
    """One type."""
    return from_arrow_type(type_)


def schema_of(schema: pa.Schema) -> StructType:
    """A whole table's."""
    return from_arrow_schema(schema)
