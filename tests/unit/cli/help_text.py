"""Parse the output of ``kdeclare --help``."""

from kdeclare.cli.help_groups import HELP_GROUPS


def parse_command_groups(text: str) -> dict[str, list[str]]:
    """Return the names of the commands by group, in the order of the help."""
    groups: dict[str, list[str]] = {}
    for block in text.split("\n\n"):
        heading, *lines = block.splitlines()
        group = heading.removesuffix(":")
        if heading.endswith(":") and group in HELP_GROUPS:
            groups[group] = [line.split()[0] for line in lines if line.startswith("  ")]
    return groups
