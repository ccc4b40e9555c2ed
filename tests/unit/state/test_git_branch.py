"""What a state on a git branch looks like, and what must not disturb it."""

import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pexpect
import pytest

from kdeclare.core.storage.conditional_objects import ConditionalObjects, ListsProjects, ObjectConflict
from tests.git_remotes import (
    BRANCH,
    SETUP_ENVIRON,
    create_remote,
    get_problem,
    open_git_objects,
    push_files,
    run_git,
    write_script,
)


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return create_remote(tmp_path / "state.git")


@pytest.fixture
def objects(remote: Path) -> Iterator[ConditionalObjects]:
    objects = open_git_objects(f"git+file://{remote}")
    yield objects
    objects.close()


SSH = "while [ $# -gt 1 ]; do shift; done"
"""The script runs the command of the last argument on this machine, like sshd."""


def read_data(objects: ConditionalObjects, key: str) -> bytes | None:
    stored = objects.get(key)
    return None if stored is None else stored.data


def test_objects_are_readable_files(remote: Path, objects: ConditionalObjects) -> None:
    version = objects.create("plans/r1.json", b'{"a": 1}\n')
    file = f"{BRANCH}:shop/lab/plans/r1.json"
    header, *lines = run_git(remote, "show", file).splitlines()
    assert header.startswith("kdeclare-object ")
    assert lines == ['{"a": 1}']
    assert run_git(remote, "rev-parse", file).strip() == version
    location = objects.get_location("plans/r1.json")
    assert location == f"shop/lab/plans/r1.json on branch '{BRANCH}' of file://{remote}"


def test_each_write_is_one_commit_with_fixed_author(remote: Path) -> None:
    objects = open_git_objects(
        f"git+file://{remote}?branch=states/lab", environ={**SETUP_ENVIRON, "KDECLARE_REVISION": "1a2b3c"}
    )
    objects.create("plans/r1.json", b"{}")
    objects.create("lease.json", b"x")
    objects.delete(["plans/r1.json", "lease.json", "missing"])
    objects.delete(["missing"])
    objects.close()
    log = run_git(remote, "log", "--format=%an <%ae> %cn <%ce>%n%B%x00", "states/lab").split("\0")
    author = "kdeclare <kdeclare@localhost> kdeclare <kdeclare@localhost>"
    assert [text.strip() for text in log if text.strip()] == [
        f"{author}\n{what} of shop/lab\n\nRevision: 1a2b3c\n\n[skip ci]"
        for what in ("Delete 2 objects", "Write lease.json", "Write plans/r1.json")
    ]


def test_projects_environments_and_other_files_are_kept_apart(
    remote: Path, objects: ConditionalObjects, tmp_path: Path
) -> None:
    push_files(remote, tmp_path / "clone", {"README.md": "States.", "shop/labs/lease.json": "not ours"})
    objects.create("lease.json", b"lab")
    url = f"git+file://{remote}"
    for environment, project in (("live", "shop"), ("lab", "shop 2 é")):
        others = open_git_objects(url, project=project, environment=environment)
        assert others.list_keys("") == ()
        others.create("lease.json", environment.encode())
        others.close()
    assert objects.list_keys("") == ("lease.json",)
    objects.delete(["lease.json"])
    files = run_git(remote, "ls-tree", "-r", "-z", "--name-only", BRANCH).split("\0")
    assert files == [
        "README.md",
        "shop 2 é/lab/lease.json",
        "shop/labs/lease.json",
        "shop/live/lease.json",
        "",
    ]


