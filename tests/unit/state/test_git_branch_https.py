"""A state on a git branch over HTTPS: git's own server, with passwords, on this machine."""

import base64
import os
import shlex
import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from kdeclare.core.storage.conditional_objects import ObjectConflict
from tests.git_remotes import (
    BRANCH,
    SETUP_ENVIRON,
    create_remote,
    get_problem,
    open_git_objects,
    run_git,
    write_script,
)

pytestmark = pytest.mark.slow

TOKEN = "glpat-0123456789abcdef"
LOGIN = base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode()
READ_ONLY_TOKEN = "glpat-readonly0123456789"


class GitServer(ThreadingHTTPServer):
    """Serves the repositories in ``folder`` with ``git http-backend``.

    failures: the status codes of the next answers.
    logins: what a user can do, by the header of a request.
    """

    daemon_threads = True

    def __init__(self, folder: Path, context: ssl.SSLContext) -> None:
        super().__init__(("127.0.0.1", 0), GitHandler)
        self.folder = folder
        self.failures: list[int] = []
        self.logins = {
            f"Basic {LOGIN}": "writer",
            f"Basic {base64.b64encode(f'bot:{READ_ONLY_TOKEN}'.encode()).decode()}": "reader",
        }
        self.socket = context.wrap_socket(self.socket, server_side=True)

    @property
    def url(self) -> str:
        return f"git+https://localhost:{self.server_address[1]}"


