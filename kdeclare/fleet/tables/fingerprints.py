"""Fingerprints of clusters, which show whether the findings of an earlier audit are still valid.

The findings of a cluster depend on its rows in the tables `LIVE` and `DECLARED`, on the policies of its
project, on the code that compares the rows, and on the other entries of the fleet that share the cluster. If
all of this is the same as in the latest earlier audit, the new audit copies the findings of that audit.

The fingerprint of rows does not depend on their order: it combines the hashes of the rows with XOR. Audits
with and without Spark compute the same fingerprints. `fleet.spark.row_hashes` hashes rows in SQL.
"""

import hashlib
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import xor
from typing import Any

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.policies.policy_request import RULE_TOO_SLOW
from kdeclare.core.provider.installed_providers import InstalledProvider
from kdeclare.fleet.audit_summary import AuditSummary, ClusterFingerprints
from kdeclare.fleet.contested import Sharing, find_sharing
from kdeclare.fleet.findings import FindingKind
from kdeclare.fleet.tables.rows import FINDING
from kdeclare.version import VERSION

Row = Mapping[str, Any]

HASH_DIGITS = 15
"""The number of hexadecimal digits of the hash of a row: 60 bits, so that the hash is positive in SQL."""
SEPARATOR, NULL, LABEL_SEPARATOR = "\0", "\1", "\2"
"""The characters that separate values, replace null values, and end each label in the text to hash."""

FINDING_COLUMNS = ("kind", "name", *FINDING.names)
"""The columns of `FINDINGS` that the fingerprint of findings covers, besides the labels.

The other columns depend on the audit that reported the finding, or are derived from these columns.
"""
LIVE_COLUMNS = ("kind", "name", "cluster_id", "error", "group_name")
"""The columns of `LIVE` that the fingerprint of live rows covers, besides the body.

The fingerprint does not cover ``taken_at``. ``has`` and ``keys`` are derived from the body.
"""
_DERIVED_COLUMNS = frozenset({"cluster", "need", "forbid", "keys", "gone", "row_hash"})
"""The columns of `DECLARED` that are derived from other columns or from the name of the cluster."""
_LENGTH = 32


def hash_values(values: Iterable[str | None]) -> int:
    """Hash the values of a row. Different rows almost certainly have different hashes."""
    text = SEPARATOR.join(NULL if value is None else value for value in values)
    return int(hashlib.sha256(text.encode()).hexdigest()[:HASH_DIGITS], 16)


def merge_hashes(hashes: Iterable[int]) -> int:
    """Combine the hashes of rows. The result does not depend on their order."""
    return reduce(xor, hashes, 0)


def hash_live_row(row: Row) -> int:
    """Hash a row of the table `LIVE`. If the body has a fingerprint, hash the fingerprint instead."""
    return hash_values((*(row[column] for column in LIVE_COLUMNS), row["fingerprint"] or row["body"]))


def hash_finding_row(row: Row) -> int:
    """Hash a row of the table `FINDINGS`."""
    labels = sorted((row["labels"] or {}).items())
    label_text = "".join(f"{key}={value}{LABEL_SEPARATOR}" for key, value in labels)
    return hash_values((*(row[column] for column in FINDING_COLUMNS), label_text))


def is_repeatable(row: Row) -> bool:
    """Whether another comparison of the same rows would result in the same finding.

    A finding about a policy rule that took too long is not repeatable, because it depends on the machine.
    row: a row of the table `FINDINGS`.
    """
    return row["finding"] != str(FindingKind.POLICY) or RULE_TOO_SLOW not in (row["message"] or "")


def hash_declared_row(row: Row, policies: str = "") -> int:
    """Hash a row of the table `DECLARED`.

    policies: the policies of the project as text, for the row about the whole cluster; empty for other rows.
    """
    values = {column: value for column, value in row.items() if column not in _DERIVED_COLUMNS}
    return hash_values((json.dumps(values, sort_keys=True), policies))


@dataclass(frozen=True, slots=True)
class RowsFingerprint:
    """The number of rows of a cluster in a table, and their combined hash; None if a row has no hash."""

    count: int
    combined: int | None


@dataclass(frozen=True, slots=True)
class ClusterInputs:
    """The inputs that affect the findings of one cluster.

    cluster_id: the id of the cluster; None if unknown. Entries with the same id share the cluster.
    declared, live: the fingerprints of the rows in the tables `DECLARED` and `LIVE`, including the row about
        the whole cluster.
    is_read: whether the cluster was read completely, and its resources can be compared.
    """

    cluster_id: str | None
    declared: RowsFingerprint
    live: RowsFingerprint
    is_read: bool


@dataclass(frozen=True, slots=True)
class ComparisonOptions:
    """The inputs that affect the findings of every cluster.

    unmanaged_keys: whether undeclared config keys of declared resources are findings.
    providers: the providers, with their versions.
    code: identifies the code that compares resources, see `comparison_options.describe_code`.
    """

    unmanaged_keys: bool
    providers: Sequence[InstalledProvider]
    code: str


def compute_fingerprints(
    clusters: Mapping[str, ClusterInputs], options: ComparisonOptions
) -> dict[str, tuple[str, str]]:
    """Return the fingerprints of the declared and of the live rows of each cluster.

    The fingerprint of the declared rows also covers everything else that findings depend on. A cluster is
    left out if it was not read completely, or if a row has no hash because the policies of the project run
    custom code.
    """
    sharing = find_sharing({name: inputs.cluster_id for name, inputs in clusters.items()})
    described = _describe_options(options)
    return {
        name: (
            _join(
                described,
                _describe_rows(inputs.declared),
                *(f"{other} {_describe_inputs(clusters[other])}" for other in sorted(sharing.get(name, ()))),
            ),
            _join(_describe_rows(inputs.live)),
        )
        for name, inputs in clusters.items()
        if inputs.is_read and inputs.declared.combined is not None
    }


def find_unchanged(
    fingerprints: Mapping[str, tuple[str, str]], sharing: Sharing, earlier: AuditSummary | None
) -> dict[str, ClusterFingerprints]:
    """Return the clusters that have not changed since the latest earlier audit, with their fingerprints.

    If several entries share a cluster, they count as unchanged only if none of them has changed, because
    `contested` findings compare the resources of these entries with each other.

    fingerprints: the result of `compute_fingerprints`.
    earlier: the latest earlier audit; None if there is none, so that no cluster counts as unchanged.
    """
    recorded = {} if earlier is None else {item.name: item.fingerprints for item in earlier.clusters}
    same: dict[str, ClusterFingerprints] = {}
    for name, current in fingerprints.items():
        found = recorded.get(name)
        if found is not None and (found.declared, found.live) == current:
            same[name] = found
    return {name: item for name, item in same.items() if sharing.get(name, frozenset()) <= same.keys()}


def format_findings_fingerprint(rows: RowsFingerprint) -> str:
    """Return the fingerprint of the findings of a cluster."""
    return _join(_describe_rows(rows))


def _describe_options(options: ComparisonOptions) -> str:
    providers = sorted((item.name, item.distribution, item.version) for item in options.providers)
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return json.dumps([VERSION, options.code, python, options.unmanaged_keys, providers])


def _describe_inputs(inputs: ClusterInputs) -> str:
    return f"{_describe_rows(inputs.declared)} {_describe_rows(inputs.live)}"


def _describe_rows(rows: RowsFingerprint) -> str:
    return f"{rows.count} {rows.combined}"


def _join(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:_LENGTH]


NO_FINDINGS = _join(_describe_rows(RowsFingerprint(0, 0)))
"""The fingerprint of a cluster without findings."""
