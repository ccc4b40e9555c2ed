"""Protobuf schemas for tests: generated ones, other layouts of them, and edits."""

from dataclasses import replace
from random import Random

from hypothesis import strategies as st

from kdeclare.providers.schema_registry.schemas.layout import format_layout
from kdeclare.providers.schema_registry.schemas.protobuf.protobuf_file import (
    ProtobufEnum,
    ProtobufEnumValue,
    ProtobufField,
    ProtobufFile,
    ProtobufMessage,
    ProtobufMethod,
    ProtobufService,
)
from kdeclare.providers.schema_registry.schemas.protobuf.protobuf_tokens import TokenKind, split_tokens
from tests.unit.schemas.drawing import Draw

_SEPARATORS = (" ", "\n", "\t\r\n", " /* a */ ", "// b; }\n", "\n/* c\n * d */")


def join_name(scope: str, name: str) -> str:
    """Return a full name."""
    return f"{scope}.{name}" if scope else name


@st.composite
def build_protobuf_files(draw: st.DrawFn) -> ProtobufFile:
    """A proto3 file with two messages and an enum, and perhaps nested ones and a service."""
    package = draw(st.sampled_from(["", "x", "x.y"]))
    type_names = [join_name(package, name) for name in ("Kind", "First", "First.Inner")]
    enum = build_enum(draw, join_name(package, "Kind"), "KIND")
    inner = build_message(draw, join_name(package, "First.Inner"), type_names, ())
    first = build_message(draw, join_name(package, "First"), type_names, (inner,))
    second = build_message(draw, join_name(package, "Second"), type_names, ())
    services: tuple[ProtobufService, ...] = ()
    if draw(st.booleans()):
        method = ProtobufMethod("Get", first.name, f"stream {second.name}", draw_options(draw, "deprecated"))
        services = (ProtobufService(join_name(package, "Service"), (method,), {}),)
    return ProtobufFile(
        syntax="proto3",
        package=package,
        imports={},
        options={"java_package": '"a.\\"b"'} if draw(st.booleans()) else {},
        messages=(first, second),
        enums=(enum,),
        services=services,
        extensions=(),
    )


def draw_options(draw: Draw, name: str) -> dict[str, str]:
    """Return one option, or none."""
    return {name: "true"} if draw(st.booleans()) else {}


def build_enum(draw: Draw, name: str, prefix: str) -> ProtobufEnum:
    """Build an enum whose values begin with a prefix."""
    values = tuple(
        ProtobufEnumValue(f"{prefix}_{number}", number, draw_options(draw, "deprecated"))
        for number in range(draw(st.integers(1, 3)))
    )
    reserved = frozenset({"9 to max", '"OLD"'}) if draw(st.booleans()) else frozenset[str]()
    return ProtobufEnum(name, values, draw_options(draw, "deprecated"), reserved)


def build_message(
    draw: Draw, name: str, type_names: list[str], nested: tuple[ProtobufMessage, ...]
) -> ProtobufMessage:
    """Build a message. Its fields use scalar types and the named types."""
    types = ["string", "int64", "double", *type_names, "map<string, int32>", f"map<int32, {type_names[1]}>"]
    fields = []
    oneofs: dict[str, dict[str, str]] = {}
    for index in range(draw(st.integers(0, 4))):
        type_ = draw(st.sampled_from(types))
        is_map = type_.startswith("map")
        oneof = "" if is_map else draw(st.sampled_from(["", "", "choice"]))
        label = "" if is_map or oneof else draw(st.sampled_from(["", "optional", "repeated"]))
        if oneof:
            oneofs[oneof] = {}
        options = draw_options(draw, "deprecated") | draw_options(draw, "(my.option).value")
        fields.append(ProtobufField(f"f{index}", (index + 1) * 3, type_, label, oneof, options))
    return ProtobufMessage(
        name=name,
        fields=tuple(fields),
        messages=nested,
        enums=(),
        oneofs=oneofs,
        options=draw_options(draw, "deprecated"),
        reserved=frozenset({"100", "200 to 300", '"gone"'}) if draw(st.booleans()) else frozenset(),
        extension_ranges=frozenset(),
        extensions=(),
    )


def write_protobuf(draw: Draw, file: ProtobufFile) -> str:
    """Write a file with other white space, comments and kinds of names."""
    chosen = Random(draw(st.integers(0, 2**32)))  # one draw instead of one per token: shrinking takes minutes
    parts: list[str] = []
    for token in split_tokens("\n".join(format_layout(file))):
        parts += [chosen.choice(_SEPARATORS), token.text]
        if token.kind is TokenKind.SYMBOL and token.text == ";" and chosen.random() < 0.2:
            parts.append(";")
    written = "".join(parts)
    if file.package and draw(st.booleans()):
        written = written.replace(f" {file.package}.", f" .{file.package}.")
    return written


def edit_protobuf(draw: Draw, file: ProtobufFile) -> ProtobufFile:
    """Return a copy of a file with one change."""
    edit = draw(st.sampled_from(["file", "message", "nested", "enum", "service"]))
    if edit == "enum":
        return replace(file, enums=(_edit_enum(draw, file.enums[0]),))
    if edit == "message":
        return replace(file, messages=(file.messages[0], _edit_message(draw, file.messages[1])))
    if edit == "nested":
        first = file.messages[0]
        edited = replace(first, messages=(_edit_message(draw, first.messages[0]),))
        return replace(file, messages=(edited, file.messages[1]))
    if edit == "service":
        if file.services:
            return replace(file, services=())
        return replace(file, services=(ProtobufService(join_name(file.package, "New"), (), {}),))
    return draw(
        st.sampled_from(
            [
                replace(file, options={**file.options, "go_package": '"go"'}),
                replace(file, imports={"other.proto": "public"}),
                replace(file, messages=file.messages[::-1]),
                replace(file, messages=file.messages[:1], services=()),
                replace(file, syntax="proto2"),
            ]
        )
    )


def _edit_enum(draw: Draw, enum: ProtobufEnum) -> ProtobufEnum:
    first = enum.values[0]
    return draw(
        st.sampled_from(
            [
                replace(enum, values=(*enum.values, ProtobufEnumValue("KIND_NEW", 7, {}))),
                replace(enum, values=(replace(first, name="KIND_RENAMED"), *enum.values[1:])),
                replace(enum, values=(replace(first, options={"(my.o)": "1"}), *enum.values[1:])),
                replace(enum, reserved=enum.reserved | {"8"}),
                replace(enum, options={**enum.options, "(my.o)": "{a: 1}"}),
            ]
        )
    )


def _edit_message(draw: Draw, message: ProtobufMessage) -> ProtobufMessage:
    new_field = ProtobufField("extra", 50, "bytes", "", "", {})
    edits = [
        replace(message, fields=(*message.fields, new_field)),
        replace(message, reserved=message.reserved | {"400"}),
        replace(message, options={**message.options, "(my.o)": "3"}),
    ]
    if message.fields:
        edits += [replace(message, fields=(*message.fields[:-1], field)) for field in _edit_field(message)]
    return draw(st.sampled_from(edits))


def _edit_field(message: ProtobufMessage) -> list[ProtobufField]:
    field = message.fields[-1]
    edits = [
        replace(field, name="renamed"),
        replace(field, number=60),
        replace(field, type="bool" if field.type != "bool" else "bytes"),
        replace(field, options={**field.options, "json_name": '"j"'}),
    ]
    if not field.oneof and not field.type.startswith("map"):
        edits.append(replace(field, label="repeated" if field.label != "repeated" else "optional"))
    return edits
