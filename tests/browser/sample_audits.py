"""Sample audits: a small one that is easy to read, and a large one with hostile names."""

import itertools
import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from kdeclare.fleet.audit_results import build_groups
from kdeclare.fleet.audit_summary import (
    AcceptedFindings,
    Audit,
    AuditSummary,
    ClusterSummary,
    HeatCell,
    Since,
    TrendPoint,
)
from kdeclare.fleet.findings import AuditRow, FindingCount, FindingKind, FindingSeverity
from kdeclare.manifests.fleet.manifest_links import ManifestLinks
from tests.jsontypes import Json

NOON = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "a|b`c`|d",
    "line\nbreak\u2028and\u2029more",
    "Größe-名前-😀",
    '"quoted" & \\back\\slash',
    "@somebody #123 [link](http://example.com)",
)

SILENT = "No broker of eu-3:9092 answered in 10 s."
NOT_TOLD = (
    "Policy 'ours' needs data that snapshots do not contain. "
    "Run 'kdeclare policy check --live' to evaluate it."
)

_CONFIGS = {
    "retention.ms": ("604800000", "86400000", "3600000", "-1"),
    "min.insync.replicas": ("1", "2", "3"),
    "cleanup.policy": ("delete", "compact", "compact,delete"),
    "segment.bytes": ("1073741824", "268435456", "536870912"),
    "max.message.bytes": ("1048588", "5242880", "10485760"),
    "retention.bytes": ("-1", "10737418240", "53687091200"),
    "compression.type": ("producer", "zstd", "lz4"),
    "segment.ms": ("604800000", "3600000"),
    "unclean.leader.election.enable": ("false", "true"),
    "message.timestamp.type": ("CreateTime", "LogAppendTime"),
}
_POLICIES = ("policies.replicas-at-least-3", "policies.retention-in-bounds", "policies.naming")
_TEAMS = ("payments", "checkout", "search", "ledger", "identity", "logistics", "risk", "growth", "")
_WORDS = (
    "orders",
    "payments",
    "invoices",
    "clicks",
    "shipments",
    "logins",
    "prices",
    "refunds",
    "alerts",
    "audit",
)
_WEIGHTS = {
    FindingKind.MISSING: 2,
    FindingKind.CHANGED: 24,
    FindingKind.POLICY: 7,
    FindingKind.PENDING: 16,
    FindingKind.ORPHANED: 6,
    FindingKind.UNMANAGED: 45,
}


_SEVERITIES = {
    FindingKind.UNREACHABLE: FindingSeverity.HIGH,
    FindingKind.MISSING: FindingSeverity.HIGH,
    FindingKind.CHANGED: FindingSeverity.MEDIUM,
    FindingKind.POLICY: FindingSeverity.MEDIUM,
}


def build_row(
    finding: FindingKind,
    cluster: str,
    name: str,
    path: str | None = None,
    op: str | None = None,
    values: tuple[Json, Json] = (None, None),
    **more: object,
) -> AuditRow:
    """Build a finding of a topic; values: before and after, as data."""
    before, after = (None if value is None else json.dumps(value) for value in values)
    severity = _SEVERITIES.get(finding, FindingSeverity.LOW)
    made = AuditRow(
        NOON, cluster, "Topic", name, finding, path, op, before, after, "", {}, NOON, "known", severity
    )
    return replace(made, **more)  # type: ignore[arg-type]


def count_rows(rows: Iterable[AuditRow]) -> tuple[FindingCount, ...]:
    """Count findings as an audit does."""
    times: dict[tuple[str, FindingKind, FindingSeverity, str], list[datetime]] = defaultdict(list)
    for row in rows:
        times[row.cluster, row.finding, row.severity, row.labels.get("team", "")].append(row.first_seen)
    return tuple(FindingCount(*key, len(seen), min(seen)) for key, seen in sorted(times.items()))


