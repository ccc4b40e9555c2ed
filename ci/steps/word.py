"""One word for several texts, of characters that markers and names of artifacts can have.

    python3 word.py TEXT …

Other texts, or others in another order, have another word. An empty one at the beginning is left out.
"""

import sys
from urllib.parse import quote


def word(texts: list[str]) -> str:
    """``kafka/`` and ``eu`` as ``kafka%2F@eu``: no sign of joining is left in the parts."""
    parts = texts[1:] if not texts[0] else texts
    return "@".join(quote(text, safe="", errors="surrogateescape") for text in parts)


if __name__ == "__main__":
    print(word(sys.argv[1:]))
