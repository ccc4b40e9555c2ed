"""The short options of kafka-configs that select users, client ids and IP addresses."""

from collections.abc import Iterator
from typing import Annotated

import typer

from kdeclare.core.frozen_dataclass import dataclass

Texts = list[str] | None


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """The short options of kafka-configs for users, client ids and IP addresses."""

    user: Annotated[Texts, typer.Option(metavar="NAME", help="A user by name. Repeatable.")] = None
    user_defaults: Annotated[
        bool, typer.Option("--user-defaults", help="Quotas of users without quotas of their own.")
    ] = False
    client: Annotated[
        Texts,
        typer.Option(
            metavar="ID", help="A client id. With --user, this client id of that user only. Repeatable."
        ),
    ] = None
    client_defaults: Annotated[
        bool, typer.Option("--client-defaults", help="Quotas of client ids without quotas of their own.")
    ] = False
    ip: Annotated[Texts, typer.Option(metavar="ADDRESS", help="An IP address. Repeatable.")] = None
    ip_defaults: Annotated[
        bool, typer.Option("--ip-defaults", help="Quotas of IP addresses without quotas of their own.")
    ] = False

    def list_used(self) -> Iterator[str]:
        """Yield the names of the short options that the user passed."""
        for option, used in (
            ("--user", self.user),
            ("--user-defaults", self.user_defaults),
            ("--client", self.client),
            ("--client-defaults", self.client_defaults),
            ("--ip", self.ip),
            ("--ip-defaults", self.ip_defaults),
        ):
            if used:
                yield option
