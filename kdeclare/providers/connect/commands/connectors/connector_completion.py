"""Shell completion for ``kdeclare connector``: names of connectors and Connect clusters."""

from collections.abc import Collection, Sequence

from kdeclare.cli.interactive.candidates import CompletionOffer, CompletionValue
from kdeclare.cli.interactive.grammar import CursorContext
from kdeclare.cli.interactive.names import Names
from kdeclare.core.live.faults import Fault
from kdeclare.core.parts import Connections
from kdeclare.providers.connect.connection import ConnectClients


def complete(place: CursorContext, names: Names) -> CompletionOffer | None:
    """Complete the name of a connector or a Connect cluster. Return None for any other parameter."""
    if place.wanted is None or place.path[:1] != ("connector",):
        return None
    if "--connect" in place.wanted.spellings:
        return CompletionOffer(map(CompletionValue, _list_endpoints(names)), place.text)
    if place.wanted.spellings:
        return None
    used = place.given.get(place.wanted.name, ())
    found = _list_connectors(names, place.given.get("connect", ()))
    return CompletionOffer([CompletionValue(name) for name in found if name not in used], place.text)


def _list_endpoints(names: Names) -> Sequence[str]:
    def read(connections: Connections) -> Sequence[str]:
        return sorted(connections.get(ConnectClients).clusters)

    nothing: Sequence[str] = ()
    return names.ask("connect-clusters", read, nothing)


def _list_connectors(names: Names, endpoints: Collection[str]) -> Sequence[str]:
    """Return the names of the connectors in one Connect cluster, or in all Connect clusters.

    Skip Connect clusters that cannot be read.
    """

    def read(connections: Connections) -> Sequence[str]:
        clients = connections.get(ConnectClients)
        found: set[str] = set()
        for endpoint in clients.clusters:
            if endpoints and endpoint not in endpoints:
                continue
            try:
                found.update(clients.open_cluster(endpoint).list_connectors())
            except Fault:
                continue
        return sorted(found)

    nothing: Sequence[str] = ()
    return names.ask(("connectors", *sorted(endpoints)), read, nothing)