def test_configuration_and_environment_of_git_do_not_interfere(remote: Path, tmp_path: Path) -> None:
    hooks = tmp_path / "hooks"
    for hook in ("pre-push", "reference-transaction", "post-index-change", "pre-commit"):
        write_script(hooks / hook, f"touch {tmp_path}/ran", "exit 1")
    template = tmp_path / "template"
    write_script(template / "hooks" / "pre-push", f"touch {tmp_path}/ran", "exit 1")
    config = tmp_path / "gitconfig"
    config.write_text(
        f"[core]\nhooksPath = {hooks}\nautocrlf = true\n[init]\ntemplateDir = {template}\n"
        "[user]\nname = Ann\nemail = ann@localhost\nsigningKey = none\n"
        f"[commit]\ngpgSign = true\n[gpg]\nprogram = {hooks}/pre-push\n"
        "[push]\ngpgSign = true\nfollowTags = true\n"
        "[alias]\npush = !false\n[color]\nui = always\n[i18n]\ncommitEncoding = ISO-8859-1\n"
        "[fetch]\nprune = true\nfsckObjects = true\n[transfer]\nfsckObjects = true\n"
    )
    environ = {**SETUP_ENVIRON, "GIT_CONFIG_GLOBAL": str(config), "GIT_AUTHOR_NAME": "Ann", "LANG": "de_DE"}
    # what git sets when it runs a hook that runs kdeclare
    broken = {"GIT_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_WORK_TREE", "GIT_QUARANTINE_PATH"}
    environ |= dict.fromkeys(broken, str(tmp_path / "nowhere")) | {"GIT_TRACE": "1", "GIT_NAMESPACE": "other"}
    # a server has a configuration of its own
    ssh = write_script(tmp_path / "ssh", SSH, f'GIT_CONFIG_GLOBAL={os.devnull} sh -c "$1"')
    environ |= {
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": "url.ssh://host.example/.insteadOf",
        "GIT_CONFIG_VALUE_0": "ssh://by-the-user/",
        "GIT_CONFIG_KEY_1": "core.sshCommand",
        "GIT_CONFIG_VALUE_1": str(ssh),
    }
    objects = open_git_objects(f"git+ssh://by-the-user{remote}", environ=environ, project="é")
    version = objects.create("state.json", b"a\r\nb\n")
    objects.replace("state.json", b"c\r\n", version)
    assert read_data(objects, "state.json") == b"c\r\n"
    objects.close()
    assert not (tmp_path / "ran").exists()
    assert (
        run_git(remote, "log", "--format=%an %G? %s", BRANCH).splitlines()
        == ["kdeclare N Write state.json of é/lab"] * 2
    )


def test_special_characters_in_path_are_encoded(tmp_path: Path) -> None:
    remote = create_remote(tmp_path / "a state #1 100%é.git")
    objects = open_git_objects(f"git+file://{quote(str(remote))}")
    version = objects.create("state.json", b"1")
    objects.replace("state.json", b"2", version)
    assert read_data(objects, "state.json") == b"2"
    objects.close()
    assert BRANCH in run_git(remote, "branch")


def test_replacement_does_not_create_deleted_branch_again(remote: Path, objects: ConditionalObjects) -> None:
    version = objects.create("state.json", b"1")
    run_git(remote, "update-ref", "-d", f"refs/heads/{BRANCH}")
    with pytest.raises(ObjectConflict):
        objects.replace("state.json", b"2", version)
    assert run_git(remote, "branch") == ""
    objects.create("state.json", b"3")
    assert read_data(objects, "state.json") == b"3"


def test_writes_continue_after_history_was_replaced(
    remote: Path, objects: ConditionalObjects, tmp_path: Path
) -> None:
    """The commands are those of the documentation."""
    version = objects.create("state.json", b"1")
    objects.create("lease.json", b"1")
    clone = tmp_path / "clone"
    run_git(tmp_path, "clone", "--quiet", "--no-checkout", str(remote), str(clone))
    run_git(clone, "fetch", "origin", BRANCH)
    tip = run_git(clone, "rev-parse", "FETCH_HEAD").strip()
    new = run_git(clone, "commit-tree", f"{tip}^{{tree}}", "-m", "State without earlier history").strip()
    push = ("push", "--quiet", f"--force-with-lease={BRANCH}:{tip}", "origin", f"{new}:refs/heads/{BRANCH}")
    run_git(clone, *push)
    objects.replace("state.json", b"2", version)
    assert read_data(objects, "state.json") == b"2"
    assert run_git(remote, "rev-list", "--count", BRANCH) == "2\n"
    with pytest.raises(subprocess.CalledProcessError):
        run_git(clone, *push)
    assert objects.list_keys("") == ("lease.json", "state.json")


