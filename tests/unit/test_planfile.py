"""A plan survives its file, and a file that is not what kdeclare wrote is refused."""

import gc
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, Severity, SourcePosition
from kdeclare.core.jsontypes import hash_json
from kdeclare.core.operations.argument_binding import bind_arguments
from kdeclare.core.operations.operation import Arguments, Inverse, Operation
from kdeclare.core.plans.plan import ClusterRef, Ownership, Plan, PlanBase, Summary, Verdict, VerdictOutcome
from kdeclare.core.resources.changes import Action, Change, FieldChange, FieldOp, Reason, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.record_binding import bind_record
from kdeclare.engine.planning.planfile import (
    build_plan_document,
    compute_plan_id,
    find_written_kinds,
    is_plan_file,
    load_plan,
    parse_plan,
    parse_plan_file,
    render_plan_file,
    write_plan,
)
from kdeclare.engine.planning.planfile_schema import build_plan_schema
from kdeclare.providers.kafka.operations.arguments import (
    AlterConfigsArgs,
    ConfigOpArgs,
    DeleteTopicArgs,
)
from kdeclare.providers.kafka.request_values import NewPartitions, NewTopic
from tests.jsontypes import Json
from tests.unit.report.golden_files import check_schema

VALIDATOR = Draft202012Validator(build_plan_schema())
NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)

texts = st.text(max_size=12)
words = st.text(st.characters(categories=["L", "N", "P"], exclude_characters="/"), min_size=1, max_size=8)
values = st.recursive(
    st.none() | texts | st.integers(-(2**63), 2**63 - 1),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=4,
)
records = st.dictionaries(texts, values, max_size=3)
ids = st.builds(ResourceId, words, words)
places = st.none() | st.builds(SourcePosition, texts, st.integers(1, 999), st.integers(1, 99))
fields = st.builds(FieldChange, texts, st.sampled_from(FieldOp), values, values, values)
changes = st.builds(
    Change,
    ids,
    st.sampled_from(Action),
    st.sampled_from(Reason),
    st.sampled_from(Risk),
    st.lists(fields, max_size=3).map(tuple),
    places,
    st.none() | words,
)
verdicts = st.builds(
    Verdict, texts, texts, st.sampled_from(VerdictOutcome), texts, st.none() | texts, st.none() | texts
)
diagnostics = st.builds(
    Diagnostic,
    st.sampled_from(Severity),
    texts,
    texts,
    texts,
    texts,
    places,
    st.none() | texts,
    st.none() | texts,
)
counts = st.integers(0, 10_000)


def make_inverse(verb: str, args: Mapping[str, Json]) -> Inverse:
    return Inverse(verb, bind_arguments(verb, args))


@st.composite
def draw_graph(draw: st.DrawFn) -> tuple[Operation, ...]:
    """Operations that need only earlier ones, each with one way back or none."""
    found: list[Operation] = []
    for name in draw(st.lists(words, max_size=4, unique=True)):
        needs = {o.id: draw(texts) for o in found if draw(st.booleans())}
        inverse = draw(st.none() | st.builds(make_inverse, words, records))
        irreversible = draw(texts) if inverse is None else None
        verb, expect = draw(words), draw(records)
        args = bind_arguments(verb, draw(records))
        found.append(Operation(name, verb, draw(ids), args, expect, needs, inverse, irreversible))
    return tuple(found)


def make_ownership(id_: ResourceId, before: Json, after: Json) -> Ownership:
    """Records of a kind that is not installed can be anything."""
    return Ownership(id_, bind_record(id_.kind, before), bind_record(id_.kind, after))


plans = st.builds(
    Plan,
    words,
    words,
    st.builds(ClusterRef, texts, texts),
    st.builds(PlanBase, st.none() | texts, counts),
    st.builds(Summary, *[counts] * 10),
    st.lists(changes, max_size=3).map(tuple),
    draw_graph(),
    st.lists(st.builds(make_ownership, ids, values, values), max_size=3).map(tuple),
    st.lists(verdicts, max_size=2).map(tuple),
    st.lists(diagnostics, max_size=2).map(tuple),
    st.dictionaries(texts, st.lists(texts, max_size=3).map(tuple), max_size=2),
    st.none() | texts,
    st.dictionaries(texts, st.dictionaries(texts, texts, max_size=2), max_size=2),
    st.dictionaries(st.integers(0, 2**31 - 1), texts, max_size=3),
)


