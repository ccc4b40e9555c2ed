"""The options that say which topics a command is about; several commands share them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

import typer


@dataclass(frozen=True)
class TopicNames:
    """Names of topics, as arguments or by Kafka's own option."""

    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Topics by name; one with other characters than letters, digits, '.', '_' and '-' is a "
            "regular expression that a whole name must match.",
            show_default=False,
        ),
    ] = None
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", metavar="NAME[,…]", help="The same, as Kafka's tools take it. Repeatable."),
    ] = None

    def given(self) -> tuple[str, ...]:
        """All of them, in order. Raises BadParameter for an empty one, which must not come to mean all."""
        names = [*(self.names or ()), *separated(self.topic)]
        if not all(names):
            raise typer.BadParameter("a name is empty.", param_hint="NAME" if not self.topic else "--topic")
        return tuple(names)


def separated(texts: Iterable[str] | None) -> list[str]:
    """What stands between commas, as Kafka's tools take several names."""
    return [part.strip() for text in texts or () for part in text.split(",")]
