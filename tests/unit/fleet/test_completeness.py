"""A table that does not cover the whole fleet is an error."""

import pytest

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.fleet.tables.rows import require_complete_table, require_written_rows

CLUSTERS = [f"c{n}" for n in range(8)]


def test_require_complete_table_accepts_one_row_per_cluster() -> None:
    require_complete_table("live", dict.fromkeys(CLUSTERS, 1), CLUSTERS)
    require_complete_table("live", {}, [])


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ({}, "no row for c0, c1, c2, c3, c4 and 3 more (0 of 8 clusters are present)"),
        (dict.fromkeys(CLUSTERS, 1) | {"c3": 0}, "no row for c3 (7 of 8 clusters"),
        (dict.fromkeys(CLUSTERS, 1) | {"c3": 2}, "more than one row for c3 (8 of 8"),
        (dict.fromkeys(CLUSTERS, 1) | {"x": 1}, "rows of other clusters: x"),
    ],
)
def test_require_complete_table_reports_wrong_counts(counts: dict[str, int], words: str) -> None:
    with pytest.raises(KdeclareError) as raised:
        require_complete_table("live", counts, CLUSTERS)
    (item,) = raised.value.diagnostics
    assert item.code == "incomplete-table"
    assert words in item.detail


@pytest.mark.parametrize("found", [0, 4, 6])
def test_require_written_rows_reports_lost_rows(found: int) -> None:
    require_written_rows("findings", 5, 5)
    with pytest.raises(KdeclareError, match="5 rows of the table 'findings' were written"):
        require_written_rows("findings", 5, found)
