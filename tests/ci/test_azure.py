"""The steps of azure-pipelines.yml, with Azure DevOps on this machine and an in-memory cluster."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ci.azure_server import OWN_ID, TOKEN, AzureService, run_azure_server
from tests.ci.memory_kdeclare import load_cluster
from tests.ci.recipes import (
    commit_checkout,
    expand_macros,
    link_source,
    list_azure_steps,
    read_azure_job,
    read_azure_variables,
    run_shell,
)
from tests.ci.runner import Ran, Runner
from tests.git_remotes import run_git

pytestmark = pytest.mark.slow

MARKER = "<!-- kdeclare plan lab -->"


@pytest.fixture
def service() -> Iterator[AzureService]:
    """Provide Azure DevOps with pull request 12."""
    with run_azure_server() as running:
        yield running


@pytest.fixture
def azure(runner: Runner, service: AzureService) -> Runner:
    """Provide an agent with pull request 12, which declares a topic."""
    (runner.folder / "bin" / "curl").unlink()  # the real one
    predefined = {
        "System.CollectionUri": f"{service.url}/",
        "System.TeamProjectId": "shop",
        "System.AccessToken": TOKEN,
        "System.PullRequest.PullRequestId": "12",
        "System.PullRequest.TargetBranch": "refs/heads/main",
        "Build.Repository.ID": "repo",
        "Build.BuildId": "7",
        "Build.SourceVersion": "a" * 40,
        "kafkaClientProperties": "security.protocol=PLAINTEXT",
    }
    environ = {name.upper().replace(".", "_"): text for name, text in predefined.items() if "." in name}
    runner.environ |= environ
    del runner.environ["SYSTEM_ACCESSTOKEN"]
    remote = str(runner.remote)
    variables = {name: expand_macros(text, predefined) for name, text in read_azure_variables().items()}
    assert variables["KDECLARE_STATE_REMOTE"] == f"{service.url}/shop/_git/repo"
    runner.environ |= variables | {"KDECLARE_ENV": "lab", "KDECLARE_STATE_REMOTE": remote, "TF_BUILD": "True"}
    runner.environ |= {"AGENT_TEMPDIRECTORY": str(runner.folder / "tmp")}
    link_source(runner.folder / "tmp" / "kdeclare")
    runner.topic("orders")
    commit_checkout(runner)
    run_git(runner.checkout, "push", "--quiet", remote, "HEAD:main")
    return runner


def run_job(azure: Runner, name: str) -> Ran:
    """Run the last step of a job."""
    (step,) = list_azure_steps(name)
    predefined = {"kafkaClientProperties": "security.protocol=PLAINTEXT", "System.AccessToken": TOKEN}
    own = {key: expand_macros(text, predefined) for key, text in step.get("env", {}).items()}
    return run_shell(azure, ("bash", "--noprofile", "--norc", "-c"), step["bash"], own)


def list_topics(azure: Runner) -> set[str]:
    """Return the topics of the cluster."""
    return set(load_cluster(Path(azure.environ["STUB_CLUSTER"])).topics())


def test_plan_is_commented_and_applied_after_the_merge(azure: Runner, service: AzureService) -> None:
    planned = run_job(azure, "plan")
    assert planned.returncode == 0, planned.stdout + planned.stderr
    (thread,) = service.threads
    text = thread["comments"][0]["content"]
    assert text.startswith(f"{MARKER}\n")
    assert "1 to create" in text
    assert f"Planned for {'a' * 12} by [this build]({service.url}/shop/_build/results?buildId=7)" in text
    assert "if you merge, exactly this plan is applied" in text
    azure.switch_machine()
    commit_checkout(azure)  # a squash or a rebase has another commit and the same tree
    applied = run_job(azure, "apply")
    assert applied.returncode == 0, applied.stdout + applied.stderr
    assert list_topics(azure) == {"orders"}
    azure.switch_machine()
    audited = run_job(azure, "audit")
    assert audited.returncode == 0, audited.stdout + audited.stderr


def test_only_own_comment_is_updated(azure: Runner, service: AzureService) -> None:
    others = [
        service.add_thread(f"{MARKER}\nmine", "someone"),
        service.add_thread("hello", OWN_ID),
        service.add_thread(f"{MARKER}\ndeleted", OWN_ID, isDeleted=True),
    ]
    before = [dict(thread["comments"][0]) for thread in others]
    run_job(azure, "plan")
    azure.topic("refunds")
    run_job(azure, "plan")
    *unchanged, own = service.threads
    assert [thread["comments"][0] for thread in unchanged] == before
    assert "2 to create" in own["comments"][0]["content"]
    assert [line.split()[0] for line in service.requests].count("PATCH") == 1


def test_unreviewed_tree_is_not_applied(azure: Runner) -> None:
    run_job(azure, "plan")
    azure.switch_machine()
    azure.topic("refunds")
    commit_checkout(azure)
    refused = run_job(azure, "apply")
    assert refused.returncode == 1
    assert "has no plan for lab and tree" in refused.stdout
    assert list_topics(azure) == set()


def test_failed_plan_fails_the_job_and_is_not_stored(azure: Runner, service: AzureService) -> None:
    azure.topic("broken", partitions=-1)
    commit_checkout(azure)
    failed = run_job(azure, "plan")
    assert failed.returncode == 1
    assert "nothing is applied until this check passes" in service.threads[0]["comments"][0]["content"]
    assert "kdeclare-plans" not in run_git(azure.remote, "branch")


def test_drift_fails_the_audit(azure: Runner) -> None:
    drifted = run_job(azure, "audit")
    assert drifted.returncode == 1
    assert "1 to create" in drifted.stdout


def test_fork_is_validated_without_secrets(azure: Runner, service: AzureService) -> None:
    (step,) = list_azure_steps("validate")
    assert "env" not in step
    assert "group" not in str(read_azure_job("validate").get("variables", ""))
    validated = run_job(azure, "validate")
    assert validated.returncode == 0, validated.stdout + validated.stderr
    assert service.requests == []


def test_log_contains_no_commands_for_the_agent(azure: Runner) -> None:
    name = "##vso[task.setvariable variable=PATH]x"
    azure.write("manifests/evil.yaml", "Topic", name, {"partitions": 1})
    for job in ("plan", "validate"):
        ran = run_job(azure, job)
        assert ran.returncode != 0
        assert "##" not in ran.stdout + ran.stderr
    assert "# #vso[" in ran.stdout, "the name is in the log of the last job"


def test_wrong_token_fails_the_job(azure: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.ci.test_azure.TOKEN", "wrong")
    failed = run_job(azure, "plan")
    assert failed.returncode != 0
    assert "401" in failed.stdout


def test_long_plan_is_cut(azure: Runner, service: AzureService) -> None:
    azure.out.mkdir()
    (azure.out / "report.md").write_text("x" * 200_000)
    (azure.out / "exit-code").write_text("0")
    environ = {"KDECLARE_PULL": "12", "KDECLARE_AZURE_TOKEN": TOKEN}
    azure.run_ok("comment.sh", **environ)
    text = service.threads[0]["comments"][0]["content"]
    assert len(text) < 150_000
    assert text.endswith("See the log of the build.\n")
