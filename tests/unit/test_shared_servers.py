"""Servers that tests share start with their first test and stop after their last one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.shared_servers import SharedServers


class Recorder:
    """A plug-in with two servers. log: what started (+), ran and stopped (-), in order."""

    def __init__(self) -> None:
        self.log: list[str] = []

    def _serve(self, name: str) -> Iterator[str]:
        self.log.append(f"+{name}")
        yield name
        self.log.append(f"-{name}")

    @pytest.fixture(scope="session")
    def red(self) -> Iterator[str]:
        yield from self._serve("red")

    @pytest.fixture(scope="session")
    def blue(self) -> Iterator[str]:
        yield from self._serve("blue")

    @pytest.fixture(params=["memory", pytest.param("real", marks=pytest.mark.kafka)])
    def bed(self, request: pytest.FixtureRequest) -> object:
        return request.getfixturevalue("blue") if request.param == "real" else None

    @pytest.fixture(autouse=True)
    def _record_test(self, request: pytest.FixtureRequest) -> Iterator[None]:
        yield
        self.log.append(request.node.name)


def run(folder: Path, files: dict[str, str]) -> list[str]:
    """Run test files with both plug-ins, and return the log."""
    ini = folder / "pytest.ini"
    ini.write_text("[pytest]\nmarkers = kafka\n")
    for name, text in files.items():
        (folder / name).write_text(f"import pytest\n\n{text}\n")
    # The root folder makes the names of modules differ between tests.
    arguments = ["-q", "-p", "no:cacheprovider", "--import-mode=importlib", "--rootdir", str(folder.parent)]
    arguments += ["-c", str(ini), *(str(folder / name) for name in files)]
    recorder = Recorder()
    servers = SharedServers(("red", "blue"), {"red": "red", "blue": "blue"})
    assert pytest.main(arguments, [recorder, servers]) == pytest.ExitCode.OK
    return recorder.log


@pytest.mark.slow
def test_files_are_sorted_and_servers_stop_after_their_last_test(tmp_path: Path) -> None:
    kafka = "pytestmark = pytest.mark.kafka\n"
    files = {
        "test_1.py": f"{kafka}def test_a(blue): pass\ndef test_b(): pass",
        "test_2.py": f"{kafka}def test_c(red): pass",
        "test_3.py": "def test_d(): pass",
        "test_4.py": f"{kafka}def test_e(): pass\ndef test_f(blue, red): pass",
        "test_5.py": f"{kafka}def test_g(red): pass",
    }
    ran = run(tmp_path, files)
    assert " ".join(ran) == ("test_d +red test_c test_g test_e +blue test_f -red test_a -blue test_b")


@pytest.mark.slow
def test_server_that_a_fixture_requests_by_name_stops_after_its_last_test(tmp_path: Path) -> None:
    files = {"test_1.py": "def test_a(bed): pass", "test_2.py": "def test_b(bed): pass\ndef test_c(): pass"}
    ran = run(tmp_path, files)
    assert " ".join(ran) == ("test_a[memory] +blue test_a[real] test_b[memory] test_b[real] -blue test_c")


@pytest.mark.slow
def test_stopped_server_starts_again_for_an_unexpected_user(tmp_path: Path) -> None:
    hidden = "def test_b(request): assert request.getfixturevalue('bl' + 'ue') == 'blue'"
    files = {"test_1.py": "@pytest.mark.kafka\ndef test_a(blue): pass", "test_2.py": hidden}
    ran = run(tmp_path, files)
    assert ran.count("+blue") == ran.count("-blue")
    assert {"test_a", "test_b"} <= {*ran}


@pytest.mark.slow
def test_server_is_stopped_when_its_last_test_fails_to_start(tmp_path: Path) -> None:
    skipped = "@pytest.fixture\ndef skipping(): pytest.skip('no reason')\n"
    files = {
        "test_1.py": "@pytest.mark.kafka\ndef test_a(blue): pass",
        "test_2.py": f"{skipped}@pytest.mark.kafka\ndef test_b(blue, skipping): pass\ndef test_c(): pass",
    }
    ran = run(tmp_path, files)
    assert ran.index("-blue") < ran.index("test_c")
