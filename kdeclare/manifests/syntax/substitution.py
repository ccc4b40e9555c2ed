"""Resolve ``${var.NAME}``, ``${env.NAME}`` and ``${file.PATH}``.

Placeholders with a colon (``${provider:path:key}``) belong to Kafka and are not changed. ``$${`` becomes
``${``. A value that comes from an environment variable or a file keeps its reference, so that kdeclare can
store the reference instead of a secret.
"""

import os
import re
import stat
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, SourcePosition, error
from kdeclare.core.secrets.secret_refs import Referenced
from kdeclare.core.suggestions import format_suggestion
from kdeclare.manifests.syntax.reference_limits import Limits, check_file, check_variable

_REFERENCE = re.compile(r"\$\$\{|\$\{([^{}]*)(\}?)")
_MAX_FILE_BYTES = 1 << 20
"""The maximum size of a file for ``${file.PATH}``. Kafka accepts at most 32,767 bytes as a config value."""
UNDEFINED_VARIABLE = "undefined-variable"
UNREADABLE_REFERENCE = "unreadable-reference"
UNRESOLVED_CODES = frozenset({UNDEFINED_VARIABLE, UNREADABLE_REFERENCE})
"""The codes of errors about correct references whose values are missing in the current environment."""

_FORMS = "${var.NAME}, ${env.NAME} or ${file.PATH}"


class Variable(NamedTuple):
    """A variable of an environment.

    value: the value as YAML reads it.
    text: the value as a string or a list of strings, in the form of Kafka configs.
    place: the position where the value is set, if it is set in a file.
    """

    value: Any
    text: Any
    place: SourcePosition | None = None


@dataclass(slots=True)
class ReferenceContext:
    """The values and limits for resolving references (``${…}``).

    folder: the folder that paths in ``${file.PATH}`` are relative to.
    environ: the environment variables.
    variables: the values for ``${var.NAME}``, or None in a project file, which cannot use variables.
    unset: the variables that the project declares, but that have no value.
    files: the contents of the files that were already read.
    limits: the environment variables and files that references may use. Relative paths in the limits are
        resolved against ``root``, or against ``folder`` if ``root`` is None.
    """

    folder: Path | str
    environ: Mapping[str, str]
    variables: Mapping[str, Variable] | None = field(default_factory=dict)
    files: dict[Path, str] = field(default_factory=dict, repr=False)
    limits: Limits = ()
    root: Path | None = None
    unset: Collection[str] = ()


class UnresolvedReference(Exception):
    """Raised if a reference cannot be resolved. diagnostic: the error, without a source position."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        self.diagnostic = diagnostic
        super().__init__(diagnostic.detail)


def has_reference(text: str) -> bool:
    """Return whether a string could contain a reference. This check is fast, but not exact."""
    return "${" in text


def is_single_reference(text: str) -> bool:
    """Return whether a string consists of exactly one reference."""
    match = _REFERENCE.fullmatch(text)
    return match is not None and match[2] == "}"


def find_reference_names(text: str) -> tuple[str, ...]:
    """Return the names in the references of a string, such as ``var.NAME``. Omit Kafka's placeholders."""
    contents = (match[1] for match in _REFERENCE.finditer(text) if match[2])
    return tuple(name for name in contents if ":" not in name)


def substitute(text: str, context: ReferenceContext, *, as_text: bool) -> Any:
    """Return a string with its references resolved.

    If the string consists of a single ``${var.NAME}``, return the value of the variable in its own type.

    as_text: whether to return `Variable.text` instead of `Variable.value` for a single variable.
    Raises UnresolvedReference if a reference cannot be resolved or is not allowed.
    """
    whole_match = _REFERENCE.fullmatch(text)
    if whole_match and whole_match[2] and (whole_match[1] or "").startswith("var."):
        variable = _get_variable(whole_match[1], context)
        return variable.text if as_text else variable.value
    values: list[str] = []
    references: list[str] = []
    is_from_outside = False
    end = 0
    for match in _REFERENCE.finditer(text):
        literal = text[end : match.start()]
        end = match.end()
        replacement = _resolve_match(match, context)
        is_from_outside = is_from_outside or isinstance(replacement, Referenced)
        values += (literal, replacement)
        # the stored string is resolved again later, when variables are unknown, so it contains their values
        references += (
            literal,
            replacement.reference
            if isinstance(replacement, Referenced)
            else _format_replacement(match, replacement),
        )
    value = "".join((*values, text[end:]))
    return Referenced(value, "".join((*references, text[end:]))) if is_from_outside else value


def resolve_reference(text: str, folder: Path, environ: Mapping[str, str], limits: Limits = ()) -> str:
    """Resolve a ``Referenced.reference`` again and return its current value.

    Raises KdeclareError if a variable is no longer set, a file cannot be read, or the limits forbid the
    reference.
    """
    try:
        return str(
            substitute(text, ReferenceContext(folder, environ, variables=None, limits=limits), as_text=True)
        )
    except UnresolvedReference as e:
        raise KdeclareError(e.diagnostic) from None


def _format_replacement(match: re.Match[str], replacement: str) -> str:
    if match[1] is None or ":" in match[1]:
        return match[0]
    return replacement.replace("${", "$${")


