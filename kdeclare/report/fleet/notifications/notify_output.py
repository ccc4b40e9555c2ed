"""The output of ``fleet notify``."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.documents import Hidden
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.report.elements.terminal import PLAIN, Style
from kdeclare.report.elements.values import format_count, sanitize_for_terminal


class DeliveryStatus(StrEnum):
    """The delivery status of a message to a notification target."""

    SENT = "sent"
    NOTHING = "nothing-to-report"
    ALREADY_SENT = "already-sent"
    NOT_SENT = "not-sent"  # --dry-run
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Delivery:
    """The message for one notification target.

    diagnostic: the error if the message could not be sent, or could not be recorded as sent.
    """

    schema_name = "DeliveryDocument"

    name: Annotated[str, Field(description="The name of the notification in the fleet file.")]
    status: DeliveryStatus
    since: Annotated[
        str | None,
        Field(description="The audit that the findings are compared with; null for the first audit."),
    ]
    new: Annotated[int, Field(description="The number of new findings.")]
    fixed: Annotated[int, Field(description="The number of fixed findings.")]
    error: Annotated[str | None, Field(description="Why the message was not sent, or not recorded.")] = None
    body: Annotated[str | None, Field(description="With --dry-run: the message.")] = None
    diagnostic: Hidden[Diagnostic | None] = None


@dataclass(frozen=True, slots=True)
class FleetNotifications:
    """The messages about one audit."""

    schema_name = "FleetNotificationsDocument"

    audit_id: str
    fleet: str
    targets: tuple[Delivery, ...]

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The errors of all messages that could not be sent, or could not be recorded as sent."""
        return tuple(item.diagnostic for item in self.targets if item.diagnostic is not None)


def render_notifications_text(notifications: FleetNotifications, style: Style = PLAIN) -> str:
    """Render a line for each notification target. With ``--dry-run``, the message follows the line."""
    lines = [f"Audit {sanitize_for_terminal(notifications.audit_id)}:"]
    for item in notifications.targets:
        counts = f" ({format_count(item.new, 'new finding')}, {item.fixed:,} fixed)"
        is_counted = item.status in (DeliveryStatus.SENT, DeliveryStatus.NOT_SENT)
        lines.append(f"  {style.bold(item.name)}: {_WORDS[item.status]}{counts if is_counted else ''}")
        if item.body is not None:
            lines += [*item.body.splitlines(), ""]
    return "".join(f"{line}\n" for line in lines)


_WORDS = {
    DeliveryStatus.SENT: "sent",
    DeliveryStatus.NOTHING: "nothing to report",
    DeliveryStatus.ALREADY_SENT: "already sent; --again sends the message again",
    DeliveryStatus.NOT_SENT: "would be sent",
    DeliveryStatus.FAILED: "failed",
}
