"""Shell completion for ``kdeclare connector``: names of connectors."""

from kdeclare.cli.interactive.candidates import CompletionOffer, CompletionValue
from kdeclare.cli.interactive.grammar import CursorContext
from kdeclare.cli.interactive.names import Names
from kdeclare.core.parts import Connections
from kdeclare.providers.connect.connection import ConnectClients
from kdeclare.providers.connect.connector.settings import CONNECTOR


def complete(place: CursorContext, names: Names) -> CompletionOffer | None:
    """Complete a connector or a Connect cluster. Return None for any other parameter."""
    if place.wanted is None or place.path[:1] != ("connector",):
        return None
    if "--connect" in place.wanted.spellings:
        return CompletionOffer(map(CompletionValue, _list_endpoints(names)), place.text)
    if place.wanted.spellings:
        return None
    used = place.given.get(place.wanted.name, ())
    candidates = [CompletionValue(name) for name in names.live(CONNECTOR) if name not in used]
    return CompletionOffer(candidates, place.text)


def _list_endpoints(names: Names) -> tuple[str, ...]:
    def read(connections: Connections) -> tuple[str, ...]:
        return tuple(sorted(connections.get(ConnectClients).clusters))

    nothing: tuple[str, ...] = ()
    return names.ask("connect-clusters", read, nothing)
