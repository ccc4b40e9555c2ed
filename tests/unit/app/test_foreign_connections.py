"""Systems of third-party providers: settings in the project file, connections and faults."""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict, Field

from kdeclare.app.authoring.schema import build_manifest_schema
from kdeclare.app.connections import ConnectionCache, explain_fault
from kdeclare.app.doctor import run_doctor
from kdeclare.app.workspace import Workspace, WorkspaceOptions, open_workspace
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.live.faults import Fault
from kdeclare.core.parts import Connections
from kdeclare.core.provider import entry_points
from kdeclare.core.provider.connection import ConnectionContext, ConnectionType
from kdeclare.core.provider.entry_points import InstalledEntryPoint
from kdeclare.core.provider.installed_providers import GROUP
from kdeclare.core.provider.provider import (
    Check,
    CheckSection,
    CheckStatus,
    ExaminationRequest,
    ExaminationResult,
    Provider,
)
from kdeclare.core.secrets.scrubber import SCRUBBER
from kdeclare.core.secrets.secret_refs import SecretText
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.unit.cli.test_providers import clear_caches


class LibrarySettings(BaseModel):
    """The settings for connecting to a library."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    url: str = Field(description="Where the library is.")
    token: SecretText | None = None
    shelves: int = 3


@dataclass
class LibraryConnection:
    url: str
    closed: threading.Event = field(default_factory=threading.Event)

    def check(self) -> None:
        """Always responds."""

    def close(self) -> None:
        self.closed.set()


@dataclass(frozen=True)
class LibraryTarget:
    url: str
    token: str = field(repr=False)

    def open(self, timeout_s: float) -> LibraryConnection:
        made = LibraryConnection(self.url)
        OPENED.append((self, made))
        return made


OPENED: list[tuple[LibraryTarget, LibraryConnection]] = []


def locate_library(settings: LibrarySettings, surroundings: ConnectionContext) -> LibraryTarget:
    return LibraryTarget(settings.url, settings.token.value if settings.token else "")


def explain_library_fault(fault: Fault, name: str) -> Diagnostic | None:
    if fault.error != "BOOK_IS_LENT":
        return None
    return error("book-lent", "The book is lent", f"{name}: {fault.message}.")


class BakerySettings(BaseModel):
    """A bakery needs no settings."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    oven: str = "electric"


@dataclass(frozen=True)
class BakeryConnection:
    oven: str

    def check(self) -> None:
        if self.oven == "wood":
            raise Fault("OVEN_IS_OUT", "no wood is left")


@dataclass(frozen=True)
class BakeryTarget:
    oven: str

    def open(self, timeout_s: float) -> BakeryConnection:
        if self.oven == "cold":
            raise KdeclareError(error("oven-cold", "The oven is cold"))
        return BakeryConnection(self.oven)


def find_oven(settings: BakerySettings, surroundings: ConnectionContext) -> BakeryTarget:
    return BakeryTarget(settings.oven)


TO_LIBRARY = ConnectionType(LibraryConnection, LibrarySettings, locate_library, explain=explain_library_fault)
TO_BAKERY = ConnectionType(BakeryConnection, BakerySettings, find_oven)


def examine_library(request: ExaminationRequest) -> ExaminationResult:
    if request.surroundings is None:
        return ExaminationResult()
    settings = request.get_settings(LibrarySettings)
    check = Check("Address", CheckStatus.FAILED, f"{settings.url} is shut")
    return ExaminationResult((CheckSection("Library", (check,)),))


LIBRARY = Provider("library", (), (), connection=TO_LIBRARY, examine=examine_library)
BAKERY = Provider("bakery", (), (), connection=TO_BAKERY)


@pytest.fixture(autouse=True)
def _installed_providers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    clear_caches()
    own = entry_points.find_all()
    points = [
        InstalledEntryPoint(GROUP, name, f"{__name__}:{name.upper()}") for name in ("library", "bakery")
    ]
    monkeypatch.setattr(entry_points, "find_all", lambda: (*own, *points))
    monkeypatch.chdir(tmp_path)
    OPENED.clear()
    yield
    clear_caches()


Write = Callable[[str], None]


@pytest.fixture
def write_environment(tmp_path: Path) -> Write:
    """Write a project file with these settings in its environment ``lab``."""

    head = "apiVersion: kdeclare/v1\nkind: Project\nmetadata: {name: p}\nspec:\n  environments:\n    lab:\n"

    def write_project(environment: str) -> None:
        lines = (f"      {line}\n" for line in environment.splitlines())
        (tmp_path / "kdeclare.yaml").write_text(head + "".join(lines))

    return write_project


def open_test_workspace(keeper: ConnectionCache | None = None, **environ: str) -> Workspace:
    return open_workspace(
        WorkspaceOptions(), environ, Connections(KafkaConnection(MemoryCluster())), keeper=keeper
    )


def catch_problem(act: Callable[[], object]) -> Diagnostic:
    with pytest.raises(KdeclareError) as raised:
        act()
    (found,) = raised.value.diagnostics
    return found


STATED = """\
bootstrapServers: lab:9092
providers:
  library:
    url: https://books
    token: ${env.LIBRARY_TOKEN}
"""


def connect_both(found: Workspace) -> tuple[LibraryConnection, BakeryConnection]:
    with found.open_connections() as connections:
        assert connections.get(LibraryConnection) is connections.get(LibraryConnection)
        return connections.get(LibraryConnection), connections.get(BakeryConnection)


