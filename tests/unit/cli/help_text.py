"""Parse the output of ``kdeclare --help``."""

from kdeclare.cli.help_groups import HELP_GROUPS


def parse_command_groups(text: str) -> dict[str, list[str]]:
    """Return the names of the commands by group, in the order of the help."""
    groups: dict[str, list[str]] = {}
    names: list[str] = []
    for line in text.splitlines():
        group = line.removesuffix(":")
        if line.endswith(":") and group in HELP_GROUPS:
            names = groups[group] = []
        elif line.startswith("  "):
            names.append(line.split()[0])
    return groups