def _resolve_match(match: re.Match[str], context: ReferenceContext) -> str:
    name: str | None = match[1]
    if name is None:
        return "${"
    if not match[2]:
        raise UnresolvedReference(
            error(
                "bad-reference",
                "Unterminated reference",
                f"'${{' has no closing '}}'. References have the form {_FORMS}.",
                hint="Add the closing brace, or write $${ for a literal ${.",
            )
        )
    if ":" in name:
        return match[0]
    if name.startswith("env."):
        return _resolve_environment_variable(name, context)
    if name.startswith("file."):
        return _resolve_file(name, context)
    if name.startswith("var."):
        text: Any = _get_variable(name, context).text
        if isinstance(text, str):
            return text
        raise UnresolvedReference(
            error(
                "bad-reference",
                "Variable is not a string",
                f"'${{{name}}}' is used inside a string, but its value is {_format_type(text)}.",
                hint="Make the reference the whole value of the field, or use a variable whose value is a "
                "string or a number.",
            )
        )
    if name.startswith("each."):
        raise UnresolvedReference(
            error(
                "bad-reference",
                "Reference to a forEach item outside forEach",
                f"'${{{name}}}' has a value only in a manifest with forEach.",
                hint="Add forEach to the manifest. Overlays, Defaults, policies and the items of forEach "
                "cannot use this reference.",
            )
        )
    raise UnresolvedReference(
        error(
            "bad-reference",
            "Unknown reference",
            # the text is not quoted, because it can be part of a literal secret
            f"The text after '${{' does not have the form {_FORMS}.",
            hint=_suggest_reference(name, context),
        )
    )


def _suggest_reference(name: str, context: ReferenceContext) -> str:
    if name in (context.variables or {}):
        return f"Did you mean '${{var.{name}}}'?"
    if name in context.environ and check_variable(name, context.limits) is None:
        return f"Did you mean '${{env.{name}}}'?"
    return "Correct the reference, or write $${ for a literal ${."


def _format_type(value: Any) -> str:
    return "a list" if isinstance(value, list) else "a mapping" if isinstance(value, dict) else "null"


def _get_variable(reference: str, context: ReferenceContext) -> Variable:
    name = reference.removeprefix("var.")
    if context.variables is None:
        raise UnresolvedReference(
            error(
                UNDEFINED_VARIABLE,
                "Variable cannot be used here",
                f"'${{{reference}}}' refers to a variable, but this file cannot use variables.",
                hint="Use ${env.NAME} or ${file.PATH} instead.",
            )
        )
    variable = context.variables.get(name)
    if variable is not None:
        return variable
    if name in context.unset:
        raise UnresolvedReference(
            error(
                UNDEFINED_VARIABLE,
                "Variable has no value",
                f"The project declares the variable '{name}', but it has no value in this environment.",
                hint=f"Pass --var {name}=VALUE or --var-file FILE, set it under 'variables' of the "
                "environment, or declare a default.",
                subject=name,
            )
        )
    hint = format_suggestion(name, (*context.variables, *context.unset))
    raise UnresolvedReference(
        error(
            UNDEFINED_VARIABLE,
            "Variable is not defined",
            f"The environment defines no variable '{name}'.",
            hint=hint or "Add it under 'variables' of the environment in the project file.",
            subject=name,
        )
    )


def _resolve_environment_variable(reference: str, context: ReferenceContext) -> Referenced:
    name = reference.removeprefix("env.")
    if refusal := check_variable(name, context.limits):
        raise UnresolvedReference(refusal)
    value = context.environ.get(name)
    if value is not None:
        return Referenced(value, f"${{{reference}}}")
    hint = format_suggestion(
        name, [known for known in context.environ if not check_variable(known, context.limits)]
    )
    raise UnresolvedReference(
        error(
            UNDEFINED_VARIABLE,
            "Environment variable is not set",
            f"The environment variable '{name}' is not set.",
            hint=hint or "Set it before running kdeclare.",
            subject=name,
        )
    )


def read_regular_file(path: Path, max_bytes: int = _MAX_FILE_BYTES) -> str:
    """Return the contents of a regular file of at most ``max_bytes`` (default: 1 MiB).

    Raises OSError, or ValueError if the contents are not UTF-8.

    Other files are refused: reading a FIFO would block until a writer opens it, and a device such as
    /dev/zero has no end. The type of the file is checked after the file is opened, because the file at the
    path could be replaced between an earlier check and the read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "It is not a regular file")
        data = stream.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise OSError(0, f"It is larger than {max_bytes:,} bytes")
    return data.decode()


def _resolve_file(reference: str, context: ReferenceContext) -> Referenced:
    name = reference.removeprefix("file.")
    path = Path(context.folder, name)
    if refusal := check_file(name, path, Path(context.root or context.folder), context.limits):
        raise UnresolvedReference(refusal)
    text = context.files.get(path)
    if text is None:
        try:
            text = read_regular_file(path)
        except (OSError, ValueError) as e:
            reason = "it is not UTF-8 text" if isinstance(e, ValueError) else format_os_error(e)
            raise UnresolvedReference(
                error(
                    UNREADABLE_REFERENCE,
                    "Referenced file cannot be read",
                    f"'${{{reference}}}' cannot be read: {reason}.",
                    hint="Check the path. It is relative to the folder of the project file or, without a "
                    "project, of the manifest.",
                    subject=name,
                )
            ) from None
        text = text.removesuffix("\n").removesuffix("\r")
        context.files[path] = text
    return Referenced(text, f"${{{reference}}}")


def format_os_error(e: OSError) -> str:
    """Return the reason for an OSError as a clause for messages."""
    return (e.strerror or "it cannot be opened").lower()
