"""The references that manifests and project files may resolve."""

from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from kdeclare.app.authoring.validate import validate
from kdeclare.app.secrets import ProjectSecrets
from kdeclare.core.diagnostics import Diagnostic, KdeclareError
from kdeclare.core.secrets.secret_refs import SecretRef
from kdeclare.manifests.project import open_project

SET = {"KAFKA_RETENTION": "1000", "TEAM": "checkout", "GH_TOKEN": "ghs_secret", "KDECLARE_X": "x"}
CI = SET | {"CI": "true"}


@pytest.fixture(autouse=True)
def _working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("manifests").mkdir()
    Path("secrets").mkdir()
    Path("secrets/team").write_text("checkout\n")


def write_project(references: object = None, file: str = "kdeclare.yaml", **spec: object) -> None:
    if references is not None:
        spec["references"] = references
    document = {"apiVersion": "kdeclare/v1", "kind": "Project", "metadata": {"name": "shop"}, "spec": spec}
    Path(file).write_text(yaml.safe_dump(document))


def check_manifest(value: str, environ: Mapping[str, str] = SET) -> list[Diagnostic]:
    Path("manifests/orders.yaml").write_text(
        "apiVersion: kdeclare/v1\nkind: Topic\nmetadata:\n  name: orders\n  labels:\n"
        f"    team: '{value}'\nspec: {{partitions: 1}}\n"
    )
    return list(validate(environ=environ).diagnostics)


def test_references_without_limits_are_resolved_outside_ci() -> None:
    write_project()
    assert check_manifest("${env.TEAM}") == []
    assert check_manifest("${file.secrets/team}") == []


@pytest.mark.parametrize("name", ["KDECLARE_SECRET_KEY", "KDECLARE_OLD_SECRET_KEY"])
def test_secret_key_is_never_resolved(name: str) -> None:
    write_project()
    [found] = check_manifest(f"${{env.{name}}}", SET | {name: "x" * 16})
    assert found.code == "reference-not-allowed"
    [found] = check_manifest("${file./proc/self/environ}", SET)
    assert found.code == "reference-not-allowed"


@pytest.mark.parametrize("reference", ["${env.TEAM}", "${file.secrets/team}"])
def test_references_without_limits_are_rejected_in_ci(reference: str) -> None:
    write_project()
    [found] = check_manifest(reference, CI)
    assert (found.code, str(found.place)) == ("reference-not-allowed", "manifests/orders.yaml:6:11")
    assert "has no 'spec.references'" in found.detail
    assert found.hint.startswith("Add 'references: {")
    assert check_manifest(reference, SET | {"CI": "false"}) == []


def test_references_without_project_file_are_rejected_in_ci() -> None:
    assert [d.code for d in _validate_path(CI)] == ["reference-not-allowed"]
    assert _validate_path(SET) == []


def _validate_path(environ: Mapping[str, str]) -> list[Diagnostic]:
    file = Path("one.yaml")
    file.write_text(
        "apiVersion: kdeclare/v1\nkind: Topic\nmetadata: {name: orders, labels: {team: '${env.TEAM}'}}\n"
        "spec: {partitions: 1}\n"
    )
    return list(validate(paths=[file], environ=environ).diagnostics)


@pytest.mark.parametrize("environ", [SET, CI], ids=["desk", "ci"])
def test_references_field_limits_names_prefixes_and_files(environ: Mapping[str, str]) -> None:
    write_project({"env": ["TEAM", "KAFKA_*"], "files": ["secrets/"]})
    for allowed in ("${env.TEAM}", "${env.KAFKA_RETENTION}", "${file.secrets/team}"):
        assert check_manifest(allowed, environ) == []
    Path("other").write_text("x")
    for refused in ("${env.KDECLARE_X}", "${env.TEAM_X}", "${file.other}", "${file.secrets/../other}"):
        [found] = check_manifest(refused, environ)
        assert found.code == "reference-not-allowed", refused
        assert found.place is not None


def test_rejected_reference_does_not_reveal_if_variable_is_set() -> None:
    write_project({"env": ["TEAM"]})
    [found] = check_manifest("${env.KAFKA_RETENTION}")
    [missing] = check_manifest("${env.KAFKA_RETENTIONS}")
    assert found.code == missing.code == "reference-not-allowed"
    [near] = check_manifest("${env.TEAMS}")
    assert "Did you mean" not in near.hint


