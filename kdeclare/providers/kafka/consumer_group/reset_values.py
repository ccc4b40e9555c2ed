"""Parse the values of reset options: times, durations, and the CSV files of Kafka's tool."""

import csv
import io
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, SourcePosition, error
from kdeclare.providers.kafka.ids import TopicPartition

FileOffsets = Mapping[str, Mapping[TopicPartition, int]]
"""Offsets by group and partition. The group ``""`` contains the offsets of lines without a group."""

_DURATION = re.compile(
    r"(?P<sign>[-+]?)P(?:(?P<days>[-+]?\d+)D)?"
    r"(?:T(?=[-+\d])(?:(?P<hours>[-+]?\d+)H)?(?:(?P<minutes>[-+]?\d+)M)?"
    r"(?:(?P<seconds>[-+]?\d+(?:[.,]\d{0,9})?)S)?)?",
    re.IGNORECASE,
)
"""The durations that ``java.time.Duration.parse`` accepts."""
_COLUMNS = ("topic", "partition", "offset")
_MAX_DIGITS = 19
"""The number of digits of the largest offset."""
_FILE_HINT = "Write lines of the form TOPIC,PARTITION,OFFSET or GROUP,TOPIC,PARTITION,OFFSET."


def parse_time_ms(text: str) -> int:
    """Parse ``YYYY-MM-DDThh:mm:ss.sss`` to milliseconds since 1970. Without a zone, the time is in UTC.

    Raises ValueError with a message.
    """
    message = f"'{text}' is not a time of the form YYYY-MM-DDThh:mm:ss.sss"
    if "T" not in text:
        raise ValueError(message)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(message) from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def parse_duration_ms(text: str) -> int:
    """Parse a duration such as ``P1DT2H30M`` to milliseconds. Raises ValueError with a message."""
    found = _DURATION.fullmatch(text)
    parts = ("days", "hours", "minutes", "seconds")
    if found is None or not any(found[part] for part in parts):
        raise ValueError(f"'{text}' is not a duration of the form PnDTnHnMnS")
    try:
        duration = timedelta(
            **{part: float(found[part].replace(",", ".")) for part in parts if found[part] is not None}
        )
    except OverflowError:
        raise ValueError(f"'{text[:40]}' is too long: at most 999,999,999 days are possible") from None
    milliseconds = duration // timedelta(milliseconds=1)
    return -milliseconds if found["sign"] == "-" else milliseconds


def parse_offsets_file(text: str, file: str) -> FileOffsets:
    """Parse a file of Kafka's tool: lines of topic, partition and offset, with or without a group.

    file: the name of the file for messages. Raises KdeclareError with all mistakes.
    """
    offsets: dict[str, dict[TopicPartition, int]] = {}
    problems: list[Diagnostic] = []
    for number, row in enumerate(_read_rows(text, file), 1):
        cells = [cell.strip() for cell in row]
        if not any(cells):
            continue
        place = SourcePosition(file, number, 1)
        group = cells.pop(0) if len(cells) > len(_COLUMNS) else ""
        problem = _find_row_problem(cells)
        if problem:
            problems.append(_report_bad_line(problem, place))
            continue
        where = TopicPartition(cells[0], int(cells[1]))
        if where in offsets.get(group, {}):
            problems.append(_report_bad_line(f"{where} occurs more than once", place))
        offsets.setdefault(group, {})[where] = int(cells[2])
    if not problems and not offsets:
        problems.append(_report_bad_line("The file has no lines", SourcePosition(file, 1, 1)))
    if problems:
        raise KdeclareError(*problems)
    return offsets


def _read_rows(text: str, file: str) -> Iterator[list[str]]:
    reader = csv.reader(io.StringIO(text))
    try:
        yield from reader
    except csv.Error as cause:
        place = SourcePosition(file, max(1, reader.line_num), 1)
        raise KdeclareError(_report_bad_line(f"The line is not CSV ({cause})", place)) from None


def _find_row_problem(cells: list[str]) -> str:
    if len(cells) != len(_COLUMNS):
        return f"The line has {len(cells)} columns, not 3 or 4"
    for name, cell in zip(_COLUMNS[1:], cells[1:], strict=True):
        if not (cell.isascii() and cell.isdigit()):
            return f"The {name} '{cell}' is not a number"
        if len(cell) > _MAX_DIGITS:
            return f"The {name} '{cell[:_MAX_DIGITS]}…' is too large"
    return "" if cells[0] else "The topic is empty"


def _report_bad_line(problem: str, place: SourcePosition) -> Diagnostic:
    return error("bad-offsets-file", "Invalid offsets file", f"{problem}.", hint=_FILE_HINT, place=place)


def render_offsets_file(offsets: FileOffsets) -> str:
    """Return offsets in the format of `parse_offsets_file`. If there is only one group, omit the group."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for group, own_offsets in offsets.items():
        prefix = [group] if len(offsets) > 1 else []
        for where, offset in sorted(own_offsets.items()):
            writer.writerow([*prefix, where.topic, where.partition, offset])
    return text.getvalue()
