"""Narrowing JSON: values of another type are rejected by name, and nothing is copied unnecessarily."""

import math
from collections.abc import Callable
from types import MappingProxyType

import pytest
from pydantic import TypeAdapter

from kdeclare.core.jsontypes import (
    JsonValue,
    as_bool,
    as_int,
    as_int_or_none,
    as_ints,
    as_list,
    as_number,
    as_object,
    as_text,
    as_text_or_none,
    as_texts,
    parse_json,
    to_float,
)
from kdeclare.core.secrets.secret_refs import Referenced


@pytest.mark.parametrize(
    ("read", "value", "message"),
    [
        (as_object, [], "expected an object, got list"),
        (as_object, None, "expected an object, got NoneType"),
        (as_list, "abc", "expected an array, got str"),
        (as_text, 1, "expected a string, got int"),
        (as_text_or_none, 1, "expected a string, got int"),
        (as_int, True, "expected an integer, got bool"),
        (as_int, 1.5, "expected an integer, got float"),
        (as_number, "1", "expected a number, got str"),
        (as_number, False, "expected a number, got bool"),
        (as_int_or_none, "1", "expected an integer, got str"),
        (as_number, True, "expected a number, got bool"),
        (as_bool, 0, "expected true or false, got int"),
        (as_ints, [1, "2"], "expected an integer, got str"),
        (as_texts, ["a", 1], "expected a string, got int"),
        (as_ints, [1, True], "expected an integer, got bool"),
        (as_texts, "abc", "expected an array, got str"),
    ],
)
def test_value_of_other_type_is_rejected(
    read: Callable[[JsonValue], object], value: JsonValue, message: str
) -> None:
    with pytest.raises(TypeError) as refused:
        read(value)
    assert str(refused.value) == message


def test_containers_are_not_copied() -> None:
    document, elements = MappingProxyType({"a": 1}), [1, 2]
    assert as_object(document) is document
    assert as_list(elements) is elements


def test_pydantic_returns_same_json_value() -> None:
    value = {"a": [1, "b", None]}
    assert TypeAdapter(JsonValue).validate_python(value) is value


def test_lists_keep_order_and_references() -> None:
    assert (as_ints([2, 1]), as_texts(("b", "a")), as_texts([])) == ((2, 1), ("b", "a"), ())
    kept = as_texts([Referenced("s3cret-value", "${env.KEY}")])
    assert isinstance(kept[0], Referenced), "a text that knows where it is from stays one"


def test_as_number_keeps_type_and_to_float_converts() -> None:
    assert (repr(as_number(3)), repr(as_number(2.5)), repr(to_float(3))) == ("3", "2.5", "3.0")
    assert (to_float(10**400), to_float(-(10**400))) == (math.inf, -math.inf)


@pytest.mark.parametrize(
    ("text", "value"), [("null", None), ('{"a": [1, 2.5]}', {"a": [1, 2.5]}), (b"[]", [])]
)
def test_parse_json_returns_value(text: str | bytes, value: JsonValue) -> None:
    assert parse_json(text) == value
