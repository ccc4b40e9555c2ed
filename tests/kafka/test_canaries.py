"""Canary secrets in every place where kdeclare gets secrets: no command reveals them anywhere.

A secured broker, a Connect worker and a schema registry run on this machine. Each secret of the project has a
value of its own. After all commands, no canary is in output, in files (state, plans, journals, pages,
Parquet, temporary files), in the process list, or in environments of other programs.
"""

import base64
import json
import os
import re
import ssl
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    PublicFormat,
)

from kdeclare import sandbox as kafka_sandbox
from kdeclare.sandbox import SandboxSettings, SandboxStatus, security
from kdeclare.sandbox.layout import resolve_layout
from kdeclare.sandbox.security import ADMIN
from tests.canaries import (
    Canary,
    CanaryRunner,
    find_canaries,
    make_canary,
    search_files,
    search_git_objects,
)
from tests.conftest import free_port
from tests.git_remotes import BRANCH, run_git
from tests.http_servers import serve
from tests.object_servers import create_bucket, run_s3_server, send
from tests.thoroughness import is_thorough, pick
from tests.unit.state import test_git_branch_https
from tests.unit.state.test_git_branch_https import GitServer

certificate, server = test_git_branch_https.certificate, test_git_branch_https.server

pytestmark = [pytest.mark.kafka, pytest.mark.sampled]

NO_QUOTES = "/+=&%"
"""Punctuation for values in formats without quoting, such as JAAS configs in files of the sandbox."""

_VARIABLES = {
    "CLIENT_PASSWORD": NO_QUOTES,
    "WRONG_PASSWORD": NO_QUOTES,
    "SCRAM_PASSWORD": None,
    "BROKER_PASSWORD": NO_QUOTES,
    "BAD_BROKER_PASSWORD": NO_QUOTES,
    "CONNECTOR_SECRET": None,
    "BAD_CONNECTOR_SECRET": None,
    "CONNECT_PASSWORD": '/+=&%"\\',
    "REGISTRY_PASSWORD": '/+=&%"\\',
    "REGISTRY_HEADER": '/+=&%"\\',
    "KDECLARE_SECRET_KEY": None,
    "KDECLARE_SIGNING_PASSPHRASE": None,
    "KDECLARE_STATE_TOKEN": NO_QUOTES,
    "KDECLARE_GITLAB_TOKEN": NO_QUOTES,
    "AWS_SECRET_ACCESS_KEY": NO_QUOTES,
    "AWS_SESSION_TOKEN": NO_QUOTES,
    "GH_TOKEN": NO_QUOTES,
    "CI_JOB_TOKEN": NO_QUOTES,
    "OTHER_VARIABLE_OF_THE_JOB": None,
}
"""Environment variables with a canary, and the punctuation of its value; None for all characters."""

SIGNING_KEY = Ed25519PrivateKey.generate()
_JAAS = "org.apache.kafka.common.security.scram.ScramLoginModule required"


