"""Canary secrets in the environment of CI jobs: in no log, comment, issue, artifact, file or state."""

import json
import shutil
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from kdeclare.core.resources.changes import FieldOp
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.request_values import ConfigAlteration, ConfigOp
from tests.canaries import Canary, make_canary, search_files, search_git_objects
from tests.ci.memory_kdeclare import load_cluster, save_cluster
from tests.ci.pull_request import apply_merge, open_pull_request, plan_pull_request
from tests.ci.runner import Runner

pytestmark = pytest.mark.slow

SIGNING_KEY = "KDECLARE_SIGNING_KEY"
KEY = "listener.name.internal.ssl.keystore.password"
NAMES = (
    "ACTIONS_RUNTIME_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "CI_DEPLOY_PASSWORD",
    "CI_JOB_TOKEN",
    "CLIENT_PASSWORD",
    "GH_TOKEN",
    "KDECLARE_AZURE_TOKEN",
    "KDECLARE_BASE_TOKEN",
    "KDECLARE_GITLAB_TOKEN",
    "KDECLARE_PLANS_TOKEN",
    "KDECLARE_SECRET_KEY",
    SIGNING_KEY,
    "KDECLARE_SIGNING_PASSPHRASE",
    "KDECLARE_STATE_TOKEN",
    "KEYSTORE_PASSWORD",
    "OTHER_VARIABLE_OF_THE_JOB",
    "SYSTEM_ACCESSTOKEN",
)
_PROGRAM = """#!/bin/sh
for word in "$@"; do printf '%s\\n' "$word" >> {record}; done
exec {program} "$@"
"""


@pytest.fixture
def canaries() -> dict[str, Canary]:
    """Canaries by the name of the environment variable, and one for a literal in client properties."""
    names = (*NAMES, "literal in client properties")
    return {name: make_canary(name, "/+=&%") for name in names} | {SIGNING_KEY: make_key_canary()}


def make_key_canary() -> Canary:
    """Return a canary that is a private key, because the plan job signs with it."""
    key = Ed25519PrivateKey.generate()
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    body = pem.splitlines()[1]  # the first 22 characters are the same for all keys
    return Canary(SIGNING_KEY, pem, (body[24:42], body[42:60]))


@pytest.fixture
def github(runner: Runner, canaries: dict[str, Canary]) -> Runner:
    """Provide a runner with a pull request whose manifests refer to a secret."""
    open_pull_request(runner)
    runner.environ |= {name: canaries[name].value for name in NAMES}
    runner.environ["KDECLARE_CLIENT_PROPERTIES"] = (
        'sasl.jaas.config=x required password="${env.CLIENT_PASSWORD}";\n'
        f"ssl.key.password={canaries['literal in client properties'].value}\n"
    )
    project = {
        "environments": {"lab": {"bootstrapServers": "lab:9092"}},
        "references": {"env": ["KEYSTORE_PASSWORD", "CLIENT_PASSWORD"]},
    }
    runner.write("kdeclare.yaml", "Project", "shop", project)
    configs = {KEY: "${env.KEYSTORE_PASSWORD}", "log.cleaner.threads": 2}
    runner.write("manifests/broker.yaml", "BrokerConfig", "1", {"configs": configs})
    runner.topic("orders")
    for name in ("git", "kdeclare", "gh", "mktemp", "python3"):
        record_arguments(runner, name)
    return runner


def record_arguments(runner: Runner, name: str) -> None:
    """Let a program write its arguments to a file. Every user of a machine can see them."""
    file = runner.folder / "bin" / name
    program = str(file.rename(file.with_name(f"real-{name}"))) if file.exists() else shutil.which(name)
    (runner.folder / "records").mkdir(exist_ok=True)
    file.write_text(_PROGRAM.format(record=runner.folder / "records" / name, program=program))
    file.chmod(0o755)


@pytest.mark.thorough
def test_jobs_reveal_no_secret(github: Runner, canaries: dict[str, Canary]) -> None:
    logs = github.folder / "logs"
    logs.mkdir()
    github.topic("payments")

    def run(command: str, **environ: str) -> None:
        ran = github.run("github/run.sh", KDECLARE_COMMAND=command, KDECLARE_PULL="12", **environ)
        number = len(list(logs.iterdir()))
        (logs / f"{number}").write_text(f"{command}: {ran.returncode}\n{ran.stdout}\n{ran.stderr}")
        shutil.copy(github.service / "knows.json", logs / f"{number}.service")

    run("validate")
    plan_pull_request(github)
    assert "keystore" in json.dumps(github.service_data), "the comment shows the key of the secret"
    run("plan", KDECLARE_DEBUG="1")
    run("plan", KDECLARE_PLAN_ARGUMENTS="-v")
    assert apply_merge(github) == 0
    drift(github)
    run("audit")
    run("apply")
    github.environ["KEYSTORE_PASSWORD"] = canaries["OTHER_VARIABLE_OF_THE_JOB"].value
    run("plan")
    (github.checkout / "manifests" / "bad.yaml").write_text("kind: ${env.GH_TOKEN}\n")
    for command in ("validate", "plan", "audit"):
        run(command)
    assert (github.folder / "records" / "git").read_text()
    systems = [
        Path(github.environ["STUB_CLUSTER"]),
        Path(github.environ["STUB_CLUSTER"]).with_suffix(".connected"),
    ]
    secrets = list(canaries.values())
    assert search_files([github.folder], secrets, systems) == []
    assert search_git_objects(github.remote, secrets) == []


def drift(github: Runner) -> None:
    """Change a declared value outside kdeclare."""
    file = Path(github.environ["STUB_CLUSTER"])
    cluster = load_cluster(file)
    broker = ConfigResource(ConfigScope.BROKER, "1")
    assert KEY in cluster.overrides(broker)
    cluster.alter_configs([ConfigAlteration(broker, (ConfigOp("log.cleaner.threads", FieldOp.SET, "3"),))])
    save_cluster(cluster, file)