def make_small_plan() -> Plan:
    resource = ResourceId("Topic", "orders")
    create, delete = (
        bind_arguments("topic.create", {"n": 1}),
        Inverse("topic.delete", DeleteTopicArgs("orders")),
    )
    first = Operation("a", "topic.create", resource, create, {}, {}, delete)
    increase = NewPartitions("orders", 2, None)
    needs = {"a": "created first"}
    second = Operation("b", "partitions.increase", resource, increase, {}, needs, None, "for good")
    change = Change(resource, Action.CREATE, Reason.DECLARED, Risk.SAFE)
    return Plan(
        "payments",
        "sandbox",
        ClusterRef("c1", "here"),
        PlanBase(None, 0),
        Summary(create=1),
        (change,),
        (first, second),
    )


def make_real_plan() -> Plan:
    """A plan whose operations do what it shows, as files that are loaded must."""
    plan = make_small_plan()
    args = NewTopic("orders", 1, 1, None, {})
    inverse = Inverse("topic.delete", DeleteTopicArgs("orders", None, True, args))
    expect: dict[str, Any] = {"topic": "absent", "partitions": None, "configs": None}
    operation = Operation("a", "topic.create", ResourceId("Topic", "orders"), args, expect, {}, inverse)
    fields = tuple(FieldChange(name, FieldOp.CHANGE, None, 1) for name in ("partitions", "replicationFactor"))
    return replace(plan, operations=(operation,), changes=(replace(plan.changes[0], fields=fields),))


def sign(document: dict[str, Any]) -> str:
    """A document as somebody would forge it: with an id that fits."""
    left_out = ("plan_id", "created_at", "signature")
    body = {key: value for key, value in document.items() if key not in left_out}
    return json.dumps(document | {"plan_id": hash_json(body)})


def find_error_code(text: str) -> str:
    with pytest.raises(KdeclareError) as caught:
        parse_plan(text, "x.plan.json")
    (problem,) = caught.value.diagnostics
    assert "x.plan.json" in problem.detail
    assert problem.hint
    return problem.code


@given(plans)
def test_plan_file_round_trips(plan: Plan) -> None:
    text, identity = render_plan_file(plan, NOW)
    file = parse_plan_file(text, "x")
    assert file.plan == plan
    assert file.plan_id == identity == compute_plan_id(plan) == compute_plan_id(file.plan)
    assert file.created_at == "2026-01-31T12:00:00Z"


@given(plans)
def test_plan_document_matches_schema_and_file(plan: Plan) -> None:
    document: Json = build_plan_document(plan, NOW)
    VALIDATOR.validate(document)
    assert json.loads(render_plan_file(plan, NOW)[0]) == document


@given(plans, plans)
def test_plan_ids_are_equal_only_for_equal_plans(one: Plan, other: Plan) -> None:
    assert (compute_plan_id(one) == compute_plan_id(other)) == (one == other)


def test_plan_document_omits_empty_fields_of_verdict() -> None:
    bare = Verdict("bounds", "Topic/orders", VerdictOutcome.DENY, "too many")
    full = replace(bare, outcome=VerdictOutcome.WARN, topic="orders", override="a migration")
    document: Json = build_plan_document(replace(make_small_plan(), verdicts=(bare, full)))
    assert set(document["verdicts"][0]) == {"policy", "resource", "outcome", "message"}
    assert document["verdicts"][1]["topic"] == "orders"
    assert document["verdicts"][1]["override"] == "a migration"
    read = parse_plan(sign(document), "x").verdicts
    assert read == (bare, full)
    assert [v.is_denial for v in read] == [True, False]


def test_plan_id_does_not_depend_on_order_of_mapping() -> None:
    resource = ResourceId("Topic", "t")

    def make_plan(needs: dict[str, str]) -> Plan:
        op = Operation("z", "v", resource, Arguments(), {}, needs, None, "no")
        return Plan("p", "e", ClusterRef("", ""), PlanBase(None, 0), Summary(), operations=(op,))

    assert compute_plan_id(make_plan({"a": "1", "b": "2"})) == compute_plan_id(
        make_plan({"b": "2", "a": "1"})
    )


