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


class ChangedSecrets:
    """A source in which every secret has changed since the plan."""

    def reveal(self, secret: SecretRef) -> str:
        raise KdeclareError(error("secret-changed", "Secret has changed", str(secret.reference)))


def make_record(name: str) -> dict[str, str]:
    return {"secret": f"hash-of-{name}", "reference": name}


def make_ref(name: str) -> SecretRef:
    return SecretRef(f"hash-of-{name}", name)


@dataclass(frozen=True)
class DoorArgs(Arguments):
    """Secrets at several depths. was: the previous secret, for the rollback."""

    token: SecretRef | str = "t"
    logins: tuple[Mapping[str, SecretRef], ...] = ()
    inner: "DoorArgs | None" = None
    was: SecretRef | None = None


def make_operation(args: DoorArgs) -> Operation:
    return Operation("door.open:Door/front", "door.open", ResourceId("Door", "front"), args, {})


def test_secret_field_hides_value_in_text() -> None:
    secret = BODY.logins["a"].password
    assert (secret.value, secret.reference) == (HIDDEN, "${env.A}")
    assert HIDDEN not in f"{BODY!r} {BODY}"


def test_secret_field_rejects_other_types() -> None:
    with pytest.raises(ValidationError) as wrong:
        Login.model_validate({"user": "amy", "password": 4711}, strict=True)
    assert [(e["type"], e["loc"]) for e in wrong.value.errors()] == [("string_type", ("password",))]


def test_secret_field_is_text_in_schema() -> None:
    assert Login.model_json_schema()["properties"]["password"]["type"] == "string"


def test_secrets_are_found_at_any_depth_of_body() -> None:
    assert {at: secret.value for at, secret in find_secrets(BODY)} == {
        PASSWORD: HIDDEN,
        FIRST: "first-one",
        SECOND: "second-one",
    }


def test_secrets_are_found_despite_unresolvable_annotations() -> None:
    assert [at for at, _ in find_secrets(Unresolvable(Secret("hidden-one", None)))] == [("secret",)]
    assert has_secret(Unresolvable(Secret("hidden-one", None)))


def test_replace_secrets_changes_only_given_paths() -> None:
    changed = replace_secrets(BODY, {SECOND: Secret("third-one", None)})
    assert isinstance(changed, Body)
    assert changed.logins["a"].older[1].value == "third-one"
    assert changed.logins["a"].password is BODY.logins["a"].password
    assert replace_secrets(BODY, {}) is BODY


def test_hash_secrets_hashes_body_of_any_shape() -> None:
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
        DoorArgs(make_ref("a")),
        DoorArgs(inner=DoorArgs(make_ref("a"))),
        DoorArgs(logins=({}, {"password": make_ref("a")})),
        DoorArgs(inner=DoorArgs(logins=({"password": make_ref("a")},))),
    ],
)
def test_changed_secret_is_found_at_any_depth_of_arguments(args: DoorArgs) -> None:
    """Regression: only values within ``ops`` were checked, so that other secrets were sent unchecked."""
    (problem,) = find_changed_secrets([make_operation(args)], ChangedSecrets())
    assert [d.code for d in problem.diagnostics] == ["secret-changed"]


def test_unrevealable_secret_is_named_by_path() -> None:
    op = make_operation(DoorArgs(make_ref("b"), ({"password": make_ref("a")},)))
    assert find_unrevealable([op], ChangedSecrets()).keys() == {op.id}
    assert find_unrevealable([op], ChangedSecrets())[op.id].keys() == {"logins.0.password", "token"}


def test_secret_kept_for_rollback_may_be_missing() -> None:
    assert find_changed_secrets([make_operation(DoorArgs(was=make_ref("a")))], ChangedSecrets()) == []


plain = st.none() | st.integers() | st.text(max_size=3)
secrets = st.builds(make_record, st.text(max_size=3))
documents: st.SearchStrategy[Any] = st.recursive(
    plain | secrets,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)


@given(documents)
def test_every_secret_record_is_found_and_replaced_by_path(document: Json) -> None:
    found = dict(find_records(document))
    assert str(document).count("hash-of-") == len(found)
    new = {at: replace(item, secret=f"new-{n}") for n, (at, item) in enumerate(found.items())}
    changed = replace_records(document, new)
    assert dict(find_records(changed)) == new
    assert replace_records(changed, found) == document


@given(documents)
def test_every_secret_of_body_is_found_and_replaced_by_path(document: Json) -> None:
    body = convert_records_to_secrets(document)
    found = dict(find_secrets(body))
    assert len(found) == len(dict(find_records(document)))
    new = {at: replace(secret, digest=f"new-{n}") for n, (at, secret) in enumerate(found.items())}
    changed = replace_secrets(body, new)
    assert dict(find_secrets(changed)) == new
    assert has_secret(changed) == bool(new)
    assert replace_secrets(changed, found) == body


def convert_records_to_secrets(value: Json) -> object:
    if isinstance(value, dict) and "secret" in value:
        return Secret(value["secret"], value["reference"])
    if isinstance(value, dict):
        return {key: convert_records_to_secrets(item) for key, item in value.items()}
    return tuple(map(convert_records_to_secrets, value)) if isinstance(value, list) else value


def test_field_named_secret_is_not_a_record() -> None:
    assert dict(find_records({"secret": make_ref("a")})) == {("secret",): make_ref("a")}
    assert not list(find_records({"secret": "of the trade", "ttl": 5}))
