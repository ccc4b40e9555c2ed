"""Composed nodes to plain data: scalars resolved, references substituted, mappings checked.

Plain scalars mean what YAML 1.2's core schema says. PyYAML, Go's YAML 2 and many editors follow 1.1, newer
tools 1.2: a scalar that the two read differently is refused, as half of the readers of a manifest would take
it for something that it is not.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from yaml.nodes import MappingNode, Node, ScalarNode

from kdeclare.core.diagnostics import Diagnostic, error
from kdeclare.core.frozen import dataclass
from kdeclare.core.secrets.secret_refs import Referenced
from kdeclare.manifests.syntax.nodes import place
from kdeclare.manifests.syntax.substitution import Scope, Unresolved, has_reference, is_single, substitute

_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_BOOLS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_OLD_TRUE = frozenset(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"))
_OLD_BOOLS = _OLD_TRUE | frozenset(("n", "N", "no", "No", "NO", "off", "Off", "OFF"))

_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_SPECIAL = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")

_LEADING_ZERO = re.compile(r"[-+]?0[0-9]+(?:\.[0-9]*)?")
_UNDERSCORES = re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?)")
_BINARY = re.compile(r"[-+]?0b[01]+")
_SEXAGESIMAL = re.compile(r"[-+]?(?:[1-9][0-9_]*(?::[0-5]?[0-9])+|[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*)")
_TIMESTAMP = re.compile(
    r"\d{4}-\d\d-\d\d|\d{4}-\d\d?-\d\d?(?:[Tt]|[ \t]+)\d\d?:\d\d:\d\d(?:\.\d*)?"
    r"(?:[ \t]*(?:Z|[-+]\d\d?(?::?\d\d)?))?"
)

_MAX_DIGITS = 400  # Python refuses to convert thousands of them, and no config has as many


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """A plain scalar that YAML 1.1 and 1.2 read differently.

    what: what is odd about it, as the end of a sentence.
    instead: what to write, as far as it can be said without repeating the scalar.
    exact: the same, with the number that was probably meant.
    shown: whether the scalar is one of a few words, and so cannot be a secret.
    """

    what: str
    instead: str
    exact: str
    shown: bool = False


Meaning = tuple[Any, str | None]
"""The value, and the text that a Kafka config with this value gets (None is null)."""


def resolve(text: str) -> Meaning | Ambiguous:
    """What an untagged plain scalar stands for."""
    if text in _NULLS:
        return None, None
    if text in _BOOLS:
        return _BOOLS[text], text.lower()
    if text in _OLD_BOOLS:
        meant = "true" if text in _OLD_TRUE else "false"
        instead = f"Write {meant}, or put it in quotes if the text is meant."
        return Ambiguous("is a boolean in YAML 1.1 and text in YAML 1.2", instead, instead, shown=True)
    if text[0] not in "-+.0123456789":
        return text, text
    return _resolve_number(text)


def _resolve_number(text: str) -> Meaning | Ambiguous:
    if len(text) > _MAX_DIGITS:
        return text, text
    if _INT.fullmatch(text):
        return int(text), text
    if _FLOAT.fullmatch(text):
        return float(text), text
    if _BASED.fullmatch(text):
        return int(text, 0), text
    if _SPECIAL.fullmatch(text):
        return float(text.replace(".", "")), text
    return _ambiguous_number(text) or (text, text)


def _ambiguous_number(text: str) -> Ambiguous | None:
    quote = "or put it in quotes if the text is meant."
    if _LEADING_ZERO.fullmatch(text):
        plain = text.lstrip("+-").lstrip("0")
        sign = "-" if text.startswith("-") else ""
        plain = f"{sign}{plain if plain[:1].isdigit() else '0' + plain}"
        return Ambiguous(
            "is octal in YAML 1.1 and decimal in YAML 1.2",
            f"Write it without the leading zero, {quote}",
            f"Write {plain}, {quote}",
        )
    if _BINARY.fullmatch(text):
        return Ambiguous(
            "is a binary number in YAML 1.1 and text in YAML 1.2",
            f"Write it as a decimal number, {quote}",
            f"Write {int(text, 0)}, {quote}",
        )
    if "_" in text and _UNDERSCORES.fullmatch(text):
        return Ambiguous(
            "is a number in YAML 1.1 and text in YAML 1.2",
            f"Write it without underscores, {quote}",
            f"Write {text.replace('_', '')}, {quote}",
        )
    if _SEXAGESIMAL.fullmatch(text):
        instead = "Put it in quotes, or write the number that is meant."
        return Ambiguous("is a number of base 60 in YAML 1.1 and text in YAML 1.2", instead, instead)
    if _TIMESTAMP.fullmatch(text):
        instead = "Put it in quotes."
        return Ambiguous("is a date in YAML 1.1 and text in YAML 1.2", instead, instead)
    return None


VALUE: Final = 0
"""Scalars become what they mean: null, booleans, numbers, text."""
TEXT: Final = 1
"""Scalars stay text as written (null stays null)."""
KAFKA: Final = 2
"""The same; and as the text can be a secret, no message repeats it."""


class Modes:
    """How a value is read that is a mapping or a list.

    mode: of scalars in it. scalars: of fields whose scalars are read in another mode. fields: of what is a
    mapping or a list itself, by key. rest: of what is one under any other key, or in a list.
    """

    __slots__ = ("fields", "mode", "rest", "scalars")

    def __init__(
        self, mode: int, fields: Mapping[str | int, "Modes"] | None = None, rest: "Modes | None" = None
    ) -> None:
        self.mode = mode
        self.scalars: Mapping[str | int, int] | None = None
        self.fields: Mapping[str | int, Modes] = fields or {}
        self.rest: Modes = rest or self

    def mode_of(self, key: str | int) -> int:
        """Return the mode of a scalar under a key."""
        return self.mode if self.scalars is None else self.scalars.get(key, self.mode)

    def below(self, key: str | int) -> "Modes":
        """Return how a mapping or a list under a key is read."""
        return self.fields.get(key, self.rest)

    @property
    def is_text(self) -> bool:
        """Whether every scalar in it, at any depth, stays text."""
        return self in (UNIFORM[TEXT], UNIFORM[KAFKA])


UNIFORM: Final = (Modes(VALUE), Modes(TEXT), Modes(KAFKA))
"""By mode: all scalars at any depth are read in it."""


def modes_by_name(table: Mapping[str | int, int]) -> Modes:
    """Return how to read documents in which fields of these names have a mode at any depth."""
    found = [Modes(mode) for mode in (VALUE, TEXT, KAFKA)]
    fields = {name: found[mode] for name, mode in table.items()}
    for modes in found:
        modes.fields = fields
    return found[VALUE]


_PROJECT_MODES: Final = modes_by_name(
    {"metadata": TEXT, "labels": TEXT, "configs": KAFKA, "clientConfig": KAFKA}
)
"""Of projects, and of tests of policies. Manifests are read as their kind's model has it."""