def test_plan_id_depends_on_version_but_not_on_time() -> None:
    assert (
        build_plan_document(make_small_plan(), NOW)["plan_id"]
        == build_plan_document(make_small_plan())["plan_id"]
        == compute_plan_id(make_small_plan())
    )
    assert compute_plan_id(make_small_plan(), "9.9.9") != compute_plan_id(make_small_plan())


def test_plan_file_of_other_version_keeps_its_id() -> None:
    text, identity = render_plan_file(make_small_plan(), NOW, "0.0.9")
    file = parse_plan_file(text, "x")
    assert (file.plan_id, file.kdeclare_version) == (identity, "0.0.9")
    assert file.plan_id != compute_plan_id(file.plan)


@settings(max_examples=3 * settings().max_examples)
@given(st.data())
def test_plan_file_with_changed_byte_is_rejected_or_equal(data: st.DataObject) -> None:
    content = bytearray(render_plan_file(make_small_plan(), NOW)[0].encode())
    position = data.draw(st.integers(0, len(content) - 1))
    byte = data.draw(st.integers(0, 255))
    assume(content[position] != byte)
    content[position] = byte
    try:
        plan = parse_plan(content.decode("utf-8", "surrogateescape"), "x")
    except KdeclareError:
        return
    assert plan == make_small_plan()  # white space, or the time, which the id does not cover


def test_plan_file_with_changed_field_is_rejected() -> None:
    document: Json = build_plan_document(make_small_plan(), NOW)
    for key in document:
        if key not in ("created_at", "signature"):
            assert find_error_code(json.dumps(document | {key: "other"})) in (
                "plan-tampered",
                "plan-format-version",
            )


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "plan-not-json"),
        ("{", "plan-not-json"),
        ("apiVersion: kdeclare/v1", "plan-not-json"),
        ("[" * 100_000, "plan-not-json"),
        ("[]", "not-a-plan"),
        ("{}", "not-a-plan"),
        ('{"format_version": "1.0"}', "not-a-plan"),
        ('{"format_version": "3.0", "plan_id": "x"}', "plan-format-version"),
        ('{"format_version": 1.0, "plan_id": "x"}', "plan-format-version"),
        ('{"format_version": "1.0", "plan_id": "x"}', "plan-tampered"),
        ('{"format_version": "1.0", "plan_id": null, "x": "\\ud800"}', "plan-tampered"),
        (sign({"format_version": "1.0"}), "plan-malformed"),
        (sign(build_plan_document(make_small_plan()) | {"more": 1}), "plan-malformed"),
        (sign(build_plan_document(make_small_plan()) | {"changes": 1}), "plan-malformed"),
    ],
)
def test_parse_plan_rejects_invalid_file(text: str, code: str) -> None:
    assert find_error_code(text) == code


def test_parse_plan_rejects_truncated_file() -> None:
    assert find_error_code(render_plan_file(make_small_plan())[0][:-40]) == "plan-not-json"


def make_text_with_operation(**changed: Any) -> str:
    document: Json = build_plan_document(make_small_plan())
    document["operations"][0] |= changed
    return sign(document)


def test_parse_plan_rejects_invalid_graph() -> None:
    assert find_error_code(make_text_with_operation(needs=["gone"])) == "plan-malformed"
    assert find_error_code(make_text_with_operation(needs=["b"])) == "plan-malformed"
    assert find_error_code(make_text_with_operation(id="b")) == "plan-malformed"
    assert find_error_code(make_text_with_operation(irreversible="both")) == "plan-malformed"


def test_operation_requires_inverse_or_irreversible() -> None:
    neither = Operation("a", "v", ResourceId("Topic", "t"), Arguments(), {})
    plan = Plan("p", "e", ClusterRef("", ""), PlanBase(None, 0), Summary(), operations=(neither,))
    with pytest.raises(ValueError, match="inverse"):
        compute_plan_id(plan)


def test_documented_plan_schema_is_current() -> None:
    check_schema("plan", build_plan_schema())


def test_plan_schema_rejects_what_reader_rejects() -> None:
    document: Json = build_plan_document(make_small_plan())
    document["operations"][0]["irreversible"] = "both"
    assert not VALIDATOR.is_valid(document)
    assert not VALIDATOR.is_valid(build_plan_document(make_small_plan()) | {"more": 1})