def test_branch_created_by_another_process_is_not_replaced(remote: Path, objects: ConditionalObjects) -> None:
    assert objects.list_keys("") == ()
    others = open_git_objects(f"git+file://{remote}")
    others.create("lease.json", b"theirs")
    others.close()
    with pytest.raises(ObjectConflict):
        objects.create("lease.json", b"ours")
    objects.create("state.json", b"ours")
    assert objects.list_keys("") == ("lease.json", "state.json")


def test_write_waits_for_lock_of_branch(remote: Path, objects: ConditionalObjects) -> None:
    objects.create("lease.json", b"1")
    lock = remote / "refs" / "heads" / f"{BRANCH}.lock"
    lock.touch()
    timer = threading.Timer(0.5, lock.unlink)
    timer.start()
    objects.create("state.json", b"1")
    timer.join()
    assert read_data(objects, "state.json") == b"1"


def wrap_git(folder: Path, *lines: str) -> dict[str, str]:
    """Return an environment in which the shell ``lines`` run before git, which is ``$git``."""
    write_script(folder / "git", f"git={shutil.which('git')}", *lines, 'exec "$git" "$@"')
    return {**SETUP_ENVIRON, "PATH": f"{folder}{os.pathsep}{SETUP_ENVIRON['PATH']}"}


@pytest.mark.parametrize("has_effect", [True, False])
def test_push_without_response_is_repeated(remote: Path, tmp_path: Path, has_effect: bool) -> None:
    environ = wrap_git(
        tmp_path / "bin",
        f'if [ "$1" = push ] && mkdir {tmp_path}/failed 2> /dev/null; then',
        *(['  "$git" "$@"'] if has_effect else []),
        '  echo "fatal: the remote end hung up unexpectedly" >&2; exit 128',
        "fi",
    )
    objects = open_git_objects(f"git+file://{remote}", environ=environ)
    version = objects.create("state.json", b"1")
    assert (tmp_path / "failed").exists()
    stored = objects.get("state.json")
    assert stored is not None
    assert (stored.data, stored.version) == (b"1", version)
    assert run_git(remote, "rev-list", "--count", BRANCH) == "1\n"
    objects.close()


def test_deletion_without_response_is_repeated(remote: Path, tmp_path: Path) -> None:
    environ = wrap_git(
        tmp_path / "bin",
        f'if [ "$1" = push ] && [ -e {tmp_path}/fail ]; then',
        f'  rm {tmp_path}/fail; "$git" "$@"; echo "fatal: early EOF" >&2; exit 128',
        "fi",
    )
    objects = open_git_objects(f"git+file://{remote}", environ=environ)
    objects.create("state.json", b"1")
    (tmp_path / "fail").touch()
    objects.delete(["state.json"])
    assert objects.list_keys("") == ()
    assert run_git(remote, "rev-list", "--count", BRANCH) == "2\n"
    objects.close()


