"""Secrets are found in specs, in arguments and in ownership records, at any depth."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, ValidationError

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.operations.operation import Arguments, Operation
from kdeclare.core.progress import ignore_progress
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.core.secrets.secret_hashes import SecretHasher, is_hash_of
from kdeclare.core.secrets.secret_refs import (
    Referenced,
    Secret,
    SecretRef,
    SecretText,
    find_records,
    find_secrets,
    has_secret,
    replace_records,
    replace_secrets,
)
from kdeclare.engine.executor.expectations import find_changed_secrets, find_unrevealable
from kdeclare.engine.planning.secret_digests import (
    collect_secret_values,
    has_secrets,
    hash_secrets,
    list_stored_hashes,
)
from tests.jsontypes import Json

if TYPE_CHECKING:
    OnlyForTypeCheckers = int

HIDDEN = "correct-horse-battery"


class Login(BaseModel):
    model_config = ConfigDict(frozen=True)
    user: str
    password: SecretText
    older: tuple[SecretText, ...] = ()


@dataclass(frozen=True)
class Body:
    """A shape that a provider may use: a model within a mapping within a dataclass."""

    logins: Mapping[str, Login]
    size: int = 3


@dataclass(frozen=True, slots=True)
class LoginRecord(Arguments):
    """The ownership record of a login."""

    password: SecretRef


@dataclass(frozen=True, slots=True)
class DoorRecord(OwnedRecord):
    """The ownership record of a door."""

    logins: Mapping[str, LoginRecord]


AMY = {"user": "amy", "password": Referenced(HIDDEN, "${env.A}"), "older": ("first-one", "second-one")}
BODY = Body({"a": Login.model_validate(AMY)})
PASSWORD, FIRST, SECOND = (
    ("logins", "a", "password"),
    ("logins", "a", "older", 0),
    ("logins", "a", "older", 1),
)


@dataclass(frozen=True)
class Unresolvable:
    secret: "Secret | OnlyForTypeCheckers"


class Gone:
    """A source in which every secret has changed since the plan."""

    def reveal(self, secret: SecretRef) -> str:
        raise KdeclareError(error("secret-changed", "Secret has changed", str(secret.reference)))


def record(name: str) -> dict[str, str]:
    return {"secret": f"hash-of-{name}", "reference": name}


def ref(name: str) -> SecretRef:
    return SecretRef(f"hash-of-{name}", name)


@dataclass(frozen=True)
class DoorArgs(Arguments):
    """Secrets at several depths. was: the previous secret, for the rollback."""

    token: SecretRef | str = "t"
    logins: tuple[Mapping[str, SecretRef], ...] = ()
    inner: "DoorArgs | None" = None
    was: SecretRef | None = None


def operation(args: DoorArgs) -> Operation:
    return Operation("door.open:Door/front", "door.open", ResourceId("Door", "front"), args, {})


def test_field_of_type_secret_keeps_its_value_to_itself() -> None:
    secret = BODY.logins["a"].password
    assert (secret.value, secret.reference) == (HIDDEN, "${env.A}")
    assert HIDDEN not in f"{BODY!r} {BODY}"


def test_what_is_no_text_is_not_repeated() -> None:
    with pytest.raises(ValidationError) as wrong:
        Login.model_validate({"user": "amy", "password": 4711}, strict=True)
    assert [(e["type"], e["loc"]) for e in wrong.value.errors()] == [("string_type", ("password",))]


def test_field_of_type_secret_is_text_for_editors() -> None:
    assert Login.model_json_schema()["properties"]["password"]["type"] == "string"


def test_secrets_are_found_at_any_depth_of_a_body() -> None:
    assert {at: secret.value for at, secret in find_secrets(BODY)} == {
        PASSWORD: HIDDEN,
        FIRST: "first-one",
        SECOND: "second-one",
    }


def test_secrets_are_found_where_annotations_cannot_be_resolved() -> None:
    assert [at for at, _ in find_secrets(Unresolvable(Secret("hidden-one", None)))] == [("secret",)]
    assert has_secret(Unresolvable(Secret("hidden-one", None)))


def test_secrets_are_replaced_where_they_stand_and_nothing_else_is() -> None:
    changed = replace_secrets(BODY, {SECOND: Secret("third-one", None)})
    assert isinstance(changed, Body)
    assert changed.logins["a"].older[1].value == "third-one"
    assert changed.logins["a"].password is BODY.logins["a"].password
    assert replace_secrets(BODY, {}) is BODY


def test_body_of_any_shape_is_sealed_with_the_hashes_of_the_state() -> None:
    item = DesiredResource(ResourceId("Door", "front"), BODY)
    assert has_secrets([item])
    (first,) = hash_secrets([item], {}, SecretHasher("x"), ignore_progress)
    hashes = {at: secret.digest for at, secret in find_secrets(first.body)}
    assert all(is_hash_of(hashes[at], secret.value) for at, secret in find_secrets(BODY))
    assert collect_secret_values([first]) == {hashes[at]: secret.value for at, secret in find_secrets(BODY)}
    owned = {"Door/front": DoorRecord({"a": LoginRecord(SecretRef(hashes[PASSWORD], None))})}
    assert list(list_stored_hashes(owned)) == [hashes[PASSWORD]]
    (again,) = hash_secrets([item], owned, SecretHasher("y"), ignore_progress)
    found = {at: secret.digest for at, secret in find_secrets(again.body)}
    assert found[PASSWORD] == hashes[PASSWORD]
    assert found[FIRST] != hashes[FIRST]


@pytest.mark.parametrize(
    "args",
    [
        DoorArgs(ref("a")),
        DoorArgs(inner=DoorArgs(ref("a"))),
        DoorArgs(logins=({}, {"password": ref("a")})),
        DoorArgs(inner=DoorArgs(logins=({"password": ref("a")},))),
    ],
)
def test_secret_that_has_changed_is_noticed_wherever_it_stands_in_the_arguments(args: DoorArgs) -> None:
    """Regression: only values within ``ops`` were checked, so that other secrets were sent unchecked."""
    (problem,) = find_changed_secrets([operation(args)], Gone())
    assert [d.code for d in problem.diagnostics] == ["secret-changed"]


def test_secret_that_is_gone_is_named_by_its_place() -> None:
    op = operation(DoorArgs(ref("b"), ({"password": ref("a")},)))
    assert find_unrevealable([op], Gone()).keys() == {op.id}
    assert find_unrevealable([op], Gone())[op.id].keys() == {"logins.0.password", "token"}


def test_earlier_secret_that_is_kept_for_the_way_back_need_not_be_there() -> None:
    assert find_changed_secrets([operation(DoorArgs(was=ref("a")))], Gone()) == []


plain = st.none() | st.integers() | st.text(max_size=3)
secrets = st.builds(record, st.text(max_size=3))
documents: st.SearchStrategy[Any] = st.recursive(
    plain | secrets,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)


@given(documents)
def test_every_record_is_found_and_can_be_replaced_by_its_place(document: Json) -> None:
    found = dict(find_records(document))
    assert str(document).count("hash-of-") == len(found)
    new = {at: replace(item, secret=f"new-{n}") for n, (at, item) in enumerate(found.items())}
    changed = replace_records(document, new)
    assert dict(find_records(changed)) == new
    assert replace_records(changed, found) == document


@given(documents)
def test_every_secret_of_a_body_is_found_and_can_be_replaced_by_its_place(document: Json) -> None:
    body = typed(document)
    found = dict(find_secrets(body))
    assert len(found) == len(dict(find_records(document)))
    new = {at: replace(secret, digest=f"new-{n}") for n, (at, secret) in enumerate(found.items())}
    changed = replace_secrets(body, new)
    assert dict(find_secrets(changed)) == new
    assert has_secret(changed) == bool(new)
    assert replace_secrets(changed, found) == body


def typed(value: Json) -> object:
    if isinstance(value, dict) and "secret" in value:
        return Secret(value["secret"], value["reference"])
    if isinstance(value, dict):
        return {key: typed(item) for key, item in value.items()}
    return tuple(map(typed, value)) if isinstance(value, list) else value


def test_field_that_is_called_secret_is_no_record_itself() -> None:
    assert dict(find_records({"secret": ref("a")})) == {("secret",): ref("a")}
    assert not list(find_records({"secret": "of the trade", "ttl": 5}))
