"""The ids of snapshots and audits, which contain the time at which the command began."""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from kdeclare.core.units import parse_duration

_ID = re.compile(r"(\d{8}T\d{6}Z)-([0-9a-f]{4})")
_TIME_FORMAT = "%Y%m%dT%H%M%SZ"


def make_record_id(moment: datetime) -> str:
    """Return a unique id for a snapshot or an audit; the ids sort by time.

    The last four digits are the fraction of the second, so that ids within a second sort by time, too.
    """
    return f"{moment:{_TIME_FORMAT}}-{moment.microsecond * 0x1_0000 // 1_000_000:04x}"


def find_earlier_id(text: str, ids: Sequence[str], shown_id: str, noun: str) -> str:
    """Return the latest id that an option such as ``--since`` selects from the ids before ``shown_id``.

    text: an id, a duration (``7d``) or a day or time in UTC (``2026-11-20``). A duration or time means the
        latest record that is at least this old, so that a comparison covers the whole period.
    ids: all ids, oldest first. shown_id: the later id. noun: what the ids identify, for messages.

    Raises ValueError with an explanation.
    """
    earlier = [id_ for id_ in ids if id_ < shown_id]
    if text in earlier:
        return text
    if text in ids:
        raise ValueError(f"The {noun} {text} is not older than {shown_id}.")
    moment = _parse_moment(text, shown_id, noun)
    times = _map_times(earlier)
    candidates = [id_ for id_, time in times.items() if time <= moment]
    if candidates:
        return candidates[-1]
    oldest = next(iter(times), None)
    if oldest is None:
        raise ValueError(f"There is no {noun} before {shown_id}.")
    raise ValueError(f"No {noun} is that old. The oldest one is {oldest}.")


def _map_times(ids: Iterable[str]) -> dict[str, datetime]:
    """Return the times in the ids. Ids that contain no time are omitted."""
    matches = {id_: _ID.fullmatch(id_) for id_ in ids}
    return {
        id_: datetime.strptime(match[1], _TIME_FORMAT).replace(tzinfo=UTC)
        for id_, match in matches.items()
        if match is not None
    }


def _parse_moment(text: str, shown_id: str, noun: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        pass
    else:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    try:
        duration = timedelta(seconds=parse_duration(text))
    except ValueError:
        raise ValueError(
            f"There is no {noun} '{text}'. Use an id, a duration such as 7d, or a day such as 2026-11-20."
        ) from None
    return _map_times((shown_id,)).get(shown_id, datetime.now(UTC)) - duration
