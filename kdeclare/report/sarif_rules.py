"""What SARIF calls rules: the codes of diagnostics, policies, and risks."""

from dataclasses import dataclass
from typing import Any

from kdeclare.core.changes import Risk
from kdeclare.core.diagnostics import Severity
from kdeclare.core.plan import Verdict
from kdeclare.report.values import clean
from kdeclare.report.verdicts_text import HINT, is_brokers

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
    text = f"A policy of the project judges topics before they are created, modified or deleted. {hint}"
    return Rule(f"policy/{name}", f"Policy {name}", text, level, "policy")


def risk_rule(risk: Risk, level: str) -> Rule:
    """The rule of a risk that changes have."""
    title = f"{risk.value.capitalize()} change"
    return Rule(f"risk/{risk.value}", title, f"{title}. {_RISKS[risk]}", level, "risk")