class GitHandler(BaseHTTPRequestHandler):
    """Runs git's CGI program for each request."""

    server: GitServer

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        """Log nothing."""

    def do_GET(self) -> None:
        if self.server.failures:
            self.send_error(self.server.failures.pop(0))
            return
        user = self.server.logins.get(self.headers.get("Authorization", ""))
        if user is None:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        url = urlsplit(self.path)
        if user == "reader" and "git-receive-pack" in self.path:
            self.send_error(403)
            return
        self._run_backend(user, url.path, url.query)

    def do_POST(self) -> None:
        self.do_GET()

    def _run_backend(self, user: str, path: str, query: str) -> None:
        body = self._read_body()
        environ = SETUP_ENVIRON | {
            "GIT_PROJECT_ROOT": str(self.server.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "REMOTE_USER": user,
            "REMOTE_ADDR": "127.0.0.1",
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        answer = subprocess.run(
            ["git", "http-backend"], env=environ, input=body, capture_output=True, check=False
        ).stdout
        head, _, content = answer.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.send_response(int(headers.pop("Status", "200").split()[0]))
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a file with a certificate and its key."""
    folder = tmp_path_factory.mktemp("certificate")
    command = "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -keyout key -out cert"
    names = ["-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([*shlex.split(command), *names], cwd=folder, check=True, capture_output=True)
    file = folder / "both"
    file.write_text((folder / "key").read_text() + (folder / "cert").read_text())
    return file


@pytest.fixture
def server(tmp_path: Path, certificate: Path) -> Iterator[GitServer]:
    remote = create_remote(tmp_path / "remotes" / "state.git")
    run_git(remote, "config", "http.receivepack", "true")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server = GitServer(remote.parent, context)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def environ(certificate: Path, tmp_path: Path) -> dict[str, str]:
    """Return the environment of a user whose git logs its command lines, and who trusts the server."""
    real_git = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout.strip()
    lines = (f'echo "$@" >> {tmp_path}/command-lines', f'exec {real_git} "$@"')
    write_script(tmp_path / "bin" / "git", *lines)
    return {
        **SETUP_ENVIRON,
        "PATH": f"{tmp_path / 'bin'}{os.pathsep}{SETUP_ENVIRON['PATH']}",
        "HOME": str(tmp_path / "home"),
        "GIT_SSL_CAINFO": str(certificate),
    }


def test_token_of_environment_permits_writing(
    server: GitServer, environ: dict[str, str], tmp_path: Path
) -> None:
    objects = open_git_objects(f"{server.url}/state.git", environ=environ | {"KDECLARE_STATE_TOKEN": TOKEN})
    large = os.urandom(3_000_000)  # git sends it in chunks
    version = objects.create("state.json", large)
    others = open_git_objects(f"{server.url}/state.git", environ=environ | {"KDECLARE_STATE_TOKEN": TOKEN})
    others.replace("state.json", b"2", version)
    with pytest.raises(ObjectConflict):
        objects.replace("state.json", b"3", version)
    stored = objects.get("state.json")
    assert stored is not None
    assert stored.data == b"2"
    remote = server.folder / "state.git"
    commits = run_git(remote, "cat-file", "-p", BRANCH) + run_git(remote, "log", "--format=fuller", BRANCH)
    command_lines = (tmp_path / "command-lines").read_text()
    assert "push" in command_lines
    for secret in (TOKEN, LOGIN):
        assert secret not in command_lines + commits + objects.get_location("state.json") + repr(objects)
    objects.close()
    others.close()


def test_login_of_environment_replaces_login_of_configuration(
    server: GitServer, environ: dict[str, str], tmp_path: Path
) -> None:
    """Two headers would be sent otherwise."""
    config = tmp_path / "gitconfig"
    config.write_text('[http "https://localhost"]\nextraHeader = Authorization: Basic b2xkOm9sZA==\n')
    with config.open("a") as file:
        file.write("[http]\nextraHeader = Authorization: Basic b2xkOm9sZA==\n")
    environ = environ | {"KDECLARE_STATE_TOKEN": TOKEN, "GIT_CONFIG_GLOBAL": str(config)}
    objects = open_git_objects(f"{server.url}/state.git", environ=environ)
    objects.create("state.json", b"1")
    assert objects.list_keys("") == ("state.json",)
    objects.close()


def test_credential_helper_permits_writing(
    server: GitServer, environ: dict[str, str], tmp_path: Path
) -> None:
    helper = write_script(
        tmp_path / "ask", f"case $1 in Username*) echo x-access-token;; *) echo {TOKEN};; esac"
    )
    objects = open_git_objects(f"{server.url}/state.git", environ=environ | {"GIT_ASKPASS": str(helper)})
    objects.create("state.json", b"1")
    assert objects.list_keys("") == ("state.json",)
    objects.close()


@pytest.mark.parametrize(
    ("login", "action", "parts"),
    [
        ({}, "get", ("could not read Username", "Set KDECLARE_STATE_TOKEN")),
        (
            {"KDECLARE_STATE_TOKEN": "glpat-wrong0123456789"},
            "get",
            ("could not read Username", "Check the token in KDECLARE_STATE_TOKEN"),
        ),
        (
            {"KDECLARE_STATE_TOKEN": READ_ONLY_TOKEN, "KDECLARE_STATE_USER": "bot"},
            "create",
            ("Cannot write", "403", "Check the token in KDECLARE_STATE_TOKEN"),
        ),
    ],
    ids=["no token", "wrong token", "token that may only read"],
)
def test_refused_login_is_reported(
    server: GitServer,
    environ: dict[str, str],
    login: dict[str, str],
    action: str,
    parts: tuple[str, ...],
) -> None:
    objects = open_git_objects(f"{server.url}/state.git", environ=environ | login)
    code, text = get_problem(lambda: objects.get("a") if action == "get" else objects.create("a", b"1"))
    assert code == "state-no-access"
    for part in (*parts, f"{server.url}/state.git"):
        assert part in text
    assert login.get("KDECLARE_STATE_TOKEN", LOGIN) not in text
    objects.close()


def test_missing_repository_is_reported(server: GitServer, environ: dict[str, str]) -> None:
    objects = open_git_objects(f"{server.url}/other.git", environ=environ | {"KDECLARE_STATE_TOKEN": TOKEN})
    code, text = get_problem(objects.list_keys, "")
    assert code == "state-storage"
    assert "not found" in text
    assert "Check the URL." in text
    objects.close()


def test_unknown_certificate_is_reported(server: GitServer, environ: dict[str, str]) -> None:
    del environ["GIT_SSL_CAINFO"]
    objects = open_git_objects(f"{server.url}/state.git", environ=environ | {"KDECLARE_STATE_TOKEN": TOKEN})
    code, text = get_problem(objects.list_keys, "")
    assert code == "state-storage"
    assert "certificate" in text
    assert "GIT_SSL_CAINFO" in text
    objects.close()


def test_failures_of_server_are_retried_and_then_reported(server: GitServer, environ: dict[str, str]) -> None:
    objects = open_git_objects(f"{server.url}/state.git", environ=environ | {"KDECLARE_STATE_TOKEN": TOKEN})
    server.failures = [502]
    assert objects.list_keys("") == ()
    server.failures = [503, 502]
    objects.create("state.json", b"1")
    server.failures = [500] * 10
    code, text = get_problem(objects.create, "lease.json", b"1")
    assert code == "state-storage"
    assert "500" in text
    server.failures = []
    assert objects.list_keys("") == ("state.json",)
    objects.close()
