"""Build SARIF 2.1.0 logs, so that code hosts can show diagnostics, verdicts and risks in manifests.

A SARIF rule is a diagnostic code, a policy or a type of risk. A SARIF result is a diagnostic, a verdict other
than "allow", or a risk of a change.
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
from kdeclare.core.plans.observation import Observation
from kdeclare.core.plans.plan import Plan, Verdict
from kdeclare.core.provider.provider_queries import find_guards
from kdeclare.core.resources.changes import Action, Change, Risk
from kdeclare.manifests.project import PROJECT_FILE
from kdeclare.report.elements.diagnostics_text import (
    DENIAL_HINT,
    find_policy_noun,
    format_subject,
    get_verdict_label,
    is_system_verdict,
    select_notable_verdicts,
)
from kdeclare.report.elements.values import format_count, sanitize_for_terminal
from kdeclare.report.plan.impact import group_observations
from kdeclare.report.plan.risks import SEVERE_RISKS, list_risk_causes, sort_by_risk
from kdeclare.report.run.views import ValidationView
from kdeclare.version import VERSION

ROOT = "%SRCROOT%"
"""The name of the top folder of the checkout in SARIF logs. Paths in a log are relative to this folder."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """The paths for resolving source positions.

    root: the absolute path of the top folder of the checkout.
    folder: the absolute path to which source positions are relative.
    project: the path of the project file, absolute or relative to ``folder``; empty if there is no project
        file. Results without a position are shown in the project file.
    """

    root: str = ""
    folder: str = ""
    project: str = ""


NO_CHECKOUT = Checkout()
"""Leaves the paths of source positions unchanged, because they are relative to the root of the checkout."""


@dataclass(frozen=True, slots=True)
class SarifLocation:
    """The location of a result.

    uri: the URI of the file, relative to the top folder of the checkout. The URI of a file outside of the
        checkout is absolute.
    """

    uri: str
    line: int
    column: int

    def document(self) -> dict[str, Any]:
        """Return the location as a SARIF object (SARIF 2.1.0, sections 3.28, 3.29 and 3.30)."""
        artifact = {"uri": self.uri}
        if not self.uri.startswith("file:"):
            artifact["uriBaseId"] = ROOT
        physical: dict[str, Any] = {"artifactLocation": artifact}
        if self.line >= 1:
            physical["region"] = {"startLine": self.line, "startColumn": max(self.column, 1)}
        return {"physicalLocation": physical}


_STANDARD_INPUT = "<stdin>"


def find_location(position: SourcePosition | None, checkout: Checkout) -> SarifLocation | None:
    """Return the location of a source position; None if there is no position in a file."""
    if position is None or not position.file or position.file == _STANDARD_INPUT:
        return None
    path = PurePath(os.path.normpath(PurePath(checkout.folder, position.file)))
    if checkout.root and path.is_relative_to(checkout.root):
        path = path.relative_to(checkout.root)
    uri = path.as_uri() if path.is_absolute() else quote(path.as_posix(), safe="/")
    return SarifLocation(uri, position.line, position.column)


_SEVERITY_EXPLANATIONS = {
    Severity.ERROR: "An error prevents the whole plan from being applied.",
    Severity.DENIED: (
        "A policy or a guard prevents this change; changes to other resources are still applied."
    ),
    Severity.WARNING: "A warning does not prevent an apply.",
    Severity.INFO: "This result is for information only.",
}

_RISK_EXPLANATIONS = {
    Risk.SAFE: "The change can be undone and does not disrupt the cluster.",
    Risk.DISRUPTIVE: "The change moves data or affects how brokers work.",
    Risk.DESTRUCTIVE: "The change can lose records.",
    Risk.IRREVERSIBLE: "A rollback cannot restore the previous state.",
}


@dataclass(frozen=True, slots=True)
class SarifRule:
    """A SARIF rule (a reportingDescriptor, section 3.49).

    level: the default level of the rule's results.
    """

    id: str
    title: str
    help: str
    level: str
    tag: str

    def document(self) -> dict[str, Any]:
        """Return the rule as a SARIF object."""
        return {
            "id": self.id,
            "shortDescription": {"text": self.title},
            "fullDescription": {"text": f"{self.title}."},
            "help": {"text": self.help},
            "defaultConfiguration": {"level": self.level},
            "properties": {"tags": [self.tag]},
        }


def build_code_rule(code: str, summary: str, severity: Severity, level: str) -> SarifRule:
    """Build the SARIF rule for a diagnostic code.

    summary: the summary of any diagnostic with this code. It contains no user data, so that it fits all
        diagnostics with this code.
    """
    title = sanitize_for_terminal(summary) or sanitize_for_terminal(code)
    return SarifRule(
        sanitize_for_terminal(code),
        title,
        f"{title}. {_SEVERITY_EXPLANATIONS[severity]}",
        level,
        "diagnostic",
    )


def build_policy_rule(verdict: Verdict, level: str) -> SarifRule:
    """Build the SARIF rule for the policy of a verdict."""
    if is_system_verdict(verdict):
        title = "Broker policy"
        text = (
            "A policy that is configured on the brokers denies this change. "
            "A broker policy cannot be overridden."
        )
        return SarifRule("policy/broker", title, text, level, "policy")
    name = sanitize_for_terminal(verdict.policy)
    guard_hint = find_guards().get(verdict.policy)
    if guard_hint is not None:
        text = f"kdeclare itself evaluates this change before it is made. {guard_hint}"
        return SarifRule(f"guard/{name}", f"Guard {name}", text, level, "policy")
    hint = DENIAL_HINT
    text = f"A policy of the project evaluates resources before they are created, changed or deleted. {hint}"
    return SarifRule(f"policy/{name}", f"Policy {name}", text, level, "policy")


def build_risk_rule(risk: Risk, level: str) -> SarifRule:
    """Build the SARIF rule for a risk."""
    title = f"{risk.value.capitalize()} change"
    return SarifRule(f"risk/{risk.value}", title, f"{title}. {_RISK_EXPLANATIONS[risk]}", level, "risk")


SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
FINGERPRINT_KEY = "kdeclare/v1"
"""The key of fingerprints in ``partialFingerprints``. GitHub ignores ``fingerprints``."""
VALIDATION_CATEGORY = "kdeclare/validate/"
PROBLEM_CATEGORY = "kdeclare/problem/"
"""The default category for the log of a failed command (SARIF 2.1.0, section 3.17.3).

