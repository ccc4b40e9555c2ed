"""Run git as a subprocess that shows no prompts, runs no hooks of the user, and always ends."""

import base64
import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from urllib.parse import urlsplit

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.secrets.child_environ import build_child_environ
from kdeclare.core.secrets.scrubber import SCRUBBER

TOKEN_VARIABLE = "KDECLARE_STATE_TOKEN"
USER_VARIABLE = "KDECLARE_STATE_USER"
DEFAULT_USER = "x-access-token"
"""The user name that GitHub expects with a token. GitLab accepts any name."""

MINIMUM_VERSION = (2, 31)
"""The first version of git that reads its configuration from ``GIT_CONFIG_COUNT``."""

_LOCAL_TIMEOUT_S = 120.0
_MAX_TRANSFER_FACTOR = 20
"""The maximum duration of a transfer while git reports progress, as a multiple of the timeout."""
_POLL_S = 0.1

_CONFIG = {
    "color.ui": "false",
    "commit.gpgSign": "false",
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.splitIndex": "false",
    "fetch.recurseSubmodules": "false",
    "gc.auto": "0",  # a background process could outlive the command
    "i18n.commitEncoding": "utf-8",
    "maintenance.auto": "false",
    "push.followTags": "false",
    "push.gpgSign": "false",
    "push.negotiate": "false",
    "push.recurseSubmodules": "no",
    "submodule.recurse": "false",
}

# What git sets for its hooks and aliases, and what would change repositories or commits.
_REMOVED_VARIABLES = {
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_AUTHOR_DATE",
    "GIT_COMMITTER_DATE",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_DEFAULT_HASH",
    "GIT_GRAFT_FILE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_TEMPLATE_DIR",
    "GIT_WORK_TREE",
}
_TRACE = re.compile(r"GIT_(TRACE\w*|CURL_VERBOSE)")


@dataclass(frozen=True, slots=True)
class GitResult:
    """The result of a git command. timed_out: whether git was killed because it did not respond."""

    exit_code: int
    stdout: bytes
    stderr: str
    timed_out: bool = False


