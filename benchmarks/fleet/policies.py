"""``python -m benchmarks.fleet.policies``: diff a fleet on Spark, with and without policies."""

import argparse
import shutil
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

import psutil

from benchmarks.synthetic_fleet import write
from kdeclare.app.fleet.audit_policies import evaluate_objects
from kdeclare.core.parts import LiveState
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.fleet.audit_summary import AuditRun
from kdeclare.fleet.cluster_pass import (
    ClusterEvaluation,
    ClusterEvaluator,
    KnownResources,
    LabelsByResource,
)
from kdeclare.fleet.spark.audit import ComparedTables, write_findings
from kdeclare.fleet.spark.diff import AuditCoverage
from kdeclare.fleet.spark.overview import read_counts
from kdeclare.fleet.spark.session import spark_session
from kdeclare.fleet.spark.tables import open_workbench, to_spark_schema
from kdeclare.fleet.tables.rows import DECLARED, LIVE
from kdeclare.fleet.tables.storage import LocalStorage
from kdeclare.policy.cel.manifest import PolicyBody, PolicyKind
from kdeclare.policy.configured_policy import ConfiguredPolicy

RULES = (
    "post == null || post.partitions <= 10000",
    "post == null || post.replicationFactor >= 1",
    "post == null || !('retention.ms' in post.configs) || post.configs['retention.ms'] != '1'",
)
"""Rules that every topic complies with."""


@lru_cache
def _load_policies() -> Sequence[ConfiguredPolicy]:
    kind = PolicyKind()
    bodies = [PolicyBody(rule=rule, message="no") for rule in RULES]
    return [
        kind.configured(DesiredResource(ResourceId("Policy", f"rule-{number}"), body))
        for number, body in enumerate(bodies)
    ]


def make_evaluator(_: str) -> ClusterEvaluator:
    """Return a function that evaluates the rules for a cluster. Every topic complies with them."""

    def evaluate(
        live: LiveState, objects: Sequence[ResourceId], labels: LabelsByResource, known: KnownResources
    ) -> ClusterEvaluation:
        return evaluate_objects(_load_policies(), live, objects, labels, known)

    return evaluate


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet.policies", description=__doc__)
    parser.add_argument(
        "--data", type=Path, required=True, metavar="DIR", help="folder of the generated fleet"
    )
    parser.add_argument("--clusters", type=int, default=20, metavar="N")
    parser.add_argument("--topics", type=int, default=2_500, metavar="N", help="topics per cluster")
    parser.add_argument(
        "--rounds", type=int, default=3, metavar="N", help="figures are medians of the rounds"
    )
    options = parser.parse_args()
    data = options.data / f"{options.clusters}-{options.topics}"
    write(data, options.clusters, options.topics)
    times: dict[bool, list[float]] = {False: [], True: []}
    with spark_session("local[2]", {}, log=None) as spark:
        declared = spark.read.schema(to_spark_schema(DECLARED)).parquet(str(data / "declared"))
        live = spark.read.schema(to_spark_schema(LIVE)).parquet(str(data / "live"))
        overview = read_counts(declared, live).build_overview()
        for number in range(options.rounds + 1):
            for has_policies in times:
                clusters = {
                    name: replace(item, has_second_pass=has_policies)
                    for name, item in overview.clusters.items()
                }
                tables = ComparedTables(
                    declared, live, replace(overview, clusters=clusters), AuditCoverage(tuple(clusters))
                )
                out = data / "policies"
                shutil.rmtree(out, ignore_errors=True)
                started = time.perf_counter()
                with open_workbench(spark, LocalStorage(out), "one") as bench:
                    write_findings(
                        bench, tables, AuditRun("one", "synthetic", datetime.now(UTC)), make_evaluator
                    )
                taken = time.perf_counter() - started
                peak = max(
                    (
                        child.memory_info().rss
                        for child in psutil.Process().children(recursive=True)
                        if child.name() != "java"
                    ),
                    default=0,
                )
                print(
                    f"{taken:7.2f} s, largest task {peak >> 20} MB, policies: {has_policies}", file=sys.stderr
                )
                if number:  # the first round compiles the queries
                    times[has_policies].append(taken)
    without_s, with_s = (statistics.median(times[has_policies]) for has_policies in (False, True))
    print(f"{options.clusters * options.topics:,} topics in {options.clusters} clusters\n")
    print("| without policies | with policies | ratio |")
    print("|---:|---:|---:|")
    print(f"| {without_s:.1f} s | {with_s:.1f} s | {with_s / without_s:.2f} × |")


if __name__ == "__main__":
    from benchmarks.fleet import policies  # so that tasks can import the functions

    policies.main()
