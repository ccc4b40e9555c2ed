"""Parse the values of options: variables, resources, and pairs of keys and values.

Slow imports are inside the functions that use them, because every command imports this module, even if it
only shows its ``--help``.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from kdeclare.core.resources.ids import ResourceId
    from kdeclare.engine.planning.request import DeletionLimit
    from kdeclare.manifests.variables import GivenVariables


def parse_variables(
    assignments: Sequence[str] | None, files: Sequence[Path] | None
) -> "GivenVariables | None":
    """Return the variables of --var and --var-file, or None if there are none.

    Raises BadParameter if an assignment does not have the form NAME=VALUE.
    """
    if not (assignments or files):
        return None
    from kdeclare.manifests.variables import GivenVariables, parse_assignments

    try:
        return GivenVariables(tuple(files or ()), parse_assignments(assignments or ()))
    except ValueError as problem:
        raise typer.BadParameter(f"{problem}.", param_hint="--var") from None


def parse_deletion_limit(text: str | None) -> "DeletionLimit | None":
    """Parse a number or a percentage. Raises BadParameter if the text is neither."""
    from kdeclare.engine.planning.request import DeletionLimit

    try:
        return None if text is None else DeletionLimit.parse(text)
    except ValueError as problem:
        raise typer.BadParameter(str(problem), param_hint="--max-deletes") from None


def parse_resources(option: str, texts: Iterable[str]) -> "frozenset[ResourceId]":
    """Parse the values of a repeatable KIND/NAME option. Raises BadParameter like `parse_resource`."""
    return frozenset(parse_resource(option, text) for text in texts)


def parse_resource(option: str, text: str) -> "ResourceId":
    """Parse KIND/NAME. Raises BadParameter if the text does not have this form or the kind is unknown."""
    from kdeclare.core.provider.registry import KINDS
    from kdeclare.core.resources.ids import ResourceId
    from kdeclare.core.suggestions import format_suggestion

    try:
        resource = ResourceId.parse(text)
    except ValueError:
        raise typer.BadParameter(
            f"'{text}' does not have the form KIND/NAME, for example Topic/orders.", param_hint=option
        ) from None
    if resource.kind not in KINDS:
        suggestion = format_suggestion(resource.kind, KINDS) or f"Use one of {', '.join(KINDS)}."
        raise typer.BadParameter(f"'{resource.kind}' is not a kind. {suggestion}", param_hint=option)
    return resource


def parse_pairs(option: str, texts: Iterable[str] | None) -> dict[str, str]:
    """Parse the values of a repeatable KEY=VALUE option. If a key is repeated, its last value is used.

    Raises BadParameter if an option value does not have the form KEY=VALUE.
    """
    values_by_key = {}
    for text in texts or ():
        key, separator, value = text.partition("=")
        if not (key and separator):
            raise typer.BadParameter(
                f"'{text}' does not have the form KEY=VALUE, for example team=checkout.", param_hint=option
            )
        values_by_key[key] = value
    return values_by_key


def parse_settings(option: str, texts: Iterable[str] | None) -> dict[str, str]:
    """Parse KEY=VALUE settings. Values can contain commas.

    Raises BadParameter if a setting does not have the form KEY=VALUE, or if a key is repeated. The message
    never contains a value, because values can be secrets.
    """
    settings: dict[str, str] = {}
    for number, pair in enumerate(texts or (), 1):
        key, separator, value = pair.partition("=")
        if not (key.strip() and separator):  # not quoted: it can be part of a password
            raise typer.BadParameter(
                f"value number {number} does not have the form KEY=VALUE, such as retention.ms=604800000. "
                "Put values that contain commas in brackets.",
                param_hint=option,
            )
        if key.strip() in settings:
            raise typer.BadParameter(f"'{key.strip()}' is given twice.", param_hint=option)
        settings[key.strip()] = value.strip()
    return settings
