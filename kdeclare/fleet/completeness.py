"""Whether a table covers the whole fleet. What is missing from a table looks as if it were in order."""

from collections.abc import Mapping, Sequence

from kdeclare.core.diagnostics import KdeclareError, error

_NAMED = 5


def refuse_incomplete(table: str, counts: Mapping[str, int], clusters: Sequence[str]) -> None:
    """Raise KdeclareError unless a table has exactly one row of its own for each of these clusters.

    counts: how many rows each cluster has of itself, by name.
    """
    missing = [name for name in clusters if not counts.get(name)]
    repeated = [name for name, count in counts.items() if count > 1]
    unknown = sorted(counts.keys() - set(clusters))
    if not (missing or repeated or unknown):
        return
    reasons = [
        f"{text} {_join(names)}"
        for text, names in (
            ("nothing about", missing),
            ("more than one result for", repeated),
            ("rows of other clusters:", unknown),
        )
        if names
    ]
    raise _incomplete(
        f"The table '{table}' has {'; '.join(reasons)} ({len(clusters) - len(missing)} of {len(clusters)} "
        "clusters are there). Nothing was published."
    )


def refuse_lost_rows_of_table(table: str, written: int, found: int) -> None:
    """Raise KdeclareError unless the driver finds all rows that executors have written."""
    if found != written:
        raise _incomplete(
            f"Executors wrote {written:,} rows of the table '{table}', and {found:,} are in the folder of "
            "this machine. Nothing was published."
        )


def _incomplete(detail: str) -> KdeclareError:
    return KdeclareError(
        error(
            "incomplete-table",
            "The result is not complete",
            detail,
            hint="Give an --out that the driver and all executors share: executors that write to disks of "
            "their own cause this.",
        )
    )


def _join(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return f"{', '.join(names[:_NAMED])}{f' and {more:,} more' if more > 0 else ''}"
