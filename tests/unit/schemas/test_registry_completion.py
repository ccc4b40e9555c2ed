"""Completion of `kdeclare schema-registry`: subjects and schema registries."""

from collections.abc import Callable, Hashable
from typing import TypeVar

from kdeclare.cli.interactive.completer import complete_line
from kdeclare.cli.interactive.grammar import build_grammar
from kdeclare.core.live.faults import Fault
from kdeclare.core.parts import Connections
from kdeclare.providers.schema_registry.client.port import UNREACHABLE
from kdeclare.providers.schema_registry.connection import RegistryClients
from kdeclare.providers.schema_registry.testing import MemoryRegistry
from tests.registries import build_record

T = TypeVar("T")


class KnownNames:
    """Names from two registries, ``eu`` with the subjects a and b, and ``us`` with c."""

    def __init__(self) -> None:
        self.registries = {"eu": MemoryRegistry(), "us": MemoryRegistry()}
        for name, subjects in (("eu", "ab"), ("us", "c")):
            for subject in subjects:
                self.registries[name].register(subject, build_record())
        self.connections = Connections(RegistryClients(self.registries, self.registries.__getitem__))

    def live(self, kind: str) -> tuple[str, ...]:
        return ()

    def ask(self, key: Hashable, question: Callable[[Connections], T], nothing: T) -> T:
        return question(self.connections)

    def declared(self) -> tuple[str, ...]:
        return ()

    def runs(self) -> tuple[str, ...]:
        return ()

    def environments(self) -> tuple[str, ...]:
        return ()


def complete(line: str, names: KnownNames | None = None) -> list[str]:
    candidates = complete_line(line, build_grammar(), names or KnownNames())[1]
    return [candidate.text for candidate in candidates]


def test_completion_offers_subjects_and_registries() -> None:
    assert complete("schema-registry describe ") == ["a", "b", "c"]
    assert complete("schema-registry diff --registry us ") == ["c"]
    assert complete("schema-registry check order.avsc --registry eu --subject ") == ["a", "b"]
    assert complete("schema-registry list --registry ") == ["eu", "us"]
    assert complete("schema-registry check order.avsc --type ") == ["AVRO", "JSON", "PROTOBUF"]


def test_completion_skips_unreadable_registries() -> None:
    names = KnownNames()
    names.registries["eu"].faults.fail(Fault(UNREACHABLE, "refused"), nth=None, method="list_subjects")
    assert complete("schema-registry describe ", names) == ["c"]
