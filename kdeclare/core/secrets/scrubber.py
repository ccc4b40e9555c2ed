"""Registers the secret values that this process knows, and removes them from output.

Messages of brokers, workers and libraries can contain secrets that kdeclare sent. Code that resolves a secret
therefore registers the value here. Output and journal entries are scrubbed right before they are written.
"""

import json
import re
from collections.abc import Mapping
from threading import Lock
from urllib.parse import quote, quote_plus

from kdeclare.core.jsontypes import JsonValue

SCRUBBED = "(sensitive)"
MIN_SECRET_LENGTH = 6
"""The minimum length of a value to scrub. Shorter values, such as `5`, often occur in ordinary text."""
_MIN_ANYWHERE_LENGTH = 12
"""The minimum length of a value that is also replaced within words.

Shorter values are replaced only as whole words.
"""


class Scrubber:
    """Replaces registered values in text, including escaped and quoted forms. Values stay registered."""

    def __init__(self) -> None:
        """Create a scrubber without registered values."""
        self._values: set[str] = set()
        self._forms: set[str] = set()
        self._lengths: dict[str, tuple[int, ...]] = {}
        self._lock = Lock()

    def register(self, value: str) -> None:
        """Register a secret value, and each line of a multi-line value (such as a PEM key)."""
        for text in {value, value.strip(), *value.splitlines()}:
            if len(text) < MIN_SECRET_LENGTH or text in self._values or text in SCRUBBED:
                continue
            with self._lock:  # several threads resolve secrets
                self._values.add(text)
                for form in _list_escaped_forms(text):
                    self._forms.add(form)
                    start = form[:MIN_SECRET_LENGTH]
                    lengths = {len(form), *self._lengths.get(start, ())}
                    self._lengths[start] = tuple(sorted(lengths, reverse=True))

    def scrub(self, text: str) -> str:
        """Replace all registered values in the text.

        The time this takes does not depend on the number of values.
        """
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
        """Scrub all strings within plain data."""
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
        """Forget all values; for tests only."""
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
    """Return the value and its escaped forms in URLs, JSON, Python and shells."""
    in_json = {json.dumps(text, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
    error_handler = "surrogateescape"  # environment variables may contain any bytes
    in_urls = {
        quote(text, errors=error_handler),
        quote(text, safe="", errors=error_handler),
        quote_plus(text, errors=error_handler),
    }
    in_quotes = {repr(text)[1:-1], text.replace("'", "'\"'\"'"), re.sub(r'(["\'\\])', r"\\\1", text)}
    return {text, *in_json, *in_urls, *in_quotes}


SCRUBBER = Scrubber()
"""The scrubber of this process."""
