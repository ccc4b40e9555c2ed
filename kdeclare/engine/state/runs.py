"""The ids of runs."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_TIME = "%Y%m%dT%H%M%SZ"
_MADE_HERE = re.compile(r"(\d{8}T\d{6}Z)(?:\.(\d{4}))?-.*")


def new_run_id(now: datetime, plan_id: str, earlier: Iterable[str]) -> str:
    """An id that sorts, as text, after all ``earlier`` ones: ``20261121T125107Z-1a2b3c4d``.

    now: any time zone, but not naive. plan_id: its first eight characters are in the id.
    earlier: the ids of the store's runs. After one of the same second, or of a later one where the
    clock went back, a counter comes in: ``20261121T125107Z.0002-1a2b3c4d``.
    """
    stamp, count = now.astimezone(UTC).strftime(_TIME), 1
    last = max((m for m in map(_MADE_HERE.fullmatch, earlier) if m), key=lambda m: m[0], default=None)
    if last is not None and last[1] >= stamp:
        stamp, count = last[1], int(last[2] or 1) + 1
    # "." sorts after "-", so the counted ids follow the first one of their second
    return f"{stamp}{f'.{count:04}' if count > 1 else ''}-{plan_id[:8]}"


def is_run_id(text: str) -> bool:
    """Whether ``text`` can be the name of a run's folder; keeps ``..`` and paths out."""
    return _RUN_ID.fullmatch(text) is not None