_STR_TAG = "tag:yaml.org,2002:str"
_NATIVE_TAGS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq", _STR_TAG)
_CACHED = 20_000


class Broken:
    """What a scalar with an error of its own is read as, so that nothing is said of it twice."""

    def __repr__(self) -> str:
        return "?"


BROKEN: Final = Broken()


def holds_broken(value: Any) -> bool:
    """Whether something in a value could not be read."""
    if isinstance(value, dict):
        value = list(value.values())
    return any(map(holds_broken, value)) if isinstance(value, list) else value is BROKEN


class Reader:
    """Reads documents one after another.

    scope: what references mean; None leaves them as they are.
    modes: how documents are read of which nothing else is said.
    problems: of the documents read since it was last cleared.
    broken: whether something in them could not be read, apart from texts for Kafka, which are left out.
    shows: whether messages may repeat the scalar of a node. Where nothing says so, it may be a secret.
    """

    def __init__(self, scope: Scope | None, modes: Modes = _PROJECT_MODES) -> None:
        self.scope = scope
        self.problems: list[Diagnostic] = []
        self.broken = False
        self.shows: Callable[[Node], bool] = lambda _: False
        self._meanings: dict[str, tuple[Any, str | None, str | None]] = {}  # indexed by mode
        self._keys: dict[str, str | int] = {}
        self._modes = modes

    def read(self, node: Node, modes: Modes | None = None) -> Any:
        """The data of a node; a scalar alone is read in the mode of scalars."""
        modes = modes or self._modes
        if node.__class__ is ScalarNode:
            return self._scalar(node, modes.mode)
        if node.tag is not None:
            self._check_tag(node)
        return self._mapping(node, modes) if node.__class__ is MappingNode else self._sequence(node, modes)

    def peek(self, node: Node) -> Any:
        """The text of a node, or what else it is, without a word about what is wrong with it."""
        return self._aside(node, UNIFORM[TEXT])[0]

    def read_aside(self, node: Node, modes: Modes) -> tuple[Any, list[Diagnostic]]:
        """The data of a node and what is wrong with it, apart from the document that is being read."""
        return self._aside(node, modes)

    def wrong_with(self, node: Node) -> list[Diagnostic]:
        """What is wrong with a node, for whoever does not read it now."""
        return self._aside(node, self._modes)[1]

    def duplicates(self, node: Node) -> list[Diagnostic]:
        """The keys that stand twice in one of the mappings of a node."""
        return [problem for problem in self.wrong_with(node) if problem.code == "duplicate-key"]

    def _aside(self, node: Node, modes: Modes) -> tuple[Any, list[Diagnostic]]:
        said, broken = len(self.problems), self.broken
        value = self.read(node, modes)
        found = self.problems[said:]
        del self.problems[said:]
        self.broken = broken
        return value, found

    def _mapping(self, node: Node, modes: Modes) -> dict[str | int, Any]:
        # one pass over all nodes of all manifests: the common cases stay in this loop
        meanings, keys = self._meanings, self._keys
        mode, scalars, fields, rest = modes.mode, modes.scalars, modes.fields, modes.rest
        data: dict[str | int, Any] = {}
        for k, v in node.value:
            if k.__class__ is ScalarNode and not k.style and k.tag is None and k.value in keys:
                key = keys[k.value]
            elif (found := self._key(k)) is not None:
                key = found
            else:
                continue
            if v.__class__ is ScalarNode:
                text = v.value
                own = mode if scalars is None else scalars.get(key, mode)
                if not v.style and v.tag is None and text in meanings:
                    data[key] = meanings[text][own]
                    continue
                value = self._scalar(v, own)
                if value is BROKEN and own:
                    continue
                data[key] = value
            else:
                data[key] = self.read(v, fields.get(key, rest))
        if len(data) < len(node.value):
            self._check_duplicates(node.value)
        return data

    def _sequence(self, node: Node, modes: Modes) -> list[Any]:
        mode, rest = modes.mode, modes.rest
        values = [
            self._scalar(item, mode) if item.__class__ is ScalarNode else self.read(item, rest)
            for item in node.value
        ]
        return [value for value in values if value is not BROKEN] if mode else values

    def _scalar(self, node: ScalarNode, mode: int) -> Any:
        text: str = node.value
        if node.tag is not None:
            self._check_tag(node)
        if has_reference(text) and self.scope is not None:
            return self._substituted(node, mode, self.scope)
        if node.style or node.tag == _STR_TAG:
            return text
        meaning = resolve(text)
        if isinstance(meaning, Ambiguous):
            return self._ambiguous(node, meaning, mode)
        if len(self._meanings) < _CACHED and not has_reference(text):
            self._meanings[text] = (*meaning, meaning[1])
        return meaning[1 if mode else 0]

    def _substituted(self, node: ScalarNode, mode: int, scope: Scope) -> Any:
        try:
            value = substitute(node.value, scope, as_text=bool(mode))
        except Unresolved as e:
            return self._fail(replace(e.diagnostic, place=place(node)), mode)
        if mode or node.style or not isinstance(value, Referenced) or not is_single(node.value):
            return value
        # as an environment holds only text, ``partitions: ${env.N}`` is read as if N's text stood there
        meaning = resolve(value)
        if isinstance(meaning, Ambiguous) or not isinstance(meaning[0], int | float):
            return value
        return meaning[0]

    def _ambiguous(self, node: ScalarNode, meaning: Ambiguous, mode: int) -> Any:
        shown = meaning.shown or (mode != KAFKA and self.shows(node))
        subject = f"'{node.value}'" if shown else "This value"
        return self._fail(
            error(
                "ambiguous-scalar",
                "Plain scalar with two meanings",
                f"{subject} {meaning.what}.",
                hint=meaning.exact if shown else meaning.instead,
                place=place(node),
            ),
            mode,
        )

    def _fail(self, problem: Diagnostic, mode: int) -> Any:
        self.problems.append(problem)
        if not mode:
            self.broken = True
        return BROKEN

    def _key(self, node: Node) -> str | int | None:
        """A key that was not met before; None where it is none, which is a problem."""
        if not isinstance(node, ScalarNode):
            self._bad_key(node, "is a list or a mapping")
            return None
        text: str = node.value
        if node.tag is not None:
            self._check_tag(node)
        if node.style or node.tag == _STR_TAG:
            return text
        if text == "<<":
            self.problems.append(
                error(
                    "merge-key",
                    "Merge keys are not supported",
                    "'<<' belongs to YAML 1.1; YAML 1.2 has no merge keys.",
                    hint="Write the fields out, or use an overlay.",
                    place=place(node),
                )
            )
            return None
        meaning = resolve(text)
        if isinstance(meaning, Ambiguous):
            self._bad_key(node, f"'{text}' {meaning.what}")
            return None
        value = meaning[VALUE]
        if isinstance(value, bool | float) or value is None:
            self._bad_key(node, "is null" if value is None else f"'{text}' is no text")
            return None
        key: str | int = value
        if node.tag is None and len(self._keys) < _CACHED:
            self._keys[text] = key
        return key

    def _bad_key(self, node: Node, what: str) -> None:
        self.problems.append(
            error(
                "bad-key",
                "Key is no text",
                f"The key {what}.",
                hint="Put it in quotes if the text is meant.",
                place=place(node),
            )
        )

    def _check_tag(self, node: Node) -> None:
        if node.tag in _NATIVE_TAGS:
            return
        self.problems.append(
            error(
                "unsupported-tag",
                "YAML tags are not supported",
                "A tag ('!…') says nothing here.",
                hint="Take the tag out; put the value in quotes if text is meant.",
                place=place(node),
            )
        )

    def _check_duplicates(self, pairs: Sequence[tuple[Node, Node]]) -> None:
        seen: dict[str | int, Node] = {}
        for key, _ in pairs:
            if not isinstance(key, ScalarNode):
                continue
            text: str = key.value
            first = seen.setdefault(text if key.style else self._keys.get(text, text), key)
            if first is not key:
                self.problems.append(
                    error(
                        "duplicate-key",
                        "Key given twice",
                        f"'{key.value}' stands in this mapping already, in line {place(first).line}.",
                        hint="Take one of the two out.",
                        place=place(key),
                        subject=key.value,
                    )
                )
