"""Which ``${env.NAME}`` and ``${file.PATH}`` a project allows its manifests to resolve (decision 24)."""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from kdeclare.core.diagnostics import Diagnostic, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.secrets.secret_hashes import KEY_VARIABLE, OLD_KEY_VARIABLE

TRUSTED_PROJECT = "KDECLARE_TRUSTED_PROJECT"
"""Environment variable: the project file, normally of the base branch, that must allow a reference, too."""
CI_VARIABLE = "CI"
"""GitHub, GitLab and most other services set it in their jobs."""
_FALSE = ("", "0", "false", "no")

_ENTRY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\*?")
_RUNNER_TOKENS = re.compile(
    "GH_TOKEN|GH_ENTERPRISE_TOKEN|GITHUB_TOKEN|ACTIONS_RUNTIME_TOKEN|ACTIONS_ID_TOKEN_REQUEST_TOKEN"
    "|CI_JOB_TOKEN|CI_JOB_JWT(_V[12])?|CI_REPOSITORY_URL|CI_REGISTRY_PASSWORD|CI_DEPLOY_PASSWORD"
    "|CI_DEPENDENCY_PROXY_PASSWORD|CI_RUNNER_SHORT_TOKEN|GIT_CONFIG_VALUE_[0-9]+"
    "|KDECLARE_STATE_TOKEN|KDECLARE_BASE_TOKEN|KDECLARE_GITLAB_TOKEN|KDECLARE_CLIENT_PROPERTIES(_FILE)?"
)
"""Credentials of CI jobs and of the steps in ``ci``; no project can allow them."""
_OWN_KEYS = (KEY_VARIABLE, OLD_KEY_VARIABLE)
"""A value made of one would be as good as the key to whoever sees it."""


@dataclass(frozen=True, slots=True)
class ReferenceLimits:
    """What one project file allows.

    env: names of environment variables, or prefixes that end in ``*``.
    files: files or folders, relative to the project's folder.
    declared: whether the file has the field at all; without it, nothing is allowed.
    trusted: whether this is the file that TRUSTED_PROJECT names, and not the project's own.
    """

    env: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    declared: bool = True
    trusted: bool = False

    def allows_variable(self, name: str) -> bool:
        """Whether ``${env.<name>}`` may be resolved."""
        return any(
            name.startswith(entry[:-1]) if entry.endswith("*") else name == entry for entry in self.env
        )

    def allows_file(self, path: Path, folder: Path) -> bool:
        """Whether a file may be read. folder: the project's."""
        real_path = os.path.realpath(path)
        return any(_is_within(real_path, _resolve_allowed_path(entry, folder)) for entry in self.files)


Limits = tuple[ReferenceLimits, ...]
"""All of them must allow a reference; none at all is no limit."""


def is_automated(environ: Mapping[str, str]) -> bool:
    """Whether this is a job of a CI service."""
    return environ.get(CI_VARIABLE, "").strip().lower() not in _FALSE


def build_own_limits(declared: ReferenceLimits | None, environ: Mapping[str, str]) -> Limits:
    """The limits of a project file; without the field, in CI nothing is allowed, and elsewhere everything."""
    if declared is not None:
        return (declared,)
    return (ReferenceLimits(declared=False),) if is_automated(environ) else ()


def explain_bad_entry(entry: str) -> str | None:
    """What is wrong with an entry of ``references.env``, if anything is."""
    if _ENTRY.fullmatch(entry) is None:
        return f"takes names of environment variables and prefixes such as KAFKA_*, not '{entry}'"
    if entry in _OWN_KEYS:
        return f"cannot allow {entry}: it is the key for hashes of secrets"
    if _RUNNER_TOKENS.fullmatch(entry) is not None:
        return f"cannot allow {entry}: it is a credential of the CI job"
    return None


def check_variable(name: str, limits: Limits) -> Diagnostic | None:
    """Why an environment variable must not be resolved; None where it may."""
    if name in _OWN_KEYS:
        return error(
            "reference-not-allowed",
            "Reference is not allowed",
            f"'${{env.{name}}}' is the key for hashes of secrets, which is never resolved.",
            hint="Remove the reference, or use a variable of your own.",
            subject=name,
        )
    if not limits:
        return None
    if _RUNNER_TOKENS.fullmatch(name) is not None:
        return error(
            "reference-not-allowed",
            "Reference is not allowed",
            f"'${{env.{name}}}' is a credential of the CI job, which is never resolved.",
            hint="Remove the reference, or use a variable of your own.",
            subject=name,
        )
    refusing_limit = _find_first(limit for limit in limits if not limit.allows_variable(name))
    return (
        _build_refusal_error(f"env.{name}", refusing_limit, f"env: [{name}]", name)
        if refusing_limit
        else None
    )


def check_file(name: str, path: Path, folder: Path, limits: Limits) -> Diagnostic | None:
    """Why the file of a reference must not be read; None where it may.

    name: as in the reference. folder: what entries of the limits are relative to.
    """
    if os.path.realpath(path).startswith("/proc/"):
        return error(
            "reference-not-allowed",
            "Reference is not allowed",
            f"'${{file.{name}}}' leads to what the system says of processes, their variables among it.",
            hint="Use ${env.NAME} for a variable.",
            subject=name,
        )
    if limits and ".git" in Path(os.path.realpath(path)).parts:
        return error(
            "reference-not-allowed",
            "Reference is not allowed",
            f"'${{file.{name}}}' leads into a .git folder, which can hold credentials.",
            hint="Keep the file elsewhere.",
            subject=name,
        )
    refusing_limit = _find_first(limit for limit in limits if not limit.allows_file(path, folder))
    parent = os.path.dirname(name) or name  # noqa: PTH120  # as written
    return (
        _build_refusal_error(f"file.{name}", refusing_limit, f"files: [{parent}]", name)
        if refusing_limit
        else None
    )


def _find_first(limits: Iterable[ReferenceLimits]) -> ReferenceLimits | None:
    return next(iter(limits), None)


def _build_refusal_error(reference: str, limit: ReferenceLimits, entry: str, subject: str) -> Diagnostic:
    if limit.trusted:
        detail = (
            f"'${{{reference}}}' is not in 'spec.references' of the trusted project file, which is normally "
            "that of the base branch."
        )
        hint = f"Add 'references: {{{entry}}}' to the project file in a change of its own; merge it first."
    elif limit.declared:
        detail = f"'${{{reference}}}' is not in 'spec.references' of the project file."
        hint = f"Add it there ({entry}), or remove the reference."
    else:
        detail = (
            f"'${{{reference}}}' cannot be resolved in CI (the variable {CI_VARIABLE} is set), because the "
            "project file has no 'spec.references'."
        )
        hint = f"Add 'references: {{{entry}}}' to the project file's spec."
    return error("reference-not-allowed", "Reference is not allowed", detail, hint=hint, subject=subject)


def _resolve_allowed_path(entry: str, folder: Path) -> str:
    """Where an entry leads. Links in the project are not followed: a change of the project can set them."""
    project = os.path.realpath(folder)
    path = os.path.normpath(Path(project, entry))
    return path if _is_within(path, project) or not Path(entry).is_absolute() else os.path.realpath(path)


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
