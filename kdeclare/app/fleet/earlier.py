"""Finding the audits that a folder holds, for the next one to be compared with."""

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.fleet.folders import AUDITS, records
from kdeclare.fleet.storage import Storage
from kdeclare.fleet.summary import AuditSummary, Earlier
from kdeclare.report.audit_json import summary_from_json

_LATEST = "latest"


def known_audits(storage: Storage, since: str | None) -> tuple[str, ...]:
    """The ids of all audits of a folder, oldest first.

    since: an id, ``latest``, or None where any will do. Raises KdeclareError where it is not among them.
    """
    known = records(storage, AUDITS)
    if since not in (None, _LATEST, *known):
        raise KdeclareError(
            error(
                "no-audit",
                "No such audit",
                f"{storage.uri} holds no audit '{since}'.",
                hint=f"It holds {', '.join(known[-5:]) or 'none yet'}.",
            )
        )
    if since == _LATEST and not known:
        raise KdeclareError(
            error("no-audit", "No audit yet", f"{storage.uri} holds no audit to compare with.")
        )
    return known


def earlier_audits(storage: Storage, since: str | None) -> Earlier | None:
    """The latest audit of a folder, and that to compare with; None where it holds none yet.

    since: as of `known_audits`. Raises KdeclareError.
    """
    known = known_audits(storage, since)
    if not known:
        return None
    newest = _summary(storage, known[-1])
    if since is None or since in (_LATEST, known[-1]):
        return Earlier(newest, newest)
    return Earlier(newest, _summary(storage, since))


def _summary(storage: Storage, audit_id: str) -> AuditSummary:
    path = f"{AUDITS}/{audit_id}.json"
    return summary_from_json(storage.read(path), f"{storage.uri}/{path}")
