"""What a misspelt word was probably meant to be."""

from collections.abc import Iterable
from functools import lru_cache


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A question that names the nearest known word, or nothing where none is near."""
    near = closest(word, known)
    return f"Did you mean '{near}'?" if near else ""


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is most like ``word``, upper and lower case being alike."""
    return _closest(word, tuple(known))


@lru_cache(maxsize=1_000)  # one mistake is often made in many manifests
def _closest(word: str, known: tuple[str, ...]) -> str | None:
    import difflib  # only bad input pays for it

    by_folded = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(word.casefold(), by_folded, n=1)
    return by_folded[near[0]] if near else None


def one_of(names: Iterable[str]) -> str:
    """A sorted enumeration for messages: ``a, b or c``."""
    words = sorted(names)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}" if words else "nothing"


def nearest(word: str, known: Iterable[str], most: int = 3) -> list[str]:
    """The known words that are most like ``word``, the nearest first; upper and lower case are alike."""
    import difflib

    by_folded = {name.casefold(): name for name in known}
    return [by_folded[near] for near in difflib.get_close_matches(word.casefold(), by_folded, n=most)]
