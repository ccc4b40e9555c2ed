"""Texts about the impact of changes, without the times in them."""

import re

_KEPT_SINCE = re.compile(r"(?<=all records since )\d{4}-\d\d-\d\d \d\d:\d\d UTC")


def hide_times(text: str) -> str:
    """Return the text with ``TIME`` instead of the time since which records are kept."""
    return _KEPT_SINCE.sub("TIME", text)
