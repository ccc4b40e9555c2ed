"""Check, list or draw the texts of the project.

python -m scripts.prose [PATH...]            list phrases and diagnostics to change
python -m scripts.prose --list PATH...       list all texts of files and folders
python -m scripts.prose --draw SEED [COUNT]  draw texts to read, see rubric.md
"""

import random
import sys

from scripts.prose.diagnostics import check_diagnostics
from scripts.prose.phrases import find_phrases
from scripts.prose.texts import TextKind, collect_texts

DRAWN = (TextKind.DIAGNOSTIC, TextKind.DOCSTRING, TextKind.MESSAGE, TextKind.PAGE)
_MIN_WORDS = 4


def draw(seed: int, count: int) -> None:
    """Print a sample, in equal parts of diagnostics, docstrings, other messages and help, and pages."""
    chosen = random.Random(seed)
    texts = [text for text in collect_texts() if len(text.text.split()) >= _MIN_WORDS]
    number = 0
    for kind in DRAWN:
        candidates = sorted(
            text for text in texts if text.kind is kind and text.file.startswith(_list_paths(kind))
        )
        for text in sorted(chosen.sample(candidates, count // len(DRAWN))):
            number += 1
            context = f"[{text.context}]\n\n" if text.context else ""
            print(f"## {number}. {kind}, {text.file}:{text.line}\n\n{context}{text.text.strip()}\n")


def _list_paths(kind: TextKind) -> tuple[str, ...]:
    return ("README", "CHANGELOG", "docs", "examples") if kind is TextKind.PAGE else ("kdeclare",)


def main(arguments: list[str]) -> int:
    """Run one of the three commands."""
    if arguments[:1] == ["--draw"]:
        draw(int(arguments[1]), int(arguments[2]) if len(arguments) > 2 else 100)
        return 0
    if arguments[:1] == ["--list"]:
        for text in collect_texts():
            if text.file.startswith(tuple(arguments[1:])):
                print(f"{text.file}:{text.line} [{text.kind}] {text.text.strip()}\n")
        return 0
    paths = tuple(arguments) or ("",)
    problems = [
        *(str(finding) for finding in find_phrases(collect_texts()) if finding.text.file.startswith(paths)),
        *(problem for problem in check_diagnostics() if problem.startswith(paths)),
    ]
    print("\n".join(problems))
    print(f"{len(problems)} places", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
