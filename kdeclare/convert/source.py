"""Read files of other tools, with the position of each field, and report fields that were not converted."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from yaml.constructor import SafeConstructor
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.resolver import Resolver

from kdeclare.convert.result import ConvertedResource, Gap
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, SourcePosition, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.manifests.syntax.files import read_file
from kdeclare.manifests.syntax.nodes import compose, get_position

NO_COUNTERPART: Final = "kdeclare has no field for this."

_DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)\.[0-9]{1,12}")
_TEMPLATE = re.compile(rb"\{\{|\{%")
_INT_TAG, _BOOL_TAG, _NULL_TAG = (f"tag:yaml.org,2002:{name}" for name in ("int", "bool", "null"))


class Findings:
    """The converted resources, and what could not be converted (`Gap`), in the order of the source."""

    def __init__(self) -> None:
        self.resources: list[ConvertedResource] = []
        self.gaps: list[Gap] = []
        self._sections: list[Section] = []

    def add(self, resource: ConvertedResource) -> None:
        """Add a resource."""
        self.resources.append(resource)

    def report(self, place: SourcePosition, subject: str, reason: str) -> None:
        """Report something that cannot be converted, or that the manifests contain in a different form."""
        self.gaps.append(Gap(place, subject, reason))

    def watch(self, section: "Section") -> None:
        """Remember a section, so that `report_unread_fields` can report its unread fields."""
        self._sections.append(section)

    def report_unread_fields(self) -> None:
        """Report each field of each section that the conversion has not read."""
        for section in self._sections:
            section.report_rest(NO_COUNTERPART)
        self._sections.clear()


class Section:
    """A mapping in a source file.

    A converter must read, ignore or report each field. `Findings.report_unread_fields` reports all other
    fields, so that a conversion loses nothing silently. subject: the name of the mapping in reports, such as
    ``KafkaTopic/a``.
    """

    def __init__(self, node: MappingNode, subject: str, findings: Findings, path: str = "") -> None:
        self.place = get_position(node)
        self.subject = subject
        self.findings = findings
        self._path = path
        self._fields = dict(_list_fields(node))
        findings.watch(self)

    def __contains__(self, key: str) -> bool:
        return key in self._fields

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the fields that have not been read, ignored or reported yet."""
        return tuple(self._fields)

    def rename(self, subject: str) -> None:
        """Change the name that reports use for the mapping, after the name of the object has been read."""
        self.subject = subject
        self._path = ""

    def find_place(self, key: str) -> SourcePosition:
        """Return the position of a field, or of the section if the field is missing or has been read."""
        pair = self._fields.get(key)
        return get_position(pair[0]) if pair else self.place

    def peek(self, key: str) -> Node | None:
        """Return the value of a field, but do not mark the field as read; None if it is missing or null."""
        pair = self._fields.get(key)
        return None if pair is None or is_null(pair[1]) else pair[1]

    def peek_text(self, key: str) -> str:
        """Return a field as text, but do not mark it as read; ``""`` if it is missing or not a scalar."""
        node = self.peek(key)
        return read_text(node) if isinstance(node, ScalarNode) else ""

    def take(self, key: str) -> Node | None:
        """Return the value of a field, and mark the field as read; None if the field is missing or null."""
        pair = self._fields.pop(key, None)
        return None if pair is None or is_null(pair[1]) else pair[1]

    def take_text(self, key: str) -> str:
        """Return a field as text; ``""`` if it does not exist or is not a scalar."""
        place = self.find_place(key)
        node = self.take(key)
        if node is None:
            return ""
        if isinstance(node, ScalarNode):
            return read_text(node)
        self.findings.report(place, self._name(key), "This field must be a single value.")
        return ""

    def take_integer(self, key: str, *, unset: Sequence[str] = ()) -> int | None:
        """Return a field as an integer. unset: the values that mean that the field is not set."""
        place = self.find_place(key)
        text = self.take_text(key)
        if not text or text in unset:
            return None
        try:
            return int(text)
        except ValueError:
            self.findings.report(place, self._name(key), f"'{text}' is not a whole number.")
            return None

    def take_section(self, key: str, subject: str = "") -> "Section | None":
        """Return the mapping in a field as a section.

        subject: the name of the new section in reports; by default, the name of this section.
        """
        place = self.find_place(key)
        node = self.take(key)
        if node is None:
            return None
        if isinstance(node, MappingNode):
            path = "" if subject else f"{self._path}{key}."
            return Section(node, subject or self.subject, self.findings, path)
        self.findings.report(place, self._name(key), "This field must be a mapping.")
        return None

    def take_sections(self, key: str) -> list["Section"]:
        """Return each mapping in a list as a section. Items that are not mappings are reported."""
        place = self.find_place(key)
        node = self.take(key)
        if node is None:
            return []
        if not isinstance(node, SequenceNode):
            self.findings.report(place, self._name(key), "This field must be a list.")
            return []
        sections = []
        for index, item in enumerate(node.value):
            if isinstance(item, MappingNode):
                sections.append(Section(item, self.subject, self.findings, f"{self._path}{key}[{index}]."))
            else:
                self.findings.report(
                    get_position(item), f"{self._name(key)}[{index}]", "This item must be a mapping."
                )
        return sections

    def take_texts(self, key: str) -> list[tuple[str, SourcePosition]]:
        """Return the strings of a list, or a single string, each with its position."""
        node = self.take(key)
        items = node.value if isinstance(node, SequenceNode) else [] if node is None else [node]
        texts = []
        for item in items:
            if isinstance(item, ScalarNode):
                texts.append((read_text(item), get_position(item)))
            else:
                self.findings.report(get_position(item), self._name(key), "This item must be a single value.")
        return texts

    def take_lists(self, key: str) -> list[list[str]]:
        """Return a list of lists of strings. Items of other types are left out."""
        node = self.take(key)
        rows = node.value if isinstance(node, SequenceNode) else []
        return [
            [read_text(item) for item in row.value if isinstance(item, ScalarNode)]
            for row in rows
            if isinstance(row, SequenceNode)
        ]

    def take_values(self) -> Iterator[tuple[str, JsonValue, SourcePosition]]:
        """Yield the keys, values and positions of all remaining fields, such as the configs of a topic.

        A list becomes a comma-separated string, as in Kafka configs. Mappings are reported.
        """
        for key in self.keys:
            place = self.find_place(key)
            node = self.take(key)
            if isinstance(node, MappingNode):
                self.findings.report(place, self._name(key), "A setting cannot be a mapping.")
            elif isinstance(node, SequenceNode):
                yield key, ",".join(read_text(i) for i in node.value if isinstance(i, ScalarNode)), place
            else:
                yield key, None if node is None else read_value(node), place

    def take_labels(self, key: str) -> dict[str, str]:
        """Return a field as a mapping of strings, such as labels."""
        section = self.take_section(key)
        return {} if section is None else {k: _to_text(v) for k, v, _ in section.take_values()}

    def ignore(self, *keys: str) -> None:
        """Mark fields as read because they declare nothing, such as the status of an object."""
        for key in keys:
            self._fields.pop(key, None)

    def report(self, key: str, reason: str) -> None:
        """Report a field with the given reason if the field exists and has not been read."""
        if key in self._fields:
            place = self.find_place(key)
            del self._fields[key]
            self.findings.report(place, self._name(key), reason)

    def report_rest(self, reason: str) -> None:
        """Report all fields that have not been read or ignored."""
        for key in self.keys:
            self.report(key, reason)

    def report_all(self, reason: str) -> None:
        """Report the whole section as one item, and none of its fields."""
        self._fields.clear()
        self.findings.report(self.place, self.subject, reason)

    def _name(self, key: str) -> str:
        return f"{self.subject} {self._path}{key}"


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of another tool. documents: its non-empty documents."""

    path: str
    documents: tuple[Node, ...]

    def read_neighbor(self, path: str) -> bytes | None:
        """Return the content of a file whose path is relative to this file; None if it cannot be read."""
        return read_file(str(Path(self.path).parent / path), [])


def read_source(path: str, *, template_hint: str = "") -> SourceFile:
    """Read a YAML or JSON file. Raises KdeclareError if it cannot be read or parsed.

    template_hint: how to render the templates of the tool, if its files can contain templates.
    """
    diagnostics: list[Diagnostic] = []
    data = read_file(path, diagnostics)
    if data is None:
        raise KdeclareError(*diagnostics)
    match = _TEMPLATE.search(data) if template_hint else None
    if match is not None:
        line = data.count(b"\n", 0, match.start()) + 1
        raise KdeclareError(
            error(
                "template-not-rendered",
                "File contains templates",
                f"'{path}' contains templates, which kdeclare cannot render.",
                hint=template_hint,
                place=SourcePosition(path, line, match.start() - data.rfind(b"\n", 0, match.start())),
            )
        )
    documents = tuple(compose(path, data, diagnostics))
    if diagnostics:
        raise KdeclareError(*diagnostics)
    return SourceFile(path, tuple(node for node in documents if not is_null(node)))


def build_wrong_file_error(source: SourceFile, expected: str, hint: str) -> KdeclareError:
    """Return the error for a file that does not have the format of the tool."""
    place = get_position(source.documents[0]) if source.documents else SourcePosition(source.path, 1, 1)
    return KdeclareError(
        error(
            "wrong-source",
            "File has a different format",
            f"'{source.path}' does not contain {expected}.",
            hint=hint,
            place=place,
        )
    )


def get_fields(node: Node) -> dict[str, Node]:
    """Return the values of a YAML mapping by key; an empty result if the node is not a mapping."""
    pairs = node.value if isinstance(node, MappingNode) else ()
    return {key.value: value for key, value in pairs if isinstance(key, ScalarNode)}


def get_text(node: Node | None) -> str:
    """Return the text of a YAML scalar; ``""`` if the node is not a scalar."""
    return node.value if isinstance(node, ScalarNode) else ""


def is_null(node: Node) -> bool:
    """Return whether a YAML node is null or empty."""
    return isinstance(node, ScalarNode) and not node.style and node.value in ("", "~", "null", "Null", "NULL")


def read_text(node: ScalarNode) -> str:
    """Return the value of a YAML scalar as text: integers in decimal, Booleans as ``true`` or ``false``."""
    return _to_text(read_value(node))


def read_value(node: Node) -> JsonValue:
    """Return the value of a scalar according to YAML 1.1, which most tools use. Dates remain text."""
    if not isinstance(node, ScalarNode):
        return None
    text = str(node.value)
    if node.style in ("'", '"', "|", ">") or (node.tag or "").endswith(":str"):
        return text
    tag = Resolver().resolve(ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    if tag == _NULL_TAG:
        return None
    typed = ScalarNode(tag, text)
    if tag == _BOOL_TAG:
        return bool(SafeConstructor().construct_yaml_bool(typed))
    if tag == _INT_TAG and ":" not in text:
        return int(SafeConstructor().construct_yaml_int(typed))
    return text


def convert_number(value: JsonValue) -> JsonValue:
    """Convert a string such as ``1`` or ``true`` to a number or Boolean, which manifests show unquoted."""
    if not isinstance(value, str):
        return value
    if value.lstrip("-").isdigit() and value.isascii() and str(int(value)) == value:
        return int(value)
    if _DECIMAL.fullmatch(value) and str(float(value)) == value:
        return float(value)
    return value == "true" if value in ("true", "false") else value


def _to_text(value: JsonValue) -> str:
    return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)


def _list_fields(node: MappingNode) -> Iterator[tuple[str, tuple[Node, Node]]]:
    """Yield the fields of a mapping by key. Fields of merged mappings (``<<``) come first."""
    own: list[tuple[str, tuple[Node, Node]]] = []
    for key, value in node.value:
        if not isinstance(key, ScalarNode):
            raise KdeclareError(
                error(
                    "bad-key",
                    "Key is not a string",
                    "The key is a list or a mapping.",
                    hint="Correct the file, and convert it again.",
                    place=get_position(key),
                )
            )
        if key.value == "<<" and not key.style:
            for merged in value.value if isinstance(value, SequenceNode) else [value]:
                if isinstance(merged, MappingNode):
                    yield from _list_fields(merged)
        else:
            own.append((key.value, (key, value)))
    yield from own
