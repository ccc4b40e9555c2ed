"""Texts that a rule looks for and that can never be there: it would allow everything, or nothing."""

from collections.abc import Callable, Iterator, Sequence

from kdeclare.core.policy_subjects import PolicyAction, is_text_map
from kdeclare.core.suggest import closest, did_you_mean
from kdeclare.policy.cel.errors import RuleProblem
from kdeclare.policy.cel.source import Token, closed, is_text, loops, tokens
from kdeclare.policy.cel.vocabulary import Vocabulary

_EQUAL = ("==", "!=")


def impossible(source: str, value: Callable[[str], str], vocabulary: Vocabulary) -> Iterator[RuleProblem]:
    """Texts that ``action`` or the elements of ``changed`` are held against and cannot be.

    value: what a literal text stands for.
    """
    pieces = [*_paired(tokens(source)), *[Token("", len(source))] * 2]
    variables = {loop.variable for loop in loops(pieces)}
    if "action" not in variables:
        for token in _held_against("action", pieces, 0, len(pieces)):
            yield from _no_action(value(token.text), token)
    if "changed" not in variables:
        for token in _looked_for(pieces):
            yield from _no_field(value(token.text), token, vocabulary)


def _paired(pieces: Sequence[Token]) -> Iterator[Token]:
    """With ``==`` and ``!=`` as one piece each."""
    skip = False
    for token, after in zip(pieces, [*pieces[1:], Token("", 0)], strict=True):
        if not skip:
            skip = token.text in "=!" and after.text == "="
            yield Token(token.text + "=", token.offset) if skip else token
        else:
            skip = False


def _held_against(name: str, pieces: Sequence[Token], begin: int, end: int) -> Iterator[Token]:
    """``name == 'a'``, ``'a' == name``, ``name in ['a', 'b']``, each as it stands alone."""
    for at in range(begin, end):
        before = pieces[at - 1].text if at else ""
        if pieces[at].text != name or before == ".":
            continue
        after = pieces[at + 1].text
        if after in _EQUAL and _alone(pieces, at + 2):
            yield pieces[at + 2]
        elif before in _EQUAL and after not in (".", "+", "[") and _alone(pieces, at - 2):
            yield pieces[at - 2]
        elif after == "in" and pieces[at + 2].text == "[":
            inside = range(at + 3, closed(pieces, at + 2))
            yield from (pieces[n] for n in inside if _alone(pieces, n))


def _looked_for(pieces: Sequence[Token]) -> Iterator[Token]:
    """``'a' in changed``, and what the elements are held against in a loop over it."""
    for at, token in enumerate(pieces):
        if token.text != "changed" or (at and pieces[at - 1].text == "."):
            continue
        follows = pieces[at + 1].text
        if at > 1 and pieces[at - 1].text == "in" and follows not in (".", "[") and _alone(pieces, at - 2):
            yield pieces[at - 2]
    for loop in loops(pieces):
        over = [token.text for token in pieces[max(loop.at - 3, 0) : loop.at]]
        if over[-2:] == ["changed", "."] and over[0] != ".":
            yield from _held_against(loop.variable, pieces, loop.begin, loop.end)


def _alone(pieces: Sequence[Token], at: int) -> bool:
    """Whether a text stands there and nothing is made of it."""
    if at < 0 or not pieces[at].text or not is_text(pieces[at]):
        return False
    return pieces[at + 1].text not in ("+", ".", "[") and (not at or pieces[at - 1].text != "+")


def _no_action(text: str, token: Token) -> Iterator[RuleProblem]:
    known = [str(action) for action in PolicyAction]
    if text not in known:
        hint = did_you_mean(text, known) or f"It is {', '.join(known[:-1])} or {known[-1]}."
        yield RuleProblem(f"'action' is never '{text}'.", hint, token.offset)


def _no_field(text: str, token: Token, vocabulary: Vocabulary) -> Iterator[RuleProblem]:
    words = vocabulary.words
    if words.has_field(text):
        return
    maps = [name for name, known in words.fields.items() if is_text_map(known)]
    whole = [name for name in words.fields if name not in maps]
    keyed = [name for name in maps if text in (words.fields[name].keys or dict)()]
    near = f"{keyed[0]}.{text}" if keyed else closest(text, whole)
    if near is None:
        hint = f"It has {', '.join(whole)} and {' and '.join(f'{name}.<key>' for name in maps)}."
        hint = hint if whole and maps else f"It has {', '.join(whole) or ' and '.join(maps)}."
    else:
        hint = f"Did you mean '{near}'?"
    yield RuleProblem(f"'{text}' is never in 'changed'.", hint, token.offset)
