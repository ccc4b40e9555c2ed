"""The states that policies see after changes of some elements of a list."""

from kdeclare.core.policies.policy_fields import PolicyField, PolicyWords
from kdeclare.core.resources.changes import FieldChange, FieldOp
from kdeclare.policy.plain_requests import PlainEffect, apply_effects

WORDS = PolicyWords(
    {"jars": PolicyField(dict[str, object]), "configs": PolicyField(dict[str, str])}, subject="jars"
)


def apply(before: dict[str, object], *fields: FieldChange) -> object:
    return apply_effects(WORDS, before, [PlainEffect(fields=(field,)) for field in fields])


def append(path: str, *elements: str) -> FieldChange:
    return FieldChange(path, FieldOp.APPEND, None, list(elements), list(elements))


def subtract(path: str, *elements: str) -> FieldChange:
    return FieldChange(path, FieldOp.SUBTRACT, list(elements), None, list(elements))


def test_elements_of_other_changes_stay() -> None:
    before: dict[str, object] = {"jars": {"shelf": ["salt"]}}
    after = apply(before, append("jars.shelf", "pepper"), append("jars.shelf", "salt", "mint"))
    assert after == {"jars": {"shelf": ["salt", "pepper", "mint"]}}
    assert before == {"jars": {"shelf": ["salt"]}}


def test_last_element_takes_its_list_with_it() -> None:
    before: dict[str, object] = {"jars": {"shelf": ["salt", "mint"], "table": ["salt"]}}
    after = apply(before, subtract("jars.shelf", "mint"), subtract("jars.table", "salt"))
    assert after == {"jars": {"shelf": ["salt"]}}


def test_new_list_and_whole_values_are_as_planned() -> None:
    whole = FieldChange("jars.shelf", FieldOp.SET, ["salt"], ["mint"])
    assert apply({"jars": {"shelf": ["salt"]}}, whole) == {"jars": {"shelf": ["mint"]}}
    assert apply({}, append("jars.shelf", "salt")) == {"jars": {"shelf": ["salt"]}}
    config = FieldChange("configs.cleanup.policy", FieldOp.APPEND, ["a"], ["a", "b"], ["b"])
    assert apply({"configs": {"cleanup.policy": "a"}}, config) == {"configs": {"cleanup.policy": "a,b"}}
