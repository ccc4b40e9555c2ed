"""Whole numbers in text from untrusted sources."""

import re

_WHOLE_NUMBER = re.compile(r"[0-9]{1,30}")


def parse_whole_number(text: str) -> int | None:
    """Parse ASCII digits. Return None for any other text, and for more than 30 digits.

    Kafka has no numbers with that many digits. Python refuses to convert more than 4,300 digits.
    """
    return int(text) if _WHOLE_NUMBER.fullmatch(text) else None
