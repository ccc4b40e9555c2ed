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

from kdeclare.core.diagnostics import Diagnostic, Place, Severity, in_order, warning
from kdeclare.core.frozen import dataclass
from kdeclare.core.jsontypes import fingerprint
from kdeclare.core.plans.plan import Plan, Verdict
from kdeclare.core.resources.changes import Action, Change, Risk
from kdeclare.manifests.project import PROJECT_FILE
from kdeclare.report.elements.diagnostics_text import HINT, is_brokers, judgement, name_subject, spoken
from kdeclare.report.elements.values import clean, plural
from kdeclare.report.plan.risks import GRAVE, by_risk, causes_of
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
class Location:
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


def location(place: Place | None, checkout: Checkout) -> Location | None:
    """The location; None without a place, or where its file has no name."""
    if place is None or not place.file:
        return None
    path = PurePath(os.path.normpath(PurePath(checkout.folder, place.file)))
    if checkout.root and path.is_relative_to(checkout.root):
        path = path.relative_to(checkout.root)
    uri = path.as_uri() if path.is_absolute() else quote(path.as_posix(), safe="/")
    return Location(uri, place.line, place.column)


_MEANING = {
    Severity.ERROR: "An error keeps the whole plan from being applied.",
    Severity.DENIED: "A policy or a guard keeps this one resource from being changed; the others are.",
    Severity.WARNING: "A warning keeps nothing from being applied.",
    Severity.INFO: "This is for information only.",
}

_RISKS = {
    Risk.SAFE: "It can be undone and disturbs nothing.",
    Risk.DISRUPTIVE: "It moves data or changes how brokers work.",
    Risk.DESTRUCTIVE: "It can lose records.",
    Risk.IRREVERSIBLE: "No rollback brings back what was there before.",
}


@dataclass(frozen=True, slots=True)
class Rule:
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


def code_rule(code: str, summary: str, severity: Severity, level: str) -> Rule:
    """The rule of a diagnostic: its summary has no names in it, so it fits all of the same code."""
    title = clean(summary) or clean(code)
    return Rule(clean(code), title, f"{title}. {_MEANING[severity]}", level, "diagnostic")


def policy_rule(verdict: Verdict, level: str) -> Rule:
    """The rule of a policy."""
    if is_brokers(verdict):
        title = "The brokers' own policy"
        text = f"{title} refuses this. It is configured on the brokers and cannot be overridden."
        return Rule("policy/broker", title, text, level, "policy")
    name = clean(verdict.policy)
    hint = f"{HINT[0].upper()}{HINT[1:]}."
    text = f"A policy of the project evaluates resources before they are created, changed or deleted. {hint}"
    return Rule(f"policy/{name}", f"Policy {name}", text, level, "policy")


def risk_rule(risk: Risk, level: str) -> Rule:
    """The rule of a risk that changes have."""
    title = f"{risk.value.capitalize()} change"
    return Rule(f"risk/{risk.value}", title, f"{title}. {_RISKS[risk]}", level, "risk")


SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
FINGERPRINT = "kdeclare/v1"
"""The key among ``partialFingerprints``: those are what GitHub reads, and not ``fingerprints``."""
VALIDATION = "kdeclare/validate/"
PROBLEM = "kdeclare/problem/"
"""What a log is a run of (section 3.17.3); the next one of the same closes what is found no longer."""
MOST = 5_000
"""Results a log: GitHub shows no more, and takes no log with more than five times as many."""

_PLACELESS = "It has no place of its own in a file."
_RANK = ("error", "warning", "note")
_LEVELS = {
    Severity.ERROR: "error",
    Severity.DENIED: "error",
    Severity.WARNING: "warning",
    Severity.INFO: "note",
}


@dataclass(frozen=True, slots=True)
class _Finding:
    """One result to be. about: what makes it the same finding next time, wherever its line has moved to."""

    rule: Rule
    level: str
    text: str
    place: Place | None
    about: tuple[str, ...]
    properties: Mapping[str, str] = field(default_factory=dict)


def plan_sarif(plan: Plan, checkout: Checkout = NO_CHECKOUT) -> dict[str, Any]:
    """The log of a plan. What has no place of its own is shown at the change that it is about."""
    places = {str(change.id): change.source for change in plan.changes}
    found = [_of_diagnostic(item, places) for item in in_order(plan.diagnostics)]
    found += [_of_verdict(item, places) for item in spoken(plan.verdicts)]
    acting = (c for c in by_risk(plan.changes) if c.action is not Action.NO_OP and not c.blocked)
    found += [_of_risk(change, risk) for change in acting for risk in change.risks if risk is not Risk.SAFE]
    return _log(found, plan_category(plan.project, plan.env), checkout)


def plan_category(project: str, env: str) -> str:
    """What the log of a plan is a run of, also where no plan could be made."""
    return f"kdeclare/plan/{project}/{env}/"


def validation_sarif(view: ValidationView, checkout: Checkout = NO_CHECKOUT) -> dict[str, Any]:
    """The log of a validation."""
    found = [_of_diagnostic(item, {}) for item in in_order(view.diagnostics)]
    return _log(found, VALIDATION, checkout)


def problem_sarif(
    diagnostics: Iterable[Diagnostic], checkout: Checkout = NO_CHECKOUT, category: str = PROBLEM
) -> dict[str, Any]:
    """The log of a command that failed as a whole. category: that of its log when all is well, if known."""
    found = [_of_diagnostic(item, {}) for item in in_order(diagnostics)]
    return _log(found, category, checkout, successful=False)