A code host closes the results of an older log if a newer log of the same category does not contain them.
"""
MAX_RESULTS = 5_000
"""The maximum number of results in a log. GitHub shows at most this number."""

_NO_POSITION_NOTE = "This result has no position in a file."
_LEVELS_BY_RANK = ("error", "warning", "note")
_LEVEL_BY_SEVERITY = {
    Severity.ERROR: "error",
    Severity.DENIED: "error",
    Severity.WARNING: "warning",
    Severity.INFO: "note",
}


@dataclass(frozen=True, slots=True)
class _SarifFinding:
    """The content of a SARIF result.

    about: strings that identify the result. They stay the same if the result moves to a different line.
    """

    rule: SarifRule
    level: str
    text: str
    place: SourcePosition | None
    about: tuple[str, ...]
    properties: Mapping[str, str] = field(default_factory=dict)


def build_plan_sarif(plan: Plan, checkout: Checkout = NO_CHECKOUT) -> dict[str, Any]:
    """Build the log of a plan. A result without a position gets the position of the resource's manifest."""
    positions = {str(change.id): change.source for change in plan.changes}
    findings = [_build_diagnostic_finding(item, positions) for item in sort_diagnostics(plan.diagnostics)]
    findings += [_build_verdict_finding(item, positions) for item in select_notable_verdicts(plan.verdicts)]
    active_changes = (c for c in sort_by_risk(plan.changes) if c.action is not Action.NO_OP and not c.blocked)
    observations = group_observations(plan)
    findings += [
        _build_risk_finding(change, risk, observations.get(str(change.id), ()))
        for change in active_changes
        for risk in change.risks
        if risk is not Risk.SAFE
    ]
    return _build_log(findings, format_plan_category(plan.project, plan.env), checkout)


