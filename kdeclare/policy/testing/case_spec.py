"""The spec of PolicyTest manifests, which contain requests and the expected verdicts."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator

from kdeclare.core.policies.policy_subjects import find_policy_words, list_policy_kinds
from kdeclare.core.resources.kind import SpecPath
from kdeclare.core.suggestions import find_closest, format_alternatives, format_suggestion
from kdeclare.manifests.policies import TOPIC
from kdeclare.policy.interface import Action
from kdeclare.policy.rules.base import Text
from kdeclare.policy.rules.configs import ConfigText

_FIELDS = ("partitions", "replicationFactor", "assignments")
_FIELD = r"^\w+(\..+)?$"
_COUNTS = {"partitions", "replicationFactor"}
_TOPIC_FIELDS = ("topic", "pre", "post", "racks", "records", "partitionsOf", "impact")
_OTHER_KIND_FIELDS = ("name", "before", "after")
_REPLACEMENT_FIELDS = {"topic": "name", "pre": "before", "post": "after"}
_REPLACEMENT_FIELDS |= {other: own for own, other in _REPLACEMENT_FIELDS.items()}
_ABSENCE_REASONS = {
    "pre": "the topic does not exist before the request",
    "before": "the resource does not exist before the request",
    "post": "the topic does not exist after the request",
    "after": "the resource does not exist after the request",
    "records": "a new topic has no records",
    "impact": "a new topic has no records and no consumers",
    "changed": "a deletion changes no fields",
    "labelsBefore": "the topic does not exist before the request",
}
_Count = Annotated[int, Field(ge=1)]
_Name = Annotated[str, Field(min_length=1)]


class _StrictModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _validate_field(text: str) -> str:
    if text in _FIELDS or text.startswith("configs."):
        return text
    kind_words = (find_policy_words(kind) for kind in list_policy_kinds())
    if any(words is not None and words.has_field(text) for words in kind_words):
        return text  # `find_contradictions` checks whether this kind has the field
    suggestion = find_closest(text, _FIELDS)
    hint = f" (did you mean '{suggestion}'?)" if suggestion else ""
    raise ValueError(f"use {', '.join(_FIELDS)} or configs.<key>, not '{text}'{hint}")


ChangedField = Annotated[str, AfterValidator(_validate_field), Field(json_schema_extra={"pattern": _FIELD})]
"""The name of a changed field, in the form of `RequestMetadata.changed`."""


class StateSpec(_StrictModel):
    """A topic before or after the change.

    If ``assignments`` is set, ``partitions`` and ``replicationFactor`` can be omitted.
    """

    partitions: _Count | None = None
    replicationFactor: _Count | None = None  # noqa: N815
    assignments: dict[int, Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)]] = {}
    configs: dict[str, ConfigText | None] = {}


_Fact = Annotated[int, Field(ge=0)] | Literal["unknown"]
_GroupsFact = list[_Name] | Literal["unknown"]


class ImpactSpec(_StrictModel):
    """The impact of the change on the records, consumers and producers of the topic.

    The value ``unknown`` means that kdeclare could not determine a field. `policy.interface.TopicImpact`
    documents the fields.
    """

    records: _Fact | None = None
    bytes: _Fact | None = None
    deletedRecords: _Fact | None = None  # noqa: N815
    deletedBytes: _Fact | None = None  # noqa: N815
    unreadRecords: _Fact | None = None  # noqa: N815
    unreadGroups: _GroupsFact | None = None  # noqa: N815
    activeConsumers: _Fact | None = None  # noqa: N815
    activeGroups: _GroupsFact | None = None  # noqa: N815
    activeProducers: _Fact | None = None  # noqa: N815
    lastWriteMs: _Fact | None = None  # noqa: N815


class RequestSpec(_StrictModel):
    """The request of a test case. `policy.interface.RequestMetadata` documents its fields.

    kind: the kind of the resource. A request for a topic has ``topic``, ``pre`` and ``post``. A request for
        any other kind has ``name``, ``before`` and ``after``, with the fields that rules for this kind can
        use.
    """

    kind: Annotated[str, Field(min_length=1)] = TOPIC
    action: Literal["CREATE", "MODIFY", "DELETE"] | None = None
    topic: Annotated[str, Field(min_length=1)] | None = None
    principal: str | None = None
    labels: dict[str, Text] = {}
    labelsBefore: dict[str, Text] | None = None  # noqa: N815
    changed: list[ChangedField] | None = None
    pre: StateSpec | None = None
    post: StateSpec | None = None
    racks: dict[int, Text | None] | None = None
    records: Annotated[int, Field(ge=0)] | None = None
    partitionsOf: dict[str, Annotated[int, Field(ge=0)]] = {}  # noqa: N815
    impact: ImpactSpec | None = None
    name: Annotated[_Name | None, Field(description="The name of a resource of a kind other than Topic.")] = (
        None
    )
    before: Annotated[
        dict[str, Any] | None, Field(description="The fields before the change, for kinds other than Topic.")
    ] = None
    after: Annotated[
        dict[str, Any] | None, Field(description="The fields after the change, for kinds other than Topic.")
    ] = None

    @field_validator("partitionsOf")
    @classmethod
    def _validate_labels(cls, sums: dict[str, int]) -> dict[str, int]:
        for text in sums:
            parse_labels(text)
        return sums


class CaseSpec(_StrictModel):
    """A test case: a request, and the expected verdict.

    asked: whether at least one policy must be evaluated for the request. If the case names a policy, the
        default is true.
    """

    name: Annotated[str, Field(min_length=1)]
    policy: str | None = None
    request: RequestSpec
    expect: Literal["allow", "warn", "deny"]
    message: Annotated[str, Field(min_length=1)] | None = None
    asked: bool | None = None


class PolicyTestSpec(_StrictModel):
    """The ``spec`` of a PolicyTest manifest."""

    defaults: RequestSpec = RequestSpec()
    cases: Annotated[list[CaseSpec], Field(min_length=1)]


def parse_labels(text: str) -> frozenset[tuple[str, str]]:
    """Parse labels of the form ``key=value,key=value``. Raises ValueError for strings of any other form."""
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(key.strip() and sign for key, sign, _ in pairs):
        raise ValueError(f"write labels as in 'team=blue' or 'team=blue,tier=gold', not '{text}'")
    return frozenset((key.strip(), value.strip()) for key, _, value in pairs)


def merge_request(case: RequestSpec, defaults: RequestSpec) -> RequestSpec:
    """Merge the request of a test case with the defaults of its manifest.

    Mappings are merged key by key. Defaults that do not apply to the action of the request are ignored. For
    example, a number of records does not apply to CREATE.
    """
    stated_fields = case.model_dump(exclude_unset=True)
    common_fields = defaults.model_dump(exclude_unset=True)
    for name in _find_absent_fields(stated_fields.get("action") or common_fields.get("action")):
        common_fields.pop(name, None)
    for name in ("pre", "post"):
        if "assignments" in (stated_fields.get(name) or {}) and common_fields.get(name):
            common_fields[name] = {
                key: value for key, value in common_fields[name].items() if key not in _COUNTS
            }
    return RequestSpec.model_validate(_merge_mappings(stated_fields, common_fields))


def find_contradictions(case: CaseSpec, merged: RequestSpec) -> Iterator[tuple[SpecPath, str]]:
    """Yield the path and the message of each contradiction in a test case."""
    yield from _check_kind(case.request, merged)
    for name in _find_absent_fields(merged.action):
        if getattr(case.request, name):
            yield (
                ("request", name),
                f"A {merged.action} request cannot have '{name}': {_ABSENCE_REASONS[name]}.",
            )
    if merged.action == Action.CREATE and merged.changed == []:
        yield (
            ("request",),
            "'changed' is empty, but a CREATE request sets fields. List these fields, or remove 'changed'.",
        )
    for name, state in (("pre", merged.pre), ("post", merged.post)):
        for text in _check_state(state) if state else ():
            yield ("request", name), text
    if case.message is not None and case.expect == "allow":
        yield (
            ("message",),
            "A policy that allows a request has no message. Remove 'message' or 'expect: allow'.",
        )
    if case.asked is False and case.expect != "allow":
        yield (
            ("asked",),
            f"If no policy is evaluated, the result cannot be {case.expect}. Write 'expect: allow'.",
        )


def _find_absent_fields(action: str | None) -> tuple[str, ...]:
    """Return the fields that a request with this action cannot have."""
    if action == Action.CREATE:
        return "pre", "before", "records", "impact", "labelsBefore"
    return ("post", "after", "changed") if action == Action.DELETE else ()


def _check_kind(stated: RequestSpec, merged: RequestSpec) -> Iterator[tuple[SpecPath, str]]:
    """Yield the path and a message for each field that requests for this kind cannot have."""
    words = find_policy_words(merged.kind)
    if words is None:
        policy_kinds = list_policy_kinds()
        hint = format_suggestion(merged.kind, policy_kinds) or f"Use {format_alternatives(policy_kinds)}."
        yield ("request", "kind"), f"Policies cannot check resources of kind {merged.kind}. {hint}"
        return
    foreign_fields = _OTHER_KIND_FIELDS if merged.kind == TOPIC else _TOPIC_FIELDS
    for name in foreign_fields:
        if name in stated.model_fields_set:
            instead = _REPLACEMENT_FIELDS.get(name)
            hint = f" Use '{instead}'." if instead else ""
            yield ("request", name), f"A request for kind {merged.kind} cannot have '{name}'.{hint}"
    if merged.kind == TOPIC:
        return
    for number, text in enumerate(merged.changed or ()):
        if not words.has_field(text):
            yield ("request", "changed", number), f"{merged.kind} has no field '{text}' that can change."
    for side, state in (("before", merged.before), ("after", merged.after)):
        for name in (state or {}).keys() - words.fields.keys():
            hint = format_suggestion(name, words.fields) or f"Use {', '.join(sorted(words.fields))}."
            yield ("request", side, name), f"'{side}' has no field '{name}'. {hint}"


def _check_state(state: StateSpec) -> Iterator[str]:
    if not state.assignments:
        return
    count = len(state.assignments) if state.partitions is None else state.partitions
    excess_partitions = [number for number in sorted(state.assignments) if not 0 <= number < count]
    if excess_partitions:
        count_text = f"has {count} partitions" if count > 1 else "has 1 partition"
        yield (
            f"'assignments' lists partition {excess_partitions[0]}, "
            f"but the topic {count_text}, numbered from 0."
        )
    for number, replicas in sorted(state.assignments.items()):
        if len(set(replicas)) < len(replicas):
            yield f"'assignments' lists a broker twice for partition {number}."
    factor = min(map(len, state.assignments.values()))
    if state.replicationFactor not in (None, factor):
        yield f"'replicationFactor' is {state.replicationFactor}, but 'assignments' has {factor} replicas."


def _merge_mappings(upper: Mapping[str, Any], lower: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(lower)
    for key, value in upper.items():
        lower_value = merged.get(key)
        merged[key] = (
            _merge_mappings(value, lower_value)
            if isinstance(value, dict) and isinstance(lower_value, dict)
            else value
        )
    return merged