def test_temporary_repository_is_deleted(
    remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    objects = open_git_objects(f"git+file://{remote}")
    objects.create("state.json", b"1")
    (local,) = folder.iterdir()
    assert local.stat().st_mode & 0o077 == 0
    objects.close()
    assert list(folder.iterdir()) == []
    assert read_data(objects, "state.json") == b"1", "a closed storage opens again"
    objects.close()
    assert list(folder.iterdir()) == []


def test_repository_is_reached_over_ssh(remote: Path, tmp_path: Path) -> None:
    script = write_script(
        tmp_path / "ssh", f'echo "$@" >> {tmp_path}/calls', "sleep 60 > /dev/null &", SSH, 'sh -c "$1"'
    )
    environ = {**SETUP_ENVIRON, "GIT_SSH_COMMAND": str(script), "GIT_SSH_VARIANT": "ssh"}
    objects = open_git_objects(f"git+ssh://git@host.example:2222{remote}", environ=environ)
    started_at = time.monotonic()
    objects.create("state.json", b"1")
    assert read_data(objects, "state.json") == b"1"
    assert time.monotonic() - started_at < 50, "a process that ssh leaves behind delays nothing"
    objects.close()
    calls = (tmp_path / "calls").read_text().splitlines()
    assert len(calls) == 3, "a request to read the branch, one to push, and one to read it again"
    assert all("-p 2222 git@host.example git-" in call for call in calls)


@pytest.mark.parametrize(
    ("message", "code", "hint"),
    [
        ("git@host: Permission denied (publickey).", "state-no-access", "ssh can log in to the host without"),
        ("Host key verification failed.", "state-no-access", "known_hosts"),
        (
            "ssh: Could not resolve hostname host: Name or service not known",
            "state-storage",
            "Check the host",
        ),
        ("ERROR: Repository not found.", "state-storage", "Check the URL."),
    ],
)
def test_ssh_without_login_fails_with_reason(
    remote: Path, tmp_path: Path, message: str, code: str, hint: str
) -> None:
    fatal = "fatal: Could not read from remote repository."
    script = write_script(tmp_path / "ssh", f'echo "{message}" >&2', f'echo "{fatal}" >&2', "exit 255")
    environ = {**SETUP_ENVIRON, "GIT_SSH_COMMAND": str(script), "GIT_SSH_VARIANT": "ssh"}
    objects = open_git_objects(f"git+ssh://git@host.example{remote}", environ=environ)
    found_code, text = get_problem(objects.list_keys, "")
    assert found_code == code
    assert message.rstrip(".") in text
    assert hint in text
    objects.close()


def test_ssh_cannot_ask_on_terminal(remote: Path, tmp_path: Path) -> None:
    """ssh would ask for a passphrase there, and wait."""
    has_terminal = "if (: < /dev/tty) 2> /dev/null; then echo yes; else echo no; fi"
    script = write_script(tmp_path / "ssh", f"{has_terminal} >> {tmp_path}/ssh-terminal", SSH, 'sh -c "$1"')
    environ = {**SETUP_ENVIRON, "GIT_SSH_COMMAND": str(script), "GIT_SSH_VARIANT": "ssh"}
    program = (
        "import os\n"
        "from tests.git_remotes import open_git_objects\n"
        "open('/dev/tty').close()\n"
        f"objects = open_git_objects('git+ssh://host.example{remote}')\n"
        "print('keys', objects.list_keys(''))\n"
    )
    child = pexpect.spawn(sys.executable, ["-c", program], env=environ, cwd=Path.cwd(), timeout=120)
    child.expect_exact("keys ()")
    child.expect(pexpect.EOF)
    child.close()
    assert (tmp_path / "ssh-terminal").read_text() == "no\n"


def test_rejection_by_hook_of_server_is_reported(remote: Path, objects: ConditionalObjects) -> None:
    objects.create("lease.json", b"1")
    write_script(remote / "hooks" / "pre-receive", 'echo "branch is protected by ops" >&2', "exit 1")
    code, text = get_problem(objects.create, "state.json", b"1")
    assert code == "state-no-access"
    for part in ("branch is protected by ops", "pre-receive hook declined", "protected branches"):
        assert part in text
    assert objects.list_keys("") == ("lease.json",)


def test_unreachable_repositories_are_reported(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    for url, part in (
        (f"git+file://{tmp_path}/nothing.git", "does not appear to be a git repository"),
        (f"git+https://127.0.0.1:{port}/state.git", "Failed to connect"),
    ):
        objects = open_git_objects(url)
        started_at = time.monotonic()
        code, text = get_problem(objects.list_keys, "")
        assert code == "state-storage"
        assert part in text
        assert url in text
        assert time.monotonic() - started_at < 40
        objects.close()


def test_repository_that_does_not_respond_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        objects = open_git_objects(f"git+https://127.0.0.1:{server.getsockname()[1]}/s.git", timeout_s=0.5)
        started_at = time.monotonic()
        code, text = get_problem(objects.create, "state.json", b"1")
        assert code == "state-storage"
        assert "did not respond within 0.5 s" in text
        assert time.monotonic() - started_at < 40
        server.settimeout(60)
        connection, _ = server.accept()
        with connection:
            connection.settimeout(5)
            while connection.recv(4096):
                pass  # the end of the stream: the process that sent the request is dead
        objects.close()


def test_missing_or_old_git_is_reported(remote: Path, tmp_path: Path) -> None:
    objects = open_git_objects(f"git+file://{remote}", environ={"PATH": str(tmp_path)})
    code, text = get_problem(objects.list_keys, "")
    assert (code, "Install git 2.31 or later" in text) == ("git-missing", True)
    environ = wrap_git(tmp_path / "bin", 'if [ "$1" = version ]; then echo git version 2.30.9; exit; fi')
    objects = open_git_objects(f"git+file://{remote}", environ=environ)
    code, text = get_problem(objects.list_keys, "")
    assert (code, "'git version 2.30.9'" in text) == ("git-version", True)


@pytest.mark.parametrize(
    ("url", "part"),
    [
        ("git+file:///a.git?brunch=x", "unknown option 'brunch'"),
        ("git+file://srv/a.git", "must be on this machine"),
        ("git+file:///", "does not name a repository"),
        ("git+ssh:///a.git", "does not name a repository"),
        ("git+https://host", "does not name a repository"),
        ("git+https://host/a.git?branch=", "is not a valid branch name"),
        ("git+https://host/a.git?branch=-f", "is not a valid branch name"),
        ("git+https://host/a.git?branch=a..b", "is not a valid branch name"),
        ("git+https://host/a.git?branch=a.lock", "is not a valid branch name"),
        ("git+https://host/a.git?branch=a:b", "is not a valid branch name"),
        ("git+https://ghp_0123456789abcdef@host/a.git", "KDECLARE_STATE_TOKEN"),
        ("git+https://ann:ghp_0123456789abcdef@host/a.git", "contains a password"),
    ],
)
def test_unusable_url_is_refused(url: str, part: str) -> None:
    code, text = get_problem(open_git_objects, url)
    assert code == "state-location"
    assert part in text
    assert "ghp_0123456789abcdef" not in text


@pytest.mark.parametrize("file", ["state.json", "runs/20261128T101500Z-1a2b3c4d/plan.json"])
def test_copy_of_local_state_folder_is_refused(
    remote: Path, objects: ConditionalObjects, tmp_path: Path, file: str
) -> None:
    push_files(
        remote, tmp_path / "clone", {f"shop/lab/{file}": '{"version": 3}', "shop/live/state.json": "{}"}
    )
    for _ in range(2):
        code, text = get_problem(objects.create, "lease.json", b"1")
        assert code == "state-old-layout"
        assert "kdeclare state migrate" in text
    others = open_git_objects(f"git+file://{remote}", environment="next")
    others.create("lease.json", b"1")
    others.close()


def test_file_that_kdeclare_did_not_write_is_refused(
    remote: Path, objects: ConditionalObjects, tmp_path: Path
) -> None:
    objects.create("lease.json", b"1")
    push_files(remote, tmp_path / "clone", {"shop/lab/lease.json": "edited"})
    code, text = get_problem(objects.get, "lease.json")
    assert code == "state-corrupt"
    assert "shop/lab/lease.json" in text


def test_projects_with_a_state_are_listed(remote: Path, objects: ConditionalObjects, tmp_path: Path) -> None:
    assert isinstance(objects, ListsProjects)
    assert objects.list_projects() == ()
    foreign = ("README.md", "docs/state.json", "a/b/c/state.json")
    push_files(remote, tmp_path / "clone", dict.fromkeys(foreign, "{}"))
    objects.create("state.json", b"1")
    for environment, key in (("grün", "state.json"), ("empty", "lease.json")):
        others = open_git_objects(f"git+file://{remote}", environment=environment)
        others.create(key, b"1")
        others.close()
    assert objects.list_projects() == (("shop", "grün"), ("shop", "lab"))
