"""The demo runs on its own brokers, and stops all of them."""

from pathlib import Path

import pytest

from kdeclare import sandbox as kafka_sandbox
from tests.conftest import free_port
from tests.kafka.test_examples import PROGRAMS, ROOT, run_script, write_programs

DEMO = ROOT / "scripts" / "demo.sh"


@pytest.mark.kafka
@pytest.mark.thorough
def test_demo_succeeds_and_stops_its_brokers(tmp_path: Path) -> None:
    port, folder = free_port(3), tmp_path / "demo"
    done = run_script(
        DEMO,
        tmp_path,
        PROGRAMS,
        KDECLARE_DEMO_PORT=str(port),
        KDECLARE_DEMO_FOLDER=str(folder),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No changes." in done.stdout
    assert not kafka_sandbox.status(folder / ".sandbox").exists
    assert are_ports_free(port)


def test_failing_demo_reports_it_and_stops_brokers(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    programs = write_programs(tmp_path, f'echo "$*" >>\'{calls}\'; [ "$1" != validate ]')
    done = run_script(DEMO, tmp_path, programs, KDECLARE_DEMO_FOLDER=str(tmp_path / "demo"))
    assert done.returncode == 1
    assert "FAILED: 'kdeclare validate' exited with 1" in done.stderr
    assert calls.read_text().splitlines() == [
        "sandbox reset --yes --quiet",
        "sandbox start --port 19092",
        "validate",
        "sandbox stop --quiet",
    ]


def test_demo_refuses_folder_with_other_files(tmp_path: Path) -> None:
    manifest = tmp_path / "mine" / "manifests" / "orders.yaml"
    manifest.parent.mkdir(parents=True)
    manifest.touch()
    done = run_script(DEMO, tmp_path, PROGRAMS, KDECLARE_DEMO_FOLDER=str(tmp_path / "mine"))
    assert done.returncode == 1
    assert "contains files that are not from a demo" in done.stderr
    assert manifest.exists()


def are_ports_free(port: int) -> bool:
    """Whether the ports of the brokers are free again."""
    return all(kafka_sandbox.is_free(p) for n in range(3) for p in (port + n, port + n + 100))
