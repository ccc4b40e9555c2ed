"""Hash rows in SQL, with the same results as `fleet.tables.fingerprints`."""

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as f

from kdeclare.fleet.tables.fingerprints import (
    FINDING_COLUMNS,
    HASH_DIGITS,
    LABEL_SEPARATOR,
    LIVE_COLUMNS,
    NULL,
    SEPARATOR,
)


def build_live_hash() -> Column:
    """Return the Spark column with the result of `hash_live_row`."""
    content = f.coalesce(f.when(f.col("fingerprint") != "", f.col("fingerprint")), f.col("body"))
    return _hash_columns([*map(f.col, LIVE_COLUMNS), content])


def build_finding_hash() -> Column:
    """Return the Spark column with the result of `hash_finding_row`."""
    pairs = f.sort_array(
        f.map_entries(f.coalesce(f.col("labels"), f.create_map().cast("map<string,string>")))
    )
    texts = f.transform(
        pairs, lambda pair: f.concat(pair["key"], f.lit("="), pair["value"], f.lit(LABEL_SEPARATOR))
    )
    return _hash_columns([*map(f.col, FINDING_COLUMNS), f.array_join(texts, "")])


def merge_hashes(column: Column) -> Column:
    """Combine the hashes of all rows of a group. The result does not depend on their order."""
    return f.coalesce(f.bit_xor(column), f.lit(0).cast("bigint"))


def _hash_columns(columns: Sequence[Column]) -> Column:
    text = f.concat_ws(SEPARATOR, *(f.coalesce(column, f.lit(NULL)) for column in columns))
    digits = f.substring(f.sha2(text.cast("binary"), 256), 1, HASH_DIGITS)
    return f.conv(digits, 16, 10).cast("bigint")
