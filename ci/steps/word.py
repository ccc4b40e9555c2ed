"""Join several texts into one word of characters that markers and names of artifacts can have.

    python3 word.py TEXT …

Different texts, or the same texts in another order, give different words. An empty first text is left out.
"""

import sys
from urllib.parse import quote


def word(texts: list[str]) -> str:
    """Return ``kafka%2F@eu`` for ``kafka/`` and ``eu``: the parts never contain the separator."""
    parts = texts[1:] if not texts[0] else texts
    return "@".join(quote(text, safe="", errors="surrogateescape") for text in parts)


if __name__ == "__main__":
    print(word(sys.argv[1:]))