def test_write_plan_and_load_plan_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "my.plan.json"
    path.write_text("before")
    identity = write_plan(make_real_plan(), path, NOW)
    assert [p.name for p in tmp_path.iterdir()] == ["my.plan.json"]
    file = load_plan(path)
    assert (file.plan, file.plan_id) == (make_real_plan(), identity)
    assert is_plan_file(path)


def test_load_plan_accepts_reformatted_file(tmp_path: Path) -> None:
    path = tmp_path / "sorted.json"
    document: Json = build_plan_document(make_real_plan(), NOW)
    path.write_text("\ufeff" + json.dumps(document, indent=4, sort_keys=True), encoding="utf-8")
    assert is_plan_file(path)
    assert load_plan(path).plan == make_real_plan()


def test_empty_file_is_a_truncated_plan_unless_named_like_a_manifest(tmp_path: Path) -> None:
    """Otherwise, an artifact that was cut off would be applied as no manifests: "No changes."."""
    plan, manifest = tmp_path / "it.plan", tmp_path / "it.yaml"
    plan.touch()
    manifest.touch()
    assert is_plan_file(plan)
    assert not is_plan_file(manifest)
    with pytest.raises(KdeclareError) as refused:
        load_plan(plan)
    assert "The file may be truncated." in refused.value.diagnostics[0].detail


def test_is_plan_file_is_false_for_other_files(tmp_path: Path) -> None:
    manifest = tmp_path / "topic.json"
    manifest.write_text('{"apiVersion": "kdeclare/v1", "kind": "Topic"}')
    yaml = tmp_path / "topic.yaml"
    yaml.write_text("# format_version\nkind: Topic\n")
    assert not any(is_plan_file(p) for p in (manifest, yaml, tmp_path, tmp_path / "gone"))


def test_write_plan_reports_unwritable_folder(tmp_path: Path) -> None:
    with pytest.raises(KdeclareError) as caught:
        write_plan(make_small_plan(), tmp_path / "no" / "x.plan.json")
    assert caught.value.diagnostics[0].code == "plan-not-written"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", [None, b"\xff\xfe{"])
def test_load_plan_reports_unreadable_file(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "x.plan.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(KdeclareError) as caught:
        load_plan(path)
    assert caught.value.diagnostics[0].code in ("plan-not-read", "plan-not-json")


@pytest.mark.slow
def test_plan_file_of_5000_operations_is_fast() -> None:
    resources = [ResourceId("Topic", f"payments.topic-{n}") for n in range(5000)]
    configs = {"retention.ms": "604800000", "max.message.bytes": "1048576"}
    sets = tuple(ConfigOpArgs(key, "SET", value) for key, value in configs.items())
    args = [AlterConfigsArgs("TOPIC", r.name, sets) for r in resources]
    operations = [
        Operation(str(r), "configs.alter", r, a, configs, {}, Inverse("configs.alter", a))
        for r, a in zip(resources, args, strict=True)
    ]
    plan = Plan("p", "e", ClusterRef("", ""), PlanBase(None, 0), Summary(), operations=tuple(operations))
    gc.collect()
    begin = time.process_time()
    render_plan_file(plan, NOW)
    assert time.process_time() - begin < 1.5  # 0.1 s on an idle core; the bound is for a busy one


@given(plans)
def test_find_written_kinds_agrees_with_operations(plan: Plan) -> None:
    written = frozenset((op.verb, op.resource.kind) for op in plan.operations)
    is_escaped = any(letter in word for word in sum(written, ()) for letter in '"\\')

    found = find_written_kinds(StringIO(render_plan_file(plan, NOW)[0], newline="\n"))

    assert found == written or (found is None and is_escaped)


def test_find_written_kinds_returns_none_for_other_text() -> None:
    lines = render_plan_file(make_small_plan(), NOW)[0].splitlines(keepends=True)

    assert find_written_kinds(["".join(lines).replace("\n", "")]) is None
    assert find_written_kinds(line.replace('"2.0"', '"9.0"') for line in lines) is None
    assert find_written_kinds(lines[: lines.index('"operations": [\n') + 2]) is None
