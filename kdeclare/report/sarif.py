"""Diagnostics, verdicts and risks as SARIF 2.1.0, which hosts of code show at file and line.

A rule is a diagnostic's code, a policy, or a risk; a result is one diagnostic, one verdict that does not
allow, or one risk of one change.
"""

import os.path
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from kdeclare.core.diagnostics import Diagnostic, Severity, SourcePosition, sort_diagnostics, warning
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import hash_json
from kdeclare.core.plans.plan import Plan, Verdict
from kdeclare.core.resources.changes import Action, Change, Risk
from kdeclare.manifests.project import PROJECT_FILE
from kdeclare.report.elements.diagnostics_text import (
    DENIAL_HINT,
    format_subject,
    get_verdict_label,
    is_system_verdict,
    select_notable_verdicts,
)
from kdeclare.report.elements.values import format_count, sanitize_for_terminal
from kdeclare.report.plan.risks import SEVERE_RISKS, list_risk_causes, sort_by_risk
from kdeclare.report.run.views import ValidationView
from kdeclare.version import VERSION

ROOT = "%SRCROOT%"
"""What relative paths are relative to: the top of the checkout, as hosts of code understand it."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """Where places are. root: the top of the checkout; folder: what they are relative to. Both absolute.

    project: the project file, if it is known, absolute or relative to the folder; what has no place of its
    own is shown there.
    """

    root: str = ""
    folder: str = ""
    project: str = ""


NO_CHECKOUT = Checkout()
"""Places are relative to the top already."""


@dataclass(frozen=True, slots=True)
class SarifLocation:
    """Where a result is shown. uri: relative to the root, or absolute for what lies elsewhere."""

    uri: str
    line: int
    column: int

    def document(self) -> dict[str, Any]:
        """As SARIF has it (sections 3.28, 3.29 and 3.30)."""
        artifact = {"uri": self.uri}
        if not self.uri.startswith("file:"):
            artifact["uriBaseId"] = ROOT
        physical: dict[str, Any] = {"artifactLocation": artifact}
        if self.line >= 1:
            physical["region"] = {"startLine": self.line, "startColumn": max(self.column, 1)}
        return {"physicalLocation": physical}


def find_location(position: SourcePosition | None, checkout: Checkout) -> SarifLocation | None:
    """The location; None without a place, or where its file has no name."""
    if position is None or not position.file:
        return None
    path = PurePath(os.path.normpath(PurePath(checkout.folder, position.file)))
    if checkout.root and path.is_relative_to(checkout.root):
        path = path.relative_to(checkout.root)
    uri = path.as_uri() if path.is_absolute() else quote(path.as_posix(), safe="/")
    return SarifLocation(uri, position.line, position.column)


_SEVERITY_EXPLANATIONS = {
    Severity.ERROR: "An error keeps the whole plan from being applied.",
    Severity.DENIED: "A policy or a guard keeps this one resource from being changed; the others are.",
    Severity.WARNING: "A warning keeps nothing from being applied.",
    Severity.INFO: "This is for information only.",
}

_RISK_EXPLANATIONS = {
    Risk.SAFE: "It can be undone and disturbs nothing.",
    Risk.DISRUPTIVE: "It moves data or changes how brokers work.",
    Risk.DESTRUCTIVE: "It can lose records.",
    Risk.IRREVERSIBLE: "No rollback brings back what was there before.",
}


@dataclass(frozen=True, slots=True)
class SarifRule:
    """A reportingDescriptor (SARIF 2.1.0, section 3.49). level: that of its results unless they say other."""

    id: str
    title: str
    help: str
    level: str
    tag: str

    def document(self) -> dict[str, Any]:
        """As SARIF has it."""
        return {
            "id": self.id,
            "shortDescription": {"text": self.title},
            "fullDescription": {"text": f"{self.title}."},
            "help": {"text": self.help},
            "defaultConfiguration": {"level": self.level},
            "properties": {"tags": [self.tag]},
        }


def build_code_rule(code: str, summary: str, severity: Severity, level: str) -> SarifRule:
    """The rule of a diagnostic: its summary has no names in it, so it fits all of the same code."""
    title = sanitize_for_terminal(summary) or sanitize_for_terminal(code)
    return SarifRule(
        sanitize_for_terminal(code),
        title,
        f"{title}. {_SEVERITY_EXPLANATIONS[severity]}",
        level,
        "diagnostic",
    )


def build_policy_rule(verdict: Verdict, level: str) -> SarifRule:
    """The rule of a policy."""
    if is_system_verdict(verdict):
        title = "The brokers' own policy"
        text = f"{title} refuses this. It is configured on the brokers and cannot be overridden."
        return SarifRule("policy/broker", title, text, level, "policy")
    name = sanitize_for_terminal(verdict.policy)
    hint = f"{DENIAL_HINT[0].upper()}{DENIAL_HINT[1:]}."
    text = f"A policy of the project evaluates resources before they are created, changed or deleted. {hint}"
    return SarifRule(f"policy/{name}", f"Policy {name}", text, level, "policy")


def build_risk_rule(risk: Risk, level: str) -> SarifRule:
    """The rule of a risk that changes have."""
    title = f"{risk.value.capitalize()} change"
    return SarifRule(f"risk/{risk.value}", title, f"{title}. {_RISK_EXPLANATIONS[risk]}", level, "risk")


SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
FINGERPRINT_KEY = "kdeclare/v1"
"""The key among ``partialFingerprints``: those are what GitHub reads, and not ``fingerprints``."""
VALIDATION_CATEGORY = "kdeclare/validate/"
PROBLEM_CATEGORY = "kdeclare/problem/"
"""What a log is a run of (section 3.17.3); the next one of the same closes what is found no longer."""
MAX_RESULTS = 5_000
"""Results a log: GitHub shows no more, and takes no log with more than five times as many."""

_NO_POSITION_NOTE = "It has no place of its own in a file."
_LEVELS_BY_RANK = ("error", "warning", "note")
_LEVEL_BY_SEVERITY = {
    Severity.ERROR: "error",
    Severity.DENIED: "error",
    Severity.WARNING: "warning",
    Severity.INFO: "note",
}


@dataclass(frozen=True, slots=True)
class _SarifFinding:
    """One result to be. about: what makes it the same finding next time, wherever its line has moved to."""

    rule: SarifRule
    level: str
    text: str
    place: SourcePosition | None
    about: tuple[str, ...]
    properties: Mapping[str, str] = field(default_factory=dict)


def build_plan_sarif(plan: Plan, checkout: Checkout = NO_CHECKOUT) -> dict[str, Any]:
    """The log of a plan. What has no place of its own is shown at the change that it is about."""
    positions = {str(change.id): change.source for change in plan.changes}
    findings = [_build_diagnostic_finding(item, positions) for item in sort_diagnostics(plan.diagnostics)]
    findings += [_build_verdict_finding(item, positions) for item in select_notable_verdicts(plan.verdicts)]
    active_changes = (c for c in sort_by_risk(plan.changes) if c.action is not Action.NO_OP and not c.blocked)
    findings += [
        _build_risk_finding(change, risk)
        for change in active_changes
        for risk in change.risks
        if risk is not Risk.SAFE
    ]
    return _build_log(findings, format_plan_category(plan.project, plan.env), checkout)


def format_plan_category(project: str, env: str) -> str:
    """What the log of a plan is a run of, also where no plan could be made."""
    return f"kdeclare/plan/{project}/{env}/"


def build_validation_sarif(view: ValidationView, checkout: Checkout = NO_CHECKOUT) -> dict[str, Any]:
    """The log of a validation."""
    findings = [_build_diagnostic_finding(item, {}) for item in sort_diagnostics(view.diagnostics)]
    return _build_log(findings, VALIDATION_CATEGORY, checkout)


def build_problem_sarif(
    diagnostics: Iterable[Diagnostic], checkout: Checkout = NO_CHECKOUT, category: str = PROBLEM_CATEGORY
) -> dict[str, Any]:
    """The log of a command that failed as a whole. category: that of its log when all is well, if known."""
    findings = [_build_diagnostic_finding(item, {}) for item in sort_diagnostics(diagnostics)]
    return _build_log(findings, category, checkout, is_successful=False)


def _build_log(
    findings: Sequence[_SarifFinding], category: str, checkout: Checkout, is_successful: bool = True
) -> dict[str, Any]:
    findings = _select_most_urgent(findings)
    rules = {finding.rule.id: finding.rule for finding in reversed(findings)}  # the first one's words
    rule_indexes = {id_: number for number, id_ in enumerate(sorted(rules))}
    occurrences: Counter[tuple[str, ...]] = Counter()
    locations = [find_location(finding.place, checkout) for finding in findings]
    fallback_location = _get_fallback_location(locations, checkout)
    run = {
        "tool": {
            "driver": {
                "name": "kdeclare",
                "version": VERSION,
                "rules": [rules[id_].document() for id_ in rule_indexes],
            }
        },
        "automationDetails": {"id": category},
        "invocations": [{"executionSuccessful": is_successful}],
        "columnKind": "unicodeCodePoints",
        "results": [
            _build_result(finding, rule_indexes[finding.rule.id], where, fallback_location, occurrences)
            for finding, where in zip(findings, locations, strict=True)
        ],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _select_most_urgent(findings: Sequence[_SarifFinding]) -> Sequence[_SarifFinding]:
    """All of them, or the worst ones and how many are left out."""
    if len(findings) <= MAX_RESULTS:
        return findings
    worst_findings = sorted(findings, key=lambda finding: _LEVELS_BY_RANK.index(finding.level))
    omitted_count = format_count(len(findings) - (MAX_RESULTS - 1), "more result")
    detail = f"{omitted_count} would be too many for hosts of code; all are in the text and in --format json."
    omission_warning = warning("results-left-out", "Results are left out", detail)
    return [*worst_findings[: MAX_RESULTS - 1], _build_diagnostic_finding(omission_warning, {})]


def _get_fallback_location(locations: Iterable[SarifLocation | None], checkout: Checkout) -> SarifLocation:
    """Where results are shown that are about no file: GitHub refuses a log with one that is nowhere.

    At the project file, else at the first file that the log names.
    """
    if not checkout.project:
        first_location = next((where for where in locations if where is not None), None)
        if first_location is not None:
            return SarifLocation(first_location.uri, 1, 1)
    project_location = find_location(SourcePosition(checkout.project or PROJECT_FILE, 1, 1), checkout)
    assert project_location is not None
    return project_location


def _build_result(
    finding: _SarifFinding,
    rule_index: int,
    location: SarifLocation | None,
    fallback_location: SarifLocation,
    occurrences: Counter[tuple[str, ...]],
) -> dict[str, Any]:
    identity = (finding.rule.id, *finding.about, location.uri if location else "")
    occurrences[identity] += 1
    result: dict[str, Any] = {
        "ruleId": finding.rule.id,
        "ruleIndex": rule_index,
        "level": finding.level,
        "message": {"text": finding.text if location else f"{finding.text}\n{_NO_POSITION_NOTE}"},
        "locations": [(location or fallback_location).document()],
        "partialFingerprints": {FINGERPRINT_KEY: hash_json([*identity, occurrences[identity]])},
    }
    if finding.properties:
        result["properties"] = dict(finding.properties)
    return result


def _build_diagnostic_finding(
    diagnostic: Diagnostic, positions: Mapping[str, SourcePosition | None]
) -> _SarifFinding:
    hint = f"Hint: {diagnostic.hint}" if diagnostic.hint else ""
    lines = [diagnostic.summary, *diagnostic.detail.splitlines(), *hint.splitlines()]
    return _SarifFinding(
        build_code_rule(
            diagnostic.code, diagnostic.summary, diagnostic.severity, _LEVEL_BY_SEVERITY[diagnostic.severity]
        ),
        _LEVEL_BY_SEVERITY[diagnostic.severity],
        _join_lines(lines),
        diagnostic.place or positions.get(diagnostic.resource or ""),
        (diagnostic.resource or "", diagnostic.subject or ""),
        {"resource": diagnostic.resource} if diagnostic.resource is not None else {},
    )


def _build_verdict_finding(verdict: Verdict, positions: Mapping[str, SourcePosition | None]) -> _SarifFinding:
    level = "error" if verdict.is_denial else "warning"
    lines = [
        f"{_format_verdict_summary(verdict)}: {verdict.message}"
        if verdict.message
        else f"{_format_verdict_summary(verdict)}."
    ]
    lines += [f"Reason: {verdict.override}"] if verdict.override is not None else []
    optional_properties = {"topic": verdict.topic, "override": verdict.override}
    properties = {"resource": verdict.resource, "policy": verdict.policy, "outcome": verdict.outcome.value}
    return _SarifFinding(
        build_policy_rule(verdict, level),
        level,
        _join_lines(line for part in lines for line in part.splitlines()),
        positions.get(verdict.resource),
        (verdict.resource, verdict.topic or ""),
        properties | {key: value for key, value in optional_properties.items() if value is not None},
    )


def _build_risk_finding(change: Change, risk: Risk) -> _SarifFinding:
    """One of a change's risks; they keep nothing from being applied."""
    level = "warning" if risk in SEVERE_RISKS else "note"
    causes = [cause.text for cause in list_risk_causes(change) if cause.risk is risk and cause.text]
    return _SarifFinding(
        build_risk_rule(risk, level),
        level,
        _join_lines([f"The {change.action.value} of {change.id} is {risk.value}.", *causes]),
        change.source,
        (str(change.id),),
        {"resource": str(change.id)},
    )


def _format_verdict_summary(verdict: Verdict) -> str:
    policy_name = "A policy of the brokers" if is_system_verdict(verdict) else f"Policy {verdict.policy}"
    verb = {"denied": "denies", "warned": "warns of", "overridden": "is overridden for"}[
        get_verdict_label(verdict)
    ]
    subject = f"{format_subject(verdict.topic)} in " if verdict.topic is not None else ""
    return f"{policy_name} {verb} {subject}{verdict.resource}"


def _join_lines(lines: Iterable[str]) -> str:
    """Plain text; what SARIF would take for a link (section 3.11.6) is parted."""
    return "\n".join(sanitize_for_terminal(line).replace("](", "] (") for line in lines)
