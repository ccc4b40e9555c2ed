"""Recognize command lines of Terraform, kubectl and Kafka's own tools, and name the command to type instead.

kdeclare never runs the suggested command itself, because an option with the same name can mean something
else in another tool, and a plan that is applied by mistake cannot simply be taken back.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kdeclare.cli.redaction import redact_arguments
from kdeclare.core.frozen_dataclass import dataclass

_OTHER_COMMANDS: Mapping[str, tuple[str, ...]] = {
    "acls": ("acl",),
    "bootstrap": ("import",),
    "configs": ("config",),
    "console": ("shell",),
    "consumer-groups": ("group",),
    "diff": ("plan",),
    "drift": ("plan", "--refresh-only"),
    "export": ("import",),
    "force-unlock": ("lock", "break"),
    "groups": ("group",),
    "kafka-acls": ("acl",),
    "kafka-configs": ("config",),
    "kafka-consumer-groups": ("group",),
    "kafka-reassign-partitions": ("reassign",),
    "kafka-topics": ("topic",),
    "preview": ("plan",),
    "refresh": ("plan", "--refresh-only"),
    "topics": ("topic",),
}
"""Commands of other tools, and the words that replace them. kdeclare's own commands take precedence."""

_EXPLAINED_COMMANDS: Mapping[str, str] = {
    "destroy": "To delete resources, remove their manifests, then type: kdeclare apply --allow-deletes",
    "delete": "To delete resources, remove their manifests, then type: kdeclare apply --allow-deletes. "
    "To delete topics ad hoc, type: kdeclare topic delete NAME",
    "workspace": "kdeclare uses environments in the project file instead of workspaces. Type, for example: "
    "kdeclare plan --env NAME",
    "taint": "kdeclare does not taint resources. To plan the deletion and re-creation of a topic, type: "
    "kdeclare plan --replace Topic/NAME",
    "output": "kdeclare has no output values. To list what the project declares, type: kdeclare catalog",
    "get": "To see what exists, type, for example: kdeclare topic list",
    "describe": "To see one object, type, for example: kdeclare topic describe NAME",
}
"""Commands of other tools that no command of kdeclare can replace directly, and what to do instead."""

_OTHER_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "auto-approve": ("--yes",),
    "assume-yes": ("--yes",),
    "json": ("--format", "json"),
    "bootstrap-servers": ("--bootstrap-server",),
    "broker-list": ("--bootstrap-server",),
    "environment": ("--env",),
    "filename": (),
    "file": (),
    "f": (),
    "input": (),
    "compact-warnings": (),
}
"""Options of other tools, without their dashes, and the words that replace them."""

_VALUES_TO_DROP = frozenset({"auto-approve", "assume-yes", "json", "input", "compact-warnings"})
"""Options of other tools whose values, such as ``=false``, are dropped together with the option."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A suggestion for a user who typed a command line of another tool.

    reason: what is different in kdeclare. message: the command to type, or what to do.
    """

    reason: str
    message: str


def suggest_command(root: Any, arguments: Sequence[str]) -> Suggestion | None:
    """Suggest what to type instead of a command line of another tool; None for any other command line.

    root: a Click group with all commands, or with only the command that the command line names.
    """
    name = next(iter(arguments), "")
    rest = list(arguments[1:])
    is_known = name in root.commands
    if not is_known and name in _EXPLAINED_COMMANDS:
        return Suggestion(_build_command_reason(name), _EXPLAINED_COMMANDS[name])
    words = (name,) if is_known else _OTHER_COMMANDS.get(name, ())
    if not words or words[0] not in root.commands:
        return None
    typed = [*words, *rest] if is_known else [*words, *_drop_lock_id(name, rest)]
    rewritten, reason = _rewrite(root, typed)
    if rewritten == list(arguments):
        return None
    return Suggestion(reason if is_known else _build_command_reason(name), f"Type: {_join(rewritten)}")


def _build_command_reason(name: str) -> str:
    return f"'{name}' is a command of other tools."


def _drop_lock_id(name: str, rest: list[str]) -> list[str]:
    return [] if name == "force-unlock" else rest


def _rewrite(root: Any, arguments: Sequence[str]) -> tuple[list[str], str]:
    """Return the arguments as kdeclare expects them, and the reason for the first correction."""
    command = root
    words: list[str] = []
    pending = list(arguments)
    while pending and pending[0] in getattr(command, "commands", {}):
        words.append(pending.pop(0))
        command = command.commands[words[-1]]
    reasons = []
    actions = getattr(command, "commands", None)
    if actions:  # ``topic --list``, or ``topic --bootstrap-server HOST:PORT --list``
        action = next((item for item in pending if item.startswith("-") and item.lstrip("-") in actions), "")
        if not action or not pending[0].startswith("-"):
            return [*words, *pending], ""
        pending.remove(action)
        words.append(action.lstrip("-"))
        command = actions[words[-1]]
        reasons.append(f"'{words[-1]}' is a command, not an option.")
    for old, new, reason in _rewrite_options(pending, command):
        words += new
        reasons += [reason] if new != (old,) else []
    return words, next(iter(reasons), "")


def _rewrite_options(arguments: Sequence[str], command: Any) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Yield each argument of a command with the words that replace it, and the reason."""
    options = {name for param in command.params for name in getattr(param, "opts", ())}
    has_paths = any(param.param_type_name == "argument" for param in command.params)
    is_literal = False
    for argument in arguments:
        is_literal = is_literal or argument == "--"
        option, separator, value = argument.partition("=")
        name = option.lstrip("-")
        words = _OTHER_OPTIONS.get(name)
        if is_literal or not option.startswith("-") or not name or option in options:
            yield argument, (argument,), ""
        elif len(name) > 1 and f"--{name}" in options:
            yield argument, (f"--{name}{separator}{value}",), f"'{option}' needs two dashes."
        elif words is None or not (words[0] in options if words else has_paths or name in _VALUES_TO_DROP):
            yield argument, (argument,), ""
        else:
            value_words = (value,) if separator and name not in _VALUES_TO_DROP else ()
            yield argument, (*words, *value_words), f"'{option}' is an option of other tools."


def _join(arguments: Sequence[str]) -> str:
    return shlex.join(["kdeclare", *redact_arguments(arguments)])
