"""Known secret values of this process, and how they are taken out of text.

Brokers, workers and libraries repeat what they were sent. What resolves a secret registers it here; the last
common places before output and the journal scrub their text.
"""

import json
import re
from collections.abc import Mapping
from threading import Lock
from urllib.parse import quote, quote_plus

from kdeclare.core.jsontypes import JsonValue

SCRUBBED = "(sensitive)"
MIN_SECRET_LENGTH = 6
"""A shorter value is left alone: it cannot be told from ordinary text, and `5` would be in every line."""
_MIN_ANYWHERE_LENGTH = 12
"""A value of this length is replaced anywhere; a shorter one only where it is a word of its own."""


class Scrubber:
    """Replaces registered values, also where they are escaped or quoted. It only ever grows."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._values: set[str] = set()
        self._forms: set[str] = set()
        self._lengths: dict[str, tuple[int, ...]] = {}
        self._lock = Lock()

    def register(self, value: str) -> None:
        """Remember a secret value, and each line of one that has several (a key in PEM)."""
        for text in {value, value.strip(), *value.splitlines()}:
            if len(text) < MIN_SECRET_LENGTH or text in self._values or text in SCRUBBED:
                continue
            with self._lock:  # secrets are resolved by several threads
                self._values.add(text)
                for form in _list_escaped_forms(text):
                    self._forms.add(form)
                    start = form[:MIN_SECRET_LENGTH]
                    lengths = {len(form), *self._lengths.get(start, ())}
                    self._lengths[start] = tuple(sorted(lengths, reverse=True))

    def scrub(self, text: str) -> str:
        """The text without any value that is known; the time does not depend on how many are."""
        lengths_by_start = self._lengths
        if not lengths_by_start or len(text) < MIN_SECRET_LENGTH:
            return text
        pieces: list[str] = []
        end = 0
        for position in range(len(text) - MIN_SECRET_LENGTH + 1):
            lengths = (
                lengths_by_start.get(text[position : position + MIN_SECRET_LENGTH])
                if position >= end
                else None
            )
            if lengths is None:
                continue
            length = next((n for n in lengths if self._is_value_at(text, position, n)), None)
            if length is not None:
                pieces += (text[end:position], SCRUBBED)
                end = position + length
        return "".join((*pieces, text[end:])) if pieces else text

    def scrub_json(self, value: JsonValue) -> JsonValue:
        """The same for all texts within plain data."""
        if not self._lengths:
            return value
        if isinstance(value, str):
            return self.scrub(value)
        if isinstance(value, Mapping):
            return {key: self.scrub_json(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.scrub_json(item) for item in value]
        return value

    def clear(self) -> None:
        """Forget all values; for tests."""
        self._values.clear()
        self._forms.clear()
        self._lengths.clear()

    def _is_value_at(self, text: str, start: int, length: int) -> bool:
        end = start + length
        if text[start:end] not in self._forms:
            return False
        neighbors = text[start - 1 : start] + text[end : end + 1]
        return length >= _MIN_ANYWHERE_LENGTH or not any(c.isalnum() or c in "_-" for c in neighbors)


def _list_escaped_forms(text: str) -> set[str]:
    """The text as URLs, JSON, Python and shells write it."""
    in_json = {json.dumps(text, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
    error_handler = "surrogateescape"  # a variable of the environment may hold any bytes
    in_urls = {
        quote(text, errors=error_handler),
        quote(text, safe="", errors=error_handler),
        quote_plus(text, errors=error_handler),
    }
    in_quotes = {repr(text)[1:-1], text.replace("'", "'\"'\"'"), re.sub(r'(["\'\\])', r"\\\1", text)}
    return {text, *in_json, *in_urls, *in_quotes}


SCRUBBER = Scrubber()
"""The one of this process."""
