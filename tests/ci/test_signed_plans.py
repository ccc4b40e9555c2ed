"""A project that requires signed plans, in the jobs that plan a pull request and apply its merge."""

from pathlib import Path

import pytest

from tests.ci.memory_kdeclare import load_cluster
from tests.ci.pull_request import apply_merge, open_pull_request, plan_pull_request
from tests.ci.runner import Runner
from tests.unit.signatures.keys import make_openssh_key

pytestmark = pytest.mark.slow


def read_topics(runner: Runner) -> set[str]:
    return set(load_cluster(Path(runner.environ["STUB_CLUSTER"])).topics())


def test_plan_job_signs_what_the_apply_job_requires(runner: Runner) -> None:
    open_pull_request(runner)
    public_key = make_openssh_key(runner.folder / "key")
    private_key = (runner.folder / "key").read_text()
    signatures = {"required": True, "keys": [public_key]}
    spec = {"environments": {"lab": {"bootstrapServers": "lab:9092"}}, "signatures": signatures}
    runner.write("kdeclare.yaml", "Project", "shop", spec)
    runner.topic("orders")
    plan_pull_request(runner, run=1)
    assert apply_merge(runner) == 3, "not signed"
    assert read_topics(runner) == set()
    runner.environ["KDECLARE_SIGNING_KEY"] = private_key
    plan_pull_request(runner, run=2)
    del runner.environ["KDECLARE_SIGNING_KEY"]
    assert apply_merge(runner) == 0
    assert read_topics(runner) == {"orders"}
    secret = private_key.splitlines()[2]
    kept = [file for file in runner.folder.rglob("*") if file.is_file() and file.name != "key"]
    assert not [file for file in kept if secret in file.read_text("utf-8", "replace")]
