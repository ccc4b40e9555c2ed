"""Where the messages about audits are sent."""

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Literal

from kdeclare.core.diagnostics import SourcePosition
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.manifests.fleet.notification_template import ContentType, MessageTemplate

MessageFormat = Literal["slack", "teams", "json", "template"]
"""The format of a message: for Slack, for Teams, the findings as JSON, or text from a template."""

MessageEvent = Literal["new", "fixed", "always"]
"""What causes a message: new findings, fixed findings, or every audit."""


@dataclass(frozen=True, slots=True)
class NotificationTarget:
    """One webhook of a fleet. References are not resolved, because only ``fleet notify`` needs the values.

    url, headers: strings with unresolved references; the resolved values are secrets. events: what causes a
    message. where: conditions that the findings must meet, see `parse_conditions`; None for all findings.
    team: the value that the label ``team`` of a finding's resource must have; None for all teams. template:
    the template of the message, for the format ``template``. allow_http: whether messages may be sent to
    other hosts without encryption. ca_file: a PEM file with the CA certificates that verify the server; None
    for the CA certificates of the system. positions: the positions of ``name``, ``url`` and ``where`` in the
    fleet file.
    """

    name: str
    format: MessageFormat
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    events: frozenset[MessageEvent] = frozenset({"new", "fixed"})
    where: str | None = None
    team: str | None = None
    template: MessageTemplate | None = None
    allow_http: bool = False
    ca_file: Path | None = None
    positions: Mapping[str, SourcePosition] = field(default_factory=dict, repr=False, compare=False)

    @property
    def content_type(self) -> ContentType:
        """The media type of the messages."""
        return self.template.content_type if self.template is not None else "application/json"
