"""Find the differences between two Protobuf schemas, and describe each of them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

from kdeclare.providers.schema_registry.schemas.differences import DifferenceKind, SchemaDifference
from kdeclare.providers.schema_registry.schemas.protobuf.protobuf_file import (
    ProtobufEnum,
    ProtobufField,
    ProtobufFile,
    ProtobufMessage,
    ProtobufService,
)

_FILE = "file"


class _Numbered(Protocol):
    """A field of a message, or a value of an enum."""

    @property
    def name(self) -> str: ...

    @property
    def number(self) -> int: ...


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_N = TypeVar("_N", bound=_Numbered)
_M = TypeVar("_M", bound=_Named)


def describe_protobuf_differences(before: ProtobufFile, after: ProtobufFile) -> tuple[SchemaDifference, ...]:
    """Return the differences: first those of the file, then those of messages, enums and services."""
    return tuple(_Comparison(before, after).compare_files())


def format_protobuf_type(field: ProtobufField) -> str:
    """Return the type of a field with its label: ``repeated x.Item``."""
    return f"{field.label} {field.type}".lstrip()


class _Comparison:
    """Compares two Protobuf schemas. Names are compared without the package, which can differ."""

    def __init__(self, before: ProtobufFile, after: ProtobufFile) -> None:
        self._before = before
        self._after = after

    def compare_files(self) -> Iterator[SchemaDifference]:
        """Yield all differences."""
        before, after = self._before, self._after
        for name, first, second in (
            ("syntax", before.syntax, after.syntax),
            ("package", before.package, after.package),
        ):
            if first != second:
                message = f"{_FILE}: {name} changed from {first or '(none)'} to {second or '(none)'}"
                yield SchemaDifference(DifferenceKind.ATTRIBUTE_CHANGED, name, message, first, second)
        yield from _compare_imports(before.imports, after.imports)
        yield from _compare_options(before.options, after.options, "", _FILE)
        yield from self._compare_messages(before.messages, after.messages, _FILE)
        yield from self._compare_enums(before.enums, after.enums)
        yield from self._compare_services()
        yield from self._compare_extensions(before.extensions, after.extensions, "")

    def _localize_before(self, name: str) -> str:
        return _remove_package(name, self._before.package)

    def _localize_after(self, name: str) -> str:
        return _remove_package(name, self._after.package)

    def _pair(self, before: Iterable[_M], after: Iterable[_M]) -> tuple[dict[str, _M], dict[str, _M]]:
        """Return the old elements and the new elements, both by their names without the package."""
        return (
            {self._localize_before(element.name): element for element in before},
            {self._localize_after(element.name): element for element in after},
        )

    def _compare_messages(
        self, before: Sequence[ProtobufMessage], after: Sequence[ProtobufMessage], parent: str
    ) -> Iterator[SchemaDifference]:
        first, second = self._pair(before, after)
        yield from _compare_names(first, second, "message")
        for name, message in second.items():
            if name in first:
                yield from self._compare_message(first[name], message, name)
        old_indexes = {name: index for index, name in enumerate(first)}
        moved = [name for index, name in enumerate(second) if old_indexes.get(name, index) != index]
        if moved:
            text = f"messages of {parent}: index changed for {', '.join(moved)}; records contain this index"
            yield SchemaDifference(DifferenceKind.TYPES_REORDERED, "", text, list(first), list(second))

    def _compare_message(
        self, before: ProtobufMessage, after: ProtobufMessage, path: str
    ) -> Iterator[SchemaDifference]:
        subject = f"message {path}"
        yield from _compare_visibility(before, after, path, subject)
        yield from self._compare_fields(before, after, path, subject)
        for oneof in sorted(before.oneofs.keys() & after.oneofs.keys()):
            yield from _compare_options(
                before.oneofs[oneof], after.oneofs[oneof], f"{path}.{oneof}", f"oneof '{oneof}' of {subject}"
            )
        yield from _compare_reserved(before.reserved, after.reserved, path, subject, "reserved")
        ranges = (before.extension_ranges, after.extension_ranges)
        yield from _compare_reserved(*ranges, path, subject, "extension range")
        yield from _compare_options(before.options, after.options, path, subject)
        yield from self._compare_messages(before.messages, after.messages, subject)
        yield from self._compare_enums(before.enums, after.enums)
        yield from self._compare_extensions(before.extensions, after.extensions, path)

    def _compare_fields(
        self, before: ProtobufMessage, after: ProtobufMessage, path: str, parent: str
    ) -> Iterator[SchemaDifference]:
        pairs, removed, added = _match(before.fields, after.fields)
        for field in removed:
            note = "" if _is_reserved(field.number, after.reserved) else ", which is not reserved"
            type_ = self._localize_before(format_protobuf_type(field))
            message = f"field '{field.name}' of {parent} removed ({type_}, number {field.number}{note})"
            yield SchemaDifference(DifferenceKind.FIELD_REMOVED, f"{path}.{field.name}", message, type_)
        for old, new in pairs:
            yield from self._compare_field(old, new, f"{path}.{new.name}", parent)
        for field in added:
            type_ = self._localize_after(format_protobuf_type(field))
            place = f" to oneof '{field.oneof}'" if field.oneof else ""
            message = f"field '{field.name}' of {parent} added{place} ({type_}, number {field.number})"
            yield SchemaDifference(DifferenceKind.FIELD_ADDED, f"{path}.{field.name}", message, None, type_)

    def _compare_field(
        self, before: ProtobufField, after: ProtobufField, path: str, parent: str
    ) -> Iterator[SchemaDifference]:
        subject = f"field '{after.name}' of {parent}"
        if before.name != after.name:
            message = f"field '{before.name}' of {parent} renamed to '{after.name}' (number {after.number})"
            yield SchemaDifference(DifferenceKind.FIELD_RENAMED, path, message, before.name, after.name)
        comparisons: tuple[tuple[DifferenceKind, str, str | int, str | int], ...] = (
            (DifferenceKind.NUMBER_CHANGED, "number", before.number, after.number),
            (
                DifferenceKind.TYPE_CHANGED,
                "type",
                self._localize_before(before.type),
                self._localize_after(after.type),
            ),
            (DifferenceKind.LABEL_CHANGED, "label", before.label, after.label),
            (DifferenceKind.FIELD_MOVED, "oneof", before.oneof, after.oneof),
        )
        for kind, noun, first, second in comparisons:
            if first != second:
                message = f"{subject}: {noun} changed from {first or '(none)'} to {second or '(none)'}"
                yield SchemaDifference(kind, path, message, first or None, second or None)
        yield from _compare_options(before.options, after.options, path, subject)

    def _compare_extensions(
        self,
        before: Sequence[tuple[str, ProtobufField]],
        after: Sequence[tuple[str, ProtobufField]],
        scope: str,
    ) -> Iterator[SchemaDifference]:
        first = {(self._localize_before(extended), field.number): field for extended, field in before}
        second = {(self._localize_after(extended), field.number): field for extended, field in after}
        for key in sorted(first.keys() | second.keys()):
            extended, number = key
            path = ".".join(part for part in (scope, f"[{extended}]") if part)
            parent = f"extension of {extended}"
            if key not in second:
                message = f"field '{first[key].name}' of {parent} removed (number {number})"
                yield SchemaDifference(DifferenceKind.FIELD_REMOVED, path, message, first[key].name)
            elif key not in first:
                message = f"field '{second[key].name}' of {parent} added (number {number})"
                yield SchemaDifference(DifferenceKind.FIELD_ADDED, path, message, None, second[key].name)
            else:
                yield from self._compare_field(first[key], second[key], path, parent)

    def _compare_enums(
        self, before: Sequence[ProtobufEnum], after: Sequence[ProtobufEnum]
    ) -> Iterator[SchemaDifference]:
        first, second = self._pair(before, after)
        yield from _compare_names(first, second, "enum")
        for name, enum in second.items():
            if name in first:
                yield from _compare_enum(first[name], enum, name)

    def _compare_services(self) -> Iterator[SchemaDifference]:
        first, second = self._pair(self._before.services, self._after.services)
        yield from _compare_names(first, second, "service")
        for name, service in second.items():
            if name in first:
                yield from self._compare_service(first[name], service, name)

    def _compare_service(
        self, before: ProtobufService, after: ProtobufService, path: str
    ) -> Iterator[SchemaDifference]:
        first = {method.name: method for method in before.methods}
        second = {method.name: method for method in after.methods}
        yield from _compare_names(first, second, f"method of service {path}:")
        for name in sorted(first.keys() & second.keys()):
            old, new, method_path = first[name], second[name], f"{path}.{name}"
            old_signature = self._localize_before(f"({old.input}) returns ({old.output})")
            new_signature = self._localize_after(f"({new.input}) returns ({new.output})")
            if old_signature != new_signature:
                message = f"method {method_path}: changed from {old_signature} to {new_signature}"
                yield SchemaDifference(
                    DifferenceKind.TYPE_CHANGED, method_path, message, old_signature, new_signature
                )
            yield from _compare_options(old.options, new.options, method_path, f"method {method_path}")
        yield from _compare_options(before.options, after.options, path, f"service {path}")


def _remove_package(text: str, package: str) -> str:
    """Remove the package from all names in a text. The text can be a single name."""
    return re.sub(rf"(?<![\w.]){re.escape(package)}\.", "", text) if package else text


def _compare_names(
    before: Mapping[str, object], after: Mapping[str, object], noun: str
) -> Iterator[SchemaDifference]:
    for name in before:
        if name not in after:
            yield SchemaDifference(DifferenceKind.TYPE_REMOVED, name, f"{noun} {name} removed", name)
    for name in after:
        if name not in before:
            yield SchemaDifference(DifferenceKind.TYPE_ADDED, name, f"{noun} {name} added", None, name)


def _match(before: Sequence[_N], after: Sequence[_N]) -> tuple[list[tuple[_N, _N]], list[_N], list[_N]]:
    """Match elements by name, then the remaining elements by number.

    Return the pairs and the unmatched elements.
    """
    old_names = {element.name: element for element in before}
    new_names = {element.name for element in after}
    old_numbers = {element.number: element for element in before if element.name not in new_names}
    pairs: list[tuple[_N, _N]] = []
    added: list[_N] = []
    for element in after:
        old = old_names.get(element.name) or old_numbers.get(element.number)
        if old is None:
            added.append(element)
        else:
            pairs.append((old, element))
    matched = {old.name for old, _ in pairs}
    return pairs, [element for element in before if element.name not in matched], added


def _is_reserved(number: int, reserved: Iterable[str]) -> bool:
    for range_ in reserved:
        first, _, last = range_.partition(" to ")
        if first.isdecimal() and int(first) <= number and (last == "max" or number <= int(last or first)):
            return True
    return False


def _compare_enum(before: ProtobufEnum, after: ProtobufEnum, path: str) -> Iterator[SchemaDifference]:
    subject = f"enum {path}"
    yield from _compare_visibility(before, after, path, subject)
    pairs, removed, added = _match(before.values, after.values)
    for value in removed:
        message = f"{subject}: value {value.name} removed (number {value.number})"
        yield SchemaDifference(DifferenceKind.SYMBOL_REMOVED, f"{path}.{value.name}", message, value.name)
    for old, new in pairs:
        value_path = f"{path}.{new.name}"
        if old.name != new.name:
            message = f"{subject}: value {old.name} renamed to {new.name} (number {new.number})"
            yield SchemaDifference(DifferenceKind.SYMBOL_RENAMED, value_path, message, old.name, new.name)
        if old.number != new.number:
            message = f"{subject}: number of value {new.name} changed from {old.number} to {new.number}"
            yield SchemaDifference(DifferenceKind.NUMBER_CHANGED, value_path, message, old.number, new.number)
        yield from _compare_options(old.options, new.options, value_path, f"value {new.name} of {subject}")
    for value in added:
        message = f"{subject}: value {value.name} added (number {value.number})"
        yield SchemaDifference(DifferenceKind.SYMBOL_ADDED, f"{path}.{value.name}", message, None, value.name)
    kept_names = {old.name for old, _ in pairs}
    old_order = [old.name for old in before.values if old.name in kept_names]
    if old_order != [old.name for old, _ in pairs]:
        names = [value.name for value in after.values]
        message = f"{subject}: values reordered: {', '.join(names)}"
        yield SchemaDifference(DifferenceKind.SYMBOLS_REORDERED, path, message, None, names)
    elif before.values and after.values and pairs and pairs[0] != (before.values[0], after.values[0]):
        message = f"{subject}: first value, which is the default, changed to {after.values[0].name}"
        yield SchemaDifference(DifferenceKind.DEFAULT_CHANGED, path, message)
    yield from _compare_reserved(before.reserved, after.reserved, path, subject, "reserved")
    yield from _compare_options(before.options, after.options, path, subject)


def _compare_visibility(
    before: ProtobufMessage | ProtobufEnum, after: ProtobufMessage | ProtobufEnum, path: str, subject: str
) -> Iterator[SchemaDifference]:
    if before.visibility != after.visibility:
        first, second = before.visibility or "(none)", after.visibility or "(none)"
        message = f"{subject}: visibility changed from {first} to {second}"
        yield SchemaDifference(DifferenceKind.ATTRIBUTE_CHANGED, path, message, first, second)


def _compare_reserved(
    before: frozenset[str], after: frozenset[str], path: str, subject: str, noun: str
) -> Iterator[SchemaDifference]:
    is_reserved = noun == "reserved"
    for range_ in sorted(before - after):
        kind = DifferenceKind.RESERVED_REMOVED if is_reserved else DifferenceKind.ATTRIBUTE_REMOVED
        yield SchemaDifference(kind, path, f"{subject}: {noun} {range_} removed", range_)
    for range_ in sorted(after - before):
        kind = DifferenceKind.RESERVED_ADDED if is_reserved else DifferenceKind.ATTRIBUTE_ADDED
        yield SchemaDifference(kind, path, f"{subject}: {noun} {range_} added", None, range_)


def _compare_imports(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[SchemaDifference]:
    for name in sorted(before.keys() - after.keys()):
        yield SchemaDifference(DifferenceKind.IMPORT_REMOVED, "", f"{_FILE}: import {name} removed", name)
    for name in sorted(after.keys() - before.keys()):
        message = f"{_FILE}: import {name} added"
        yield SchemaDifference(DifferenceKind.IMPORT_ADDED, "", message, None, name)
    for name in sorted(before.keys() & after.keys()):
        if before[name] != after[name]:
            first, second = before[name] or "plain", after[name] or "plain"
            message = f"{_FILE}: import {name} changed from {first} to {second}"
            yield SchemaDifference(DifferenceKind.ATTRIBUTE_CHANGED, "", message, first, second)


def _compare_options(
    before: Mapping[str, str], after: Mapping[str, str], path: str, subject: str
) -> Iterator[SchemaDifference]:
    for name in sorted(before.keys() | after.keys()):
        first, second = before.get(name), after.get(name)
        if first == second:
            continue
        noun = "default" if name == "default" else f"option {name}"
        old_value, new_value = (value and value.replace("\n", ", ") for value in (first, second))
        kinds = _DEFAULT_KINDS if name == "default" else _OPTION_KINDS
        if first is None:
            message, kind = f"{subject}: {noun} {new_value} added", kinds[0]
        elif second is None:
            message, kind = f"{subject}: {noun} {old_value} removed", kinds[1]
        else:
            message, kind = f"{subject}: {noun} changed from {old_value} to {new_value}", kinds[2]
        yield SchemaDifference(kind, path, message, first, second)


_DEFAULT_KINDS = (
    DifferenceKind.DEFAULT_ADDED,
    DifferenceKind.DEFAULT_REMOVED,
    DifferenceKind.DEFAULT_CHANGED,
)
_OPTION_KINDS = (
    DifferenceKind.ATTRIBUTE_ADDED,
    DifferenceKind.ATTRIBUTE_REMOVED,
    DifferenceKind.ATTRIBUTE_CHANGED,
)
