"""Whatever is declared and registered, an apply makes it so, and a rollback restores the registry."""

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kdeclare.core.resources.kind import DesiredResource
from kdeclare.providers.schema_registry.client.port import CompatibilityLevel, SchemaReference
from kdeclare.providers.schema_registry.testing import Behavior, MemoryRegistry
from kdeclare.testing.world import declare
from tests.engine.test_schemas import ALLOW_DELETES, BEHAVIORS, World, avro
from tests.jsontypes import Json

SUBJECTS = ("a", "b", "c")
FIELDS: tuple[dict[str, Json], ...] = (
    {"id": "string"},
    {"id": {"type": "string", "doc": "The id."}},
    {"id": "string", "size": {"type": "long", "default": 0}},
    {"id": "string", "note": {"type": "string", "default": ""}},
    {"id": "bytes"},
)
LEVELS = ("NONE", "BACKWARD", "FULL", "FORWARD_TRANSITIVE")


def build_record(subject: str, fields: dict[str, Json], targets: list[str]) -> Json:
    """Return a record that refers to the records of other subjects."""
    return avro(f"x.{subject.upper()}", **fields, **{t: f"x.{t.upper()}" for t in targets})


@st.composite
def build_declarations(draw: st.DrawFn) -> list[DesiredResource]:
    """Declare some of the subjects. A subject refers only to subjects before it."""
    declared: list[DesiredResource] = []
    names: list[str] = []
    for subject in SUBJECTS:
        if not draw(st.booleans()):
            continue
        targets = [name for name in names if draw(st.booleans())]
        spec: dict[str, Any] = {
            "schema": build_record(subject, draw(st.sampled_from(FIELDS)), targets),
            "references": [{"name": f"x.{t.upper()}", "subject": t} for t in targets],
        }
        level = draw(st.sampled_from((*LEVELS, None, "undeclared")))
        if level != "undeclared":
            spec["compatibility"] = level
        declared.append(declare("Schema", subject, spec))
        names.append(subject)
    return declared


def dump(registry: MemoryRegistry) -> Json:
    """Return the contents and levels of all subjects. Numbers of versions are not restored."""
    found: dict[str, Json] = {}
    for subject in sorted(registry.list_subjects()):
        texts: list[Json] = []
        for number in registry.list_versions(subject):
            version = registry.read_version(subject, number)
            assert version is not None
            names: list[Json] = [item.name for item in version.content.references]
            texts.append([version.content.text, names])
        level = registry.read_level(subject)
        found[subject] = [texts, None if level.own is None else level.own.value]
    return found


def register_elsewhere(data: st.DataObject, world: World) -> None:
    """Register versions and set levels as another client."""
    for subject in data.draw(st.lists(st.sampled_from(SUBJECTS), max_size=4)):
        world.elsewhere.set_level(subject, CompatibilityLevel.NONE)
        fields = data.draw(st.sampled_from(FIELDS))
        latest = world.elsewhere.read_version("a")
        targets = ["a"] if latest is not None and subject != "a" and data.draw(st.booleans()) else []
        references = [SchemaReference("x.A", "a", latest.version) for _ in targets if latest is not None]
        world.register(subject, build_record(subject, fields, targets), *references)
        world.elsewhere.set_level(subject, CompatibilityLevel(data.draw(st.sampled_from(LEVELS))))


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.data(), st.sampled_from(BEHAVIORS), build_declarations(), build_declarations())
def test_apply_reaches_what_is_declared_and_rollback_restores_it(
    data: st.DataObject, behavior: Behavior, first: list[DesiredResource], second: list[DesiredResource]
) -> None:
    world = World(registry=MemoryRegistry(behavior))
    world.elsewhere.set_level(None, CompatibilityLevel.NONE)
    register_elsewhere(data, world)
    plan = world.plan(*first, scope=ALLOW_DELETES)
    assume(not any(d.is_blocking for d in plan.diagnostics))
    assume(world.run(plan).complete)
    before, owned = dump(world.elsewhere), world.owned()
    assert not world.plan(*first, scope=ALLOW_DELETES).has_changes
    plan = world.plan(*second, scope=ALLOW_DELETES)
    assume(plan.operations and not any(d.is_blocking for d in plan.diagnostics))
    run = world.run(plan)
    assume(run.complete)  # a level that changes before a registration can make the registry refuse it
    assert not world.plan(*second, scope=ALLOW_DELETES).has_changes
    undone = world.rollback(run.run_id)
    assume(undone.complete)  # a registry can refuse to restore what is no longer compatible
    assert dump(world.elsewhere) == before
    assert {key: {**item, "version": None} for key, item in world.owned().items()} == {
        key: {**item, "version": None} for key, item in owned.items()
    }