def test_connections_of_two_providers_open_once_and_close(write_environment: Write) -> None:
    write_environment(STATED)
    library, bakery = connect_both(open_test_workspace(LIBRARY_TOKEN="s3cret-token"))
    ((target, opened),) = OPENED
    assert (target.url, target.token, opened) == ("https://books", "s3cret-token", library)
    assert bakery == BakeryConnection("electric")
    assert library.closed.wait(60)
    assert "s3cret-token" not in SCRUBBER.scrub("the token is s3cret-token")


def test_unused_connection_is_not_opened_and_its_secret_not_read(write_environment: Write) -> None:
    write_environment(STATED)
    assert "s3cret" not in repr(open_test_workspace(LIBRARY_TOKEN="s3cret"))
    assert not OPENED


def test_cache_reuses_connection_between_shell_commands(write_environment: Write) -> None:
    write_environment(STATED)
    kept = ConnectionCache()
    first, _ = connect_both(open_test_workspace(kept, LIBRARY_TOKEN="one"))
    again, _ = connect_both(open_test_workspace(kept, LIBRARY_TOKEN="one"))
    other, _ = connect_both(open_test_workspace(kept, LIBRARY_TOKEN="two"))
    assert again is first
    assert other is not first
    assert not first.closed.is_set()
    kept.close()
    assert first.closed.wait(60)
    assert other.closed.wait(60)


def test_get_reports_environment_without_provider_settings(write_environment: Write) -> None:
    write_environment("bootstrapServers: lab:9092")
    found = catch_problem(lambda: connect_both(open_test_workspace()))
    assert (found.code, found.subject) == ("provider-not-configured", "library")
    assert found.place is not None
    assert (Path(found.place.file).name, found.place.line) == ("kdeclare.yaml", 6)
    assert "'lab'" in found.detail
    assert "providers: {library: {url: …}}" in found.hint


def test_get_without_project_file_hints_at_project_file() -> None:
    assert "project file" in catch_problem(lambda: connect_both(open_test_workspace())).hint


@pytest.mark.parametrize(
    ("environment", "line", "code", "words"),
    [
        ("providers: {libary: {url: x}}", 7, "unknown-field", ["Did you mean 'library'?"]),
        ("providers: {library: {ulr: x, url: z}}", 7, "unknown-field", ["Did you mean 'url'?"]),
        ("providers: {library: {shelves: 2}}", 7, "missing-field", ["url"]),
        ("providers:\n  library:\n    url: x\n    shelves: many", 10, "wrong-type", ["whole number", "many"]),
        ("providers:\n  library:\n    url: x\n    token: [s3cret]", 10, "wrong-type", ["token"]),
    ],
)
def test_settings_errors_point_to_their_line(
    write_environment: Write, environment: str, line: int, code: str, words: list[str]
) -> None:
    write_environment(environment)
    found = catch_problem(open_test_workspace)
    assert found.code == code
    assert found.place is not None
    assert found.place.line == line
    assert all(word in f"{found.detail} {found.hint}" for word in words)
    assert "s3cret" not in f"{found.detail} {found.hint}"


def test_unresolvable_reference_points_to_its_line(write_environment: Write) -> None:
    write_environment(STATED)
    found = catch_problem(open_test_workspace)
    assert found.code == "undefined-variable"
    assert found.place is not None
    assert found.place.line == 11


def test_schema_includes_provider_settings_with_descriptions() -> None:
    definitions = build_manifest_schema("Project")["$defs"]
    assert set(definitions["ProviderSettings"]["properties"]) == {"library", "bakery"}
    library = definitions["LibrarySettings"]["properties"]
    assert library["url"]["description"] == "Where the library is."
    assert "s3cret" not in json.dumps(definitions)


def test_explain_fault_uses_matching_provider() -> None:
    assert explain_fault(Fault("BOOK_IS_LENT", "until May"), "lab").code == "book-lent"
    assert explain_fault(Fault("INVALID_CONFIG", "no"), "lab").code == "refused-by-cluster"


def test_doctor_shows_result_of_provider_examination(
    write_environment: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_environment("providers:\n  library:\n    url: https://books")
    view = run_doctor(WorkspaceOptions(), lambda *_: None, {})
    assert [section.title for section in view.sections][-2:] == ["State", "Library"]
    (check,) = view.sections[-1].checks
    assert (check.what, view.exit_code) == ("https://books is shut", ExitCode.ERROR)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("oven", "standing", "what"),
    [
        ("electric", CheckStatus.OK, "the system is reachable"),
        ("cold", CheckStatus.FAILED, "The oven is cold"),
        ("wood", CheckStatus.FAILED, "no wood is left"),
    ],
)
def test_doctor_connects_when_provider_has_no_examination(
    write_environment: Write, oven: str, standing: CheckStatus, what: str
) -> None:
    write_environment(f"providers:\n  bakery:\n    oven: {oven}")
    sections = run_doctor(WorkspaceOptions(), lambda *_: None, {}).sections
    (found,) = [section for section in sections if section.title == "Bakery"]
    assert found == CheckSection("Bakery", (Check("Connection", standing, what),))


def test_doctor_omits_provider_without_settings(write_environment: Write) -> None:
    write_environment("variables: {a: 1}")
    titles = [section.title for section in run_doctor(WorkspaceOptions(), lambda *_: None, {}).sections]
    assert titles == ["This machine", "Project", "State", "Cluster"]


def test_given_connections_work_beside_opened_ones(write_environment: Write) -> None:
    write_environment(STATED)
    cluster = MemoryCluster()
    environ = {"LIBRARY_TOKEN": "x"}
    found = open_workspace(WorkspaceOptions(), environ, Connections(KafkaConnection(cluster)))
    with found.open_connections() as connections:
        assert connections.get(KafkaConnection).cluster is cluster
        assert connections.get(LibraryConnection).url == "https://books"