def build_summary(
    rows: Iterable[AuditRow], clusters: Iterable[ClusterSummary], **more: object
) -> AuditSummary:
    """Build the summary of rows; ``more`` are further fields."""
    rows = list(rows)
    by_cluster: dict[str, Counter[FindingKind]] = defaultdict(Counter)
    by_team: dict[str, Counter[FindingKind]] = defaultdict(Counter)
    heat: Counter[tuple[str, str | None]] = Counter()
    for item in rows:
        by_cluster[item.cluster][item.finding] += 1
        by_team[item.labels.get("team", "")][item.finding] += 1
        heat[item.cluster, item.path] += 1
    often = {path for path, _ in Counter(item.path for item in rows).most_common(16)}
    summary = AuditSummary(
        audit_id="20260131-120000-a1b2",
        fleet="production",
        taken_at=NOON,
        seconds=38.4,
        clusters=tuple(replace(c, found=dict(by_cluster[c.name])) for c in clusters),
        found=dict(Counter(item.finding for item in rows)),
        teams={team: dict(counts) for team, counts in by_team.items()},
        heat=tuple(HeatCell(where, path, count) for (where, path), count in heat.items() if path in often),
        groups=build_groups(count_rows(rows)),
    )
    return replace(summary, **more)  # type: ignore[arg-type]


def build_cluster(name: str, error: str | None = None, **labels: str) -> ClusterSummary:
    """Build a cluster with 200 topics, or one that could not be read."""
    known = (0, 120) if error else (200, 120)
    return ClusterSummary(name, labels, f"id-{name}", None if error else "4.1", NOON, *known, {}, error)


_ACCEPTED = (
    AcceptedFindings("sale", "More retention until the sale is over.", "payments", "2026-02-14", False, 3),
    AcceptedFindings("old-naming", "Renamed in Q2.", None, "2026-01-15", True, 0),
    AcceptedFindings("migration", "The migration tool needs it.", "search", "2026-06-30", False, 0),
)


def build_small_audit() -> Audit:
    """Build an audit of four clusters with findings of every kind."""
    team = {"team": "payments"}
    body = {"partitions": 6, "replicationFactor": 3, "configs.retention.ms": "604800000"}
    rows = [
        build_row(FindingKind.UNREACHABLE, "eu-3", "eu-3", kind="Cluster", message=SILENT),
        build_row(FindingKind.MISSING, "eu-1", "orders", None, "create", (None, body),
            status="new", labels=team, message="It was applied before, but is missing from the cluster."),
        build_row(FindingKind.CHANGED, "eu-1", "payments", "configs.retention.ms", "SET",
            ("1000", "604800000"), status="new", labels=team, message="Changed outside kdeclare.",
            severity=FindingSeverity.HIGH, source="manifests/payments.yaml:9:7"),
        build_row(FindingKind.CHANGED, "eu-2", "payments", "configs.cleanup.policy", "APPEND",
            ("delete", "compact,delete"), labels=team, first_seen=NOON - timedelta(days=12)),
        build_row(FindingKind.POLICY, "eu-1", "clicks", "policies.replicas-at-least-3",
            message="Policy 'replicas-at-least-3' denies this resource: it has 1 replica."),
        build_row(FindingKind.PENDING, "eu-2", "refunds", "partitions", "change", (6, 12),
            labels={"team": "checkout"}),
        build_row(FindingKind.ORPHANED, "eu-2", "legacy", None, "delete"),
        build_row(FindingKind.UNMANAGED, "eu-1", "scratch"),
        build_row(FindingKind.UNMANAGED, "eu-1", "test-1"),
        build_row(FindingKind.UNMANAGED, "eu-1", "test-2"),
        build_row(FindingKind.UNMANAGED, "eu-2", "payments", "configs.segment.ms", None, ("3600000", None),
            labels=team),
    ]  # fmt: skip
    clusters = [
        build_cluster("eu-1", region="eu"),
        replace(build_cluster("eu-2", region="eu"), notice=NOT_TOLD),
        build_cluster("eu-3", SILENT, region="eu"),
        build_cluster("us-1", region="us"),
    ]
    day = timedelta(days=1)
    before = Since("20260130-120000-c3d4", NOON - day, new=2, known=7, mended=1)
    trend = (
        TrendPoint("20260129-120000-e5f6", NOON - 2 * day, 4, {FindingKind.CHANGED: 4}),
        TrendPoint("20260130-120000-c3d4", NOON - day, 4, {FindingKind.CHANGED: 2, FindingKind.UNMANAGED: 2}),
    )
    fixed = (build_row(FindingKind.PENDING, "us-1", "invoices", "configs.retention.ms", "SET", ("1", "2")),)
    return Audit(
        build_summary(
            rows, clusters, since=before, unseen={FindingKind.CHANGED: 3}, trend=trend, accepted=_ACCEPTED
        ),
        tuple(rows),
        0,
        fixed,
        count_rows(rows),
        ManifestLinks("https://git.example/kafka/blob/main/{path}#L{line}"),
    )


