"""Phrases that texts of this project do not use, each with what to write in its place."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from scripts.prose.texts import Text

PHRASES: dict[str, str] = {
    r"stands? in(?! for)\b|standing in(?! for)\b|stood in(?! for)\b": "is in",
    r"(?:is|are|was|were|be|been|being) told\b|told of\b": "is reported, is printed",
    r"\bsomebody\b|\bnobody\b|\bwhoever\b|\bwhom\b|\bwho wants\b": "users, another client, the person who",
    r"\banew\b": "again",
    r"\bmended\b|\bmend\b": "fixed, repaired",
    r"\bto be had\b|\bcan be had\b|\bis to be had\b": "available",
    r"\bgone about\b|\bgo about\b|\bgoes about\b": "done, executed",
    r"\blets? (?:\w+ )?through\b|\bletting through\b": "allow, accept",
    r"\bhas it that\b": "says",
    r"\bas it is then\b": "as of that moment",
    r"\ball the same\b": "anyway, even so",
    r"\bby hand\b(?!\.)": "ad hoc, manually",
    r"\btidy\b|\btidied\b|\btidies\b|\btidying\b": "clean up",
    r"\b(?:do|does|did) not answer any ?more\b": "no longer responds",
    r"\bcomes? to (?:its|their) end\b|\bcame to (?:its|their) end\b": "ends, finishes",
    r"\bas the port says\b": "name the contract",
    r"\bwhat is (?:not )?there\b": "existing, missing",
    r"\bsee to it\b": "ensure",
    r"(?<!there )\bis no (?:drift|move|reason|topic|error|way|need|file|name|number|longer a)\b": "is not a",
    r"\bare no (?:drift|moves|topics|files|names)\b": "are not",
    r"\bof which (?:one|some|several|few) \w+s? (?:may|can)\b": "rewrite the sentence",
    r"\bthat is what .{1,30} is for\b": "say the purpose directly",
}

TERMS: dict[str, str] = {
    r"\bleftovers?\b": "pending cleanup (docs/glossary.md)",
    r"\bunder way\b": "in progress",
    r"\bjudges?\b|\bjudged\b|\bjudging\b": "evaluate (a policy evaluates a change)",
    r"\bverbs?\b(?= of (?:an? )?operation)|\boperation verbs?\b": "operation type",
    r"\bcolours?\b|\bcoloured\b|\bbehaviours?\b|\bgrey\b|\bfavour\w*\b": "American spelling",
}
"""Other words for terms of the glossary."""

_COMPILED = {re.compile(pattern, re.IGNORECASE): advice for pattern, advice in (PHRASES | TERMS).items()}
_QUOTED = re.compile(r"``[^`]*``|`[^`]*`|'[\w.-]+'|\]\([^)]*\)")


@dataclass(frozen=True)
class PhraseFinding:
    """A phrase in a text, and what to write in its place."""

    text: Text
    phrase: str
    advice: str

    def __str__(self) -> str:
        return f"{self.text.file}:{self.text.line}: '{self.phrase}' (write: {self.advice})"


def find_phrases(texts: Iterable[Text]) -> Iterator[PhraseFinding]:
    """Yield every phrase of the list in the texts; names in quotes and targets of links do not count."""
    for text in texts:
        plain = _QUOTED.sub("``", text.text)
        for pattern, advice in _COMPILED.items():
            for match in pattern.finditer(plain):
                yield PhraseFinding(text, match.group(0), advice)
