"""Suggestions for misspelled words."""

from collections.abc import Iterable
from functools import lru_cache


def format_suggestion(word: str, candidates: Iterable[str]) -> str:
    """Return a question that suggests the candidate most similar to ``word``; empty if there is none."""
    match = find_closest(word, candidates)
    return f"Did you mean '{match}'?" if match else ""


def find_closest(word: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate most similar to ``word``, ignoring case; None if no candidate is similar."""
    return _find_closest(word, tuple(candidates))


@lru_cache(maxsize=1_000)  # the same typo often occurs in many manifests
def _find_closest(word: str, candidates: tuple[str, ...]) -> str | None:
    return next(iter(find_nearest(word, candidates, limit=1)), None)


def format_alternatives(names: Iterable[str]) -> str:
    """Return the sorted names as a phrase for messages: ``a, b or c``."""
    sorted_names = sorted(names)
    return (
        sorted_names[0]
        if len(sorted_names) == 1
        else f"{', '.join(sorted_names[:-1])} or {sorted_names[-1]}"
        if sorted_names
        else "nothing"
    )


def find_nearest(word: str, candidates: Iterable[str], limit: int = 3) -> list[str]:
    """Return at most ``limit`` candidates similar to ``word``, the most similar first, ignoring case."""
    import difflib  # imported here because only invalid input needs it

    by_folded_name = {name.casefold(): name for name in candidates}
    return [
        by_folded_name[near] for near in difflib.get_close_matches(word.casefold(), by_folded_name, n=limit)
    ]