def format_plan_category(project: str, env: str) -> str:
    """Return the category for the log of a plan. A log of a failed plan command has the same category."""
    return f"kdeclare/plan/{project}/{env}/"


def build_validation_sarif(view: ValidationView, checkout: Checkout = NO_CHECKOUT) -> dict[str, Any]:
    """Build the log of a validation."""
    findings = [_build_diagnostic_finding(item, {}) for item in sort_diagnostics(view.diagnostics)]
    return _build_log(findings, VALIDATION_CATEGORY, checkout)


def build_problem_sarif(
    diagnostics: Iterable[Diagnostic], checkout: Checkout = NO_CHECKOUT, category: str = PROBLEM_CATEGORY
) -> dict[str, Any]:
    """Build the log of a command that failed.

    category: the category of the command's log when it succeeds.
    """
    findings = [_build_diagnostic_finding(item, {}) for item in sort_diagnostics(diagnostics)]
    return _build_log(findings, category, checkout, is_successful=False)


def _build_log(
    findings: Sequence[_SarifFinding], category: str, checkout: Checkout, is_successful: bool = True
) -> dict[str, Any]:
    findings = _select_most_urgent(findings)
    # if several findings have the same rule, the level of the first finding is the default level
    rules = {finding.rule.id: finding.rule for finding in reversed(findings)}
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
    """Return at most `MAX_RESULTS` findings, the most severe ones if there are more.

    If findings are omitted, a warning contains their number.
    """
    if len(findings) <= MAX_RESULTS:
        return findings
    worst_findings = sorted(findings, key=lambda finding: _LEVELS_BY_RANK.index(finding.level))
    omitted = format_count(len(findings) - (MAX_RESULTS - 1), "result was", "results were")
    detail = f"The log is limited to {MAX_RESULTS:,} results; {omitted} omitted."
    hint = "Use the text output or --format json to see all results."
    omission_warning = warning("results-left-out", "Results omitted", detail, hint=hint)
    return [*worst_findings[: MAX_RESULTS - 1], _build_diagnostic_finding(omission_warning, {})]


def _get_fallback_location(locations: Iterable[SarifLocation | None], checkout: Checkout) -> SarifLocation:
    """Return the location for results without a position. GitHub rejects results without a location.

    The location is in the project file or, if there is no project file, in the first file of the log.
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


def _build_risk_finding(change: Change, risk: Risk, observations: Iterable[Observation]) -> _SarifFinding:
    """Build the finding for one risk of a change. The finding for the highest risk shows the impact.

    The level is never "error", because a risk does not prevent an apply.
    """
    level = "warning" if risk in SEVERE_RISKS else "note"
    causes = [cause.text for cause in list_risk_causes(change) if cause.risk is risk and cause.text]
    impact = [item.text for item in observations if risk is change.risk]
    title = f"The action '{change.action.value}' on {change.id} is {risk.value}."
    return _SarifFinding(
        build_risk_rule(risk, level),
        level,
        _join_lines([title, *impact, *causes]),
        change.source,
        (str(change.id),),
        {"resource": str(change.id)},
    )


def _format_verdict_summary(verdict: Verdict) -> str:
    policy_name = (
        "A broker policy"
        if is_system_verdict(verdict)
        else f"{find_policy_noun(verdict).capitalize()} {verdict.policy}"
    )
    verb = {"denied": "denies", "warned": "warns about", "overridden": "is overridden for"}[
        get_verdict_label(verdict)
    ]
    subject = f"{format_subject(verdict.topic)} in " if verdict.topic is not None else ""
    return f"{policy_name} {verb} {subject}{verdict.resource}"


def _join_lines(lines: Iterable[str]) -> str:
    """Join lines of plain text. Where SARIF would read a link, insert a space (section 3.11.6)."""
    return "\n".join(sanitize_for_terminal(line).replace("](", "] (") for line in lines)
