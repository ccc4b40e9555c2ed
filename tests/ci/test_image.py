"""The Dockerfile and the CronJob, as far as they can be checked without building an image."""

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

from kdeclare.cli.main import main
from kdeclare.version import VERSION

ROOT = Path(__file__).parents[2]
CRON_JOB = ROOT / "ci" / "kubernetes" / "kdeclare-audit.yaml"


def list_instructions() -> list[tuple[str, str]]:
    """Return the instructions of the Dockerfile with their arguments, each on one line."""
    text = "\n".join(
        line for line in (ROOT / "Dockerfile").read_text().splitlines() if not line.startswith("#")
    )
    lines = text.replace("\\\n", " ").splitlines()
    return [
        (name, " ".join(words.split())) for name, _, words in (line.partition(" ") for line in lines) if name
    ]


def list_copied() -> set[str]:
    """Return the files and folders that the Dockerfile copies from the repository."""
    copied = [words.split()[:-1] for name, words in list_instructions() if name == "COPY"]
    return {source for sources in copied if not sources[0].startswith("--from") for source in sources}


def test_copied_files_exist_and_are_not_ignored() -> None:
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] not in ("", "#")]
    assert rules[0] == "*"
    allowed = {rule.removeprefix("!") for rule in rules if rule.startswith("!")}
    assert allowed == list_copied()
    assert {path for path in allowed if (ROOT / path).exists()} == allowed
    assert not any(fnmatch("kdeclare/core/extras.py", rule) for rule in rules[1:] if rule[0] != "!")


def test_image_is_slim_pinned_and_not_root() -> None:
    instructions = list_instructions()
    names = [name for name, _ in instructions]
    bases = [words.split()[0] for name, words in instructions if name == "FROM"]
    assert bases == ["python:${PYTHON}-slim"] * 2
    assert ("ARG", "PYTHON=3.12") in instructions
    assert "ADD" not in names
    last_stage = instructions[max(i for i, name in enumerate(names) if name == "FROM") :]
    (user,) = (words for name, words in last_stage if name == "USER")
    assert user.isdigit()
    assert int(user) >= 10000
    assert not [words for name, words in last_stage if name == "RUN" and re.search("pip|apt|curl", words)]
    assert [words for name, words in last_stage if name == "ENTRYPOINT"] == ['["kdeclare"]']
    for name, words in instructions:
        assert name != "RUN" or "pip install" not in words or "--no-cache-dir" in words


def test_extras_of_image_exist() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = re.findall(r"EXTRAS=(\S+)", (ROOT / "Dockerfile").read_text())
    assert len(named) == 2
    assert {extra for names in named for extra in names.split(",")} <= extras.keys()


@pytest.mark.slow
def test_copied_files_are_enough_to_build_kdeclare(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name in list_copied():
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, source / name)
    command = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        str(tmp_path),
        str(source),
    ]
    subprocess.run(command, check=True, capture_output=True)
    with zipfile.ZipFile(tmp_path / f"kdeclare-{VERSION}-py3-none-any.whl") as wheel:
        assert f"kdeclare-{VERSION}.dist-info/licenses/NOTICE" in wheel.namelist()


def read_job() -> dict[str, Any]:
    """Return the pod of the CronJob."""
    documents = list(yaml.safe_load_all(CRON_JOB.read_text()))
    assert [document["kind"] for document in documents] == ["PersistentVolumeClaim", "CronJob"]
    pod: dict[str, Any] = documents[1]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    return pod


def test_cron_job_is_restricted_and_mounts_what_it_writes_to() -> None:
    pod = read_job()
    assert pod["securityContext"]["runAsNonRoot"] is True
    users = [int(words) for name, words in list_instructions() if name == "USER"]
    assert [pod["securityContext"]["runAsUser"]] == users
    volumes = {volume["name"] for volume in pod["volumes"]}
    for container in (*pod["initContainers"], *pod["containers"]):
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert re.fullmatch(r"[^:]+:v?\d[\w.]*", container["image"]), "a fixed version"
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
    (audit,) = pod["containers"]
    assert audit["image"].endswith(f":{VERSION}")
    assert {"/audits", "/project", "/tmp"} == {mount["mountPath"] for mount in audit["volumeMounts"]}


def test_argo_workflow_runs_the_same_audit() -> None:
    (workflow,) = yaml.safe_load_all((ROOT / "ci" / "argo" / "kdeclare-audit.yaml").read_text())
    assert workflow["kind"] == "CronWorkflow"
    spec = workflow["spec"]["workflowSpec"]
    (template,) = spec["templates"]
    assert spec["entrypoint"] == template["name"]
    pod = read_job()
    assert template["initContainers"] == pod["initContainers"]
    (audit,) = pod["containers"]
    own = {"name": "audit", "command": ["kdeclare"], "workingDir": "/project"}  # as in the image
    assert template["container"] | {"name": "audit"} == audit | own
    assert {volume["name"]: volume for volume in spec["volumes"]} == {v["name"]: v for v in pod["volumes"]}
    assert spec["securityContext"] == pod["securityContext"]
    (_, job) = yaml.safe_load_all(CRON_JOB.read_text())
    assert workflow["spec"]["schedules"] == [job["spec"]["schedule"]]
    assert spec["activeDeadlineSeconds"] == job["spec"]["jobTemplate"]["spec"]["activeDeadlineSeconds"]


def test_command_of_cron_job_is_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (audit,) = read_job()["containers"]
    arguments = [str(tmp_path) if word == "/audits" else word for word in audit["args"]]
    assert main(arguments) == 1  # 64 if an option were wrong
    assert "fleet.yaml" in capsys.readouterr().err
