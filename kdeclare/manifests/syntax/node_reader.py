"""Convert YAML nodes to plain data: resolve scalars, substitute references, and check mappings.

Plain scalars are read according to the core schema of YAML 1.2. PyYAML, Go's YAML 2 and many editors follow
YAML 1.1; newer tools follow YAML 1.2. kdeclare refuses a scalar that the two versions read differently,
because other tools could misread the manifest.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from yaml.nodes import MappingNode, Node, ScalarNode

from kdeclare.core.diagnostics import Diagnostic, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.secrets.secret_refs import Referenced
from kdeclare.manifests.syntax.nodes import get_position
from kdeclare.manifests.syntax.substitution import (
    ReferenceContext,
    UnresolvedReference,
    has_reference,
    is_single_reference,
    substitute,
)

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

_MAX_DIGITS = 400  # Python refuses to convert thousands of digits, and no config has that many


@dataclass(frozen=True, slots=True)
class AmbiguousScalar:
    """A plain scalar that YAML 1.1 and 1.2 read differently.

    what: the predicate of a sentence that says how the two versions read the scalar.
    hint: how to correct the scalar, without repeating its value.
    exact: how to correct the scalar, with the number that was probably intended.
    shown: whether messages may always show the scalar. True for words such as ``on``, which are not secrets.
    """

    what: str
    hint: str
    exact: str
    shown: bool = False


Meaning = tuple[Any, str | None]
"""The value of a scalar, and the string for a Kafka config with this value (None for null)."""


def parse_scalar(text: str) -> Meaning | AmbiguousScalar:
    """Interpret a plain scalar without a tag according to YAML 1.2."""
    if text in _NULLS:
        return None, None
    if text in _BOOLS:
        return _BOOLS[text], text.lower()
    if text in _OLD_BOOLS:
        boolean_text = "true" if text in _OLD_TRUE else "false"
        hint = f"Write {boolean_text}, or put it in quotes to keep it as a string."
        return AmbiguousScalar("is a boolean in YAML 1.1 and a string in YAML 1.2", hint, hint, shown=True)
    if text[0] not in "-+.0123456789":
        return text, text
    return _parse_number(text)


def _parse_number(text: str) -> Meaning | AmbiguousScalar:
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
    return _find_ambiguous_number(text) or (text, text)


def _find_ambiguous_number(text: str) -> AmbiguousScalar | None:
    quote_hint = "or put it in quotes to keep it as a string."
    if _LEADING_ZERO.fullmatch(text):
        number_text = text.lstrip("+-").lstrip("0")
        sign = "-" if text.startswith("-") else ""
        number_text = f"{sign}{number_text if number_text[:1].isdigit() else '0' + number_text}"
        return AmbiguousScalar(
            "is octal in YAML 1.1 and decimal in YAML 1.2",
            f"Write it without the leading zero, {quote_hint}",
            f"Write {number_text}, {quote_hint}",
        )
    if _BINARY.fullmatch(text):
        return AmbiguousScalar(
            "is a binary number in YAML 1.1 and a string in YAML 1.2",
            f"Write it as a decimal number, {quote_hint}",
            f"Write {int(text, 0)}, {quote_hint}",
        )
    if "_" in text and _UNDERSCORES.fullmatch(text):
        return AmbiguousScalar(
            "is a number in YAML 1.1 and a string in YAML 1.2",
            f"Write it without underscores, {quote_hint}",
            f"Write {text.replace('_', '')}, {quote_hint}",
        )
    if _SEXAGESIMAL.fullmatch(text):
        hint = "Put it in quotes to keep it as a string, or write a decimal number."
        return AmbiguousScalar("is a base-60 number in YAML 1.1 and a string in YAML 1.2", hint, hint)
    if _TIMESTAMP.fullmatch(text):
        hint = "Put it in quotes."
        return AmbiguousScalar("is a date in YAML 1.1 and a string in YAML 1.2", hint, hint)
    return None


VALUE: Final = 0
"""The mode in which scalars become YAML values: null, booleans, numbers and strings."""
TEXT: Final = 1
"""The mode in which scalars remain strings exactly as written. Null remains null."""
KAFKA: Final = 2
"""The mode for possible secrets: like TEXT, but messages never show the strings."""


class Modes:
    """The modes for reading a mapping or a list.

    mode: the default mode for the scalars in the mapping or list.
    scalars: the modes of scalars that are not read in the default mode, by key.
    fields: the modes for nested mappings and lists, by key.
    rest: the modes for mappings and lists whose key is not in ``fields``, and for mappings and lists in a
        list.
    """

    __slots__ = ("fields", "mode", "rest", "scalars")

    def __init__(
        self, mode: int, fields: Mapping[str | int, "Modes"] | None = None, rest: "Modes | None" = None
    ) -> None:
        self.mode = mode
        self.scalars: Mapping[str | int, int] | None = None
        self.fields: Mapping[str | int, Modes] = fields or {}
        self.rest: Modes = rest or self

    def get_mode(self, key: str | int) -> int:
        """Return the mode for reading a scalar under a key."""
        return self.mode if self.scalars is None else self.scalars.get(key, self.mode)

    def get_modes_below(self, key: str | int) -> "Modes":
        """Return the modes for reading a mapping or a list under a key."""
        return self.fields.get(key, self.rest)

    @property
    def is_text(self) -> bool:
        """Whether every scalar in the value, at any depth, remains a string."""
        return self in (UNIFORM[TEXT], UNIFORM[KAFKA])


UNIFORM: Final = (Modes(VALUE), Modes(TEXT), Modes(KAFKA))
"""For each mode, the `Modes` object that reads every scalar in that mode, at any depth."""


def build_modes_by_name(table: Mapping[str | int, int]) -> Modes:
    """Return the modes for documents in which fields with these names, at any depth, have a fixed mode."""
    uniform_modes = [Modes(mode) for mode in (VALUE, TEXT, KAFKA)]
    fields = {name: uniform_modes[mode] for name, mode in table.items()}
    for modes in uniform_modes:
        modes.fields = fields
    return uniform_modes[VALUE]


_PROJECT_MODES: Final = build_modes_by_name(
    {"metadata": TEXT, "labels": TEXT, "configs": KAFKA, "clientConfig": KAFKA}
)
"""The modes for project files and policy tests. For manifests, the model of the kind defines the modes."""

_STR_TAG = "tag:yaml.org,2002:str"
_NATIVE_TAGS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq", _STR_TAG)
_CACHED = 20_000


class BrokenScalar:
    """A placeholder for the value of an unreadable scalar, so that the scalar is reported only once."""

    def __repr__(self) -> str:
        return "?"


BROKEN: Final = BrokenScalar()


def has_broken_value(value: Any) -> bool:
    """Return whether a value is, or contains at any depth, a scalar that could not be read."""
    if isinstance(value, dict):
        value = list(value.values())
    return any(map(has_broken_value, value)) if isinstance(value, list) else value is BROKEN


class NodeReader:
    """Reads documents one after another.

    context: resolves references; if None, references are left as written.
    modes: the default modes for reading documents.
    problems: the problems in all documents that were read since the list was last cleared.
    broken: whether the data contains an unreadable scalar. Unreadable scalars in string fields do not count,
        because the data omits them.
    shows: a function that returns whether messages may quote the scalar of a node. By default, messages quote
        no scalars, because a scalar could be a secret.
    """

    def __init__(self, context: ReferenceContext | None, modes: Modes = _PROJECT_MODES) -> None:
        self.scope = context
        self.problems: list[Diagnostic] = []
        self.broken = False
        self.shows: Callable[[Node], bool] = lambda _: False
        self._meanings: dict[str, tuple[Any, str | None, str | None]] = {}  # indexed by mode
        self._keys: dict[str, str | int] = {}
        self._modes = modes

    def read(self, node: Node, modes: Modes | None = None) -> Any:
        """Return the data of a node. modes: the modes for reading the node, instead of the default modes."""
        modes = modes or self._modes
        if node.__class__ is ScalarNode:
            return self._read_scalar(node, modes.mode)
        if node.tag is not None:
            self._check_tag(node)
        return (
            self._read_mapping(node, modes)
            if node.__class__ is MappingNode
            else self._read_sequence(node, modes)
        )

    def peek(self, node: Node) -> Any:
        """Return the data of a node with all scalars as strings, and discard the problems."""
        return self._read_aside(node, UNIFORM[TEXT])[0]

    def read_aside(self, node: Node, modes: Modes) -> tuple[Any, list[Diagnostic]]:
        """Return the data of a node and its problems, without adding the problems to ``problems``."""
        return self._read_aside(node, modes)

    def check_node(self, node: Node) -> list[Diagnostic]:
        """Return the problems in a node, without adding them to ``problems``."""
        return self._read_aside(node, self._modes)[1]

    def find_duplicate_keys(self, node: Node) -> list[Diagnostic]:
        """Return an error for each duplicate key in the mappings of a node."""
        return [problem for problem in self.check_node(node) if problem.code == "duplicate-key"]

    def _read_aside(self, node: Node, modes: Modes) -> tuple[Any, list[Diagnostic]]:
        problem_count, was_broken = len(self.problems), self.broken
        value = self.read(node, modes)
        problems = self.problems[problem_count:]
        del self.problems[problem_count:]
        self.broken = was_broken
        return value, problems

    def _read_mapping(self, node: Node, modes: Modes) -> dict[str | int, Any]:
        # hot path, run for every node of every manifest: the common cases are inlined here
        meanings, keys = self._meanings, self._keys
        mode, scalars, fields, rest = modes.mode, modes.scalars, modes.fields, modes.rest
        data: dict[str | int, Any] = {}
        for k, v in node.value:
            if k.__class__ is ScalarNode and not k.style and k.tag is None and k.value in keys:
                key = keys[k.value]
            elif (parsed_key := self._read_key(k)) is not None:
                key = parsed_key
            else:
                continue
            if v.__class__ is ScalarNode:
                text = v.value
                scalar_mode = mode if scalars is None else scalars.get(key, mode)
                if not v.style and v.tag is None and text in meanings:
                    data[key] = meanings[text][scalar_mode]
                    continue
                value = self._read_scalar(v, scalar_mode)
                if value is BROKEN and scalar_mode:
                    continue
                data[key] = value
            else:
                data[key] = self.read(v, fields.get(key, rest))
        if len(data) < len(node.value):
            self._check_duplicates(node.value)
        return data

    def _read_sequence(self, node: Node, modes: Modes) -> list[Any]:
        mode, rest = modes.mode, modes.rest
        values = [
            self._read_scalar(item, mode) if item.__class__ is ScalarNode else self.read(item, rest)
            for item in node.value
        ]
        return [value for value in values if value is not BROKEN] if mode else values

    def _read_scalar(self, node: ScalarNode, mode: int) -> Any:
        text: str = node.value
        if node.tag is not None:
            self._check_tag(node)
        if has_reference(text) and self.scope is not None:
            return self._substitute_scalar(node, mode, self.scope)
        if node.style or node.tag == _STR_TAG:
            return text
        meaning = parse_scalar(text)
        if isinstance(meaning, AmbiguousScalar):
            return self._report_ambiguous(node, meaning, mode)
        if len(self._meanings) < _CACHED and not has_reference(text):
            self._meanings[text] = (*meaning, meaning[1])
        return meaning[1 if mode else 0]

    def _substitute_scalar(self, node: ScalarNode, mode: int, context: ReferenceContext) -> Any:
        try:
            value = substitute(node.value, context, as_text=bool(mode))
        except UnresolvedReference as e:
            return self._report_problem(replace(e.diagnostic, place=get_position(node)), mode)
        if mode or node.style or not isinstance(value, Referenced) or not is_single_reference(node.value):
            return value
        # an environment variable is a string, but ``partitions: ${env.N}`` must become a number
        meaning = parse_scalar(value)
        if isinstance(meaning, AmbiguousScalar) or not isinstance(meaning[0], int | float):
            return value
        return meaning[0]

    def _report_ambiguous(self, node: ScalarNode, meaning: AmbiguousScalar, mode: int) -> Any:
        is_shown = meaning.shown or (mode != KAFKA and self.shows(node))
        subject = f"'{node.value}'" if is_shown else "This value"
        return self._report_problem(
            error(
                "ambiguous-scalar",
                "Ambiguous plain scalar",
                f"{subject} {meaning.what}.",
                hint=meaning.exact if is_shown else meaning.hint,
                place=get_position(node),
            ),
            mode,
        )

    def _report_problem(self, problem: Diagnostic, mode: int) -> Any:
        self.problems.append(problem)
        if not mode:
            self.broken = True
        return BROKEN

    def _read_key(self, node: Node) -> str | int | None:
        """Read a key that is not in the cache. If the key is invalid, report a problem and return None."""
        if not isinstance(node, ScalarNode):
            self._report_bad_key(node, "is a list or a mapping")
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
                    "'<<' is a merge key of YAML 1.1; YAML 1.2 has no merge keys.",
                    hint="Write the fields out, or use an overlay.",
                    place=get_position(node),
                )
            )
            return None
        meaning = parse_scalar(text)
        if isinstance(meaning, AmbiguousScalar):
            self._report_bad_key(node, f"'{text}' {meaning.what}")
            return None
        value = meaning[VALUE]
        if isinstance(value, bool | float) or value is None:
            self._report_bad_key(node, "is null" if value is None else f"'{text}' is not a string")
            return None
        key: str | int = value
        if node.tag is None and len(self._keys) < _CACHED:
            self._keys[text] = key
        return key

    def _report_bad_key(self, node: Node, reason: str) -> None:
        self.problems.append(
            error(
                "bad-key",
                "Key is not a string",
                f"The key {reason}.",
                hint="Put the key in quotes to use it as a string.",
                place=get_position(node),
            )
        )

    def _check_tag(self, node: Node) -> None:
        if node.tag in _NATIVE_TAGS:
            return
        self.problems.append(
            error(
                "unsupported-tag",
                "YAML tags are not supported",
                "The value has a tag ('!…'), which kdeclare does not interpret.",
                hint="Remove the tag, and put the value in quotes if it is a string.",
                place=get_position(node),
            )
        )

    def _check_duplicates(self, pairs: Sequence[tuple[Node, Node]]) -> None:
        first_keys: dict[str | int, Node] = {}
        for key, _ in pairs:
            if not isinstance(key, ScalarNode):
                continue
            text: str = key.value
            first = first_keys.setdefault(text if key.style else self._keys.get(text, text), key)
            if first is not key:
                self.problems.append(
                    error(
                        "duplicate-key",
                        "Duplicate key",
                        f"This mapping already has the key '{key.value}' on line {get_position(first).line}.",
                        hint="Remove one of the two keys.",
                        place=get_position(key),
                        subject=key.value,
                    )
                )
