"""Limits on the environment variables and files that ``${env.NAME}`` and ``${file.PATH}`` may use.

docs/decisions/0024 gives the reasons.
"""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from kdeclare.core.diagnostics import Diagnostic, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.secrets.secret_hashes import KEY_VARIABLE, OLD_KEY_VARIABLE
from kdeclare.engine.signatures.signature import PASSPHRASE_VARIABLE, SIGNING_KEY_VARIABLE

TRUSTED_PROJECT = "KDECLARE_TRUSTED_PROJECT"
"""The environment variable with the path of the trusted project file.

References must be allowed by this file as well as by the project's own file. The trusted project file is
normally the project file of the base branch.
"""
CI_VARIABLE = "CI"
"""The environment variable that GitHub, GitLab and most other CI services set in their jobs."""
_FALSE = ("", "0", "false", "no")

_ENTRY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\*?")
_RUNNER_TOKENS = re.compile(
    "GH_TOKEN|GH_ENTERPRISE_TOKEN|GITHUB_TOKEN|ACTIONS_RUNTIME_TOKEN|ACTIONS_ID_TOKEN_REQUEST_TOKEN"
    "|CI_JOB_TOKEN|CI_JOB_JWT(_V[12])?|CI_REPOSITORY_URL|CI_REGISTRY_PASSWORD|CI_DEPLOY_PASSWORD"
    "|CI_DEPENDENCY_PROXY_PASSWORD|CI_RUNNER_SHORT_TOKEN|GIT_CONFIG_VALUE_[0-9]+"
    "|KDECLARE_STATE_TOKEN|KDECLARE_BASE_TOKEN|KDECLARE_GITLAB_TOKEN|KDECLARE_CLIENT_PROPERTIES(_FILE)?"
    "|SYSTEM_ACCESSTOKEN|KDECLARE_AZURE_TOKEN|KDECLARE_PLANS_TOKEN"
)
"""Matches the names of environment variables that contain credentials in CI jobs.

No project file can allow references to these variables.
"""
_OWN_KEYS = {
    KEY_VARIABLE: "a key for hashing secrets",
    OLD_KEY_VARIABLE: "a key for hashing secrets",
    SIGNING_KEY_VARIABLE: "the key that signs plans",
    PASSPHRASE_VARIABLE: "the passphrase of the key that signs plans",
}
"""The environment variables that contain kdeclare's own keys.

References to these variables in manifests would reveal the keys.
"""


@dataclass(frozen=True, slots=True)
class ReferenceLimits:
    """The references that one project file allows.

    env: names of environment variables, or prefixes that end in ``*``.
    files: files or folders, relative to the folder of the project.
    declared: whether the file has the field ``spec.references``. Without this field, no reference is allowed.
    trusted: whether the limits come from the trusted project file (see TRUSTED_PROJECT).
    """

    env: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    declared: bool = True
    trusted: bool = False

    def allows_variable(self, name: str) -> bool:
        """Return whether ``${env.<name>}`` may be resolved."""
        return any(
            name.startswith(entry[:-1]) if entry.endswith("*") else name == entry for entry in self.env
        )

    def allows_file(self, path: Path, folder: Path) -> bool:
        """Return whether a file may be read. folder: the folder of the project."""
        real_path = os.path.realpath(path)
        return any(_is_within(real_path, _resolve_allowed_path(entry, folder)) for entry in self.files)


Limits = tuple[ReferenceLimits, ...]
"""Limits that must all allow a reference. If the tuple is empty, all references are allowed."""


def is_automated(environ: Mapping[str, str]) -> bool:
    """Return whether kdeclare runs in a job of a CI service."""
    return environ.get(CI_VARIABLE, "").strip().lower() not in _FALSE


def build_own_limits(declared: ReferenceLimits | None, environ: Mapping[str, str]) -> Limits:
    """Return the limits of a project file.

    declared: the limits in the ``references`` field of the file, or None if it has no such field. Without the
    field, no references are allowed in CI jobs, and all references are allowed elsewhere.
    """
    if declared is not None:
        return (declared,)
    return (ReferenceLimits(declared=False),) if is_automated(environ) else ()


