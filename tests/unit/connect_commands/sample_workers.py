"""Connect workers in all states, for text and document output."""

from dataclasses import replace
from datetime import UTC, datetime

from kdeclare.core.diagnostics import warning
from kdeclare.core.resources.changes import FieldChange, FieldOp
from kdeclare.core.secrets.secret_refs import SENSITIVE_MASK
from kdeclare.providers.connect.commands.describe_workers import (
    ChangeView,
    OverridesView,
    ProposalView,
    VerdictView,
    build_workers_view,
)
from kdeclare.providers.connect.worker_health import find_unconverged
from kdeclare.providers.connect.worker_state import (
    AppliedUpdate,
    Certificate,
    GroupSnapshot,
    Listener,
    PluginStatus,
    Refusal,
    WorkerSnapshot,
    hash_overrides,
)

LOCATION = "listeners.https.ssl.keystore.location"
PASSWORD = "listeners.https.ssl.keystore.password"
RAW = {LOCATION: "/etc/connect/rotated.p12", PASSWORD: "${file:/etc/connect/secrets.properties:keystore}"}
AT = datetime(2026, 6, 1, 12, tzinfo=UTC)


def _make_certificate(name: str, ends: datetime) -> Certificate:
    sha = name[::-1].encode().hex().ljust(64, "0")
    return Certificate(sha, f"CN={name},O=Acme", "CN=Acme CA", datetime(2026, 1, 1, tzinfo=UTC), ends)


OLD = _make_certificate("connect-2025", datetime(2026, 6, 11, 8, 30, tzinfo=UTC))
NEW = _make_certificate("connect-2026", datetime(2027, 6, 1, tzinfo=UTC))
OVER = _make_certificate("connect-2024", datetime(2026, 5, 30, tzinfo=UTC))


def _make_worker(number: int, served: Certificate = NEW, **more: object) -> WorkerSnapshot:
    port = 8082 + number
    status = PluginStatus(
        worker_id=f"connect-{number}:{port}",
        leader=number == 1,
        plugin_version="0.1.0",
        mode="distributed",
        seen=12,
        applied=AppliedUpdate(12, "2026-06-01T11:59:58Z", hash_overrides(RAW)),
        overrides=tuple(sorted(RAW)),
        whitelist=tuple(sorted(RAW)),
        listeners=(Listener("https", port, served),),
    )
    return WorkerSnapshot(f"https://connect-{number}:{port}", replace(status, **more), served)  # type: ignore[arg-type]


WELL = GroupSnapshot(AT, RAW, (_make_worker(1), _make_worker(2), _make_worker(3)))
ILL = GroupSnapshot(
    AT,
    RAW,
    (
        _make_worker(1),
        _make_worker(
            2,
            OLD,
            applied=AppliedUpdate(11, "2026-05-01T00:00:00Z", "00"),
            error=Refusal(12, "2026-06-01T11:59:58Z", "There is no file /etc/connect/rotated.p12."),
        ),
        _make_worker(3, OLD, applied=AppliedUpdate(11, "2026-05-01T00:00:00Z", "00"), leader=None),
        WorkerSnapshot("https://connect-4:8086", None, OVER, "it did not respond (timed out)"),
        replace(_make_worker(5), served=OLD),
    ),
)
NOBODY = GroupSnapshot(
    AT, None, (WorkerSnapshot("https://connect-1:8083", None, None, "it is unreachable (refused)"),)
)
HOSTILE = GroupSnapshot(
    AT,
    {"a\x1b[31m": "b"},
    (
        replace(
            WELL.workers[0],
            served=replace(NEW, subject="CN=\x1b[2Jevil,O=\u202ereversed"),
            trouble="a\nline and \x07 more",
        ),
    ),
)
STATUS = {
    name: build_workers_view(seen, 30)
    for name, seen in {"well": WELL, "ill": ILL, "nobody": NOBODY, "hostile": HOSTILE}.items()
}

FIELDS = (
    FieldChange(f"configs.{LOCATION}", FieldOp.SET, "/etc/connect/old.p12", RAW[LOCATION]),
    FieldChange(f"configs.{PASSWORD}", FieldOp.SET, SENSITIVE_MASK, RAW[PASSWORD]),
    FieldChange("configs.listeners.https.ssl.keystore.type", FieldOp.SET, "PKCS12", "PKCS12"),
    FieldChange("configs.listeners.https.ssl.key.password", FieldOp.DELETE, SENSITIVE_MASK, None),
)
_URLS = [worker.url for worker in WELL.workers]
PROPOSALS = {
    "good": ProposalView(FIELDS, tuple(VerdictView(url, "") for url in _URLS)),
    "bad": ProposalView(
        FIELDS,
        (
            VerdictView(_URLS[0], ""),
            VerdictView(_URLS[1], f"{LOCATION}: There is no file {RAW[LOCATION]}"),
            VerdictView(_URLS[2], "cannot be checked: it is unreachable (refused)"),
        ),
        (warning("raw-secret", "Secret stored in Connect's config topic", "It does."),),
    ),
}
CHANGED = {
    "all": ChangeView(FIELDS, STATUS["well"], 0.4),
    "some": ChangeView(FIELDS, STATUS["ill"], 30.0, {s.url: s.why for s in find_unconverged(ILL, RAW)}),
}
OVERRIDES = {"set": OverridesView({**RAW, "x.password": SENSITIVE_MASK}), "none": OverridesView({})}
