"""``spec.notifications`` of fleet files."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from yaml.nodes import Node

from kdeclare.core.diagnostics import Diagnostic, SourcePosition, error
from kdeclare.core.secrets.secret_refs import Secret, SecretText
from kdeclare.manifests.fleet.notification_target import MessageEvent, MessageFormat, NotificationTarget
from kdeclare.manifests.fleet.notification_template import (
    ContentType,
    MessageTemplate,
    explain_bad_message_template,
)
from kdeclare.manifests.syntax.node_reader import KAFKA, TEXT, build_modes_by_name
from kdeclare.manifests.syntax.nodes import find_position
from kdeclare.manifests.syntax.substitution import find_reference_names

NOTIFICATION_MODES = build_modes_by_name(
    {"name": TEXT, "where": TEXT, "team": TEXT, "template": TEXT, "url": KAFKA, "headers": KAFKA}
)
"""How the scalars of notifications are read. In some fields, such as ``name``, they are read as strings."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_PATH = ("spec", "notifications")


class NotificationSpec(BaseModel):
    """An element of ``spec.notifications``: a webhook that gets a message about each audit."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str
    format: MessageFormat
    url: SecretText
    headers: dict[str, SecretText] = {}
    events: Annotated[list[MessageEvent], Field(min_length=1)] = ["new", "fixed"]
    where: str | None = None
    team: str | None = None
    template: str | None = None
    contentType: ContentType | None = None  # noqa: N815
    caFile: str | None = None  # noqa: N815
    allowHttp: bool = False  # noqa: N815


def check_notifications(specs: Sequence[NotificationSpec], root: Node) -> Iterator[Diagnostic]:
    """Yield the problems in ``spec.notifications`` that the Pydantic model does not detect."""
    first_positions: dict[str, SourcePosition] = {}
    for n, spec in enumerate(specs):
        yield from _check_name(spec, n, root, first_positions)
        yield from _check_references(spec, n, root)
        yield from _check_template(spec, n, root)


def _check_name(
    spec: NotificationSpec, n: int, root: Node, first_positions: dict[str, SourcePosition]
) -> Iterator[Diagnostic]:
    position = find_position(root, (*_PATH, n, "name"))
    if _NAME.fullmatch(spec.name) is None:
        yield error(
            "illegal-name",
            "Illegal name",
            f"The notification name {spec.name!r} cannot be used as a folder name.",
            hint="Use up to 100 letters, digits, dots, hyphens and underscores.",
            place=position,
            subject=spec.name,
        )
    if first_positions.setdefault(spec.name, position) is not position:
        yield error(
            "duplicate-name",
            "Duplicate name",
            f"The notification at {first_positions[spec.name]} is also named '{spec.name}'.",
            hint="Give each notification a unique name, under which kdeclare records what was sent.",
            place=position,
            subject=spec.name,
        )


def _check_references(spec: NotificationSpec, n: int, root: Node) -> Iterator[Diagnostic]:
    path: tuple[str | int, ...] = (*_PATH, n)
    for name in spec.headers:
        if _HEADER_NAME.fullmatch(name) is None:
            yield error(
                "bad-value",
                "Bad value",
                f"'{name}' is not a valid HTTP header name.",
                hint="Correct the name of the header.",
                place=find_position(root, (*path, "headers", name), key=True),
            )
    secrets: list[tuple[str, tuple[str | int, ...], Secret]] = [
        ("The URL of a webhook", (*path, "url"), spec.url)
    ]
    secrets += [
        (f"The value of the header '{name}'", (*path, "headers", name), secret)
        for name, secret in spec.headers.items()
    ]
    for subject, secret_path, secret in secrets:
        names = find_reference_names(secret.value)
        if not any(name.startswith(("env.", "file.")) for name in names):
            yield error(
                "literal-webhook",
                "Secret is not a reference",
                f"{subject} is a secret, and fleet files must not contain secrets.",
                hint="Put the value into an environment variable or a file, and write ${env.NAME} or "
                "${file.PATH}.",
                place=find_position(root, secret_path),
            )


def _check_template(spec: NotificationSpec, n: int, root: Node) -> Iterator[Diagnostic]:
    path = (*_PATH, n)
    if spec.format != "template":
        for field in ("template", "contentType"):
            if getattr(spec, field) is not None:
                yield error(
                    "conflicting-fields",
                    "Conflicting fields",
                    f"'{spec.name}' has the format '{spec.format}', which does not use '{field}'.",
                    hint=f"Set 'format: template', or remove '{field}'.",
                    place=find_position(root, (*path, field), key=True),
                    subject=field,
                )
        return
    if spec.template is None:
        yield error(
            "missing-field",
            "Missing field",
            f"'{spec.name}' has the format 'template', but no 'template'.",
            hint="Add 'template' with the text of the message.",
            place=find_position(root, path),
            subject="template",
        )
        return
    reason = explain_bad_message_template(_build_template(spec.template, spec.contentType))
    if reason is not None:
        yield error(
            "bad-value",
            "Bad value",
            f"'template' of '{spec.name}' cannot be used: {reason}",
            hint="Correct the template. docs/fleet-audits.md lists the values that templates can use.",
            place=find_position(root, (*path, "template")),
            subject="template",
        )


def _build_template(text: str, content_type: ContentType | None) -> MessageTemplate:
    return MessageTemplate(text, content_type or "application/json")


def build_notification(spec: NotificationSpec, n: int, root: Node, folder: Path) -> NotificationTarget:
    """Build the notification at index n. folder: the folder of the fleet file."""
    fields = ("name", "url", "where")
    return NotificationTarget(
        spec.name,
        spec.format,
        spec.url.value,
        {name: value.value for name, value in spec.headers.items()},
        frozenset(spec.events),
        spec.where,
        spec.team,
        None if spec.template is None else _build_template(spec.template, spec.contentType),
        spec.allowHttp,
        None if spec.caFile is None else folder / spec.caFile,
        {field: find_position(root, (*_PATH, n, field)) for field in fields},
    )