def explain_bad_entry(entry: str) -> str | None:
    """Return what is wrong with an entry of ``references.env``, or None if the entry is valid."""
    if _ENTRY.fullmatch(entry) is None:
        return f"use names of environment variables, or prefixes such as KAFKA_*, not '{entry}'"
    if entry in _OWN_KEYS:
        return f"{entry} cannot be allowed: it is {_OWN_KEYS[entry]}"
    if _RUNNER_TOKENS.fullmatch(entry) is not None:
        return f"{entry} cannot be allowed: it is a credential of the CI job"
    return None


def check_variable(name: str, limits: Limits) -> Diagnostic | None:
    """Return the error for a forbidden environment variable, or None if the variable is allowed."""
    if name in _OWN_KEYS:
        return error(
            "reference-not-allowed",
            "Reference is not allowed",
            f"'${{env.{name}}}' is {_OWN_KEYS[name]}. kdeclare never resolves references to it.",
            hint="Remove the reference, or use a variable of your own.",
            subject=name,
        )
    if not limits:
        return None
    if _RUNNER_TOKENS.fullmatch(name) is not None:
        return error(
            "reference-not-allowed",
            "Reference is not allowed",
            f"'${{env.{name}}}' is a credential of the CI job. kdeclare never resolves references to "
            "such credentials.",
            hint="Remove the reference, or use a variable of your own.",
            subject=name,
        )
    refusing_limit = _find_first(limit for limit in limits if not limit.allows_variable(name))
    return (
        _build_refusal_error(f"'${{env.{name}}}'", refusing_limit, f"env: [{name}]", name)
        if refusing_limit
        else None
    )


def check_file(
    name: str, path: Path, folder: Path, limits: Limits, subject: str | None = None
) -> Diagnostic | None:
    """Return the error for a file that must not be read, or None if the file is allowed.

    name: the path as written in the reference.
    folder: the folder that relative paths in the limits are resolved against.
    subject: what the message calls the file; None for a reference ``${file.PATH}``.
    """
    subject = subject or f"'${{file.{name}}}'"
    if os.path.realpath(path).startswith("/proc/"):
        return error(
            "reference-not-allowed",
            "Reference is not allowed",
            f"{subject} is in /proc, which exposes processes and their environment variables.",
            hint="Use ${env.NAME} for an environment variable.",
            subject=name,
        )
    if limits and ".git" in Path(os.path.realpath(path)).parts:
        return error(
            "reference-not-allowed",
            "Reference is not allowed",
            f"{subject} points into a .git folder, which can hold credentials.",
            hint="Move the file out of the .git folder.",
            subject=name,
        )
    refusing_limit = _find_first(limit for limit in limits if not limit.allows_file(path, folder))
    parent = os.path.dirname(name) or name  # noqa: PTH120  # as written
    return (
        _build_refusal_error(subject, refusing_limit, f"files: [{parent}]", name) if refusing_limit else None
    )


def _find_first(limits: Iterable[ReferenceLimits]) -> ReferenceLimits | None:
    return next(iter(limits), None)


def _build_refusal_error(reference: str, limit: ReferenceLimits, entry: str, subject: str) -> Diagnostic:
    if limit.trusted:
        detail = (
            f"{reference} is not in 'spec.references' of the trusted project file, which is normally "
            "the project file of the base branch."
        )
        hint = (
            f"Add 'references: {{{entry}}}' to the project file in a separate change, and merge that first."
        )
    elif limit.declared:
        detail = f"{reference} is not in 'spec.references' of the project file."
        hint = f"Add an entry to 'spec.references' ({entry}), or remove the reference."
    else:
        detail = (
            f"{reference} cannot be resolved in CI (the variable {CI_VARIABLE} is set), because the "
            "project file has no 'spec.references'."
        )
        hint = f"Add 'references: {{{entry}}}' to the project file's spec."
    return error("reference-not-allowed", "Reference is not allowed", detail, hint=hint, subject=subject)


def _resolve_allowed_path(entry: str, folder: Path) -> str:
    """Return the absolute path of an entry in ``references.files``.

    Symbolic links inside the project are not followed, because a change to the project could add such links.
    """
    project = os.path.realpath(folder)
    path = os.path.normpath(Path(project, entry))
    return path if _is_within(path, project) or not Path(entry).is_absolute() else os.path.realpath(path)


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
