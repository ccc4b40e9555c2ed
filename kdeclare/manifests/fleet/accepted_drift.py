"""Drift that a team has accepted until a date, so that audits count it but do not report it."""

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from typing import Literal, get_args

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.patterns import compile_pattern, is_pattern

AcceptableFinding = Literal[
    "missing", "changed", "contested", "policy", "pending", "orphaned", "unmanaged", "unused"
]
"""A kind of finding that can be accepted. It cannot be ``unreachable``, because then the drift is unknown."""


@dataclass(frozen=True, slots=True)
class NameSelector:
    """Selects names. Each string is a name, or a regular expression (RE2) between slashes.

    texts: the strings. If there are none, all names are selected.
    """

    texts: tuple[str, ...] = ()

    def matches(self, name: str) -> bool:
        """Return whether the name is selected."""
        return not self.texts or any(_matches(text, name) for text in self.texts)


def _matches(text: str, name: str) -> bool:
    return compile_pattern(text[1:-1]).matches(name) if is_pattern(text) else text == name


@dataclass(frozen=True, slots=True)
class ResourceSelector:
    """Selects the resources or live objects of one kind by their names."""

    kind: str
    names: NameSelector


@dataclass(frozen=True, slots=True)
class AcceptedDrift:
    """Findings that a team accepts. A finding is selected if it meets all conditions.

    reason: why the drift is accepted. owner: who answers questions; None if not stated.
    expires: the last day on which the drift is accepted, in UTC.
    fields: selects the paths of fields. A finding about a whole resource has the empty path.
    findings: the selected kinds of findings.
    """

    name: str
    reason: str
    owner: str | None
    expires: date
    resources: tuple[ResourceSelector, ...]
    clusters: NameSelector = NameSelector()
    fields: NameSelector = NameSelector()
    findings: frozenset[str] = frozenset(get_args(AcceptableFinding))

    def is_expired(self, taken_at: datetime) -> bool:
        """Return whether the drift is no longer accepted at the time of an audit."""
        return taken_at.astimezone(UTC).date() > self.expires

    def selects(self, cluster: str, kind: str, name: str, finding: str, path: str | None) -> bool:
        """Return whether a finding is selected, regardless of the date."""
        return (
            finding in self.findings
            and self.clusters.matches(cluster)
            and self.fields.matches(path or "")
            and any(item.kind == kind and item.names.matches(name) for item in self.resources)
        )


def select_valid(accepted: Iterable[AcceptedDrift], taken_at: datetime) -> tuple[AcceptedDrift, ...]:
    """Return the accepted drift whose acceptance has not expired at the time of an audit."""
    return tuple(item for item in accepted if not item.is_expired(taken_at))


def find_acceptance(
    accepted: Sequence[AcceptedDrift], cluster: str, kind: str, name: str, finding: str, path: str | None
) -> str | None:
    """Return the name of the first accepted drift that selects a finding; None if there is none.

    accepted: see `select_valid`.
    """
    return next((item.name for item in accepted if item.selects(cluster, kind, name, finding, path)), None)