class EchoingServer(BaseHTTPRequestHandler):
    """Refuses every request, and repeats its credentials in plain text and decoded, like a careless proxy."""

    status = 422
    content_type = "application/json"

    def respond(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        login = self.headers.get("Authorization", "").partition(" ")[2]
        decoded = base64.b64decode(login + "==").decode(errors="replace") if login else ""
        message = f"refused: {dict(self.headers.items())} that is {decoded} or {decoded.partition(':')[2]}"
        body = json.dumps({"error_code": self.status, "message": message}).encode()
        self.send_response(self.status)
        self.send_header("Content-Type", self.content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Write nothing."""


class UnauthorizedServer(EchoingServer):
    """The same with another status."""

    status = 401


class PlainTextServer(EchoingServer):
    """The same as plain text, which git shows to the user."""

    status = 403
    content_type = "text/plain"


@dataclass(frozen=True)
class CanaryProject:
    """A project with canaries, and its files that contain them because a person wrote them there."""

    folder: Path
    canaries: Mapping[str, Canary]
    inputs: tuple[Path, ...]
    runner: CanaryRunner

    def run(
        self,
        *arguments: str,
        code: int | None = 0,
        debug: bool = False,
        environ: Mapping[str, str] | None = None,
    ) -> str:
        """Run a command, and return its output. debug: whether it shows the tracebacks of errors."""
        environ = {**(environ or {}), **({"KDECLARE_DEBUG": "1"} if debug else {})}
        ran = self.runner.run(self.folder, *arguments, code=code, environ=environ)
        return (ran.out + ran.err).decode()

    def write(self, file: str, kind: str, name: str, spec: Mapping[str, Any]) -> Path:
        """Write a manifest or a project file."""
        path = self.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        document = {"apiVersion": "kdeclare/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        path.write_text(yaml.safe_dump(document))
        return path

    def expect_nowhere(self) -> None:
        """Check that no command has revealed a canary."""
        findings = self.runner.search([self.folder], list(self.canaries.values()), self.inputs)
        assert findings == []


@pytest.fixture(scope="module")
def canaries() -> Mapping[str, Canary]:
    """The canaries by place."""
    canaries = {
        name: make_canary(name) if marks is None else make_canary(name, marks)
        for name, marks in _VARIABLES.items()
    }
    for name, marks in {
        "file with a SCRAM password": NO_QUOTES,
        "config provider": NO_QUOTES,
        "bad config of a worker": NO_QUOTES,
        "literal in a manifest": NO_QUOTES,
        "literal on a command line": NO_QUOTES,
    }.items():
        canaries[name] = make_canary(name, marks)
    passphrase = canaries["KDECLARE_SIGNING_PASSPHRASE"].value.encode()
    pem = SIGNING_KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(passphrase))
    lines = pem.decode().splitlines()
    canaries["KDECLARE_SIGNING_KEY"] = Canary("KDECLARE_SIGNING_KEY", pem.decode(), (lines[2], lines[3][:32]))
    return canaries


@pytest.fixture(scope="module")
def sandbox(
    canaries: Mapping[str, Canary], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SandboxStatus]:
    """A secured broker whose administrator has the password of the canary, a worker and a registry."""
    port = free_port(1, workers=1, secure=True, registry=True)
    folder = tmp_path_factory.mktemp("servers") / "sandbox"
    settings = SandboxSettings(folder, 1, 1, port, connect_workers=1, secure=True, registry=True)
    try:
        with pytest.MonkeyPatch.context() as patch:
            usual = security.get_password
            password = canaries["CLIENT_PASSWORD"].value
            patch.setattr(security, "get_password", lambda user: password if user == ADMIN else usual(user))
            yield kafka_sandbox.start(settings, print)
    finally:
        kafka_sandbox.reset(settings.folder)


@pytest.fixture(scope="module")
def echoing_urls() -> Iterator[tuple[str, str]]:
    """The URLs of servers that refuse everything with status 422 and 401."""
    with ExitStack() as stack:
        handlers = (EchoingServer, UnauthorizedServer)
        methods = ("GET", "PUT", "POST", "DELETE")
        first, second = (stack.enter_context(serve(handler, methods)) for handler in handlers)
        yield first, second


@pytest.fixture(scope="module")
def project(
    canaries: Mapping[str, Canary],
    sandbox: SandboxStatus,
    echoing_urls: tuple[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> CanaryProject:
    root = tmp_path_factory.mktemp("canaries")
    folder = root / "project"
    secret_files = root / "inputs"
    for path in (folder, secret_files):
        path.mkdir()
    (secret_files / "scram").write_text(canaries["file with a SCRAM password"].value)
    (secret_files / "worker.properties").write_text(
        f"db={canaries['config provider'].value}\nbad={canaries['bad config of a worker'].value}\n"
    )
    environ = {name: canaries[name].value for name in _VARIABLES}
    environ |= {
        "BROKER_JAAS": f'{_JAAS} username="b" password="{canaries["BROKER_PASSWORD"].value}";',
        "BAD_BROKER_JAAS": f"{_JAAS} username=b {canaries['BAD_BROKER_PASSWORD'].value};",
        "AWS_ACCESS_KEY_ID": "AKIATESTTESTTESTTEST",
    }
    environ["KDECLARE_SIGNING_KEY"] = canaries["KDECLARE_SIGNING_KEY"].value
    public_key = SIGNING_KEY.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    client = resolve_layout(sandbox.folder).security.client(ADMIN).read_text()
    for name in ("CLIENT_PASSWORD", "WRONG_PASSWORD"):
        text = client.replace(canaries["CLIENT_PASSWORD"].value, f"${{env.{name}}}")
        assert f"${{env.{name}}}" in text
        (folder / f"{name}.properties").write_text(text)
    runner = CanaryRunner(root / "runner", {**_list_plain_variables(), **environ})
    project = CanaryProject(folder, canaries, (), runner)
    assert sandbox.registry is not None
    environments = {
        "lab": _build_environment(
            sandbox, [worker.url for worker in sandbox.workers], sandbox.registry.url, "basicAuth"
        ),
        "refused": _build_environment(sandbox, [echoing_urls[0]], echoing_urls[0], "basicAuth"),
        "unauthorized": _build_environment(sandbox, [echoing_urls[1]], echoing_urls[1], "headers"),
    }
    project.write(
        "kdeclare.yaml",
        "Project",
        "shop",
        {
            "manifests": ["manifests"],
            "defaultEnvironment": "lab",
            "environments": environments,
            "signatures": {"keys": [public_key]},
        },
    )
    project.write(
        "fleet.yaml",
        "Fleet",
        "shop",
        {"clusters": [{"name": env, "project": "kdeclare.yaml", "env": env} for env in environments]},
    )
    return project


def _list_plain_variables() -> dict[str, str]:
    kept = ("PATH", "LANG", "LC_ALL", "JAVA_HOME", "PYTHONPATH", "KDECLARE_CACHE_DIR")
    return {name: os.environ[name] for name in kept if name in os.environ}


def _build_environment(
    sandbox: SandboxStatus, worker_urls: list[str], registry_url: str, login: str
) -> dict[str, Any]:
    registry_login: dict[str, Any] = (
        {"headers": {"X-Token": "${env.REGISTRY_HEADER}"}}
        if login == "headers"
        else {"basicAuth": {"username": "ann", "password": "${env.REGISTRY_PASSWORD}"}}
    )
    connect_login = (
        {"bearerToken": "${env.CONNECT_PASSWORD}"}
        if login == "headers"
        else {"basicAuth": {"username": "ann", "password": "${env.CONNECT_PASSWORD}"}}
    )
    return {
        "bootstrapServers": sandbox.bootstrap,
        "clientConfigFile": "CLIENT_PASSWORD.properties",
        "connect": {"eu": {"urls": worker_urls, "tls": {"caFile": str(sandbox.ca_file)}, **connect_login}},
        "registries": {"main": {"urls": [registry_url], **registry_login}},
    }


def declare_everything(project: CanaryProject) -> None:
    """Declare a resource of each kind that can contain a secret."""
    canaries, secret_files = project.canaries, project.folder.parent / "inputs"
    project.write("manifests/lines.yaml", "Topic", "lines", {"partitions": 1, "replicationFactor": 1})
    project.write("manifests/acl.yaml", "Acl", "connect", {"principal": "User:connect", "produce": ["lines"]})
    mechanisms = {
        "SCRAM-SHA-512": {"password": "${env.SCRAM_PASSWORD}"},
        "SCRAM-SHA-256": {"password": f"${{file.{secret_files / 'scram'}}}"},
    }
    project.write("manifests/user.yaml", "ScramUser", "ann", {"mechanisms": mechanisms})
    configs = {"log.cleaner.threads": 2, JAAS_KEY: "${env.BROKER_JAAS}"}
    project.write("manifests/broker.yaml", "BrokerConfig", "1", {"configs": configs})
    (project.folder / "lines.txt").write_text("one\n")
    config = {
        "topic": "lines",
        "file": str(project.folder / "lines.txt"),
        "db.password": "${env.CONNECTOR_SECRET}",
        "db.token": f"${{file:{secret_files / 'worker.properties'}:db}}",
        "db.credentials": "ann:${env.CONNECTOR_SECRET}",
    }
    spec = {"class": "FileStreamSource", "tasksMax": 1, "config": config}
    project.write("manifests/source.yaml", "Connector", "source", spec)
    schema = {"type": "record", "name": "Line", "fields": [{"name": "text", "type": "string"}]}
    project.write("manifests/schema.yaml", "Schema", "lines-value", {"type": "AVRO", "schema": schema})
    assert canaries


JAAS_KEY = "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config"
PLAN_FORMATS = ("text", "json", "markdown", "sarif", "html")


def test_no_command_reveals_a_secret(project: CanaryProject) -> None:
    declare_everything(project)
    run = project.run
    run("validate", "-v")
    if is_thorough():
        run("doctor", "-v")
    run("doctor", "--format", "json", "-v", debug=True)
    for output in pick(("text",), PLAN_FORMATS):
        run("plan", "--format", output, "--graph", "-v", debug=True)
    run("plan", "--out", "it.plan", "--sign", "${env.KDECLARE_SIGNING_KEY}", "-v")
    for output in pick(("text", "html"), PLAN_FORMATS):
        run("show", "it.plan", "--format", output)
    for name in pick(("Connector/source",), ("ScramUser/ann", "BrokerConfig/1", "Connector/source")):
        run("show-manifest", name)
    run("apply", "it.plan", "--yes", "-v", "--require-signature", debug=True)
    first = read_last_run(project)
    rotated = {"SCRAM_PASSWORD": project.canaries["WRONG_PASSWORD"].value}
    if is_thorough():
        run("plan", "--detailed-exitcode")
        run("plan", "-v", environ=rotated)
    run("apply", "it.plan", "--yes", "-v", code=4, environ=rotated)
    run("apply", "--yes", "--format", "json", "-v", environ=rotated)
    for output in pick(("html",), ("text", "json", "html")):
        if is_thorough() and output != "html":
            run("history", "--format", output)
        run("history", first, "--steps", "--format", output)
    run("history", "diff", first, "it.plan")
    listed = ("status", "lock show", "acl list", "connector list", "schema-registry list")
    for command in pick(("status", "connector list"), listed):
        run(*command.split(), "--format", "json", "-v")
        if is_thorough():
            run(*command.split(), "-v")
    run("connector", "describe", "source", "--format", "json")
    if is_thorough():
        run("status", "-v")
        run("config", "describe", "--entity-type", "brokers", "--entity-name", "1")
    run("rollback", "--yes", "-v", "--format", "json", code=None, debug=True)
    if is_thorough():
        run("rollback", "--out", "back.plan", code=None)
        run("import", "--include-declared")
    run("import", "--out", "imported", "--include-declared", "-v")
    project.expect_nowhere()


def read_last_run(project: CanaryProject) -> str:
    """Return the id of the last run."""
    document = json.loads(project.runner.run(project.folder, "history", "--format", "json").out)
    run_id: str = document["runs"][0]["run_id"]
    return run_id


@pytest.mark.thorough
def test_no_refusal_reveals_a_secret(project: CanaryProject) -> None:
    """Servers, workers and brokers repeat the values that they refuse."""
    secret_files = project.folder.parent / "inputs"
    run = project.run
    configs = {JAAS_KEY: "${env.BAD_BROKER_JAAS}"}
    project.write("refused/broker.yaml", "BrokerConfig", "1", {"configs": configs})
    common = {"topic": "lines", "file": str(project.folder / "lines.txt")}
    for name, value in {
        "variable": "${env.BAD_CONNECTOR_SECRET}",
        "placeholder": f"${{file:{secret_files / 'worker.properties'}:bad}}",
    }.items():
        for key in ("errors.tolerance", "transforms", "key.converter", "producer.override.acks"):
            spec = {"class": "FileStreamSource", "tasksMax": 1, "config": {**common, key: value}}
            short = f"{name}-{key.partition('.')[0]}"
            project.write(f"refused/{short}.yaml", "Connector", short, spec)
    run("plan", "refused", "-v", "--adopt", code=1, debug=True)
    said = run("apply", "refused", "--yes", "--no-preflight", "-v", "--adopt", code=5, debug=True)
    assert said.count("Invalid value (sensitive) for configuration") >= 3, said
    assert said.count("Invalid value ${file:") >= 3, said
    # Snapshots would contain the values of connectors with ordinary keys, which were created and then failed.
    run("rollback", "--yes", "-v", code=None, debug=True)
    assert "variable-producer" not in run("connector", "list")
    for env in ("refused", "unauthorized"):
        for command in ("plan", "apply --yes", "doctor", "connector list", "schema-registry list"):
            said = run(*command.split(), "--env", env, "-v", code=None, debug=True)
            assert "refused: {" in said or command in ("apply --yes", "schema-registry list"), said
    for command in ("plan", "doctor", "status", "topic list"):
        options = ("--command-config", "WRONG_PASSWORD.properties")
        run(*command.split(), *(() if command == "status" else options), "-v", code=None, debug=True)
    run(
        "plan",
        "--out",
        "x.plan",
        "--sign",
        "${env.KDECLARE_SIGNING_KEY}",
        "-v",
        code=1,
        environ={"KDECLARE_SIGNING_PASSPHRASE": project.canaries["WRONG_PASSWORD"].value},
        debug=True,
    )
    project.expect_nowhere()


def test_no_audit_reveals_a_secret(project: CanaryProject) -> None:
    declare_everything(project)
    run = project.run
    for command in ("snapshot", "audit", "plan"):
        run(
            "fleet",
            command,
            "fleet.yaml",
            "--out",
            command,
            "--engine",
            "local",
            "-v",
            code=None,
            debug=True,
        )
    assert list(project.folder.glob("audit/findings/**/*.parquet"))
    project.expect_nowhere()


def use_state(project: CanaryProject, location: str, **environ: str) -> None:
    """Plan (with the thorough profile), apply, show and roll back with a state in this location."""
    manifests = project.folder / "shared"
    mechanisms = {"SCRAM-SHA-512": {"password": "${env.SCRAM_PASSWORD}"}}
    project.write("shared/user.yaml", "ScramUser", "bob", {"mechanisms": mechanisms})
    for command in (
        *pick((), ("plan -v",)),
        "apply --yes -v",
        "history --format json",
        "status -v",
        "rollback --yes -v",
        "doctor -v",
    ):
        paths = [str(manifests)] if command.startswith(("plan", "apply")) else []
        arguments = [*command.split(), *paths, "--state", location]
        code = None if command.startswith("doctor") else 0
        project.run(*arguments, code=code, debug=True, environ=environ)


def test_secret_under_an_ordinary_key_is_only_in_imports(project: CanaryProject) -> None:
    """A limit (see SECURITY.md): imports recognize secrets of connectors by their keys only."""
    canary = make_canary("ordinary key")
    url = "jdbc:${env.ORDINARY}@db"
    config = {"topic": "lines", "file": str(project.folder / "lines.txt"), "db.url": url}
    spec = {"class": "FileStreamSource", "tasksMax": 1, "config": config}
    project.write("ordinary/source.yaml", "Connector", "ordinary", spec)
    environ = {"ORDINARY": canary.value}
    for command in ("plan -v --out ordinary.plan", "apply --yes -v", "plan -v", "status -v"):
        paths = [] if command.startswith("status") else ["ordinary"]
        project.run(*command.split(), *paths, debug=True, environ=environ)
    assert project.runner.search([project.folder], [canary], []) == []
    said = project.run("import", "--include-declared", "--match", "ordinary", environ=environ)
    assert find_canaries(said.encode(), [canary]) == {"ordinary key"}


@pytest.mark.thorough
def test_no_shared_state_contains_a_secret(
    project: CanaryProject, sandbox: SandboxStatus, server: GitServer, certificate: Path
) -> None:
    canaries = list(project.canaries.values())
    token = project.canaries["KDECLARE_STATE_TOKEN"].value
    login = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    server.logins = {f"Basic {login}": "writer"}
    trust = {"GIT_SSL_CAINFO": str(certificate)}
    use_state(project, f"{server.url}/state.git", **trust)
    repository = server.folder / "state.git"
    assert "state.json" in run_git(repository, "ls-tree", "-r", "--name-only", BRANCH)
    assert search_git_objects(repository, canaries) == []
    assert search_files([repository], canaries) == []
    with run_s3_server() as url:
        create_bucket(url, "states")
        use_state(project, f"s3://states/canaries?endpoint={url}")
        objects = download_all(url, "states")
        assert any(key.endswith("state.json") for key in objects)
        for key, content in objects.items():
            assert find_canaries(content, canaries) == set(), key
    use_state(project, "kafka://kdeclare-canaries")
    (folder,) = sandbox.folder.glob("brokers/1/**/kdeclare-canaries-0")
    assert any(file.stat().st_size for file in folder.glob("*.log"))
    assert search_files([folder], canaries) == []
    project.expect_nowhere()


def download_all(url: str, bucket: str) -> dict[str, bytes]:
    """Return all objects of a bucket, by key."""
    keys = re.findall("<Key>([^<]+)</Key>", send(url, "GET", f"/{bucket}?list-type=2").decode())
    return {key: send(url, "GET", f"/{bucket}/{key}") for key in keys}


@pytest.mark.thorough
def test_no_storage_that_refuses_a_request_reveals_its_login(
    project: CanaryProject, certificate: Path, echoing_urls: tuple[str, str]
) -> None:
    """Servers repeat the headers with the login, and git shows what servers respond."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with serve(PlainTextServer, ("GET", "POST"), context) as git_url:
        locations = [
            f"git+{git_url.replace('127.0.0.1', 'localhost')}/state.git",
            *(f"s3://states/canaries?endpoint={url}" for url in echoing_urls),
        ]
        for location in locations:
            for command in ("plan", "status", "lock show"):
                arguments = (*command.split(), "--state", location, "-v")
                trust = {"GIT_SSL_CAINFO": str(certificate)}
                said = project.run(*arguments, code=None, debug=True, environ=trust)
                assert "error:" in said, said
    project.expect_nowhere()
