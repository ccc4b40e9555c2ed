"""Changes of inputs that keep them well-formed often enough to get past the parser."""

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

import yaml

_NUMBERS = (
    0,
    -1,
    1,
    2**31,
    2**31 - 1,
    -(2**31) - 1,
    2**63,
    2**64,
    10**400,
    0.5,
    -0.0,
    1e308,
    float("inf"),
    float("nan"),
)
_TEXTS = (
    "",
    " ",
    "\0",
    "\x1b[31m",
    "\n",
    "\ud800",
    "é" * 10,
    "a" * 300,
    "..",
    "/",
    "${env.X}",
    "${file.x}",
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-14:00",
    "2026-02-30T00:00:00Z",
    "1",
    "١",
    "²",
    "-0",
    "1e999",
    "NaN",
    "null",
)
_LEAVES: tuple[Any, ...] = (None, True, False, [], {}, [[]], [None], {"": None}, *_NUMBERS, *_TEXTS)
_TOKENS = (
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b'"',
    b"\\",
    b"\n",
    b"\r",
    b"\t",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"- ",
    b"? ",
    b"&a ",
    b"*a",
    b"!!binary ",
    b"!!python/none ",
    b"<<: ",
    b"---\n",
    b"...\n",
    b"|\n",
    b">-\n",
    b"#",
    b"%YAML 9.9\n",
    b"\xe2\x80\xa8",
    b"\xc2\x85",
    b"\\ud800",
    b"1e999",
    b"NaN",
    b"0x",
    b"1_0",
    b"09",
    b"~",
    b"${",
    b"${env.X}",
    b"'",
    b"\\u",
    b"=",
    b"[" * 200,
    b"{a: " * 100,
    b"9" * 5000,
)


def mutate_bytes(data: bytes, seed: int) -> bytes:
    """Change one to four pieces of an input: bytes, tokens, and copies of other pieces."""
    chance, changed = random.Random(seed), bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(changed) + 1)
        length = chance.choice((1, 1, 2, 4, 8, 30))
        how = chance.randrange(6)
        if how == 0 and at < len(changed):
            changed[at] = chance.randrange(256)
        elif how == 1:
            del changed[at : at + length]
        elif how == 2:
            changed[at:at] = chance.choice(_TOKENS)
        elif how == 3:
            start = chance.randrange(len(changed) + 1)
            changed[at:at] = changed[start : start + length]
        elif how == 4:
            changed[at : at + length] = chance.choice(_TOKENS)
        elif chance.random() < 0.2:
            del changed[at:]
        else:
            changed[at : at + 1] = chance.randbytes(1)
    return bytes(changed)


def mutate_json(data: bytes, seed: int) -> bytes:
    """Change one to three values of a JSON document, or bytes if the input is not JSON."""
    chance = random.Random(seed)
    if chance.random() < 0.15:
        return mutate_bytes(data, seed)
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return mutate_bytes(data, seed)
    for _ in range(chance.randint(1, 3)):
        document = change_value(document, chance)
    try:
        return json.dumps(document).encode()
    except (ValueError, RecursionError):
        return data


def mutate_json_lines(data: bytes, seed: int) -> bytes:
    """Change one line, each of which is a JSON document, or the order of the lines."""
    chance, lines = random.Random(seed), data.split(b"\n")
    at = chance.randrange(len(lines))
    how = chance.randrange(8)
    if how == 0:
        del lines[at]
    elif how == 1:
        lines.insert(at, chance.choice(lines))
    elif how == 2:
        return mutate_bytes(data, seed)
    else:
        lines[at] = mutate_json(lines[at], seed)
    return b"\n".join(lines)


def make_yaml_mutator(words: Sequence[Any], others: Sequence[bytes]) -> Callable[[bytes, int], bytes]:
    """Return a function that changes one to three values of YAML documents, or bytes of half of the inputs.

    words: names of fields and values that have a meaning for the reader. others: inputs whose documents are
        added.
    """

    def mutate(data: bytes, seed: int) -> bytes:
        chance = random.Random(seed)
        if chance.random() < 0.5 or has_aliases(data):
            return mutate_bytes(data, seed)
        try:
            documents = list(yaml.load_all(data, _LOADER))
            if chance.random() < 0.05 and not has_aliases(other := chance.choice(others)):
                documents += yaml.load_all(other, _LOADER)
            for _ in range(chance.randint(1, 3)):
                documents = change_value(documents, chance, words)
            return yaml.dump_all(documents, Dumper=_DUMPER, sort_keys=False, allow_unicode=True).encode()
        except (ValueError, TypeError, RecursionError, yaml.YAMLError):
            return mutate_bytes(data, seed)

    return mutate


def has_aliases(data: bytes) -> bool:
    """Whether YAML can contain aliases, so that a small input can be a very large document."""
    return b"&" in data and b"*" in data


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def change_value(value: Any, chance: random.Random, words: Sequence[Any] = ()) -> Any:
    """Return a copy of a JSON value with one change somewhere inside. words: see `make_yaml_mutator`."""
    spots = list(_list_spots(value, lambda new: new, 0))
    old, replace = chance.choice(spots)
    if words and chance.random() < 0.5:
        return replace(_use_word(old, value, chance, words))
    return replace(_make_value(old, value, chance))


def _use_word(old: Any, document: Any, chance: random.Random, words: Sequence[Any]) -> Any:
    """Return a value with one of the words: as a new field, as the name of a field, or as the value."""
    if isinstance(old, dict):
        name = chance.choice(words)
        if old and chance.random() < 0.3:
            renamed = chance.choice(list(old))
            return {name if key == renamed else key: item for key, item in old.items()}
        return {**old, name: _make_value(None, document, chance)}
    if isinstance(old, list):
        return [*old, chance.choice(words)]
    return chance.choice(words)


def _make_value(old: Any, document: Any, chance: random.Random) -> Any:
    how = chance.randrange(6)
    if how == 0:
        return chance.choice(list(_list_spots(document, lambda new: new, 0)))[0]
    if how == 1 and isinstance(old, dict) and old:
        key = chance.choice(list(old))
        return {name: item for name, item in old.items() if name != key}
    if how == 2 and isinstance(old, dict):
        return {**old, chance.choice((*_TEXTS, *old)): chance.choice(_LEAVES)}
    if how == 3 and isinstance(old, list) and old:
        at = chance.randrange(len(old))
        return [*old[:at], *old[at + 1 :]] if chance.random() < 0.5 else [*old, old[at]]
    if how == 4 and isinstance(old, str):
        return chance.choice((old + chance.choice(_TEXTS), old[:-1], old[1:], old.upper(), old * 2))
    if how == 5 and isinstance(old, int | float):
        return chance.choice((old + 1, old - 1, str(old), *_NUMBERS))
    return chance.choice(_LEAVES)


_Replace = Callable[[Any], Any]


def _list_spots(value: Any, replace: _Replace, depth: int) -> list[tuple[Any, _Replace]]:
    """Return all values in a document, each with a function that puts another value in its place."""
    spots = [(value, replace)]
    if depth > 40:
        return spots
    if isinstance(value, dict):
        for key, item in value.items():
            put = lambda new, key=key: replace({**value, key: new})  # noqa: E731
            spots += _list_spots(item, put, depth + 1)
    elif isinstance(value, list):
        for at, item in enumerate(value[:200]):
            put_at = lambda new, at=at: replace([*value[:at], new, *value[at + 1 :]])  # noqa: E731
            spots += _list_spots(item, put_at, depth + 1)
    return spots
