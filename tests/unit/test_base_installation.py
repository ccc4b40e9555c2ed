"""kdeclare without extras: its size, what it can do, and how it names what is missing."""

import os
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterator, Sequence
from importlib.metadata import distribution
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from kdeclare.core.extras import _EXTRAS
from kdeclare.providers.kafka.testing import MemoryCluster
from scripts.dependencies.sbom import PACKAGE, Closure
from tests.ports import reserve_ports
from tests.served import ServedCluster

ROOT = Path(__file__).parents[2]
MAX_BYTES = 80_000_000
NEEDS_FLEET = (
    "error: Optional package is not installed Fleet commands need the Python package 'pyarrow', which is "
    "not installed. hint: Install it with `pip install 'kdeclare[fleet-local]'`. For fleets that do not fit "
    "into the memory of one machine, install 'kdeclare[fleet]' instead, which contains Spark."
)
NEEDS_POLICIES = (
    "Optional package is not installed The rules of policies need the Python package 'cel-expr-python', "
    "which is not installed. hint: Install it with `pip install 'kdeclare[policies]'`."
)
WITHOUT_EXTRAS = """
import sys
sys.modules.update(dict.fromkeys({modules!r}))
from kdeclare.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def list_base_packages() -> list[str]:
    """Return the names of kdeclare and of all packages that it requires without extras."""
    closure = Closure()
    closure.add(PACKAGE)
    return sorted(closure.needs)


def test_base_installation_is_small() -> None:
    sizes = {
        name: sum(file.size or 0 for file in distribution(name).files or ())
        for name in list_base_packages()
        if name != PACKAGE  # installed from its folder
    }
    sizes[PACKAGE] = sum(
        path.stat().st_size
        for path in (ROOT / "kdeclare").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    )
    assert sizes[PACKAGE] > 1_000_000
    assert len(sizes) > 25
    assert sum(sizes.values()) < MAX_BYTES, sorted(sizes.items(), key=lambda one: -one[1])[:5]


def test_extras_that_messages_name_install_the_missing_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    base = {Requirement(text).name for text in project["dependencies"]}
    for package, extra in _EXTRAS.values():
        named = {Requirement(text).name for text in project["optional-dependencies"][extra.name]}
        closure = Closure()
        if package not in named:  # the extra requires the package indirectly
            closure.add(PACKAGE, [extra.name])
        assert package in named | closure.needs.keys()
        assert package not in base


def run(command: Sequence[str], folder: Path, environ: dict[str, str] | None = None) -> tuple[int, str]:
    """Run a command, and return its exit code and its output on one line."""
    variables = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", **(environ or {})}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, env=variables)
    assert "Traceback" not in done.stderr
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def write_project(folder: Path) -> None:
    """Write a project, a manifest, a fleet file, and in another folder a policy."""
    documents = {
        "kdeclare.yaml": ("Project", "shop", {"environments": {"lab": {"bootstrapServers": "127.0.0.1:1"}}}),
        "manifests/orders.yaml": ("Topic", "orders", {"partitions": 1, "replicationFactor": 1}),
        "more/pattern.yaml": (
            "Defaults",
            "small",
            {"kind": "Topic", "selector": {"names": ["/(orders|paym.nts)+/"]}, "defaults": {"partitions": 1}},
        ),
        "policies/few.yaml": ("Policy", "few", {"rule": "topic != 'x'", "actions": ["CREATE"]}),
        "fleet.yaml": ("Fleet", "shop", {"clusters": [{"name": "eu", "project": "kdeclare.yaml"}]}),
    }
    for file, (kind, name, spec) in documents.items():
        path = folder / file
        path.parent.mkdir(exist_ok=True)
        document = {"apiVersion": "kdeclare/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        path.write_text(yaml.safe_dump(document))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("fleet", "audit", "fleet.yaml", "--out", "audits"), 1, NEEDS_FLEET),
        (("validate", "policies"), 1, f"error: {NEEDS_POLICIES}"),
    ],
)
def test_missing_extra_is_named_with_its_command(
    tmp_path: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    write_project(tmp_path)
    script = WITHOUT_EXTRAS.format(modules=[*_EXTRAS])
    found_code, text = run([sys.executable, "-c", script, *arguments], tmp_path)
    assert found_code == code
    assert words in text


def test_system_without_file_locks_is_named(tmp_path: Path) -> None:
    write_project(tmp_path)
    script = WITHOUT_EXTRAS.format(modules=["fcntl"])  # as on Windows
    assert run([sys.executable, "-c", script, "plan", "manifests"], tmp_path) == (
        1,
        "error: Operating system is not supported kdeclare locks files with flock, which Windows does not "
        "have. hint: Run kdeclare in the Windows Subsystem for Linux or in a container.",
    )


@pytest.fixture(scope="module")
def kdeclare(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of ``kdeclare`` in a virtual environment with the packages of a base installation.

    The packages are links to those of the tests, and nothing is fetched.
    """
    folder = tmp_path_factory.mktemp("base")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    scheme = {"base": str(folder), "platbase": str(folder)}
    site = Path(sysconfig.get_path("purelib", "venv", scheme))
    for name in list_base_packages():
        package = distribution(name)
        tops = {Path(file).parts[0] for file in package.files or ()} - {"..", "__pycache__"}
        for top in tops:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(package.locate_file(top))))
    (site / "kdeclare.pth").write_text(f"{ROOT}\n")
    command = folder / "bin" / "kdeclare"
    command.write_text(f"#!{folder}/bin/python\nfrom kdeclare.__main__ import run\nrun()\n")
    command.chmod(0o755)
    return str(command)


@pytest.fixture
def served() -> Iterator[ServedCluster]:
    """A cluster with one broker."""
    cluster = ServedCluster(MemoryCluster({1: "a"}), reserve_ports(lambda first: [first]))
    yield cluster
    cluster.close()


@pytest.mark.slow
def test_base_installation_plans_and_applies(kdeclare: str, tmp_path: Path, served: ServedCluster) -> None:
    write_project(tmp_path)
    environ = {"PYTHONPATH": ""}
    reach = ("--bootstrap-server", served.bootstrap)

    def call(*arguments: str, code: int = 0) -> str:
        found_code, text = run([kdeclare, *arguments], tmp_path, environ)
        assert found_code == code, text
        return text

    search = f"import importlib.util as u; print([n for n in {[*_EXTRAS]!r} if u.find_spec(n)])"
    python = str(Path(kdeclare).with_name("python"))
    assert run([python, "-c", search], tmp_path, environ) == (0, "[]")
    assert "schema_registry" in call("providers")
    assert "Valid" in call("validate", "manifests", "more")
    assert "1 to create" in call("plan", "manifests", "more", *reach)
    call("apply", "manifests", "more", "--yes", *reach)
    assert "No changes." in call("plan", "manifests", "more", *reach)
    assert served.memory.topics().keys() == {"orders"}
    assert "ok Python" in call("doctor", *reach)
    assert "Find drift in a fleet" in call("fleet", "--help")
    assert NEEDS_FLEET in call("fleet", "audit", "fleet.yaml", "--out", "audits", code=1)
    assert NEEDS_POLICIES in call("plan", "manifests", "policies", *reach, code=1)
