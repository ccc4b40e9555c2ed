"""How a dataclass becomes a document, and what its published schema contains."""

from dataclasses import field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

from jsonschema import Draft202012Validator
from pydantic import Field

from kdeclare.core.diagnostics import error, warning
from kdeclare.core.documents import (
    Diagnostics,
    Hidden,
    OneOf,
    Opaque,
    Second,
    build_document,
    dump_document,
    publish_schemas,
)
from kdeclare.core.frozen_dataclass import dataclass


class Colour(StrEnum):
    """The color of a book."""

    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True)
class Shelf:
    """The position of a book.

    Not published: notes for readers of the code.
    """

    schema_name = "PlaceOfABook"

    row: int
    colours: tuple[Colour, ...] = ()


@dataclass(frozen=True, slots=True)
class Book:
    """A book."""

    is_thick: bool = field(init=False, default=False)
    pages: Annotated[int, Field(description="Without covers.", serialization_alias="page_count")]
    bought: Second
    shelf: Shelf | None = None
    colour: Colour | None = None
    state: Annotated[str, OneOf("new", "old")] = "new"
    note: Annotated[str, Field(exclude_if=lambda note: not note)] = ""
    smell: Hidden[object] = None
    diagnostics: Diagnostics = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_thick", self.pages > 500)


@dataclass(frozen=True, slots=True)
class Loan(Book):
    """A book that is on loan."""

    reader: Opaque[object] = ""


BOUGHT = datetime(2026, 1, 31, 12, 0, 0, 5, UTC)
BOOK = Book(
    700, BOUGHT, Shelf(3, (Colour.RED,)), smell=object(), diagnostics=(warning("w", "W"), error("e", "E"))
)
SCHEMA = publish_schemas({"book": Book})["book"]


def test_document_has_fields_and_properties_in_order() -> None:
    document = dump_document(BOOK)
    assert [*document] == [
        *("format_version", "is_thick", "page_count", "bought"),
        *("shelf", "colour", "state", "diagnostics"),
    ]
    assert (document["is_thick"], document["bought"]) == (True, "2026-01-31T12:00:00Z")
    assert document["shelf"] == {"row": 3, "colours": ["red"]}
    assert [found.code for found in BOOK.diagnostics] == ["w", "e"]
    assert str(document["diagnostics"]).index("'e'") < str(document["diagnostics"]).index("'w'")


def test_schema_accepts_only_written_documents() -> None:
    validator = Draft202012Validator(SCHEMA)
    document = dump_document(BOOK)
    validator.validate(document)
    validator.validate(document | {"note": "torn"})
    for key in document:
        assert not validator.is_valid({k: v for k, v in document.items() if k != key})
    for wrong in ({"more": 1}, {"state": "lost"}, {"colour": "green"}, {"smell": None}):
        assert not validator.is_valid(document | wrong)


def test_schema_inlines_enums_and_references_classes() -> None:
    properties = SCHEMA["properties"]
    words = {"enum": ["red", "blue"], "type": "string"}
    assert properties["colour"] == {"anyOf": [words, {"type": "null"}], "title": "Colour"}
    assert properties["shelf"] == {"anyOf": [{"$ref": "#/$defs/PlaceOfABook"}, {"type": "null"}]}
    assert SCHEMA["$defs"]["PlaceOfABook"]["description"] == "The position of a book."
    assert properties["page_count"]["description"] == "Without covers."
    assert {*SCHEMA["$defs"]} == {"DiagnosticDocument", "PlaceDocument", "PlaceOfABook"}


def test_schema_can_define_enums_by_name() -> None:
    schema = publish_schemas({"book": Book}, name_enums=True)["book"]
    assert schema["properties"]["colour"]["anyOf"][0] == {"$ref": "#/$defs/Colour"}
    assert schema["$defs"]["Colour"]["enum"] == ["red", "blue"]


def test_build_document_copies_shared_fields() -> None:
    loan = build_document(Loan, BOOK, reader=Shelf(1), pages=20)
    assert (loan.is_thick, loan.bought, loan.shelf) == (False, BOUGHT, BOOK.shelf)
    assert dump_document(loan)["reader"] == {"row": 1, "colours": []}
