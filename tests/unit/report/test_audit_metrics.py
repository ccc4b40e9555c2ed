"""The metrics of an audit, as a parser of OpenMetrics reads them."""

from dataclasses import replace

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_prometheus

from kdeclare.report.fleet.audit_metrics import render_audit_metrics
from tests.browser.sample_audits import NOON, build_big_audit, build_quiet_audit, build_small_audit
from tests.unit.report.golden_files import check_golden


def test_metrics_of_small_audit_match_golden_file() -> None:
    check_golden("audit-metrics", render_audit_metrics(build_small_audit()))


@pytest.mark.slow
@pytest.mark.parametrize("parse", [parse_openmetrics, parse_prometheus])
def test_metrics_count_all_findings_with_hostile_names(parse) -> None:  # type: ignore[no-untyped-def]
    audit = replace(build_big_audit(), left_out=5)
    audit = replace(audit, summary=replace(audit.summary, fleet='a "fleet"\\ of\nlines'))
    families = {family.name: family.samples for family in parse(render_audit_metrics(audit))}
    found = families["kdeclare_findings"]
    assert sum(sample.value for sample in found) == len(audit.rows)
    assert {sample.labels["cluster"] for sample in found} == {row.cluster for row in audit.rows}
    assert {sample.labels["fleet"] for sample in found} == {audit.summary.fleet}
    urgent = [sample for sample in found if sample.labels["severity"] == "high"]
    assert sum(sample.value for sample in urgent) == sum(row.severity == "high" for row in audit.rows)
    read = {sample.labels["cluster"]: sample.value for sample in families["kdeclare_cluster_read"]}
    assert read == {cluster.name: float(cluster.error is None) for cluster in audit.summary.clusters}
    oldest = families["kdeclare_oldest_finding_timestamp_seconds"]
    assert min(sample.value for sample in oldest) == min(row.first_seen for row in audit.rows).timestamp()


def test_metrics_without_findings_are_valid() -> None:
    text = render_audit_metrics(build_quiet_audit())
    families = {family.name: family for family in parse_openmetrics(text)}  # type: ignore[no-untyped-call]
    assert families["kdeclare_findings"].samples == []
    assert families["kdeclare_audit_timestamp_seconds"].samples[0].value == NOON.timestamp()
