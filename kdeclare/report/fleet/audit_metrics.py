"""Render an audit as metrics in the OpenMetrics text format, which Prometheus can also read.

Point the textfile collector of the Prometheus node exporter at the folder of the audits, or have a scraper
read the file ``metrics.prom`` in this folder.
"""

from collections.abc import Iterable, Iterator, Mapping

from kdeclare.fleet.audit_summary import Audit

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def render_audit_metrics(audit: Audit) -> str:
    """Render all metrics. The counts include the findings that reports leave out."""
    summary = audit.summary
    fleet = {"fleet": summary.fleet}
    clusters = [(cluster, fleet | {"cluster": cluster.name}) for cluster in summary.clusters]
    counts = [
        (
            count,
            fleet
            | {
                "cluster": count.cluster,
                "finding": count.finding.value,
                "severity": count.severity.value,
                "team": count.team,
            },
        )
        for count in audit.counts
    ]
    lines = [
        *_render_gauge("findings", "The open findings.", ((labels, c.count) for c, labels in counts)),
        *_render_gauge(
            "oldest_finding_timestamp_seconds",
            "The time of the first audit that contains the oldest of these open findings.",
            ((labels, c.oldest.timestamp()) for c, labels in counts),
        ),
        *_render_gauge(
            "accepted_findings",
            "Findings that an AcceptedDrift accepts. No other metric counts them.",
            ((fleet | {"accepted": item.name}, item.count) for item in summary.accepted),
        ),
        *_render_gauge(
            "cluster_read",
            "1 if the cluster was read completely; otherwise 0, and its drift is unknown.",
            ((labels, float(cluster.error is None)) for cluster, labels in clusters),
        ),
        *_render_gauge(
            "declared_resources",
            "The declared resources of the cluster.",
            ((labels, cluster.declared) for cluster, labels in clusters),
        ),
        *_render_gauge(
            "audit_timestamp_seconds", "The start of the audit.", [(fleet, summary.taken_at.timestamp())]
        ),
        *_render_gauge("audit_duration_seconds", "The duration of the audit.", [(fleet, summary.seconds)]),
        "# EOF",
    ]
    return "".join(f"{line}\n" for line in lines)


def _render_gauge(
    name: str, description: str, samples: Iterable[tuple[Mapping[str, str], float]]
) -> Iterator[str]:
    yield f"# TYPE kdeclare_{name} gauge"
    if name.endswith("_seconds"):
        yield f"# UNIT kdeclare_{name} seconds"
    yield f"# HELP kdeclare_{name} {description}"
    for labels, value in samples:
        texts = (f'{label}="{text.translate(_ESCAPES)}"' for label, text in labels.items())
        yield f"kdeclare_{name}{{{','.join(texts)}}} {value}"