def build_unused_audit(count: int = 4) -> Audit:
    """Build an audit with unused topics, one of which was never written."""
    first_ms = int((NOON - timedelta(days=400)).timestamp() * 1000)
    rows = [
        build_row(
            FindingKind.UNUSED,
            f"eu-{n % 2 + 1}",
            f"old.{n}" if n else "empty",
            values=(
                {"records": 1000 * n, "bytes": n * 2**20, "newest_record_ms": first_ms, "groups": n % 3},
                None,
            )
            if n
            else ({"records": 0, "bytes": 0, "newest_record_ms": None, "groups": 0}, None),
            message="No group has members that read the topic.",
            first_seen=NOON - timedelta(days=12),
        )
        for n in range(count)
    ]
    small = build_small_audit()
    rows = [*small.rows, *rows]
    summary = build_summary(rows, small.summary.clusters)
    return replace(small, summary=summary, rows=tuple(rows), counts=count_rows(rows))


def build_audit_of_every_shape() -> Audit:
    """Build findings of every kind, with and without a field, and with and without either value."""
    shapes: Iterable[tuple[FindingKind, str | None, Json, Json]] = itertools.product(
        FindingKind,
        (None, "configs.cleanup.policy"),
        (None, "delete", ["delete", "compact"], 3, {"partitions": 6}),
        (None, "compact", [], 12),
    )
    rows = [
        build_row(kind, "eu-1", f"t.{n}", path, None if after is None else "SET", (before, after))
        for n, (kind, path, before, after) in enumerate(shapes)
    ]
    return Audit(build_summary(rows, [build_cluster("eu-1")]), tuple(rows))


def build_quiet_audit() -> Audit:
    """Build an audit without findings."""
    return Audit(build_summary([], [build_cluster("eu-1"), build_cluster("eu-2")]), ())


