"""Applying a fleet: the parts that need no cluster."""

import pytest

from kdeclare.app.fleet.rollout.saved_plans import _merge_selectors
from kdeclare.cli.commands.fleet.rollouts import redact_spark_settings
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.exit_codes import ExitCode
from kdeclare.fleet.overview import AppliedCluster, AppliedStatus, FleetApply
from kdeclare.report.fleet.fleet_runs import compute_apply_exit


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        ("done nothing skipped", ExitCode.OK),
        ("done denied", ExitCode.DENIED),
        ("stale not-begun", ExitCode.STALE),
        ("stale skipped", ExitCode.STALE),
        ("failed not-begun", ExitCode.ERROR),
        ("failed stale", ExitCode.ERROR),
        ("done stale", ExitCode.PARTIAL),
        ("denied failed", ExitCode.PARTIAL),
        ("partial", ExitCode.PARTIAL),
        ("locked not-begun", ExitCode.LOCKED),
        ("locked locked", ExitCode.LOCKED),
        ("locked stale", ExitCode.ERROR),
        ("done locked", ExitCode.PARTIAL),
    ],
)
def test_apply_exit_code_combines_all_clusters(statuses: str, code: ExitCode) -> None:
    clusters = tuple(AppliedCluster(word, 1, AppliedStatus(word)) for word in statuses.split())
    assert compute_apply_exit(FleetApply("shop", 1.0, None, clusters)) is code


def test_apply_exit_code_is_interrupted_after_interruption() -> None:
    for status in AppliedStatus:
        clusters = (AppliedCluster("eu-1", 1, status),)
        run = FleetApply("shop", 1.0, "The rollout was interrupted.", clusters, interrupted=True)
        assert compute_apply_exit(run) is ExitCode.INTERRUPTED


def test_recorded_command_masks_spark_settings() -> None:
    typed = (
        "kdeclare fleet apply f.yaml --conf spark.hadoop.fs.s3a.secret.key=XXX --conf=a=YYY --out 's3a://b'"
    )
    told = redact_spark_settings(typed)
    assert "spark.hadoop.fs.s3a.secret.key=…" in told
    assert "XXX" not in told
    assert "YYY" not in told
    assert "s3a://b" in told


def test_merge_selectors_never_widens_fleet_file_selector() -> None:
    assert _merge_selectors({"team": "checkout"}, {"tier": "gold"}) == {"team": "checkout", "tier": "gold"}
    assert _merge_selectors({"team": "checkout"}, {"team": "checkout"}) == {"team": "checkout"}
    with pytest.raises(KdeclareError, match=r"restricts this cluster to team=checkout"):
        _merge_selectors({"team": "checkout"}, {"team": "search"})
