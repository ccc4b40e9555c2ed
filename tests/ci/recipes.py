"""Read the pipelines of Jenkins and Azure DevOps, and run their steps on a runner."""

import re
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import yaml

from tests.ci.runner import ROOT, Ran, Runner
from tests.git_remotes import run_git

AZURE = ROOT / "ci" / "azure"
JENKINS = ROOT / "ci" / "jenkins"

_MACRO = re.compile(r"\$\(([\w.]+)\)")


def read_azure_job(name: str) -> dict[str, Any]:
    """Return a job of azure-pipelines.yml."""
    pipeline = yaml.safe_load((AZURE / "azure-pipelines.yml").read_text())
    (job,) = (job for job in pipeline["jobs"] if name in (job.get("job"), job.get("deployment")))
    found: dict[str, Any] = job
    return found


def list_azure_steps(name: str) -> list[dict[str, Any]]:
    """Return the steps of a job, without those that check out the repository and install kdeclare."""
    job = read_azure_job(name)
    steps = job["steps"] if "steps" in job else job["strategy"]["runOnce"]["deploy"]["steps"]
    assert steps[0] == {"checkout": "self", "persistCredentials": "false"}
    assert steps[1] == {"template": "install-kdeclare.yml"}
    return list(steps[2:])


def read_azure_variables() -> dict[str, str]:
    """Return the variables of azure-pipelines.yml."""
    variables: dict[str, str] = yaml.safe_load((AZURE / "azure-pipelines.yml").read_text())["variables"]
    return variables


def expand_macros(text: str, variables: dict[str, str]) -> str:
    """Replace ``$(name)`` as Azure Pipelines does."""
    return _MACRO.sub(lambda match: variables[match[1]], text)


def read_jenkins_environment(file: str) -> dict[str, str]:
    """Return the plain values of the environment of a pipeline."""
    block = re.search(r"    environment \{\n(.*?)\n    \}\n", (JENKINS / file).read_text(), re.DOTALL)
    assert block is not None
    return dict(re.findall(r"^        (\w+) = '(.*)'$", block[1], re.MULTILINE))


def read_jenkins_script(file: str, stage: str) -> str:
    """Return the shell script of a stage."""
    text = (JENKINS / file).read_text()
    _, found, rest = text.partition(f"        stage('{stage}') {{\n")
    assert found
    script = re.search(r"sh '''\n(.*?)'''", rest, re.DOTALL)
    assert script is not None
    return textwrap.dedent(script[1])


def commit_checkout(runner: Runner) -> None:
    """Commit everything in the checkout of the runner, as a merge does."""
    if not (runner.checkout / ".git").exists():
        run_git(runner.checkout, "init", "--quiet", "--initial-branch=main")
        (runner.checkout / ".git" / "info" / "exclude").write_text(".kdeclare*\n")
    run_git(runner.checkout, "add", "--all")
    run_git(runner.checkout, "commit", "--quiet", "--allow-empty", "--message=x")


def run_shell(runner: Runner, shell: tuple[str, ...], script: str, environ: dict[str, str]) -> Ran:
    """Run a script from the top of the checkout, with nearly nothing else in the environment."""
    return subprocess.run(
        [*shell, script],
        env=runner.environ | environ,
        cwd=runner.checkout,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def link_source(path: Path) -> None:
    """Put the source of kdeclare where the pipeline clones it."""
    if not path.exists():
        path.symlink_to(ROOT)
