"""Conditions on the findings of an audit, such as ``changed and age>7d``."""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import TypeVar

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.suggestions import format_suggestion
from kdeclare.core.units import parse_duration
from kdeclare.fleet.audit_summary import AuditSummary
from kdeclare.fleet.findings import FindingKind, FindingSeverity

_AND = re.compile(r"\s+and\s+")
_COMPARISON = re.compile(r"([a-z]+)\s*(>=|<=|==|=|<|>)\s*(.*)", re.DOTALL)
_SEVERITY, _AGE = "severity", "age"
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class FindingCondition:
    """A condition on the kind, the severity and the age of a finding. All three must match.

    kind: the kind of the finding; None for any kind.
    severity: the lowest severity; None for any severity.
    age_s: a finding must have been open for longer than this, in seconds; None for any age.
    """

    kind: FindingKind | None = None
    severity: FindingSeverity | None = None
    age_s: float | None = None

    def is_met(
        self, kind: FindingKind, severity: FindingSeverity, first_seen: datetime, taken_at: datetime
    ) -> bool:
        """Return whether a finding meets the condition at the time of the audit.

        first_seen: the time of the first audit with this finding.
        """
        if self.kind is not None and kind is not self.kind:
            return False
        if self.severity is not None and severity.rank > self.severity.rank:
            return False
        return self.age_s is None or (taken_at - first_seen).total_seconds() > self.age_s


def is_any_met(conditions: Iterable[FindingCondition], summary: AuditSummary) -> bool:
    """Return whether a finding of an audit meets at least one condition."""
    return any(
        condition.is_met(group.finding, group.severity, group.oldest, summary.taken_at)
        for condition in conditions
        for group in summary.groups
    )


def parse_conditions(text: str) -> tuple[FindingCondition, ...]:
    """Parse conditions that are separated by commas: ``missing, severity>=high, changed and age>7d``.

    Raises ValueError with an explanation.
    """
    return tuple(_parse_condition(item.strip()) for item in text.split(","))


def _parse_condition(text: str) -> FindingCondition:
    kind: FindingKind | None = None
    severity: FindingSeverity | None = None
    age_s: float | None = None
    for part in _AND.split(text):
        comparison = _COMPARISON.fullmatch(part)
        if comparison is None:
            kind = _set_once(kind, _parse_kind(part), text)
        elif comparison[1] == _SEVERITY:
            severity = _set_once(severity, _parse_severity(comparison[2], comparison[3]), text)
        elif comparison[1] == _AGE:
            age_s = _set_once(age_s, _parse_age(comparison[2], comparison[3]), text)
        else:
            raise ValueError(f"'{part}' is not a condition. Only {_SEVERITY} and {_AGE} can be compared.")
    return FindingCondition(kind, severity, age_s)


def _set_once(earlier: _T | None, value: _T, text: str) -> _T:
    if earlier is not None:
        raise ValueError(f"'{text}' has two conditions of the same type. Separate alternatives with commas.")
    return value


def _parse_kind(text: str) -> FindingKind:
    try:
        return FindingKind(text)
    except ValueError:
        names = [kind.value for kind in FindingKind]
        suggestion = format_suggestion(text, names) or f"Use {', '.join(names)}, severity>=high or age>7d."
        raise ValueError(f"'{text}' is not a kind of finding. {suggestion}") from None


def _parse_severity(operator: str, text: str) -> FindingSeverity:
    names = [severity.value for severity in FindingSeverity]
    if operator != ">=":
        raise ValueError(f"Write {_SEVERITY}>={text or names[0]} to select findings at least this urgent.")
    try:
        return FindingSeverity(text)
    except ValueError:
        suggestion = format_suggestion(text, names) or f"Use {', '.join(names[:-1])} or {names[-1]}."
        raise ValueError(f"'{text}' is not a severity. {suggestion}") from None


def _parse_age(operator: str, text: str) -> float:
    if operator != ">":
        raise ValueError(f"Write {_AGE}>{text or '7d'} to select findings that have been open for longer.")
    return parse_duration(text)