def build_big_audit(count: int = 10_000, clusters: int = 200, seed: int = 7) -> Audit:
    """Build an audit with this many findings, most of them in a few clusters; some names are HOSTILE."""
    dice = random.Random(seed)
    names = [f"{region}-{n:03}" for n in range(clusters // 4) for region in ("eu", "us", "ap", "sa")][
        :clusters
    ]
    dice.shuffle(names)
    names[: len(HOSTILE)] = HOSTILE
    errors = {
        names[-1]: "Connection to 10.4.7.21:9092 was refused.",
        names[-2]: "No broker answered in 10 s: it accepts connections and says nothing.",
        names[-3]: "Authentication failed: SASL credentials were not accepted by the brokers.",
    }
    made = [
        build_cluster(name, errors.get(name), region=name[:2], tier=dice.choice(("gold", "silver")))
        for name in names
    ]
    made = [replace(c, topics=dice.randrange(400, 6000) if not c.error else 0) for c in made]
    drifting = names[: clusters * 7 // 10]
    weights = [(rank + 3) ** -1.3 for rank, _ in enumerate(drifting)]
    rows = [
        build_row(FindingKind.UNREACHABLE, name, name, kind="Cluster", message=message, status="new")
        for name, message in errors.items()
    ]
    for where in dice.choices(drifting, weights, k=count - len(rows)):
        rows.append(_build_random_row(dice, where))
    day = timedelta(days=1)
    found = Counter(item.finding for item in rows)
    trend = tuple(
        TrendPoint(f"audit-{n}", NOON - n * day, clusters, _build_earlier_counts(dice, found, n))
        for n in range(30, 0, -1)
    )
    new = sum(item.status == "new" for item in rows)
    since = Since("audit-1", NOON - day, new, count - new, 214)
    fixed = tuple(_build_random_row(dice, dice.choice(names[:-3])) for _ in range(100))
    summary = build_summary(rows, made, trend=trend, since=since)
    return Audit(summary, tuple(rows), 0, fixed, count_rows(rows))


def _build_earlier_counts(
    dice: random.Random, found: Mapping[FindingKind, int], days: int
) -> dict[FindingKind, int]:
    wave = 1 + 0.25 * ((days % 7) / 7 - 0.5) - 0.012 * days
    return {kind: int(count * wave * dice.uniform(0.93, 1.07)) for kind, count in found.items()}


def _build_random_row(dice: random.Random, where: str) -> AuditRow:
    kind = dice.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
    team = dice.choices(_TEAMS, range(len(_TEAMS), 0, -1))[0]
    name = f"{team or 'shared'}.{dice.choice(_WORDS)}.{dice.choice(_WORDS)}.v{dice.randrange(1, 40)}"
    if dice.random() < 0.02:
        name = dice.choice(HOSTILE)
    path, op, values, message = _build_random_drift(dice, kind)
    return build_row(
        kind,
        where,
        name,
        path,
        op,
        values,
        message=message,
        labels={"team": team, "tier": dice.choice(("1", "2"))} if team else {},
        first_seen=NOON - timedelta(hours=dice.choice((0, 5, 20, 24 * dice.randrange(1, 90)))),
        status="new" if dice.random() < 0.08 else "known",
    )


def _build_random_drift(
    dice: random.Random, kind: FindingKind
) -> tuple[str | None, str | None, tuple[Json, Json], str]:
    key = dice.choices(list(_CONFIGS), [10, 6, 4, 4, 3, 3, 2, 2, 1, 1])[0]
    a, b = dice.sample(_CONFIGS[key], 2)
    path = f"configs.{key}"
    match kind:
        case FindingKind.CHANGED:
            if dice.random() < 0.12:
                n = dice.randrange(12)
                moved = (dice.sample(range(1, 9), 3), dice.sample(range(1, 9), 3))
                return (
                    f"assignments.{n}",
                    "change",
                    moved,
                    f"The replicas of partition {n} were moved by someone else.",
                )
            return path, "SET", (a, b), "Changed outside kdeclare since it was last applied."
        case FindingKind.MISSING:
            body = {"partitions": dice.choice((6, 12, 24)), "replicationFactor": 3, path: b}
            return None, "create", (None, body), "It was applied before, but is missing from the cluster."
        case FindingKind.POLICY:
            policy = dice.choice(_POLICIES)
            return (
                policy,
                None,
                (None, None),
                f"Policy '{policy[9:]}' denies this resource: it is not within its bounds.",
            )
        case FindingKind.PENDING:
            if dice.random() < 0.3:
                return "partitions", "change", (dice.choice((3, 6)), 12), "Declared, and not applied yet."
            return path, "SET", (None if dice.random() < 0.5 else a, b), "Declared, and not applied yet."
        case FindingKind.ORPHANED:
            return None, "delete", (None, None), "Owned, and declared no longer."
        case _:
            if dice.random() < 0.5:
                return None, None, (None, None), "Neither declared nor owned."
            return path, None, (a, None), "This override is neither declared nor owned."
