"""The schema registries of contract tests: in memory, and a real Apicurio Registry."""

import itertools
import json
import uuid
from collections.abc import Sequence

from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.faults import Fault
from kdeclare.providers.schema_registry.client.port import (
    CompatibilityLevel,
    RegisteredSchema,
    Registration,
    SchemaContent,
    SchemaReference,
    SchemaRegistry,
    SchemaType,
)
from kdeclare.providers.schema_registry.testing.behavior import Behavior


def build_record(
    *fields: tuple[str, JsonValue] | tuple[str, JsonValue, JsonValue],
    name: str = "x.Order",
    **attributes: str,
) -> SchemaContent:
    """Return an Avro record. fields: the name, the type, and optionally the default of each field."""
    names = ("name", "type", "default")
    record: dict[str, JsonValue] = {"type": "record", "name": name, **attributes}
    record["fields"] = [dict(zip(names, field, strict=False)) for field in fields]
    return build_avro(record)


def build_avro(schema: JsonValue, *references: SchemaReference) -> SchemaContent:
    """Return an Avro schema."""
    return SchemaContent(SchemaType.AVRO, json.dumps(schema, separators=(",", ":")), references)


ID = ("id", "string")
AMOUNT = ("amount", "int")


class RegistryBed:
    """One registry, and the subjects that one test uses.

    behavior: how the registry behaves.
    """

    def __init__(self, registry: SchemaRegistry, behavior: Behavior) -> None:
        self.registry = registry
        self.behavior = behavior
        self._prefix = f"t{uuid.uuid4().hex[:8]}"
        self._numbers = itertools.count(1)

    def new_subject(self, suffix: str = "") -> str:
        """Return the name of a subject that does not exist."""
        return f"{self._prefix}-{next(self._numbers)}{suffix}"

    def register(self, subject: str, *contents: SchemaContent) -> Registration:
        """Register contents in this order, and return the last registration."""
        registrations = [self.registry.register(subject, content) for content in contents]
        return registrations[-1]

    def create(
        self,
        *contents: SchemaContent,
        level: CompatibilityLevel | None = CompatibilityLevel.NONE,
        suffix: str = "",
    ) -> str:
        """Register contents under a new subject, then set its level, and return its name."""
        subject = self.new_subject(suffix)
        first, *others = contents or (build_record(ID),)
        self.registry.register(subject, first)
        if level is not None:
            self.registry.set_level(subject, level)
        for content in others:
            self.registry.register(subject, content)
        return subject

    def read(self, subject: str, version: int | None = None) -> RegisteredSchema:
        """Return a version, which must exist."""
        schema = self.registry.read_version(subject, version)
        assert schema is not None
        return schema

    def refer_to(self, name: str, subject: str, version: int = 1) -> SchemaReference:
        """Return a reference."""
        return SchemaReference(name, subject, version)

    def catch(self, *expected: str) -> "CaughtFault":
        """Return a block that must raise a Fault with one of these error codes."""
        return CaughtFault(expected)


class CaughtFault:
    """A ``with`` block that must raise a Fault."""

    fault: Fault

    def __init__(self, expected: Sequence[str]) -> None:
        self._expected = expected

    def __enter__(self) -> "CaughtFault":
        return self

    def __exit__(self, error_type: object, error: BaseException | None, traceback: object) -> bool:
        if not isinstance(error, Fault):
            assert error is not None, f"no Fault, expected {self._expected}"
            return False
        assert error.error in self._expected, error
        self.fault = error
        return True