def _log(
    found: Sequence[_Finding], category: str, checkout: Checkout, successful: bool = True
) -> dict[str, Any]:
    found = _most_urgent(found)
    rules = {finding.rule.id: finding.rule for finding in reversed(found)}  # the first one's words
    order = {id_: number for number, id_ in enumerate(sorted(rules))}
    seen: Counter[tuple[str, ...]] = Counter()
    places = [location(finding.place, checkout) for finding in found]
    elsewhere = _for_the_placeless(places, checkout)
    run = {
        "tool": {
            "driver": {
                "name": "kdeclare",
                "version": VERSION,
                "rules": [rules[id_].document() for id_ in order],
            }
        },
        "automationDetails": {"id": category},
        "invocations": [{"executionSuccessful": successful}],
        "columnKind": "unicodeCodePoints",
        "results": [
            _result(finding, order[finding.rule.id], where, elsewhere, seen)
            for finding, where in zip(found, places, strict=True)
        ],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _most_urgent(found: Sequence[_Finding]) -> Sequence[_Finding]:
    """All of them, or the worst ones and how many are left out."""
    if len(found) <= MOST:
        return found
    worst = sorted(found, key=lambda finding: _RANK.index(finding.level))
    left = plural(len(found) - (MOST - 1), "more result")
    detail = f"{left} would be too many for hosts of code; all are in the text and in --format json."
    rest = warning("results-left-out", "Results are left out", detail)
    return [*worst[: MOST - 1], _of_diagnostic(rest, {})]


def _for_the_placeless(places: Iterable[Location | None], checkout: Checkout) -> Location:
    """Where results are shown that are about no file: GitHub refuses a log with one that is nowhere.

    At the project file, else at the first file that the log names.
    """
    if not checkout.project:
        named = next((where for where in places if where is not None), None)
        if named is not None:
            return Location(named.uri, 1, 1)
    found = location(Place(checkout.project or PROJECT_FILE, 1, 1), checkout)
    assert found is not None
    return found


def _result(
    finding: _Finding, rule: int, where: Location | None, elsewhere: Location, seen: Counter[tuple[str, ...]]
) -> dict[str, Any]:
    about = (finding.rule.id, *finding.about, where.uri if where else "")
    seen[about] += 1
    result: dict[str, Any] = {
        "ruleId": finding.rule.id,
        "ruleIndex": rule,
        "level": finding.level,
        "message": {"text": finding.text if where else f"{finding.text}\n{_PLACELESS}"},
        "locations": [(where or elsewhere).document()],
        "partialFingerprints": {FINGERPRINT: fingerprint([*about, seen[about]])},
    }
    if finding.properties:
        result["properties"] = dict(finding.properties)
    return result


def _of_diagnostic(item: Diagnostic, places: Mapping[str, Place | None]) -> _Finding:
    hint = f"Hint: {item.hint}" if item.hint else ""
    lines = [item.summary, *item.detail.splitlines(), *hint.splitlines()]
    return _Finding(
        code_rule(item.code, item.summary, item.severity, _LEVELS[item.severity]),
        _LEVELS[item.severity],
        _text(lines),
        item.place or places.get(item.resource or ""),
        (item.resource or "", item.subject or ""),
        {"resource": item.resource} if item.resource is not None else {},
    )


def _of_verdict(verdict: Verdict, places: Mapping[str, Place | None]) -> _Finding:
    level = "error" if verdict.denies else "warning"
    lines = [f"{_sentence(verdict)}: {verdict.message}" if verdict.message else f"{_sentence(verdict)}."]
    lines += [f"Reason: {verdict.override}"] if verdict.override is not None else []
    more = {"topic": verdict.topic, "override": verdict.override}
    properties = {"resource": verdict.resource, "policy": verdict.policy, "outcome": verdict.outcome.value}
    return _Finding(
        policy_rule(verdict, level),
        level,
        _text(line for part in lines for line in part.splitlines()),
        places.get(verdict.resource),
        (verdict.resource, verdict.topic or ""),
        properties | {key: value for key, value in more.items() if value is not None},
    )


def _of_risk(change: Change, risk: Risk) -> _Finding:
    """One of a change's risks; they keep nothing from being applied."""
    level = "warning" if risk in GRAVE else "note"
    causes = [cause.text for cause in causes_of(change) if cause.risk is risk and cause.text]
    return _Finding(
        risk_rule(risk, level),
        level,
        _text([f"The {change.action.value} of {change.id} is {risk.value}.", *causes]),
        change.source,
        (str(change.id),),
        {"resource": str(change.id)},
    )


def _sentence(verdict: Verdict) -> str:
    who = "A policy of the brokers" if is_brokers(verdict) else f"Policy {verdict.policy}"
    does = {"denied": "denies", "warned": "warns of", "overridden": "is overridden for"}[judgement(verdict)]
    topic = f"{name_subject(verdict.topic)} in " if verdict.topic is not None else ""
    return f"{who} {does} {topic}{verdict.resource}"


def _text(lines: Iterable[str]) -> str:
    """Plain text; what SARIF would take for a link (section 3.11.6) is parted."""
    return "\n".join(clean(line).replace("](", "] (") for line in lines)
