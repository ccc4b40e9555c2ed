"""Schema registries through the `SchemaRegistry` protocol, in memory and a real Apicurio Registry."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.faults import FaultKind
from kdeclare.providers.schema_registry.client import port
from kdeclare.providers.schema_registry.client.port import (
    CompatibilityLevel,
    CompatibilityResult,
    RegisteredSchema,
    Registration,
    SchemaContent,
    SchemaType,
    SubjectLevel,
    SubjectVersion,
)
from kdeclare.providers.schema_registry.testing import APICURIO, CONFLUENT, KARAPACE, MemoryRegistry
from tests.registries import AMOUNT, ID, RegistryBed, build_avro, build_record

NONE, BACKWARD, FULL = CompatibilityLevel.NONE, CompatibilityLevel.BACKWARD, CompatibilityLevel.FULL
BACKWARD_TRANSITIVE = CompatibilityLevel.BACKWARD_TRANSITIVE

V1 = build_record(ID)
V2 = build_record(ID, ("note", ["null", "string"], None))
V3 = build_record(ID, ("note", ["null", "string"], None), ("amount", "int", 0))
INCOMPATIBLE = build_record(ID, AMOUNT)
JSON = SchemaContent(SchemaType.JSON, '{"type":"object","properties":{"id":{"type":"string"}}}')
PROTO = SchemaContent(
    SchemaType.PROTOBUF, 'syntax = "proto3";\npackage x;\n\nmessage Order {\n  string id = 1;\n}\n'
)

_REAL = pytest.param("real", marks=pytest.mark.kafka)
_BEHAVIORS = {behavior.product: behavior for behavior in (CONFLUENT, KARAPACE, APICURIO)}


@pytest.fixture(params=[*_BEHAVIORS, _REAL])
def bed(request: pytest.FixtureRequest) -> Iterator[RegistryBed]:
    """A registry of each kind."""
    if request.param != "real":
        behavior = _BEHAVIORS[request.param]
        yield RegistryBed(MemoryRegistry(behavior), behavior)
        return
    from kdeclare.http.target import HttpTarget
    from kdeclare.providers.schema_registry.client.rest import open_rest_registry

    registry = open_rest_registry(HttpTarget((request.getfixturevalue("registry_url"),)))
    try:
        yield RegistryBed(registry, APICURIO)
    finally:
        registry.close()


# --- the registry


def test_identify_reports_global_level_and_mode(bed: RegistryBed) -> None:
    info = bed.registry.identify()
    assert info.level is bed.behavior.level
    assert info.mode is bed.behavior.mode
    assert info.distinguishes_own_levels is bed.behavior.distinguishes_own_levels
    assert info.id == bed.behavior.id


def test_mode_is_read(bed: RegistryBed) -> None:
    subject = bed.create()
    assert bed.registry.read_mode() is bed.behavior.mode
    assert bed.registry.read_mode(subject) is bed.behavior.mode
    assert bed.registry.read_mode(bed.new_subject()) is bed.behavior.mode


# --- reading


def test_absent_subject_is_absent(bed: RegistryBed) -> None:
    registry, subject = bed.registry, bed.new_subject()
    assert subject not in registry.list_subjects()
    assert registry.list_versions(subject) == ()
    assert registry.read_version(subject) is None
    assert registry.read_version(subject, 1) is None
    assert registry.find_version(subject, V1) is None
    assert registry.list_referrers(subject, 1) == ()


def test_absent_version_is_absent(bed: RegistryBed) -> None:
    subject = bed.create(V1)
    assert bed.registry.read_version(subject, 2) is None
    assert bed.registry.find_version(subject, V2) is None
    assert bed.registry.list_referrers(subject, 2) == ()


@pytest.mark.parametrize("content", [V1, JSON, PROTO], ids=["avro", "json", "protobuf"])
def test_registered_text_is_unchanged(bed: RegistryBed, content: SchemaContent) -> None:
    subject = bed.new_subject()
    registration = bed.registry.register(subject, content)
    assert registration.version == 1
    expected = RegisteredSchema(subject, 1, registration.id, content)
    assert bed.registry.read_version(subject) == expected
    assert bed.registry.read_version(subject, 1) == expected
    assert bed.registry.find_version(subject, content) == expected


def test_versions_are_listed_and_latest_is_read(bed: RegistryBed) -> None:
    subject = bed.create(V1, V2, V3)
    assert subject in bed.registry.list_subjects()
    assert bed.registry.list_versions(subject) == (1, 2, 3)
    assert bed.read(subject).version == 3
    assert bed.read(subject).content == V3
    assert bed.read(subject, 2).content == V2


@pytest.mark.parametrize("suffix", [" a/b", "%2F", "ä?", ":.x:", "#"])
def test_subject_with_special_characters_is_found(bed: RegistryBed, suffix: str) -> None:
    subject = bed.create(V1, suffix=suffix)
    assert bed.read(subject).subject == subject
    assert subject in bed.registry.list_subjects()
    assert bed.registry.read_level(subject).effective is NONE


def test_latest_versions_are_listed_if_supported(bed: RegistryBed) -> None:
    subject = bed.create(V1, V2)
    latest = bed.registry.list_latest()
    if not bed.behavior.lists_schemas:
        assert latest is None
    else:
        assert latest is not None
        assert latest[subject] == bed.read(subject)


# --- registration


def test_equal_content_keeps_version_and_id(bed: RegistryBed) -> None:
    subject = bed.create(V1, V2)
    first = bed.read(subject, 1)
    assert bed.registry.register(subject, V1) == Registration(first.id, 1)
    assert bed.registry.list_versions(subject) == (1, 2)
    assert bed.read(subject).version == 2, "an older content does not become the latest version again"


def test_equal_content_of_other_subject_has_same_id(bed: RegistryBed) -> None:
    assert bed.read(bed.create(V1)).id == bed.read(bed.create(V1)).id


def test_layout_makes_difference_only_if_texts_are_compared(bed: RegistryBed) -> None:
    subject = bed.create(V1)
    document = json.loads(V1.text)
    reordered = json.dumps(dict(reversed(document.items())), indent=2)
    same = replace(V1, text=reordered)
    found = bed.registry.find_version(subject, same)
    registration = bed.registry.register(subject, same)
    if bed.behavior.compares_text:
        assert found is None
        assert registration.version == 2
        assert registration.id != bed.read(subject, 1).id
    else:
        assert found == bed.read(subject, 1)
        assert registration == Registration(bed.read(subject, 1).id, 1)


def test_comment_in_protobuf_makes_difference_only_if_texts_are_compared(bed: RegistryBed) -> None:
    subject = bed.create(PROTO)
    commented = replace(PROTO, text=f"// an order\n{PROTO.text}")
    registration = bed.registry.register(subject, commented)
    assert registration.version == (2 if bed.behavior.compares_text else 1)


@pytest.mark.parametrize(
    "content",
    [
        build_avro({"type": "record", "name": "x.Order", "fields": [{"name": "o", "type": "y.Unknown"}]}),
        SchemaContent(SchemaType.AVRO, '{"type": "record"'),
        SchemaContent(SchemaType.PROTOBUF, 'syntax = "proto3"; message Order {'),
    ],
    ids=["unknown type", "no JSON", "no Protobuf"],
)
def test_invalid_schema_is_refused(bed: RegistryBed, content: SchemaContent) -> None:
    subject = bed.new_subject()
    with bed.catch(port.INVALID_SCHEMA) as caught:
        bed.registry.register(subject, content)
    assert caught.fault.kind is FaultKind.REFUSED
    assert caught.fault.message
    assert bed.registry.list_versions(subject) == ()


def test_empty_text_is_a_trap(bed: RegistryBed) -> None:
    subject, empty = bed.new_subject(), SchemaContent(SchemaType.AVRO, "")
    if bed.behavior.accepts_empty_text:
        assert bed.registry.register(subject, empty).version == 1
    else:
        with bed.catch(port.INVALID_SCHEMA):
            bed.registry.register(subject, empty)


# --- compatibility


def test_incompatible_registration_is_refused(bed: RegistryBed) -> None:
    subject = bed.create(V1, level=BACKWARD)
    with bed.catch(port.INCOMPATIBLE) as caught:
        bed.registry.register(subject, INCOMPATIBLE)
    assert caught.fault.kind is FaultKind.REFUSED
    assert caught.fault.message
    assert bed.registry.list_versions(subject) == (1,)


def test_check_reports_incompatibility_with_reasons(bed: RegistryBed) -> None:
    subject = bed.create(V1, level=BACKWARD)
    result = bed.registry.check_compatibility(subject, INCOMPATIBLE)
    assert not result.is_compatible
    assert result.is_checked
    if bed.behavior.explains_checks:
        assert any("amount" in reason for reason in result.reasons)
    else:
        assert not result.reasons


def test_check_accepts_compatible_content(bed: RegistryBed) -> None:
    subject = bed.create(V1, level=BACKWARD)
    assert bed.registry.check_compatibility(subject, V2) == CompatibilityResult(True)


def test_check_uses_current_level(bed: RegistryBed) -> None:
    subject = bed.create(V1, level=NONE)
    assert bed.registry.check_compatibility(subject, INCOMPATIBLE).is_compatible
    bed.registry.set_level(subject, FULL)
    assert not bed.registry.check_compatibility(subject, INCOMPATIBLE).is_compatible


@pytest.mark.parametrize(("level", "is_compatible"), [(BACKWARD, True), (BACKWARD_TRANSITIVE, False)])
def test_transitive_level_checks_all_versions(
    bed: RegistryBed, level: CompatibilityLevel, is_compatible: bool
) -> None:
    # The field got a default in version 2, which version 1 lacks entirely.
    first, second = build_record(ID), build_record(ID, ("amount", "int", 0))
    third = build_record(ID, AMOUNT)
    subject = bed.create(first, second)
    bed.registry.set_level(subject, level)
    assert bed.registry.check_compatibility(subject, third).is_compatible is is_compatible


def test_check_without_versions_finds_no_incompatibility(bed: RegistryBed) -> None:
    result = bed.registry.check_compatibility(bed.new_subject(), V1)
    assert result == CompatibilityResult(True, is_checked=not bed.behavior.reports_missing_versions)


def test_check_of_invalid_schema_is_refused(bed: RegistryBed) -> None:
    subject = bed.create(V1, level=BACKWARD)
    with bed.catch(port.INVALID_SCHEMA):
        bed.registry.check_compatibility(subject, SchemaContent(SchemaType.AVRO, '{"type": "record"'))


# --- levels


def test_level_of_subject_is_set_and_deleted(bed: RegistryBed) -> None:
    subject = bed.create(V1, level=FULL)
    assert bed.registry.read_level(subject) == SubjectLevel(FULL, FULL)
    bed.registry.delete_level(subject)
    level = bed.registry.read_level(subject)
    assert (level.effective, level.own) == (bed.behavior.level, None)
    assert level.is_own_known is bed.behavior.distinguishes_own_levels


def test_level_that_equals_global_level_is_a_trap(bed: RegistryBed) -> None:
    subject = bed.create(V1, level=bed.behavior.level)
    level = bed.registry.read_level(subject)
    assert level.effective is bed.behavior.level
    if bed.behavior.distinguishes_own_levels:
        assert level.own is bed.behavior.level
    else:
        assert (level.own, level.is_own_known) == (None, False)


def test_deleting_missing_level_has_no_effect(bed: RegistryBed) -> None:
    subject = bed.create(V1, level=None)
    bed.registry.delete_level(subject)
    bed.registry.delete_level(bed.new_subject())
    assert bed.registry.read_level(subject).effective is bed.behavior.level


def test_absent_subject_inherits_global_level(bed: RegistryBed) -> None:
    assert bed.registry.read_level(bed.new_subject()) == SubjectLevel(bed.behavior.level, None)


def test_every_level_can_be_set(bed: RegistryBed) -> None:
    subject = bed.create(V1)
    for level in CompatibilityLevel:
        bed.registry.set_level(subject, level)
        assert bed.registry.read_level(subject).effective is level


def test_global_level_is_set(bed: RegistryBed) -> None:
    subject = bed.create(V1, level=None)
    try:
        bed.registry.set_level(None, FULL)
        assert bed.registry.read_global_level() is FULL
        assert bed.registry.read_level(subject) == SubjectLevel(FULL, None)
        bed.registry.set_level(subject, BACKWARD)
        assert bed.registry.read_level(subject) == SubjectLevel(BACKWARD, BACKWARD)
        bed.registry.set_level(subject, NONE)
        expected = SubjectLevel(NONE, NONE) if bed.behavior.stores_level_none else SubjectLevel(FULL, None)
        assert bed.registry.read_level(subject) == expected
    finally:
        bed.registry.set_level(None, bed.behavior.level)


def test_level_can_be_set_before_first_version(bed: RegistryBed) -> None:
    subject = bed.new_subject()
    bed.registry.set_level(subject, FULL)
    assert bed.registry.read_level(subject).effective is FULL
    bed.register(subject, V1)
    assert bed.registry.read_level(subject).effective is FULL


def test_level_after_deletion_of_subject(bed: RegistryBed) -> None:
    subject = bed.create(V1, level=FULL)
    bed.registry.delete_subject(subject)
    bed.register(subject, V1)
    expected = bed.behavior.level if bed.behavior.deletes_level_with_subject else FULL
    assert bed.registry.read_level(subject).effective is expected


# --- deletion


def test_soft_deleted_subject_is_hidden(bed: RegistryBed) -> None:
    subject = bed.create(V1, V2)
    assert bed.registry.delete_subject(subject) == (1, 2)
    assert subject not in bed.registry.list_subjects()
    assert subject in bed.registry.list_subjects(include_deleted=True)
    assert bed.registry.list_versions(subject) == ()
    assert bed.registry.list_versions(subject, include_deleted=True) == (1, 2)
    assert bed.registry.read_version(subject) is None
    assert bed.registry.find_version(subject, V1) is None


def test_soft_deleted_version_is_hidden(bed: RegistryBed) -> None:
    subject = bed.create(V1, V2)
    bed.registry.delete_version(subject, 2)
    assert bed.registry.list_versions(subject) == (1,)
    assert bed.registry.list_versions(subject, include_deleted=True) == (1, 2)
    assert bed.read(subject).version == 1
    assert bed.registry.read_version(subject, 2) is None
    deleted = bed.registry.read_version(subject, 2, include_deleted=True)
    assert deleted is not None
    assert deleted.content == V2


def test_registration_after_soft_deletion_gets_new_version_and_old_id(bed: RegistryBed) -> None:
    subject = bed.create(V1, V2)
    old_id = bed.read(subject).id
    bed.registry.delete_version(subject, 2)
    assert bed.registry.register(subject, V2) == Registration(old_id, 3)
    assert bed.registry.list_versions(subject) == (1, 3)


def test_registration_after_soft_deletion_of_subject_continues_numbers(bed: RegistryBed) -> None:
    subject = bed.create(V1, V2)
    old_id = bed.read(subject, 1).id
    bed.registry.delete_subject(subject)
    assert bed.registry.register(subject, V1) == Registration(old_id, 3)


def test_subject_is_purged_after_soft_deletion(bed: RegistryBed) -> None:
    subject = bed.create(V1, V2)
    bed.registry.delete_subject(subject)
    assert bed.registry.delete_subject(subject, permanent=True) == (1, 2)
    assert subject not in bed.registry.list_subjects(include_deleted=True)
    assert bed.registry.list_versions(subject, include_deleted=True) == ()


def test_version_is_purged_after_soft_deletion(bed: RegistryBed) -> None:
    subject = bed.create(V1, V2)
    bed.registry.delete_version(subject, 1)
    bed.registry.delete_version(subject, 1, permanent=True)
    assert bed.registry.list_versions(subject, include_deleted=True) == (2,)


def test_purge_before_soft_deletion_is_refused(bed: RegistryBed) -> None:
    subject = bed.create(V1, V2)
    with bed.catch(port.SUBJECT_NOT_SOFT_DELETED):
        bed.registry.delete_subject(subject, permanent=True)
    with bed.catch(port.VERSION_NOT_SOFT_DELETED) as caught:
        bed.registry.delete_version(subject, 2, permanent=True)
    assert caught.fault.kind is FaultKind.REFUSED
    assert bed.registry.list_versions(subject) == (1, 2)


def test_second_soft_deletion_is_refused(bed: RegistryBed) -> None:
    subject = bed.create(V1, V2)
    bed.registry.delete_version(subject, 1)
    with bed.catch(port.VERSION_SOFT_DELETED):
        bed.registry.delete_version(subject, 1)
    bed.registry.delete_subject(subject)
    with bed.catch(port.SUBJECT_SOFT_DELETED):
        bed.registry.delete_subject(subject)


def test_deletion_of_absent_objects_is_refused(bed: RegistryBed) -> None:
    subject = bed.create(V1)
    with bed.catch(port.VERSION_NOT_FOUND):
        bed.registry.delete_version(subject, 2)
    with bed.catch(port.SUBJECT_NOT_FOUND):
        bed.registry.delete_subject(bed.new_subject())
    with bed.catch(port.SUBJECT_NOT_FOUND):
        bed.registry.delete_version(bed.new_subject(), 1)
    with bed.catch(port.SUBJECT_NOT_FOUND):
        bed.registry.delete_subject(bed.new_subject(), permanent=True)


# --- references


def test_references_are_stored(bed: RegistryBed) -> None:
    order = bed.create(V1)
    reference = bed.refer_to("x.Order", order)
    line = build_avro(
        {"type": "record", "name": "x.Line", "fields": [{"name": "o", "type": "x.Order"}]}, reference
    )
    subject = bed.create(line)
    assert bed.read(subject).content == line
    found = bed.registry.find_version(subject, line)
    assert found is not None
    assert found.version == 1
    assert found.content.references == (reference,)
    assert bed.registry.list_referrers(order, 1) == (SubjectVersion(subject, 1),)
    assert bed.registry.list_referrers(subject, 1) == ()


def test_reference_to_missing_version_is_refused(bed: RegistryBed) -> None:
    reference = bed.refer_to("x.Order", bed.new_subject())
    line = build_avro(
        {"type": "record", "name": "x.Line", "fields": [{"name": "o", "type": "x.Order"}]}, reference
    )
    with bed.catch(port.INVALID_SCHEMA) as caught:
        bed.registry.register(bed.new_subject(), line)
    assert caught.fault.kind is FaultKind.REFUSED


def test_deletion_of_referenced_version_is_refused(bed: RegistryBed) -> None:
    order = bed.create(V1)
    line = build_avro(
        {"type": "record", "name": "x.Line", "fields": [{"name": "o", "type": "x.Order"}]},
        bed.refer_to("x.Order", order),
    )
    subject = bed.create(line)
    with bed.catch(port.REFERENCE_EXISTS) as caught:
        bed.registry.delete_version(order, 1)
    assert caught.fault.kind is FaultKind.REFUSED
    with bed.catch(port.REFERENCE_EXISTS):
        bed.registry.delete_subject(order)
    bed.registry.delete_subject(subject)
    bed.registry.delete_subject(subject, permanent=True)
    assert bed.registry.delete_subject(order) == (1,)


def test_check_resolves_references_or_says_that_it_cannot(bed: RegistryBed) -> None:
    order = bed.create(V1)
    reference = bed.refer_to("x.Order", order)

    def build_line(*fields: JsonValue) -> SchemaContent:
        all_fields: list[JsonValue] = [{"name": "o", "type": "x.Order"}, *fields]
        return build_avro({"type": "record", "name": "x.Line", "fields": all_fields}, reference)

    subject = bed.create(build_line(), level=BACKWARD)
    compatible = build_line({"name": "count", "type": "int", "default": 0})
    incompatible = build_line({"name": "count", "type": "int"})
    result = bed.registry.check_compatibility(subject, compatible)
    assert result.is_compatible
    assert result.is_checked is bed.behavior.checks_references
    result = bed.registry.check_compatibility(subject, incompatible)
    assert result.is_compatible is not bed.behavior.checks_references
    assert result.is_checked is bed.behavior.checks_references
    with bed.catch(port.INCOMPATIBLE):
        bed.registry.register(subject, incompatible)
    assert bed.registry.register(subject, compatible).version == 2
