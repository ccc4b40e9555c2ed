"""Look for known vulnerabilities in the pinned packages, with pip-audit.

``python -m scripts.dependencies.audit`` is a part of ``make check``. It fails if a package has a known
vulnerability. A machine without access to a vulnerability service, or with a package registry that has no
data about vulnerabilities, can still run ``make check``: the audit then prints a warning and does not fail.

pip-audit queries PyPI. To query another service, set pip-audit's own variables, for example
``PIP_AUDIT_VULNERABILITY_SERVICE=osv``.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONSTRAINTS = ROOT / "constraints.txt"
CACHE = Path(sys.prefix) / "dependency-audit.json"

_MAX_AGE_S = {True: 24 * 3600.0, False: 3600.0}
"""How long a cached result is valid, in seconds. The key is True if all packages were checked.

A result with vulnerabilities is never cached.
"""

_UNREACHABLE = re.compile(
    r"ServiceError|ConnectionError|ConnectTimeout|ReadTimeout|HTTPError|SSLError|ProxyError|Could not connect"
)
"""Matches the output of pip-audit if the service does not answer."""

_ACCEPTED = "kdeclare.accepted-vulnerabilities"
"""The table in pyproject.toml with the ids of accepted vulnerabilities, and the reasons."""

_OPTIONS = ("--no-deps", "--disable-pip", "--format", "json", "--progress-spinner", "off", "--timeout", "10")


@dataclass(frozen=True)
class AuditResult:
    """The result of an audit: messages about vulnerabilities, and warnings about what was not checked."""

    checked: int = 0
    vulnerabilities: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def format(self) -> str:
        """Return the result as text."""
        if self.vulnerabilities:
            summary = f"{len(self.vulnerabilities)} known vulnerabilities in constraints.txt:"
            hint = f"Pin a fixed version, or accept the id in pyproject.toml ([tool.{_ACCEPTED}])."
            return "\n".join((*self.warnings, summary, *self.vulnerabilities, hint))
        summary = f"No known vulnerabilities in {self.checked} packages."
        return "\n".join((*self.warnings, summary) if self.checked else self.warnings)


def read_accepted(file: Path = ROOT / "pyproject.toml") -> Mapping[str, str]:
    """Return the ids of accepted vulnerabilities, with the reasons."""
    tools = tomllib.loads(file.read_text()).get("tool", {})
    first, second = _ACCEPTED.split(".")
    accepted: Mapping[str, str] = tools.get(first, {}).get(second, {})
    return accepted


def audit(constraints: Path, accepted: Mapping[str, str], environ: Mapping[str, str]) -> AuditResult:
    """Query the vulnerability service for all pinned packages.

    If the service does not respond, the result contains a warning. Raises RuntimeError if pip-audit cannot
    read the pins.
    """
    ignored = [option for name in accepted for option in ("--ignore-vuln", name)]
    command = [sys.executable, "-m", "pip_audit", "-r", str(constraints), *_OPTIONS, *ignored]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(environ), check=False)
    try:
        document = json.loads(done.stdout)
    except ValueError:
        text = done.stderr.strip() or f"exit code {done.returncode}"
        if not _UNREACHABLE.search(text):
            raise RuntimeError(f"pip-audit failed:\n{text}") from None
        reason = text.splitlines()[-1]
        problem = "no package was audited, because the vulnerability service does not respond"
        return AuditResult(warnings=(f"warning: {problem}: {reason}",))
    return _read_result(document["dependencies"])


def _read_result(dependencies: list[dict[str, object]]) -> AuditResult:
    vulnerabilities = []
    skipped = [str(one["skip_reason"]) for one in dependencies if "skip_reason" in one]
    for one in dependencies:
        vulns = one.get("vulns", [])
        assert isinstance(vulns, list)
        for vulnerability in vulns:
            fixed = ", ".join(vulnerability["fix_versions"]) or "none"
            names = ", ".join((vulnerability["id"], *vulnerability["aliases"]))
            vulnerabilities.append(f"  {one['name']} {one['version']}: {names}; fixed versions: {fixed}")
    warnings: tuple[str, ...] = ()
    if skipped:
        text = f"{len(skipped)} of {len(dependencies)} packages were not audited, for example: {skipped[0]}"
        warnings = (f"warning: {text}",)
    return AuditResult(len(dependencies) - len(skipped), tuple(vulnerabilities), warnings)


def audit_cached(
    constraints: Path, accepted: Mapping[str, str], environ: Mapping[str, str], cache: Path, now: float
) -> AuditResult:
    """Return the result of an earlier audit of the same packages, if it is recent; otherwise, audit."""
    service = sorted((key, value) for key, value in environ.items() if key.startswith("PIP_AUDIT_"))
    subject = json.dumps([constraints.read_text(), dict(accepted), service])
    digest = hashlib.sha256(subject.encode()).hexdigest()
    try:
        saved = json.loads(cache.read_text())
        if saved["digest"] == digest and 0 <= now - saved["time"] < _MAX_AGE_S[not saved["warnings"]]:
            return AuditResult(saved["checked"], (), tuple(saved["warnings"]))
    except (OSError, ValueError, KeyError, TypeError):
        pass  # there is no usable result
    result = audit(constraints, accepted, environ)
    if not result.vulnerabilities:
        cache.write_text(json.dumps({"digest": digest, "time": now, **asdict(result)}))
    return result


def main() -> int:
    """Audit the packages, and return the exit code."""
    try:
        result = audit_cached(CONSTRAINTS, read_accepted(), os.environ, CACHE, time.time())
    except RuntimeError as problem:
        print(problem, file=sys.stderr)
        return 1
    print(result.format(), file=sys.stderr if result.vulnerabilities or result.warnings else sys.stdout)
    return 1 if result.vulnerabilities else 0


if __name__ == "__main__":
    sys.exit(main())