@pytest.mark.parametrize("name", ["GH_TOKEN", "CI_JOB_TOKEN", "KDECLARE_CLIENT_PROPERTIES", "GITHUB_TOKEN"])
def test_ci_job_credentials_are_never_resolved(name: str) -> None:
    write_project({"env": ["GH_*", "CI_*", "KDECLARE_*", "GITHUB_*"]})
    [found] = check_manifest(f"${{env.{name}}}", CI | {name: "ghs_secret"})
    assert (found.code, "credential of the CI job" in found.detail) == ("reference-not-allowed", True)
    write_project({"env": [name]})
    with pytest.raises(KdeclareError, match="credential of the CI job"):
        open_project(None, None, CI)


@pytest.mark.parametrize("entry", ["*", "", "A B", "${env.X}", "KAFKA_*_X"])
def test_references_field_rejects_invalid_patterns(entry: str) -> None:
    write_project({"env": [entry]})
    with pytest.raises(KdeclareError, match="use names of environment variables"):
        open_project(None, None, SET)


def test_links_out_of_allowed_folder_are_rejected() -> None:
    write_project({"files": ["secrets", "linked"]})
    Path("outside").write_text("x")
    Path("secrets/link").symlink_to(Path("outside").absolute())
    Path("linked").symlink_to("/proc/self")
    Path(".git").mkdir()
    Path(".git/config").write_text("token")
    for refused in ("secrets/link", "linked/environ", "/proc/self/environ"):
        [found] = check_manifest(f"${{file.{refused}}}")
        assert found.code == "reference-not-allowed", refused
    write_project({"files": ["."]})
    [found] = check_manifest("${file..git/config}")
    assert ".git folder" in found.detail
    assert check_manifest("${file.outside}") == []


def test_folder_outside_project_can_be_allowed(tmp_path_factory: pytest.TempPathFactory) -> None:
    mounted = tmp_path_factory.mktemp("run")
    (mounted / "..data").mkdir()
    (mounted / "..data" / "password").write_text("hunter2")
    (mounted / "password").symlink_to("..data/password")
    write_project({"files": [str(mounted)]})
    assert check_manifest(f"${{file.{mounted}/password}}") == []


def test_references_of_project_file_are_limited() -> None:
    lab = {"bootstrapServers": "${env.TEAM}:9092", "variables": {"owner": "${env.TEAM}"}}
    write_project({"env": ["KAFKA_*"]}, environments={"lab": lab})
    with pytest.raises(KdeclareError) as refused:
        open_project(None, None, SET)
    codes = {(d.code, str(d.place).partition(":")[0]) for d in refused.value.diagnostics}
    assert codes == {("reference-not-allowed", "kdeclare.yaml")}
    write_project({"env": ["TEAM"]}, environments={"lab": lab})
    assert open_project(None, None, SET).environment.bootstrap_servers == "checkout:9092"


def test_references_must_be_allowed_by_trusted_file() -> None:
    write_project({"env": ["TEAM", "KAFKA_*"], "files": ["secrets"]})
    write_project({"env": ["TEAM"], "files": ["secrets"]}, "base.yaml")
    trusted = CI | {"KDECLARE_TRUSTED_PROJECT": "base.yaml"}
    assert check_manifest("${env.TEAM}", trusted) == []
    assert check_manifest("${file.secrets/team}", trusted) == [], "relative to the project, not to base.yaml"
    [found] = check_manifest("${env.KAFKA_RETENTION}", trusted)
    assert "trusted project file" in found.detail
    assert "merge that first" in found.hint
    write_project({"env": ["KAFKA_*"]})
    assert check_manifest("${env.TEAM}", trusted)[0].code == "reference-not-allowed", (
        "narrowing holds at once"
    )


@pytest.mark.parametrize("content", [None, "not: [a project", "apiVersion: kdeclare/v2\n"])
def test_unusable_trusted_file_allows_no_references(content: str | None) -> None:
    write_project({"env": ["TEAM"]})
    if content is not None:
        Path("base.yaml").write_text(content)
    [found] = check_manifest("${env.TEAM}", SET | {"KDECLARE_TRUSTED_PROJECT": "base.yaml"})
    assert found.code == "reference-not-allowed"


def test_project_secrets_reject_references_not_allowed() -> None:
    write_project({"env": ["TEAM"]})
    project = open_project(None, None, SET)
    secrets = ProjectSecrets(project, SET)
    with pytest.raises(KdeclareError, match=r"env\.KAFKA_RETENTION.* is not in 'spec\.references'"):
        secrets.reveal(SecretRef("0", "${env.KAFKA_RETENTION}"))
