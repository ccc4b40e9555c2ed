"""Shell completion for ``kdeclare schema-registry``: subjects and schema registries."""

from collections.abc import Collection, Sequence

from kdeclare.cli.interactive.candidates import CompletionOffer, CompletionValue
from kdeclare.cli.interactive.grammar import CursorContext
from kdeclare.cli.interactive.names import Names
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.live.faults import Fault
from kdeclare.core.parts import Connections
from kdeclare.providers.schema_registry.connection import RegistryClients


def complete(place: CursorContext, names: Names) -> CompletionOffer | None:
    """Complete a subject or a schema registry. Return None for any other parameter."""
    if place.wanted is None or place.path[:1] != ("schema-registry",):
        return None
    if "--registry" in place.wanted.spellings:
        return CompletionOffer(map(CompletionValue, _list_registries(names)), place.text)
    if "--subject" in place.wanted.spellings or place.wanted.name == "subject":
        found = _list_subjects(names, place.given.get("registry", ()))
        return CompletionOffer(map(CompletionValue, found), place.text)
    return None


def _list_registries(names: Names) -> Sequence[str]:
    def read(connections: Connections) -> Sequence[str]:
        return connections.get(RegistryClients).names

    nothing: Sequence[str] = ()
    return names.ask("schema-registries", read, nothing)


def _list_subjects(names: Names, registries: Collection[str]) -> Sequence[str]:
    """Return the subjects of these registries, or of all registries. Skip registries that cannot be read."""

    def read(connections: Connections) -> Sequence[str]:
        clients = connections.get(RegistryClients)
        found: set[str] = set()
        for registry in clients.names:
            if registries and registry not in registries:
                continue
            try:
                found |= clients.open(registry).list_subjects()
            except (Fault, KdeclareError):
                continue
        return sorted(found)

    nothing: Sequence[str] = ()
    return names.ask(("subjects", *sorted(registries)), read, nothing)
