"""Which workers of a group lag, differ or are silent, and which certificates end soon."""

from collections import Counter
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from kdeclare.core.diagnostics import Diagnostic, Place, Severity
from kdeclare.core.frozen import dataclass
from kdeclare.providers.connect.worker_state import Certificate, WorkerSeen, WorkersSeen, overrides_hash

IN_STEP = "in step"
"""What is said of a worker that runs on the overrides as they are."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One worker that is not as the others, or cannot be asked, and why."""

    url: str
    why: str


def behind(seen: WorkersSeen) -> tuple[Standing, ...]:
    """The workers that do not run on the overrides as they are; those that cannot be asked are not told."""
    overrides = seen.overrides or {}
    states = ((worker.url, step(worker, overrides)) for worker in seen.workers if worker.status)
    return tuple(Standing(url, why) for url, why in states if why != IN_STEP)


def refusing(seen: WorkersSeen) -> tuple[Standing, ...]:
    """Those of them that have read the overrides and could not apply them: they wait for another update."""
    errors = {worker.url: worker.status.error for worker in seen.workers if worker.status}
    refused = {url for url, error in errors.items() if error and error.offset is not None}
    return tuple(standing for standing in behind(seen) if standing.url in refused)


def silent(seen: WorkersSeen) -> tuple[Standing, ...]:
    """The workers of which something cannot be known."""
    return tuple(Standing(worker.url, worker.trouble) for worker in seen.workers if worker.trouble)


def not_reached(seen: WorkersSeen, wanted: Mapping[str, str]) -> tuple[Standing, ...]:
    """The workers that do not run on ``wanted``, or do not show the certificate that they say they have."""
    found = []
    newest = max((w.status.seen or 0 for w in seen.workers if w.status), default=0)
    for worker in seen.workers:
        why = worker.trouble or step(worker, wanted)
        if why == IN_STEP and worker.status and (worker.status.seen or 0) < newest:
            why = "it has not read the last update yet"  # one that changes no value has files read anew
        if why == IN_STEP:
            why = _other_than_said(worker)
        if why:
            found.append(Standing(worker.url, why))
    return tuple(found)


def step(worker: WorkerSeen, overrides: Mapping[str, str]) -> str:
    """`IN_STEP`, or why a worker does not run on ``overrides``, in words."""
    status = worker.status
    if status is None:
        return worker.trouble
    hashes = {overrides_hash(overrides)} | ({None} if not overrides else set())
    if (status.applied.sha256 if status.applied else None) in hashes and status.error is None:
        return IN_STEP
    if status.error is not None and status.error.offset is None:
        return f"it is in trouble: {status.error.message.strip().rstrip('.')}"
    if status.error is not None:
        return f"it refused the last update: {status.error.message.strip().rstrip('.')}"
    return "it has not applied the last update yet"


def differing(seen: WorkersSeen) -> Iterator[Standing]:
    """The workers whose certificate is another one than they say, or than several of the others share.

    Who is behind is expected to show another one. Where each worker has one of its own, none differs.
    """
    late = {standing.url for standing in behind(seen)}
    shown = {w.url: w.served.sha256 for w in seen.workers if w.served and w.url not in late}
    steady = {w.url for w in seen.workers if w.status and not _other_than_said(w)}
    counts = Counter(sha for url, sha in shown.items() if url in steady)
    shared = next((sha for sha, count in counts.most_common(1) if count > 1), None)
    for worker in seen.workers:
        why = _other_than_said(worker)
        other = shared is not None and shown.get(worker.url, shared) != shared
        if not why and other and worker.served:
            why = f"it shows another certificate than the others ({_name_certificate(worker.served)})"
        if why:
            yield Standing(worker.url, why)


def certificates(seen: WorkersSeen) -> Mapping[Certificate, tuple[str, ...]]:
    """The certificates that are shown, each with the workers that show it, in the order of the workers."""
    found: dict[Certificate, list[str]] = {}
    for worker in seen.workers:
        if worker.served:
            found.setdefault(worker.served, []).append(worker.url)
    return {certificate: tuple(urls) for certificate, urls in found.items()}


def ends_within(certificate: Certificate, seen: WorkersSeen, seconds: float) -> bool:
    """Whether a certificate is no longer valid some time after workers were seen, or was not even then."""
    return (certificate.not_after - seen.at).total_seconds() <= seconds


def _other_than_said(worker: WorkerSeen) -> str:
    """Of the listener on the port of the URL; where ports are mapped, any listener will do."""
    if worker.served is None or worker.status is None:
        return ""
    listeners = [one for one in worker.status.listeners if one.certificate]
    here = [one for one in listeners if one.port == (urlsplit(worker.url).port or 443)]
    said = {one.certificate.sha256 for one in here or listeners if one.certificate}
    if not said or worker.served.sha256 in said:
        return ""
    return f"it shows another certificate than the one it says it has ({_name_certificate(worker.served)})"


def _name_certificate(certificate: Certificate) -> str:
    return f"{certificate.subject}, SHA-256 {certificate.sha256[:16]}…"


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
            yield _make_diagnostic(Severity.WARNING, code, _SUMMARIES[code], detail, "", about, standing.url)
    for certificate, urls in certificates(seen).items():
        yield _warn_of_end(certificate, urls, seen, warn_before_s, about)


def _warn_of_end(
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
    return _make_diagnostic(severity, code, summary, detail, hint, about, certificate.sha256)


def _make_diagnostic(
    severity: Severity, code: str, summary: str, detail: str, hint: str, about: _About, subject: str
) -> Diagnostic:
    place = None if severity is Severity.INFO else about.place
    return Diagnostic(severity, code, summary, detail, hint, place, about.resource, subject)
