"""The provider contract, for schemas in an in-memory registry."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from kdeclare.core.parts import Connections
from kdeclare.core.resources.changes import Action
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.providers.schema_registry.connection import RegistryClients
from kdeclare.providers.schema_registry.definition import PROVIDER
from kdeclare.providers.schema_registry.testing import (
    APICURIO,
    CONFLUENT,
    KARAPACE,
    Behavior,
    MemoryRegistry,
)
from kdeclare.testing.provider_contract import Declared, ProviderContract
from tests.connections import connections_to
from tests.jsontypes import Json

pytestmark = pytest.mark.slow


def avro(name: str, **fields: Json) -> Json:
    """Return an Avro record. A field is a type, or a type with a default."""
    return {
        "type": "record",
        "name": name,
        "fields": [
            {"name": key, **(value if isinstance(value, dict) else {"type": value})}
            for key, value in fields.items()
        ],
    }


def declare_schema(name: str, schema: Json, **more: Json) -> Declared:
    return Declared("Schema", name, {"registry": "main", "schema": schema, **more}, {"team": name})


LONG = {"type": "long", "default": 0}


class SchemaContract(ProviderContract):
    """Schemas that are created, changed and deleted, with references and levels."""

    provider = PROVIDER
    behavior: Behavior
    before: ClassVar[Sequence[Declared]] = (
        declare_schema("changed", avro("Changed", id="string"), compatibility="BACKWARD"),
        declare_schema("gone", avro("Gone", id="string"), compatibility="FULL"),
        declare_schema(
            "gone-user",
            avro("GoneUser", one="Gone"),
            references=[{"name": "Gone", "subject": "gone"}],
        ),
        declare_schema("part", avro("Part", id="string")),
        declare_schema("whole", avro("Whole", part="Part"), references=[{"name": "Part", "subject": "part"}]),
    )
    after: ClassVar[Sequence[Declared]] = (
        declare_schema("changed", avro("Changed", id="string", size=LONG), compatibility="FULL"),
        declare_schema("part", avro("Part", id="string", size=LONG)),
        declare_schema("whole", avro("Whole", part="Part"), references=[{"name": "Part", "subject": "part"}]),
        declare_schema("new", avro("New", id="string"), compatibility="FORWARD"),
        declare_schema(
            "new-user", avro("NewUser", one="New"), references=[{"name": "New", "subject": "new"}]
        ),
    )
    elsewhere = (
        declare_schema(
            "changed",
            avro("Changed", id="string", note={"type": "string", "default": ""}),
            compatibility="NONE",
        ),
    )

    def make_system(self, folder: Path) -> object:
        return MemoryRegistry(self.behavior)

    def connect(self, system: object) -> Connections:
        assert isinstance(system, MemoryRegistry)
        clients = RegistryClients(["main"], lambda name: system)
        return connections_to(MemoryCluster()).with_part(clients)

    def dump(self, system: object) -> Json:
        assert isinstance(system, MemoryRegistry)
        registry = system.elsewhere()
        found: dict[str, Json] = {}
        for subject in sorted(registry.list_subjects()):
            texts: list[Json] = []
            for number in registry.list_versions(subject):
                version = registry.read_version(subject, number)
                assert version is not None
                texts.append(version.content.text)
            own = registry.read_level(subject).own
            found[subject] = {"texts": texts, "level": None if own is None else own.value}
        return found


class TestSchemaOnConfluent(SchemaContract):
    """A registry that behaves like Confluent Schema Registry."""

    behavior = CONFLUENT


class TestSchemaOnKarapace(SchemaContract):
    """A registry that behaves like Karapace."""

    behavior = KARAPACE


class TestSchemaOnApicurio(SchemaContract):
    """A registry that compares texts, and reports inherited levels like own levels."""

    behavior = APICURIO


class TestHardDeletion(SchemaContract):
    """Deletions for good, which cannot be undone."""

    behavior = CONFLUENT
    actions = frozenset({Action.CREATE, Action.UPDATE, Action.DELETE})
    before = (
        declare_schema("changed", avro("Changed", id="string")),
        declare_schema("gone", avro("Gone", id="string"), compatibility="FULL", onDelete="hard"),
    )
    after = (
        declare_schema("changed", avro("Changed", id="string", size=LONG)),
        declare_schema("new", avro("New", id="string")),
    )
    elsewhere = (
        declare_schema("changed", avro("Changed", id="string", note={"type": "string", "default": ""})),
    )
