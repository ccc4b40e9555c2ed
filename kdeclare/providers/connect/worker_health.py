"""Find expiring certificates, and workers that lag, do not respond, or present unexpected certificates."""

from collections import Counter
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from kdeclare.core.diagnostics import Diagnostic, Severity, SourcePosition
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.providers.connect.worker_state import Certificate, GroupSnapshot, WorkerSnapshot, hash_overrides

IN_STEP = "in step"
"""The state of a worker that uses the current overrides."""


@dataclass(frozen=True, slots=True)
class WorkerIssue:
    """A problem with one worker. why: a description of the problem."""

    url: str
    why: str


_RENEW_HINT = "Install a new certificate on the workers, and change the overrides to use this certificate."


def find_lagging(snapshot: GroupSnapshot) -> tuple[WorkerIssue, ...]:
    """Return the workers that respond but do not use the current overrides."""
    overrides = snapshot.overrides or {}
    states = ((worker.url, explain_step(worker, overrides)) for worker in snapshot.workers if worker.status)
    return tuple(WorkerIssue(url, why) for url, why in states if why != IN_STEP)


def find_refusing(snapshot: GroupSnapshot) -> tuple[WorkerIssue, ...]:
    """Return the workers that refused the last update, which must be sent to them again."""
    errors_by_url = {worker.url: worker.status.error for worker in snapshot.workers if worker.status}
    refusing_urls = {url for url, error in errors_by_url.items() if error and error.offset is not None}
    return tuple(standing for standing in find_lagging(snapshot) if standing.url in refusing_urls)


def find_silent(snapshot: GroupSnapshot) -> tuple[WorkerIssue, ...]:
    """Return the workers whose state is incomplete, for example because they do not respond."""
    return tuple(WorkerIssue(worker.url, worker.trouble) for worker in snapshot.workers if worker.trouble)


def find_unconverged(
    snapshot: GroupSnapshot, expected_overrides: Mapping[str, str]
) -> tuple[WorkerIssue, ...]:
    """Return the workers that lag behind or do not present the certificate that they report."""
    issues = []
    newest_offset = max((w.status.seen or 0 for w in snapshot.workers if w.status), default=0)
    for worker in snapshot.workers:
        reason = worker.trouble or explain_step(worker, expected_overrides)
        if reason == IN_STEP and worker.status and (worker.status.seen or 0) < newest_offset:
            # Even an update without changed values makes workers read their files again.
            reason = "it has not read the last update yet"
        if reason == IN_STEP:
            reason = _explain_certificate_mismatch(worker)
        if reason:
            issues.append(WorkerIssue(worker.url, reason))
    return tuple(issues)


def explain_step(worker: WorkerSnapshot, overrides: Mapping[str, str]) -> str:
    """Return `IN_STEP`, or the reason why a worker does not use ``overrides``."""
    status = worker.status
    if status is None:
        return worker.trouble
    hashes = {hash_overrides(overrides)} | ({None} if not overrides else set())
    if (status.applied.sha256 if status.applied else None) in hashes and status.error is None:
        return IN_STEP
    if status.error is not None and status.error.offset is None:
        return f"it reports an error: {status.error.message.strip().rstrip('.')}"
    if status.error is not None:
        return f"it refused the last update: {status.error.message.strip().rstrip('.')}"
    return "it has not applied the last update yet"


def find_certificate_mismatches(snapshot: GroupSnapshot) -> Iterator[WorkerIssue]:
    """Yield the workers that present an unexpected certificate.

    A certificate is unexpected in two cases: it differs from the certificate that the worker reports, or it
    differs from the most frequent certificate. Lagging workers are not checked for the second case. The
    second check is skipped if no two workers present the same certificate.
    """
    lagging_urls = {standing.url for standing in find_lagging(snapshot)}
    hashes_by_url = {
        w.url: w.served.sha256 for w in snapshot.workers if w.served and w.url not in lagging_urls
    }
    consistent_urls = {w.url for w in snapshot.workers if w.status and not _explain_certificate_mismatch(w)}
    hash_counts = Counter(sha for url, sha in hashes_by_url.items() if url in consistent_urls)
    shared_hash = next((sha for sha, count in hash_counts.most_common(1) if count > 1), None)
    for worker in snapshot.workers:
        reason = _explain_certificate_mismatch(worker)
        is_different = shared_hash is not None and hashes_by_url.get(worker.url, shared_hash) != shared_hash
        if not reason and is_different and worker.served:
            certificate = _format_certificate(worker.served)
            reason = f"it presents a different certificate than the other workers ({certificate})"
        if reason:
            yield WorkerIssue(worker.url, reason)


