"""Explain the errors of git and of remote repositories."""

import re
from collections.abc import Mapping
from enum import StrEnum

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.secrets.scrubber import SCRUBBER
from kdeclare.state_storage.git_process import TOKEN_VARIABLE, GitResult

_MAX_REASON_LENGTH = 600
_MAX_REASON_LINES = 6


_RELEVANT = re.compile(r"(fatal|error|ERROR|remote|ssh|kex_\w+|\S+@\S+):|Host key verification failed")
"""Matches the lines in which git, ssh or a server gives a reason. Other lines report progress."""


class FailureKind(StrEnum):
    """The reasons why a command on a remote repository can fail."""

    ACCESS = "access"
    HOST_KEY = "host-key"
    CERTIFICATE = "certificate"
    NO_REPOSITORY = "no-repository"
    TIMEOUT = "timeout"
    OTHER = "other"

    @property
    def is_transient(self) -> bool:
        """Whether the same command may succeed a moment later, such as after a broken connection."""
        return self is FailureKind.OTHER


# The first pattern that matches decides. Sources: git's http.c, remote-curl.c and connect.c, OpenSSH, and the
# messages of GitHub and GitLab.
_PATTERNS = (
    (FailureKind.HOST_KEY, r"host key verification failed"),
    (
        FailureKind.ACCESS,
        r"authentication failed|could not read (username|password)|permission denied|returned error: 40[13]"
        r"|invalid (username|credentials)|access denied|permission to \S+ denied|not allowed to|http basic",
    ),
    (FailureKind.CERTIFICATE, r"ssl certificate|certificate (problem|verif)|server certificate|SSL_\w+:"),
    (
        FailureKind.NO_REPOSITORY,
        r"repository .*not found|does not appear to be a git repository|returned error: 404"
        r"|could not be found|dubious ownership",
    ),
)


def find_failure_kind(result: GitResult) -> FailureKind:
    """Return the reason why a command failed, if git's messages reveal it."""
    if result.timed_out:
        return FailureKind.TIMEOUT
    for kind, pattern in _PATTERNS:
        if re.search(pattern, result.stderr, re.IGNORECASE):
            return kind
    return FailureKind.OTHER


def format_reason(result: GitResult) -> str:
    """Return the reason in git's output on one line, without control characters or secrets.

    The output includes messages of ssh and of the server.
    """
    lines = [
        re.sub(r"[\x00-\x1f\x7f-\x9f]+", " ", line).strip().rstrip(".")
        for line in re.split(r"[\r\n]+", result.stderr)
    ]
    relevant = [line for line in lines if _RELEVANT.match(line)]
    text = "; ".join((relevant or [line for line in lines if line])[:_MAX_REASON_LINES])
    return SCRUBBER.scrub(text)[:_MAX_REASON_LENGTH] or f"git exited with status {result.exit_code}"


def build_remote_error(
    action: str, location: str, result: GitResult, timeout_s: float, environ: Mapping[str, str]
) -> KdeclareError:
    """Return the error about a failed command on a remote repository: "Cannot ``action`` ``location``: …"."""
    kind, is_ssh = find_failure_kind(result), location.startswith("git+ssh:")
    if kind is FailureKind.TIMEOUT:
        reason = f"the repository did not respond within {timeout_s:g} s"
    else:
        reason = format_reason(result)
    detail = f"Cannot {action} {location}: {reason}."
    match kind:
        case FailureKind.ACCESS:
            return build_access_error(detail, _suggest_login(location, is_ssh, environ))
        case FailureKind.HOST_KEY:
            hint = "Add the host's key to the known_hosts file of the user that runs kdeclare."
            return build_access_error(detail, hint)
        case FailureKind.CERTIFICATE:
            hint = "Make git trust the server's certificate: set GIT_SSL_CAINFO to the file of its CA."
        case FailureKind.NO_REPOSITORY:
            hint = (
                "Check the URL. Some servers report a repository as missing if the credentials do not permit "
                "reading it."
            )
        case FailureKind.TIMEOUT:
            hint = "Check the host and the network, or increase --timeout."
        case _:
            hint = (
                "Check the host and the network. Run `git ls-remote` with the same URL to test the "
                "connection."
            )
    return build_storage_error(detail, hint)


def _suggest_login(location: str, is_ssh: bool, environ: Mapping[str, str]) -> str:
    if is_ssh:
        return (
            "Make sure that ssh can log in to the host without a prompt: load the key into an agent, or "
            "name it in GIT_SSH_COMMAND."
        )
    if not location.startswith("git+https:"):
        return "Make the repository readable and writable for the user that runs kdeclare."
    if environ.get(TOKEN_VARIABLE):
        return f"Check the token in {TOKEN_VARIABLE}: it must permit reading and writing the repository."
    return f"Set {TOKEN_VARIABLE} to a token for the repository, or configure a git credential helper."


def build_access_error(detail: str, hint: str) -> KdeclareError:
    """Return the error for a repository that denies read or write access."""
    return KdeclareError(error("state-no-access", "No access to the state", detail, hint=hint))


def build_storage_error(detail: str, hint: str) -> KdeclareError:
    """Return the error about a repository that cannot be used."""
    return KdeclareError(error("state-storage", "State storage failed", detail, hint=hint))
