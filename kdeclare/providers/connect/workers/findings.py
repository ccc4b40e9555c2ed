"""What is to be said of workers: who is silent, lags or differs, and which certificates end soon."""

from collections.abc import Iterator
from dataclasses import dataclass

from kdeclare.core.diagnostics import Diagnostic, Place, Severity
from kdeclare.providers.connect.worker_state import Certificate, WorkersSeen
from kdeclare.providers.connect.workers.standing import behind, certificates, differing, ends_within, silent

SILENT = "worker-silent"
BEHIND = "worker-behind"
DIFFERS = "worker-certificate"
OUT_OF_STEP = frozenset({SILENT, BEHIND, DIFFERS})
"""What is said of workers that are not as the others."""

_SUMMARIES = {
    SILENT: "A Connect worker cannot be asked",
    BEHIND: "A Connect worker is not in step",
    DIFFERS: "A Connect worker shows another certificate",
}


@dataclass(frozen=True, slots=True)
class _About:
    """Whose workers they are, if a resource's."""

    resource: str | None
    place: Place | None


def findings(
    seen: WorkersSeen, warn_before_s: float, resource: str | None = None, place: Place | None = None
) -> Iterator[Diagnostic]:
    """All of it, warnings and, of certificates that are well, information.

    warn_before_s: how long before its end a certificate is warned of. place: of the resource.
    """
    about = _About(resource, place)
    found = ((SILENT, silent(seen)), (BEHIND, behind(seen)), (DIFFERS, tuple(differing(seen))))
    for code, standings in found:
        for standing in standings:
            detail = f"{standing.url}: {standing.why}."
            yield _said(Severity.WARNING, code, _SUMMARIES[code], detail, "", about, standing.url)
    for certificate, urls in certificates(seen).items():
        yield _validity(certificate, urls, seen, warn_before_s, about)


def _validity(
    certificate: Certificate, urls: tuple[str, ...], seen: WorkersSeen, warn_before_s: float, about: _About
) -> Diagnostic:
    until = f"{certificate.not_after:%Y-%m-%d %H:%M} UTC"
    whose = f"{', '.join(urls)}: {certificate.subject} (SHA-256 {certificate.sha256[:16]}…)"
    severity, code, summary = Severity.INFO, "certificate", "Certificate of Connect workers"
    detail, hint = f"{whose} is valid until {until}.", ""
    if ends_within(certificate, seen, 0):
        severity, code, summary = Severity.WARNING, "certificate-expired", "A certificate is no longer valid"
        detail, hint = f"{whose} ended at {until}.", "Put a new one in place and declare it."
    elif ends_within(certificate, seen, warn_before_s):
        severity, code, summary = Severity.WARNING, "certificate-expires", "A certificate ends soon"
        hint = "Put a new one in place and declare it; 'warnBeforeExpiry' says what is soon."
    return _said(severity, code, summary, detail, hint, about, certificate.sha256)


def _said(
    severity: Severity, code: str, summary: str, detail: str, hint: str, about: _About, subject: str
) -> Diagnostic:
    place = None if severity is Severity.INFO else about.place
    return Diagnostic(severity, code, summary, detail, hint, place, about.resource, subject)