@dataclass(frozen=True, slots=True)
class Git:
    """Runs git commands for one local repository.

    environ: the environment variables of the commands, which also select the repository.
    timeout_s: how long to wait for a response from a remote repository, in seconds.
    """

    environ: Mapping[str, str] = field(repr=False)
    timeout_s: float

    def run(
        self, *arguments: str, data: bytes = b"", variables: Mapping[str, str] | None = None
    ) -> GitResult:
        """Run a command on the local repository. data: its standard input."""
        process = self._start(arguments, {**self.environ, **(variables or {})}, stdin=subprocess.PIPE)
        try:
            stdout, stderr = process.communicate(data, timeout=_LOCAL_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            _kill_group(process)
            return GitResult(-1, b"", "", timed_out=True)
        except BaseException:
            _kill_group(process)
            raise
        return GitResult(process.returncode, stdout, stderr.decode(errors="replace"))

    def run_remote(self, *arguments: str) -> GitResult:
        """Run a command that talks to a remote repository. It is killed if it does not respond in time."""
        process = self._start(arguments, self.environ, stdin=subprocess.DEVNULL)
        try:
            return _watch(process, self.timeout_s)
        finally:
            if process.poll() is None:
                _kill_group(process)
            for stream in (process.stdout, process.stderr):
                assert stream is not None
                stream.close()

    def _start(
        self, arguments: Sequence[str], environ: Mapping[str, str], stdin: int
    ) -> "subprocess.Popen[bytes]":
        try:
            return subprocess.Popen(
                ["git", *arguments],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environ,
                start_new_session=True,  # a group that can be killed, without a terminal for ssh to ask on
            )
        except OSError as cause:
            raise KdeclareError(
                error(
                    "git-missing",
                    "Git is not available",
                    f"A state on a git branch needs the command `git`: {cause.strerror or cause}.",
                    hint="Install git 2.31 or later, and make sure that it is on the PATH.",
                )
            ) from cause

    def check_version(self) -> None:
        """Raise KdeclareError if git is too old: it would ignore the configuration in the environment."""
        text = self.run("version").stdout.decode(errors="replace").strip()
        found = re.search(r"(\d+)\.(\d+)", text)
        if found is None or (int(found[1]), int(found[2])) < MINIMUM_VERSION:
            raise KdeclareError(
                error(
                    "git-version",
                    "Git version is too old",
                    f"A state on a git branch needs git 2.31 or later; `git version` prints '{text}'.",
                    hint="Install a newer version of git.",
                )
            )


def build_git_environ(environ: Mapping[str, str], folder: Path, remote: str) -> dict[str, str]:
    """Return the environment variables of git commands for the repository in ``folder``.

    remote: the URL of the remote repository. A token for it is passed in the environment, because every
        user of a machine can read command lines.
    """
    kept = {
        name: value
        for name, value in build_child_environ(environ).items()
        if name not in _REMOVED_VARIABLES and not (_TRACE.fullmatch(name) and not value.startswith("/"))
    }
    config = [*_CONFIG.items(), *_build_login(environ, remote)]
    count = int(text) if (text := kept.get("GIT_CONFIG_COUNT", "")).isdecimal() else 0
    for number, (name, value) in enumerate(config, count):
        kept[f"GIT_CONFIG_KEY_{number}"] = name
        kept[f"GIT_CONFIG_VALUE_{number}"] = value
    return kept | {
        "GIT_CONFIG_COUNT": str(count + len(config)),
        "GIT_DIR": str(folder),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_AUTHOR_NAME": "kdeclare",
        "GIT_AUTHOR_EMAIL": "kdeclare@localhost",
        "GIT_COMMITTER_NAME": "kdeclare",
        "GIT_COMMITTER_EMAIL": "kdeclare@localhost",
        "LC_ALL": "C",  # messages of git are compared
        "LANGUAGE": "C",
    }


def _build_login(environ: Mapping[str, str], remote: str) -> list[tuple[str, str]]:
    token = environ.get(TOKEN_VARIABLE, "")
    parts = urlsplit(remote)
    if not token or parts.scheme != "https":
        return []
    login = base64.b64encode(f"{environ.get(USER_VARIABLE) or DEFAULT_USER}:{token}".encode()).decode()
    SCRUBBER.register(token)
    SCRUBBER.register(login)
    name = f"http.https://{parts.netloc}/.extraHeader"
    # The empty value removes headers of the user's configuration: servers refuse a request with two logins.
    return [(name, ""), (name, f"Authorization: Basic {login}")]


def _watch(process: "subprocess.Popen[bytes]", timeout_s: float) -> GitResult:
    """Collect the output of git until it ends. Progress messages show that git still transfers data."""
    output: dict[object, bytearray] = {process.stdout: bytearray(), process.stderr: bytearray()}
    last_output_at = started_at = time.monotonic()
    with selectors.DefaultSelector() as selector:
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            selector.register(stream, selectors.EVENT_READ)
        while selector.get_map():
            # ssh can leave a process for later connections, which keeps the streams open
            has_ended = process.poll() is not None
            events = selector.select(0 if has_ended else _POLL_S)
            for key, _ in events:
                chunk = os.read(key.fd, 65_536)
                if not chunk:
                    selector.unregister(key.fileobj)
                output[key.fileobj] += chunk
                last_output_at = time.monotonic()
            if events:
                continue
            if has_ended:
                break
            now = time.monotonic()
            if now - last_output_at > timeout_s or now - started_at > timeout_s * _MAX_TRANSFER_FACTOR:
                _kill_group(process)
                return GitResult(-1, b"", output[process.stderr].decode(errors="replace"), timed_out=True)
        try:
            exit_code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            _kill_group(process)
            return GitResult(-1, b"", "", timed_out=True)
    return GitResult(
        exit_code, bytes(output[process.stdout]), output[process.stderr].decode(errors="replace")
    )


def _kill_group(process: "subprocess.Popen[bytes]") -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
