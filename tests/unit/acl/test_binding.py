"""ACL bindings as text, which states, plans and fleets store."""

import pytest
from hypothesis import given

from kdeclare.providers.kafka.acl.binding import (
    ALLOW,
    LITERAL,
    PREFIXED,
    Binding,
    join_binding,
    parse_binding,
)
from tests.unit.acl.acl_strategies import odd_bindings


@given(odd_bindings())
def test_text_round_trips(binding: Binding) -> None:
    assert parse_binding(str(binding)) == binding
    assert join_binding(binding.resource, binding.element) == binding
    assert str(binding).isprintable()


@given(odd_bindings(), odd_bindings())
def test_different_bindings_have_different_texts(one: Binding, other: Binding) -> None:
    assert (str(one) == str(other)) is (one == other)


@pytest.mark.parametrize(
    ("name", "pattern", "text"),
    [
        ("orders", LITERAL, "topic:orders"),
        ("orders", PREFIXED, "topic:orders*"),
        ("*", LITERAL, "topic:*"),
        ("*", PREFIXED, "topic:**"),
        ("orders*", LITERAL, "topic:orders%2A"),
        ("a b", LITERAL, "topic:a%20b"),
    ],
)
def test_text_shows_name_and_pattern(name: str, pattern: str, text: str) -> None:
    binding = Binding("topic", name, pattern, "User:a", "*", "READ", ALLOW)
    assert str(binding) == f"ALLOW User:a READ {text} from *"
    assert (binding.resource, binding.element) == (text, "ALLOW User:a READ from *")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ALLOW User:a READ topic:orders",
        "allow User:a READ topic:orders from *",
        "ALLOW User:a READ orders from *",
        "ALLOW User:a READ topic:%61 from *",
        "ALLOW User:a b READ topic:a from *",
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not "):
        parse_binding(text)