def group_certificates(snapshot: GroupSnapshot) -> Mapping[Certificate, tuple[str, ...]]:
    """Return each presented certificate with the workers that present it, in the order of the workers."""
    urls_by_certificate: dict[Certificate, list[str]] = {}
    for worker in snapshot.workers:
        if worker.served:
            urls_by_certificate.setdefault(worker.served, []).append(worker.url)
    return {certificate: tuple(urls) for certificate, urls in urls_by_certificate.items()}


def is_expired_within(certificate: Certificate, snapshot: GroupSnapshot, seconds: float) -> bool:
    """Whether a certificate has expired or will expire within ``seconds`` after the snapshot."""
    return (certificate.not_after - snapshot.at).total_seconds() <= seconds


def _explain_certificate_mismatch(worker: WorkerSnapshot) -> str:
    """Describe the presented certificate if it differs from the reported one; otherwise return ``""``.

    The reported certificate is the certificate of the listener on the port of the URL. If no listener has
    this port (for example, because ports are mapped), the certificate of any listener is accepted.
    """
    if worker.served is None or worker.status is None:
        return ""
    tls_listeners = [one for one in worker.status.listeners if one.certificate]
    matching_listeners = [one for one in tls_listeners if one.port == (urlsplit(worker.url).port or 443)]
    reported_hashes = {
        one.certificate.sha256 for one in matching_listeners or tls_listeners if one.certificate
    }
    if not reported_hashes or worker.served.sha256 in reported_hashes:
        return ""
    certificate = _format_certificate(worker.served)
    return f"it presents a certificate other than the one that it reports ({certificate})"


def _format_certificate(certificate: Certificate) -> str:
    return f"{certificate.subject}, SHA-256 {certificate.sha256[:16]}…"


SILENT = "worker-silent"
BEHIND = "worker-behind"
DIFFERS = "worker-certificate"
OUT_OF_STEP = frozenset({SILENT, BEHIND, DIFFERS})
"""The codes of warnings about workers for which ``status`` exits with code 5."""

_SUMMARIES = {
    SILENT: "Connect worker does not respond",
    BEHIND: "Connect worker is out of sync",
    DIFFERS: "Connect worker presents a different certificate",
}


@dataclass(frozen=True, slots=True)
class _ResourceContext:
    """The resource that declares the workers, if there is one, and its position in the manifests."""

    resource: str | None
    place: SourcePosition | None


def check_worker_health(
    snapshot: GroupSnapshot,
    warn_before_s: float,
    resource: str | None = None,
    place: SourcePosition | None = None,
) -> Iterator[Diagnostic]:
    """Yield warnings about workers and certificates, and information about each valid certificate.

    warn_before_s: how many seconds before the expiry of a certificate to warn.
    place: the position of the resource in the manifests.
    """
    resource_context = _ResourceContext(resource, place)
    issues_by_code = (
        (SILENT, find_silent(snapshot)),
        (BEHIND, find_lagging(snapshot)),
        (DIFFERS, tuple(find_certificate_mismatches(snapshot))),
    )
    for code, issues in issues_by_code:
        for issue in issues:
            detail = f"{issue.url}: {issue.why}."
            yield _build_diagnostic(
                Severity.WARNING, code, _SUMMARIES[code], detail, "", resource_context, issue.url
            )
    for certificate, urls in group_certificates(snapshot).items():
        yield _build_certificate_diagnostic(certificate, urls, snapshot, warn_before_s, resource_context)


def _build_certificate_diagnostic(
    certificate: Certificate,
    urls: tuple[str, ...],
    snapshot: GroupSnapshot,
    warn_before_s: float,
    resource_context: _ResourceContext,
) -> Diagnostic:
    expiry_text = f"{certificate.not_after:%Y-%m-%d %H:%M} UTC"
    certificate_text = f"{', '.join(urls)}: {certificate.subject} (SHA-256 {certificate.sha256[:16]}…)"
    severity, code, summary = Severity.INFO, "certificate", "Certificate of Connect workers"
    detail, hint = f"{certificate_text} is valid until {expiry_text}.", ""
    if is_expired_within(certificate, snapshot, 0):
        severity, code, summary = Severity.WARNING, "certificate-expired", "Certificate has expired"
        detail, hint = f"{certificate_text} expired at {expiry_text}.", _RENEW_HINT
    elif is_expired_within(certificate, snapshot, warn_before_s):
        severity, code, summary = Severity.WARNING, "certificate-expires", "Certificate expires soon"
        hint = f"{_RENEW_HINT} To be warned earlier or later, set 'warnBeforeExpiry'."
    return _build_diagnostic(severity, code, summary, detail, hint, resource_context, certificate.sha256)


def _build_diagnostic(
    severity: Severity,
    code: str,
    summary: str,
    detail: str,
    hint: str,
    resource_context: _ResourceContext,
    subject: str,
) -> Diagnostic:
    place = None if severity is Severity.INFO else resource_context.place
    return Diagnostic(severity, code, summary, detail, hint, place, resource_context.resource, subject)
