"""Pause, resume or abort the rollout of saved plans. The request is a file beside the plans."""

import json
from datetime import UTC, datetime
from enum import StrEnum

from kdeclare.app.fleet.rollout.saved_plans import read_overview
from kdeclare.app.workspace import format_user_at_host
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.fleet.tables.rows import FORMAT_VERSION
from kdeclare.fleet.tables.storage import Storage

_FILE = "rollout.json"


class RolloutRequest(StrEnum):
    """What a user has requested: to pause a rollout, or to abort it for good."""

    PAUSE = "paused"
    ABORT = "aborted"


@dataclass(frozen=True, slots=True)
class RolloutStop:
    """A request to stop a rollout before its next wave.

    by: the user and the host. reason: empty if no reason was given.
    """

    request: RolloutRequest
    by: str
    at: datetime
    reason: str

    def format(self) -> str:
        """Format the request as a sentence."""
        reason = f": {self.reason.rstrip('.')}" if self.reason else ""
        return f"The rollout was {self.request} by {self.by} at {self.at:%Y-%m-%d %H:%M:%SZ}{reason}."

    @property
    def hint(self) -> str:
        """A hint that says which commands to run next."""
        if self.request is RolloutRequest.ABORT:
            return "Run kdeclare fleet plan to make new plans."
        return "Run kdeclare fleet resume --out DIR, and then kdeclare fleet apply again."


def read_stop(storage: Storage, planned_at: str) -> RolloutStop | None:
    """Return the request to stop the rollout of these plans; None if there is none. Raises KdeclareError.

    planned_at: when the fleet was planned. Requests for other plans are ignored.
    """
    if not storage.exists(_FILE):
        return None
    try:
        data = json.loads(storage.read(_FILE))
        if data["format_version"] == FORMAT_VERSION:
            if data["planned_at"] != planned_at:
                return None
            return RolloutStop(
                RolloutRequest(data["request"]),
                str(data["by"]),
                datetime.fromisoformat(data["at"]).astimezone(UTC),
                str(data["reason"]),
            )
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    raise KdeclareError(
        error(
            "bad-progress",
            "Invalid request to stop the rollout",
            f"{storage.uri}/{_FILE} does not have the format that kdeclare fleet pause writes.",
            hint="Delete the file to continue the rollout.",
        )
    )


def stop_rollout(storage: Storage, request: RolloutRequest, reason: str) -> RolloutStop:
    """Request that the rollout of the saved plans stops before its next wave.

    An aborted rollout stays aborted. Raises KdeclareError.
    """
    planned_at = read_overview(storage).taken_at.isoformat()
    earlier = read_stop(storage, planned_at)
    if earlier is not None and earlier.request is RolloutRequest.ABORT:
        return earlier
    stop = RolloutStop(request, format_user_at_host(), datetime.now(UTC), reason)
    document = {
        "format_version": FORMAT_VERSION,
        "planned_at": planned_at,
        "request": str(stop.request),
        "by": stop.by,
        "at": stop.at.isoformat(),
        "reason": stop.reason,
    }
    storage.write(_FILE, json.dumps(document, indent=1) + "\n")
    return stop


def resume_rollout(storage: Storage) -> bool:
    """Withdraw the request to pause the rollout. Return whether there was such a request.

    Raises KdeclareError if the rollout was aborted.
    """
    stop = read_stop(storage, read_overview(storage).taken_at.isoformat())
    if stop is None:
        return False
    if stop.request is RolloutRequest.ABORT:
        raise KdeclareError(build_stop_error(stop), exit_code=ExitCode.DENIED)
    storage.remove(_FILE)
    return True


def build_stop_error(stop: RolloutStop) -> Diagnostic:
    """Return the error for a command that is refused, because its rollout is paused or aborted."""
    if stop.request is RolloutRequest.ABORT:
        return error("rollout-aborted", "Rollout was aborted", stop.format(), hint=stop.hint)
    detail = f"{stop.format()} Nothing was applied."
    return error("rollout-paused", "Rollout is paused", detail, hint=stop.hint)
