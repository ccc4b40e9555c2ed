"""``clusterId`` of an environment: commands compare it with the id that real brokers report."""

from pathlib import Path

import pytest
import yaml

from kdeclare.cli.main import main
from kdeclare.core.exit_codes import ExitCode
from kdeclare.sandbox import SandboxStatus
from tests.beds import KafkaBed

pytestmark = pytest.mark.kafka


def write_project(folder: Path, bootstrap: str, cluster_id: str) -> None:
    document = {
        "apiVersion": "kdeclare/v1",
        "kind": "Project",
        "metadata": {"name": "pinned"},
        "spec": {"environments": {"real": {"bootstrapServers": bootstrap, "clusterId": cluster_id}}},
    }
    (folder / "kdeclare.yaml").write_text(yaml.safe_dump(document))


def test_commands_refuse_cluster_that_is_not_pinned(
    kafka_bed: KafkaBed,
    sandbox: SandboxStatus,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "manifests").mkdir()
    live_id = kafka_bed.cluster.describe().id
    write_project(tmp_path, sandbox.bootstrap, live_id)
    assert main(["plan"]) == ExitCode.OK
    assert main(["topic", "list"]) == ExitCode.OK
    capsys.readouterr()
    main(["doctor"])
    assert f"{live_id}, as in the project file" in capsys.readouterr().out
    write_project(tmp_path, sandbox.bootstrap, "another-cluster")
    for command in (["plan"], ["apply", "--yes"], ["topic", "list"], ["import", "--out", "copy"]):
        assert main(command) == ExitCode.ERROR
        assert (
            f"is for cluster another-cluster (clusterId in the project file), but {sandbox.bootstrap}"
            in " ".join(capsys.readouterr().err.split())
        )
    assert main(["doctor"]) == ExitCode.ERROR
    assert "the environment is for cluster another-cluster (clusterId)" in " ".join(
        capsys.readouterr().out.split()
    )
    assert not (tmp_path / "copy").exists()
